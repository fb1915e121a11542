//===- Launches.h - the predicted time of a block's launches ----*- C++ -*-===//
//
// Each launch of a transformer block as the plain numbers of the cost model (LaunchWork), for which
// predict() of passes/machine/CostModel.h gives the time. Nothing is compiled.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_STEP_LAUNCHES_H
#define TK_COMPILER_STEP_LAUNCHES_H

#include "compiler/step/Block.h"

namespace tk::step {

/// A launch with its operations and bytes, for reports.
struct Launch {
  double flops = 0;  ///< of the matrix unit
  double bytes = 0;  ///< of device memory, read and written
  double math = 0;   ///< nanoseconds of the busiest unit
  double memory = 0; ///< nanoseconds of memory or L2
  double total = 0;
  Bound bound = Bound::Memory;
};

/// `groups` products of rows x inner with inner x columns. Rows are those of one group.
struct Product {
  double rows, columns, inner;
  double groups = 1;
};

/// The fastest of several tiles.
Launch product(const Product &product, const ElementType &type, const Machine &machine);

/// Attention of `sequences` sequences of `length` rows and keys.
struct Attention {
  double sequences, length, heads, kvHeads, headSize;
  bool isCausal, isBackward;
};
Launch attention(const Attention &attention, const ElementType &type, const Machine &machine);

/// A launch that reads and writes so many bytes of device memory and computes little.
Launch pass(double readBytes, double writtenBytes, const Machine &machine);

/// Operations a nanosecond of the matrix unit that long products sustain: the C of the limits.
double sustainedRate(const ElementType &type, const Machine &machine);

} // namespace tk::step

#endif // TK_COMPILER_STEP_LAUNCHES_H
