//===- RegisterIndex.h - register numbers in unrolled loops ------*- C++ -*-===//
#ifndef TK_COMPILER_CODEGEN_CUDA_REGISTERINDEX_H
#define TK_COMPILER_CODEGEN_CUDA_REGISTERINDEX_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace tk::cuda {

/// A map that is linear over bits: the image of a number is the xor of its bits' images.
using BitMap = llvm::SmallVector<unsigned, 8>;

/// A number that depends linearly, bit by bit, on the loop variable of an unrolled loop; after
/// unrolling it is a constant.
class RegisterIndex {
public:
  /// The constant `value`.
  explicit RegisterIndex(unsigned value) : constant(value) {}
  /// The variable itself, of `numBits` bits.
  /// Its lowest `zeroBits` bits are always 0 (a loop with steps).
  RegisterIndex(llvm::StringRef variable, unsigned numBits, unsigned zeroBits = 0);

  /// The image under `map`; a bit beyond it has none.
  RegisterIndex mapped(const BitMap &map) const;
  /// The sum of `steps[b]` over the bits b of this number, as an expression.
  std::string weighted(llvm::ArrayRef<unsigned> steps) const;
  /// This number xor another; the two may use different variables.
  RegisterIndex combined(const RegisterIndex &other) const;
  /// Its value where every variable is `x`.
  unsigned valueAt(unsigned x) const;
  bool isIdentity() const;
  /// Whether this is a constant, the same in every iteration.
  bool isConstant() const { return terms.empty(); }
  unsigned getConstant() const { return constant; }
  /// A C++ expression, such as "(r >> 1 & 3)".
  std::string str() const;

private:
  struct Term {
    std::string variable;
    BitMap images;
    unsigned zeroBits = 0;
    bool isIdentity() const;
  };
  llvm::SmallVector<Term, 2> terms;
  unsigned constant = 0;
};

/// "(x & mask) << shift" and the like for a run of bits from bit `from` of x to bit `to`.
std::string moveBits(llvm::StringRef x, unsigned from, unsigned count, unsigned to);

/// The sum of `x`'s mapped bits, without parentheses; "0" if no bit has an image. `steps[b]` is
/// what bit b adds.
std::string sumOfBits(llvm::StringRef x, llvm::ArrayRef<unsigned> steps);

} // namespace tk::cuda

#endif // TK_COMPILER_CODEGEN_CUDA_REGISTERINDEX_H
