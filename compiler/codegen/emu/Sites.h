//===- Sites.h - places in the source, numbered ------------------*- C++ -*-===//
#ifndef TK_COMPILER_CODEGEN_EMU_SITES_H
#define TK_COMPILER_CODEGEN_EMU_SITES_H

#include "runtime/device/emu/engine.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tk::emu {

/// Numbers for places, so that shadow memory holds two bytes instead of a pointer and a line.
class Sites {
public:
  Sites() : places(1, Place("", 0)) {}

  uint16_t number(Place place) {
    const auto key =
        reinterpret_cast<uintptr_t>(place.file) * 31 + static_cast<unsigned>(place.line);
    uint16_t &cached = recent[(key ^ key >> 9) % recent.size()];
    const Place &known = places[cached];
    if (known.line == place.line && known.file == place.file)
      return cached;
    return cached = find(place);
  }
  const Place &operator[](uint16_t number) const { return places[number]; }
  /// "attn.tk:41".
  std::string text(uint16_t number) const { return text(places[number]); }
  static std::string text(const Place &place) {
    return std::string(place.file) + ":" + std::to_string(place.line);
  }

private:
  uint16_t find(Place place) {
    for (size_t i = 0; i < places.size(); ++i)
      if (places[i].line == place.line && places[i].file == place.file)
        return static_cast<uint16_t>(i);
    if (places.size() > UINT16_MAX)
      return 0;
    places.push_back(place);
    return static_cast<uint16_t>(places.size() - 1);
  }

  std::vector<Place> places;
  std::array<uint16_t, 512> recent{};
};

/// Thrown to end a run: what a kernel did wrong, and where.
struct Fault {
  std::string text;
  Place place;
  unsigned block = 0; ///< its rank in the cluster
};

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_SITES_H
