//===- Timing.h - when asynchronous effects happen ---------------*- C++ -*-===//
#ifndef TK_COMPILER_CODEGEN_EMU_TIMING_H
#define TK_COMPILER_CODEGEN_EMU_TIMING_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace tk::emu {

/// What a machine may do at any time between the start of an asynchronous operation and the wait
/// for it, the emulator does at the end, at the start, or at either by chance; by chance it also
/// runs threads in any order.
struct Timing {
  enum class Kind : uint8_t { late, early, random };
  Kind kind = Kind::late;
  uint64_t seed = 0;

  /// That of a kernel's run of this number, from 0, where nobody chooses one: late, then early,
  /// then by chance.
  static Timing ofRun(unsigned run);
  /// This timing in a kernel's run of that number, from 0: by chance, another chance in each.
  Timing inRun(unsigned run) const { return {kind, kind == Kind::random ? seed + run : seed}; }
  /// "late", "early" or "random:SEED".
  static std::optional<Timing> parse(std::string_view text);
};

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_TIMING_H
