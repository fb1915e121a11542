//===- TextBatch.cpp - kernels of several texts in one object -------------===//
#include "compiler/codegen/emu/TextBatch.h"

#include <algorithm>

namespace tk::emu {

bool TextBatch::add(std::string_view text, const std::vector<std::string> &symbols) {
  std::lock_guard lock(mutex);
  if (compiled || std::any_of(symbols.begin(), symbols.end(),
                              [&](const std::string &name) { return defined.count(name) > 0; }))
    return false;
  defined.insert(symbols.begin(), symbols.end());
  texts += text;
  return true;
}

Expected<std::shared_ptr<HostCode>> TextBatch::code() {
  std::lock_guard lock(mutex);
  if (!compiled)
    compiled = compileOnHost(texts);
  return *compiled;
}

} // namespace tk::emu
