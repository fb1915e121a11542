//===- Differences.h - a derived gradient beside differences ----*- C++ -*-===//
//
// Evaluates a kernel and the kernel of its gradient in f64, at inputs that are moved a little so
// that nothing ties by chance, and compares the gradient of sum(d_y * y) with central differences
// of that sum: along a random direction over all of an input, and by some of its elements.
//
//===----------------------------------------------------------------------===//
#ifndef TK_TESTS_FUZZ_DIFFERENCES_H
#define TK_TESTS_FUZZ_DIFFERENCES_H

#include "compiler/CompiledSource.h"
#include "compiler/tkc/Inputs.h"

#include <string>

namespace tk::fuzz {

struct Differences {
  std::string wrong; ///< what differs; empty if nothing does
  /// Derivatives that were compared, and those near a kink or lost in roundings, which were not.
  int compared = 0, skipped = 0;
};

/// Compares what the second kernel of `source` says of the first one, at `arguments` of the second.
Differences compareWithDifferences(CompiledSource &source, const tkc::RunArguments &arguments);

} // namespace tk::fuzz

#endif // TK_TESTS_FUZZ_DIFFERENCES_H
