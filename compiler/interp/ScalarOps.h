//===- ScalarOps.h - arithmetic of the reference, by kinds of number -*- C++ -*-===//
//
// Floats are computed with in f64 and rounded by whoever calls; integers are held in 64 bits, as
// their width wraps them.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_INTERP_SCALAROPS_H
#define TK_COMPILER_INTERP_SCALAROPS_H

#include "compiler/interp/Program.h"

namespace tk::interp::detail {

// FloatOps.cpp. The operations on one and on two floats return false for other codes.
bool floatUnary(Code code, double a, double &r);
bool floatBinary(const Instruction &in, double a, double b, double &r);
/// `predicate` is an arith::CmpFPredicate.
bool compareFloats(uint8_t predicate, double a, double b);

// IntegerOps.cpp.
bool integerBinary(const Instruction &in, int64_t a, int64_t b, int64_t &r);
/// `predicate` is an arith::CmpIPredicate.
bool compareIntegers(uint8_t predicate, Width width, int64_t a, int64_t b);
int64_t absInteger(int64_t a);
/// The number that the bits of `width` in `value` are without a sign.
uint64_t zeroExtend(Width width, int64_t value);
/// Towards zero, to the nearest number of `width`; NaN becomes 0.
int64_t toInteger(double value, Width width, bool isSigned);
/// Philox 4x32 with ten rounds: word `n % 4` of the block with counter `n / 4`, both rounded down.
uint32_t philox(uint64_t seed, int64_t n);

} // namespace tk::interp::detail

#endif // TK_COMPILER_INTERP_SCALAROPS_H
