//===- Instructions.h - kinds of instructions of GPU code --------*- C++ -*-===//
#ifndef TK_COMPILER_INSTRUCTIONS_H
#define TK_COMPILER_INSTRUCTIONS_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace tk {

enum class InstructionKind : uint8_t {
  Matrix,     ///< the matrix unit
  Special,    ///< special functions, such as exponentials
  Load,       ///< global memory, copies into shared memory included
  Store,      ///< global memory, atomic operations included
  Shared,     ///< shared memory
  Shuffle,    ///< between lanes
  Barrier,    ///< barriers, fences and waits
  Arithmetic, ///< of floats
  Integer,    ///< of integers: addresses and conditions
  Other,      ///< moves, conversions and branches
};
inline constexpr size_t numInstructionKinds = 10;
llvm::StringRef nameOf(InstructionKind kind);

/// The kind of the instruction in a line of PTX or SASS; nothing if there is none.
std::optional<InstructionKind> kindOfPtx(llvm::StringRef line);
std::optional<InstructionKind> kindOfSass(llvm::StringRef line);

} // namespace tk

#endif // TK_COMPILER_INSTRUCTIONS_H
