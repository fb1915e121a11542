//===- ScopedNames.h - identifiers of one CUDA function ----------*- C++ -*-===//
//
// Blocks of C++ text that do not contain each other may use one name for what they declare. A name
// of a block is free again where the block ends; one of the function stays taken.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_CUDA_SCOPEDNAMES_H
#define TK_COMPILER_CODEGEN_CUDA_SCOPEDNAMES_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace tk::cuda {

class ScopedNames {
public:
  /// No name is `word`.
  void reserve(llvm::StringRef word) { taken.insert(word); }
  bool contains(llvm::StringRef name) const { return taken.contains(name); }
  /// A legal name that begins with `hint` and is nobody else's here. One that is declared where the
  /// function begins is `ofFunction`.
  std::string fresh(llvm::StringRef hint, bool ofFunction = false);

  /// While it lives, names are those of a block.
  class Scope {
  public:
    explicit Scope(ScopedNames &names) : names(names), begin(names.declared.size()) {}
    ~Scope() { names.release(begin); }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    ScopedNames &names;
    size_t begin;
  };

private:
  struct Declared {
    std::string name, stem;
    unsigned number; ///< that the next name of this stem had before
  };
  void release(size_t begin);

  llvm::StringSet<> taken;
  llvm::StringMap<unsigned> numbers; ///< by stem: what the next name has at least
  llvm::SmallVector<Declared> declared;
};

} // namespace tk::cuda

#endif // TK_COMPILER_CODEGEN_CUDA_SCOPEDNAMES_H
