//===- Loops.h - limits of pipelined loops ----------------------*- C++ -*-===//
//
// Stages, registers and steps of pipelined loops (passes/pipeline). Each namespace is that of the
// file that uses it. Values without a measurement beside them are assumed; a device that differs
// much from an H200 needs them looked at.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LIMITS_LOOPS_H
#define TK_PASSES_MACHINE_LIMITS_LOOPS_H

#include <cstdint>

namespace tk::limits::compare_as_integers {

/// Elements of a row that a thread compares: the warpgroup's question costs about as much as 8
/// comparisons save in each of two rows.
inline constexpr unsigned kFewestBits = 4;
/// Steps of the longest tile that pay for the question: it stops a tile's beginning, but less where
/// the next scores are in flight.
inline constexpr int64_t kFewestSteps = 64, kFewestStepsUnderProduct = 16;
/// Columns of sums that ptxas orders worse in the copy where all tiles have the same steps: d 256
/// loses up to 5 %, and gains 4 to 10 % under a causal mask. A window loses 3 to 10 %.
inline constexpr int64_t kWideSums = 256;

} // namespace tk::limits::compare_as_integers

namespace tk::limits::defer_exchanges {

/// A multiprocessor of sm_90 has 16 exponentials and 2048 multiply-adds of 16 bits a cycle (CUDA
/// programming guide, arithmetic instructions; H100 data sheet).
inline constexpr int64_t kMultiplyAdds = 2048 / 16;

} // namespace tk::limits::defer_exchanges

namespace tk::limits::form_bulk_stores {

/// Buffers that pieces of results take turns in.
inline constexpr int64_t kBuffers = 2;
/// What accumulators and the loads of a piece may take of a thread's 1020 bytes of registers.
inline constexpr int64_t kRegisterBytes = 640;

} // namespace tk::limits::form_bulk_stores

namespace tk::limits::keep_references {

/// Sums of weights that are as exact as under the greatest score, and leave sums of products 2^64
/// for the other factor; and those whose logarithms are as exact beside the reference as they are
/// where there are some thousand weights.
inline constexpr float kLeastSum = 0x1p-64f, kMostSum = 0x1p64f, kLeastOfLog = 0x1p-11f,
                       kMostOfLog = 0x1p23f;

} // namespace tk::limits::keep_references

namespace tk::limits::overlap_operands {

/// Of a register of a thread.
inline constexpr unsigned registerBits = 32;
/// Registers of vectors from global memory that a thread carries to the next iteration at most.
inline constexpr int64_t mostOfVectors = 32;

} // namespace tk::limits::overlap_operands

namespace tk::limits::overlap_scores {

/// Registers of a thread beside its tiles: addresses, positions, rows' maxima and sums.
inline constexpr int64_t kOtherRegisters = 24;

} // namespace tk::limits::overlap_scores

namespace tk::limits::overlap_tiles {

/// Columns of sums of which steps are short, and terms of a range that are many.
inline constexpr int64_t kWideSums = 256, kLongRange = 8192;

} // namespace tk::limits::overlap_tiles

namespace tk::limits::rings {

/// Stages beyond which more bring nothing where warpgroups come apart (H100, soft caps in windows:
/// three have 0.995 to 1.00 of four).
inline constexpr int64_t kStagesOfUse = 3;

} // namespace tk::limits::rings

namespace tk::limits::split_masked_steps {

/// Measured: with more steps than this it pays.
inline constexpr int64_t kFewSteps = 4;

} // namespace tk::limits::split_masked_steps

namespace tk::limits::sum_in_products {

/// Bytes of shared memory for what is no tile: barriers.
inline constexpr int64_t kOtherBytes = 2048;

} // namespace tk::limits::sum_in_products

namespace tk::limits::warp_specialization {

/// Moving registers takes whole warpgroups; the producer is one so that it can give some away.
inline constexpr int64_t kProducerWarps = 4;
/// Of a producer's thread; beside many consumers, or large sums, it has to do with the fewest there
/// are.
inline constexpr int64_t kProducerRegisters = 40, kFewestRegisters = 24, kManyConsumers = 384;
/// Bytes of accumulators from which on a consumer's thread is short of registers, and needs all
/// that it can have.
inline constexpr int64_t kLargeAccumulators = 256, kLargestAccumulators = 768;

} // namespace tk::limits::warp_specialization

namespace tk::limits::weight_sums {

/// Columns that a product has at most.
inline constexpr int64_t kMostColumns = 256;

} // namespace tk::limits::weight_sums

namespace tk::limits::pair_sums {

/// Registers of a thread beside its tiles: addresses, positions and scales.
inline constexpr int64_t otherRegisters = 32;
/// Stages of the circular buffer: two that are read, and one that is loaded.
inline constexpr int64_t leastStages = 3;

} // namespace tk::limits::pair_sums

#endif // TK_PASSES_MACHINE_LIMITS_LOOPS_H
