//===- TileAddresses.h - where a tile's elements are found -------*- C++ -*-===//
//
// Where the element of each register of a thread lies: in an array of
// registers, in words of a comparison's results, or in shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_CUDA_TILEADDRESSES_H
#define TK_COMPILER_CODEGEN_CUDA_TILEADDRESSES_H

#include "compiler/codegen/cuda/RegisterIndex.h"

#include "mlir/IR/Value.h"

#include <string>

namespace tk::cuda {

/// Where a tile's registers are found in an array, in whole groups of 1 << lowBits.
struct Fragments {
  std::string array;
  BitMap map; ///< empty: the identity
  unsigned first = 0;
  std::string at(const RegisterIndex &reg) const;
};

/// The results of a comparison of places along an axis with a bound a row: a word a row.
struct PlaceWords {
  std::string name;
  mlir::Value start; ///< of the tile's places; null: 0
  unsigned axis = 0, run = 1, step = 0, numPlaces = 1;
  BitMap row, place; ///< by register bit: of which word, and which bit of it
  BitMap registerOf; ///< by bit of the row: the register
  std::string at(const RegisterIndex &reg) const;
};

/// Offsets, in elements, of a tile's elements in shared memory: a thread's part, computed once,
/// and the register's.
struct SharedAddress {
  std::string thread;
  BitMap flip;         ///< by register bit: to be xored in (swizzled chunks)
  BitMap add;          ///< by register bit: to be added
  unsigned fixed = 0;  ///< always added
  unsigned always = 0; ///< always xored in
  std::string further; ///< how far on a part begins that begins at no constant
  bool isPart = false; ///< of those: which constants an access adds is for the compiler to see
  /// What differs between threads, with the register's flips.
  std::string flipped(const RegisterIndex &reg) const;
  /// What the register adds.
  std::string added(const RegisterIndex &reg) const;
  std::string at(const RegisterIndex &reg) const;
  /// The element in `buffer`.
  std::string element(const std::string &buffer, const RegisterIndex &reg) const;
};

/// Where a part of a buffer begins: at constants, and at `from`, a multiple of `span`, along
/// `axis`.
struct PartBegin {
  llvm::ArrayRef<int64_t> offsets;
  std::string from;
  int64_t axis = 0, span = 1;
};

/// How a warp's threads name the rows of matrices, `words` at a time.
struct MatrixAccess {
  unsigned words = 1;
  std::string loop, at; ///< over the fragment's words; the first element of a lane's row
  RegisterIndex reg{0};
};

} // namespace tk::cuda

#endif // TK_COMPILER_CODEGEN_CUDA_TILEADDRESSES_H
