//===- Costs.h - measured times that rewrites decide by ---------*- C++ -*-===//
//
// Times, shares of times and sizes that the rewrites of tensors compare, each once. A rewrite that
// stores an operand in another form compares what the contraction saves with the time of the copy
// (cost::byte and cost::launch of CostModel.h). Times are in nanoseconds of the whole device where
// no other unit is given. A time "of a term" is that of one multiply-add: rows * columns * elements
// of the sum. What was measured was measured on an H200; "H100" marks what was measured there too.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_COSTS_H
#define TK_PASSES_MACHINE_COSTS_H

#include <cstdint>

namespace tk::cost {

//===----------------------------------------------------------------------===//
// Operands in another form (passes/tensor/operands)
//===----------------------------------------------------------------------===//

/// Saved of a term by an operand whose contiguous index is the other operand's (AlignSums).
/// 1024 x 1024 outputs of 32 x 64 terms: 109 us for 287 in f32, 12 for 145 in bf16.
inline constexpr double savedByAlignedSum = 6e-5;
/// Saved of a term by gathering an operand for warpgroups instead of warps (GatherFactors).
/// 8192 x 14336 outputs of 4096 terms: a third of 5.8 ms.
inline constexpr double savedByGatheredOperand = 2.5e-6;
/// Saved of a term of a causal chain by a stored operand, counted without the mask (StoreFactors).
/// 4 x 32 heads of 4096 rows and keys of 128: 0.7 ms for 2.6.
inline constexpr double savedByStoredOperand = 3.4e-6;
/// Saved of a term by an operand of tf32 that warpgroups can read (TransposeFactors).
/// Measured with 4096 x 4096 outputs of 4096 terms.
inline constexpr double savedByTransposeForWarpgroups = 6.8e-6;
/// Saved of a term by an f32 operand of CUDA cores that is contiguous across the sum
/// (TransposeFactors, PadFactors). One such operand: 2.89 ms, none: 3.08, two: 2.70.
inline constexpr double savedByTransposeForCores = 2.7e-6;
/// Outputs of a multiprocessor from which on the latter is saved: those of one large tile.
inline constexpr double outputsOfLargeTile = 128 * 128;
/// Saved of a term by operands with the batch first (TurnBatches).
/// 128 products of 256 x 256 x 256: 24 us for 372.
inline constexpr double savedByOuterBatch = 1.6e-4;
/// Saved of an element of the sum, by each wave of tiles, if padding makes warpgroups possible
/// (PadFactors). At 1000 to 4001 rows, columns and terms, 0.97 to 1.2 us for 32 elements fall to
/// 0.25 of that.
inline constexpr double savedByPaddingOfWave = 25;
/// Saved of a term by copies of 16 bytes instead of 4 in f32, and instead of 8 in f64 (PadFactors).
inline constexpr double savedByWideCopiesOfF32 = 6e-6, savedByWideCopiesOfF64 = 1.2e-5;
/// Saved of a term by the stored weights of a chain with many columns (StoreWeights).
/// 16 x 128 rows, 512 columns, 4096 terms: 25 us for 170.
inline constexpr double savedByStoredWeights = 3e-5;
/// Saved of a term by a product over all places of an operand that is read at a place of two
/// indices (SeparatePlaces). Predicted: 8 x 1024 x 1024 results of 64 terms take 2234 us.
inline constexpr double termOfPlacedOperand = 4e-3;
/// How many times the results of such a product there may be places of all rows. Assumed.
inline constexpr double mostPlacesOfProduct = 2;
/// A long function of one element (StoreInvariants).
inline constexpr double longFunction = 1.4e-3;
/// An instruction of one thread: 132 multiprocessors issue 128 a cycle at 1.7 GHz
/// (StoreInvariants).
inline constexpr double instruction = 3.5e-5;
/// To read a byte that many blocks share, from the second-level cache (StoreInvariants).
inline constexpr double sharedByte = 6e-5;

//===----------------------------------------------------------------------===//
// Products in parts and convolutions (passes/tensor/split, passes/tensor/windows)
//===----------------------------------------------------------------------===//

/// A term of one output on one multiprocessor, in tiles of the full rate (WarpgroupTiles.h), for
/// each pair of bf16 parts (SignificandCost, WindowCost). Measured on an H100 too.
inline constexpr double termOfProcessor = 3.4e-4;
/// Bytes of one part in bf16, and of an element of f32 that is stored in parts.
inline constexpr double bytesOfPart = 2, bytesOfWide = 4;
/// Bytes of scratch memory that the parts of a compute op's operands may take: 4 GiB.
inline constexpr double mostScratchOfParts = double(int64_t(1) << 32);
/// Launches beside the product by parts, in launches that do not overlap: five, for each operand's
/// rows, all scales and each operand's parts (SignificandCost).
inline constexpr double launchesOfParts = 2;
/// Launches that a product with a widened operand should make up for: its sum may be cut
/// (SignificandCost).
inline constexpr double launchesOfWidened = 2;
/// Launches beside the product of a flattened convolution (WindowCost).
inline constexpr double launchesOfConvolution = 3;
/// The time of a finer split relative to that of the coarser one, at most (SignificandCost,
/// WindowCost). Assumed.
inline constexpr double mostTimeOfFinerSplit = 0.9;
/// The time of bf16 parts beside a 16-bit operand relative to CUDA cores, at most
/// (SignificandCost). Assumed: CUDA cores take what two operands of f32 do.
inline constexpr double mostTimeOfMixedParts = 0.8;
/// The time of a scan in chunks relative to that of whole rows, at most (SplitScans).
inline constexpr double mostTimeOfChunks = 0.8;
/// Saved time from which on a convolution is flattened into four kernels (FlattenWindows).
inline constexpr double leastTimeToFlatten = 20000;
/// To read or write a byte beside the product of a flattened convolution (WindowCost).
inline constexpr double byteOfConvolution = 2.4e-4;
/// Saved of a term by a tile of pairs that multiplies by reciprocals, for a quotient by a value of
/// all pairs (PackOperands). Predicted: 4096 x 4096 sums of 128 terms take 2834 us with quotients.
inline constexpr double savedByReciprocals = 1e-3;
/// A term of a convolution as it is written, on CUDA cores in f32 (WindowCost): the number of taps
/// is known; terms are counted through (32 x 64 x 224 x 224 results of 27 terms: 354 us); nothing
/// is known (32 x 128 x 54 x 54 results of 576 terms: about 0.9 ms).
inline constexpr double termOfKnownTaps = 6.8e-5, termOfCountedTaps = 1.2e-4,
                        termOfUnknownTaps = 1.3e-4;
/// A term of a convolution in 16 bits with contiguous channels (32 x 28 x 28 x 256 results of 2304
/// terms: 109 us), and with others (WindowCost).
inline constexpr double termOfContiguousChannels = 7.4e-6, termOfStridedChannels = 4e-5;
/// A term of a transposed convolution, whose taps threads gather (WindowCost). 2 x 32 x 32 x 56 x
/// 56 results of 64 terms: 4.2 ms in f32.
inline constexpr double termOfGatheredTaps = 5e-3;
/// The share of those times that a convolution takes as a product on the matrix unit before it is
/// flattened (WindowCost).
inline constexpr double shareOfMatrixUnit = 0.9;
/// The time of a term on CUDA cores is that of tiles of so many rows. With fewer rows it grows by
/// this power of their ratio (WindowCost).
inline constexpr double rowsOfCoreTile = 64, powerOfFewRows = 0.4;

//===----------------------------------------------------------------------===//
// Ping-pong scheduling (PlanTeams), in elements of a sum
//===----------------------------------------------------------------------===//

/// Elements of the sum during which a warpgroup's epilogue runs under the other's products: of its
/// store, of each long function, of each tile that it loads.
inline constexpr double pingPongHidesStore = 130, pingPongHidesFunction = 100,
                        pingPongHidesTile = 50;
/// Elements of the sum that a kernel loses to ping-pong scheduling once.
inline constexpr double pingPongLoses = 1300;
/// The share of all time that ping-pong scheduling loses: always, beside a tile that is loaded, and
/// where several sums share the registers. One of two warpgroups that share a tile ends earlier
/// (tk-stagger-warpgroups). Against it, ping-pong scheduling takes 3 % longer with 4096 terms in
/// both of the latter cases, 4 % with 2048 terms of two sums.
inline constexpr double pingPongLosesShare = 0.015, pingPongLosesBesideTile = 0.035,
                        pingPongLosesBesideSums = 0.065;
/// The shortest sum that was measured.
inline constexpr int64_t pingPongLeastTerms = 1024;

//===----------------------------------------------------------------------===//
// Fusion and caches (passes/tensor/fuse, passes/launch)
//===----------------------------------------------------------------------===//

/// Multiply-adds of a row from which on idle multiprocessors cost more than a launch: a tile of 128
/// rows takes about 10 us for them (ReducedProducts).
inline constexpr int64_t termsThatOutweighLaunch = int64_t(1) << 19;
/// Terms of an output that take as long as to write and read it in f32: 8 bytes at 4.5 TB/s and 600
/// TFLOP/s (ReducedProducts).
inline constexpr int64_t termsOfStoredOutput = 512;
/// Operations that a compute op may repeat for an element: a multiprocessor executes about as many
/// while its share of the memory's rate moves an element of f32 out and in again (FusionBudget).
inline constexpr uint64_t mostRepeatedOperations = 256;
/// Operations that all readers of a producer may repeat (FusionBudget). Assumed.
inline constexpr uint64_t mostRepeatedCode = 2048;
/// Lost of a term of a product by a reduction of its operand's elements in the same loop: the
/// operand goes through registers, and no warpgroup multiplies (FuseProducers).
/// 256 x 131072 outputs of 512 terms: 238 us, where the product alone takes 67 as predicted.
inline constexpr double lostByReducedOperand = 8e-6;
/// Bytes of a launch from which on evict-last hints pay (KeepReads): eight times an H200's L2.
/// Launches of 448 MB and more gain, launches of 256 MB do not.
inline constexpr int64_t bytesThatNeedHints = int64_t(400) << 20;

} // namespace tk::cost

#endif // TK_PASSES_MACHINE_COSTS_H
