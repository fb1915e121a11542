//===- Timing.cpp - when asynchronous effects happen ----------------------===//
#include "compiler/codegen/emu/Timing.h"

#include <charconv>

namespace tk::emu {

Timing Timing::ofRun(unsigned run) {
  if (run < 2)
    return {run == 0 ? Kind::late : Kind::early, 0};
  return {Kind::random, run};
}

std::optional<Timing> Timing::parse(std::string_view text) {
  if (text == "late")
    return Timing{Kind::late, 0};
  if (text == "early")
    return Timing{Kind::early, 0};
  constexpr std::string_view prefix = "random:";
  if (!text.starts_with(prefix))
    return std::nullopt;
  text.remove_prefix(prefix.size());
  Timing timing{Kind::random, 0};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), timing.seed);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return timing;
}

} // namespace tk::emu
