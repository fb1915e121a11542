//===- SortCost.h - the time of sorting by a key ----------------*- C++ -*-===//
//
// Times by which passes decide whether to sort rows by a table. All are in nanoseconds for an H200,
// and follow from predictions of tkc inspect.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_SORTCOST_H
#define TK_PASSES_MACHINE_SORTCOST_H

#include "passes/machine/CostModel.h"

namespace tk::cost {

/// A multiply-add of a product whose rows each read a matrix of their own: CUDA cores wait for the
/// L2 cache. A product of 8192 x 1024 x 4096 is predicted 4.1 ms at least.
inline constexpr double ownMatrixTerm = 1.2e-4;
/// The same of matrices that lie along the sum. Rows of 16 to 64 columns of 4096 terms are
/// predicted 3.3e-4 to 5.4e-4, as are 4096 columns of 16 to 64 terms.
inline constexpr double ownMatrixTermAlong = 3.3e-4;
/// Bytes of all matrices from which on such a product reads most of them from memory: half of the
/// L2 cache of an H200.
inline constexpr double ownMatricesInCache = 25e6;
/// A multiply-add of a sorted product in 16 bits, on the matrix unit.
inline constexpr double sortedHalfTerm = 2.7e-6;
/// A multiply-add of a sum of products in 16 bits over all elements, of which a key leaves most
/// out.
inline constexpr double keyedHalfTerm = 5.2e-6;
/// A multiply-add of a sorted product in f32, on CUDA cores.
inline constexpr double sortedTerm = 5e-5;
/// A comparison of two integers in a sum that counts. 8192 x 8192 comparisons are predicted 24 us.
inline constexpr double comparison = 3.6e-4;
/// A comparison in the search for the chunk of a place, which reads through the L2 cache.
/// 1,067,000 searches in two steps of 64 comparisons are predicted 200 us.
inline constexpr double searched = 1.5e-3;
/// A term of a sum that a condition guards. Sums of 2e9 to 7e9 terms are predicted 2.5e-4 to
/// 3.1e-4, the one of 1024 x 128 x 1048576 terms 4.7e-4.
inline constexpr double guardedTerm = 2.5e-4;
/// The same of 8 columns or more, if nothing else is reduced beside: blocks have 8 groups, so that
/// elements are read once for these. 1048576 x 128 terms with 64 groups are predicted 942 us.
inline constexpr double guardedColumnTerm = 1.15e-4;
/// The same of few columns. 1048576 terms of one column and 500 to 1309 groups are predicted 3e-4
/// to 6.8e-4.
inline constexpr double guardedFewTerm = 5e-4;
/// A comparison of a row with an element that may name it, of all rows. 65536 rows and as many
/// elements are predicted 1220 us.
inline constexpr double rowComparison = 2.8e-4;
/// A comparison of elements with each other, by the block that computes a part of a row of so many
/// bytes. 65536 elements with rows of two parts are predicted 3986 us.
inline constexpr double elementComparison = 4.6e-4, bytesOfRowPart = 2048;
/// A term of a sum that counts under a condition. 1024 x 1048576 terms are predicted 184 us.
inline constexpr double countedTerm = 1.7e-4;
/// A term that is added to a counter in shared memory.
inline constexpr double binnedTerm = 2e-3;
/// The same of floats, which lanes with one key add one after the other.
inline constexpr double orderedTerm = 6e-3;
/// A term of a sum under a comparison of two rows. 64 x 32000 x 32000 terms are predicted 7.7 ms.
inline constexpr double rankedTerm = 1.2e-4;
/// The same where one of few thresholds is the bound. 64 x 128256 x 16 terms are predicted 27 us.
inline constexpr double thresholdTerm = 2.1e-4;
/// A step of a sort for an element if all multiprocessors sort. 128 rows of 16384 elements, of 105
/// steps each, are predicted 48 us. Fewer blocks than multiprocessors take as long as so many.
inline constexpr double sortedStep = 2.2e-4, sortingBlocks = 132;
/// A comparison of a digit of an element's key with a value, in a product of ones.
inline constexpr double digit = 4e-4;

} // namespace tk::cost

#endif // TK_PASSES_MACHINE_SORTCOST_H
