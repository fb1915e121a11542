//===- ValueNames.h - what the program calls values --------------*- C++ -*-===//
//
// Says what a value of a block program stands for in the source:
//
// 1. A value with a NameLoc has that name: passes give one to what stands for an index. A loop's
//    NameLoc names its induction variable, and its bounds.
// 2. Shared memory has the name of the tensor that is brought into it. The slot and the mbarrier
//    phase of a circular buffer have it, too, in the loops that carry them.
// 3. Other numbers have the name of the tensor that their statement defines, and what is done:
//    `s_sum` is a sum of `let s[…]`, `p_max` a row maximum, `p_exp` an exponential, `mu_term` is
//    added up by `let mu[…]`.
// 4. What a loop carries, or a branch yields, has the name of what it is given.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_CUDA_VALUENAMES_H
#define TK_COMPILER_CODEGEN_CUDA_VALUENAMES_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

#include <functional>
#include <set>
#include <string>

namespace tk::cuda {

/// The counters of loops that emission writes around single operations. No number may have such a
/// name: inside of the loop the name would mean the counter.
inline bool isCounter(llvm::StringRef name) {
  constexpr llvm::StringLiteral counters = "hkmnpr";
  return name.size() == 1 && counters.contains(name);
}

class ValueNames {
public:
  /// Which tensor the statement on a line of a source file defines; empty if that is not known.
  using Statement = std::function<std::string(llvm::StringRef file, unsigned line)>;

  ValueNames(gpu::FuncOp func, Statement statement);

  /// Empty where nothing says what the value is.
  std::string of(mlir::Value value) const;
  /// What a pass has called it, or the loop whose induction variable it is.
  std::string ownNameOf(mlir::Value value) const;

private:
  using Tensors = std::set<std::string>;

  void nameMemory();
  void nameRings();
  void nameBounds(mlir::scf::ForOp loop);
  void nameTerms(mlir::Value value, llvm::StringRef statement);
  void carry(mlir::Value value, const std::string &name);
  std::string statementOf(mlir::Operation *op) const;
  std::string find(mlir::Value value, unsigned depth) const;
  std::string carriedName(mlir::BlockArgument argument, unsigned depth) const;
  std::string nameOfResult(mlir::Operation *op, mlir::Value result, unsigned depth) const;

  gpu::FuncOp func;
  Statement statement;
  llvm::StringSet<> arguments;
  llvm::DenseMap<mlir::Value, std::string> roles;
  llvm::DenseMap<mlir::Value, Tensors> tensors; ///< by memory, slot and phases
  mutable llvm::DenseMap<mlir::Value, std::string> found;
  mutable llvm::DenseMap<mlir::Attribute, std::string> statements; ///< by place
};

} // namespace tk::cuda

#endif // TK_COMPILER_CODEGEN_CUDA_VALUENAMES_H
