//===- RowLimits.h - elements and threads of rows ---------------*- C++ -*-===//
//
// What a thread, a block and a cluster hold of a row. PlanRows.cpp and KeptRows.cpp plan by it.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LIMITS_ROWLIMITS_H
#define TK_PASSES_MACHINE_LIMITS_ROWLIMITS_H

#include <cstdint>

namespace tk {

/// How many of a row's elements of 16 bits a thread has; half as many of wider ones. Twice as many
/// fit its registers where nothing but they is needed, some fewer where other rows are read beside.
inline constexpr int64_t elementsOfThread = 32, mostElementsOfThread = 64, manyElements = 56;
/// With so many threads of 64 registers a block takes half of a multiprocessor, or all of it.
inline constexpr int64_t threadsOfHalf = 512, threadsOfBlock = 1024;
/// The longest row that a cluster of 8 blocks of half a multiprocessor shares and holds. Longer
/// ones, of which each thread would have more, are faster read again: by the cluster, as long as
/// the rows that are gone through at a time stay in the second-level cache.
inline constexpr int64_t longestSpreadRow = 8 * threadsOfHalf * elementsOfThread;
/// The longest row that the shared memory of a cluster of 16 blocks keeps, two clusters at a time.
inline constexpr int64_t longestKeptRow = 16 * threadsOfHalf * mostElementsOfThread;

} // namespace tk

#endif // TK_PASSES_MACHINE_LIMITS_ROWLIMITS_H
