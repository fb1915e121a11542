//===- HostSteps.h - what launches compute of scalars -----------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_HOSTSTEPS_H
#define TK_PASSES_ANALYSIS_HOSTSTEPS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace tk {

/// Counts the steps of the programs by which launches compute scalars of a kernel. Such a program
/// has no names: what an expression uses twice stands in it twice.
class HostSteps {
public:
  /// Has the program for `value` more steps than a launch should take?
  bool areMany(mlir::Value value) { return count(value) > most; }

private:
  static constexpr int64_t most = 256;
  int64_t count(mlir::Value value);
  llvm::DenseMap<mlir::Value, int64_t> known;
};

} // namespace tk

#endif // TK_PASSES_ANALYSIS_HOSTSTEPS_H
