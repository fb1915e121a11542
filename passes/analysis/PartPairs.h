//===- PartPairs.h - how many parts an f32 number has -----------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_PARTPAIRS_H
#define TK_PASSES_ANALYSIS_PARTPAIRS_H

#include <cstdint>

namespace tk {

/// Parts that are stored of an f32 number, and pairs of parts that are multiplied of two.
inline constexpr int64_t countParts = 4, countPairs = 6;

} // namespace tk

#endif // TK_PASSES_ANALYSIS_PARTPAIRS_H
