//===- PhaseState.h - a barrier with phases ----------------------*- C++ -*-===//
#ifndef TK_COMPILER_CODEGEN_EMU_PHASESTATE_H
#define TK_COMPILER_CODEGEN_EMU_PHASESTATE_H

#include "compiler/codegen/emu/Order.h"

#include <string>

namespace tk::emu {

struct PhaseState {
  int64_t offset = 0;    ///< in shared memory
  unsigned arrivals = 0; ///< that a phase takes
  unsigned pending = 0;  ///< that the current one lacks
  int64_t bytes = 0;     ///< announced and not delivered; negative: delivered before
  unsigned phase = 0;    ///< how many have ended
  bool fenced = false;   ///< visible to the asynchronous proxy and the cluster
  Clock gathering;       ///< what the arrivals of the current phase knew
  Clock ended;           ///< what those of the phases before knew

  bool complete() const { return pending == 0 && bytes == 0; }
  /// Whether a wait for that parity goes on.
  bool passes(int parity) const { return static_cast<int>(phase & 1) != parity; }
  /// "at byte 98304, in phase 3: 1 of 2 arrivals and 16384 bytes are missing".
  std::string text() const {
    return "at byte " + std::to_string(offset) + ", in phase " + std::to_string(phase) + ": " +
           std::to_string(pending) + " of " + std::to_string(arrivals) + " arrivals and " +
           std::to_string(bytes) + " bytes are missing";
  }
};

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_PHASESTATE_H
