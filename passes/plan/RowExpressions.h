//===- RowExpressions.h - values that are computed from rows ----*- C++ -*-===//
#ifndef TK_PASSES_PLAN_ROWEXPRESSIONS_H
#define TK_PASSES_PLAN_ROWEXPRESSIONS_H

#include "passes/analysis/NarrowestCut.h"
#include "passes/plan/StatementShape.h"

#include <map>
#include <vector>

namespace tk {

/// The values that a compute op and its reductions compute from one element of a row, and from
/// nothing else of the row. Equal expressions are one, in whichever reduction they stand.
class RowExpressions {
public:
  RowExpressions(StatementShape &shape, mlir::Value along);

  /// The fewest bits for each element from which everything after the first reduction can be
  /// computed.
  int64_t bitsBehindFirst();

private:
  using Key = std::vector<std::pair<const void *, unsigned>>;

  bool runsAlong(mlir::Value index);
  bool addOperand(mlir::Value operand, Key &key);
  bool addLoad(LoadOp load);
  bool addElement(mlir::Operation *op);
  unsigned number(mlir::Value value, const Key &key, bool &isNew);

  StatementShape &shape;
  mlir::Value along;
  NarrowestCut cut;
  std::map<Key, unsigned> known;
  llvm::DenseMap<mlir::Value, unsigned> numbers;
  llvm::SmallVector<int64_t> bits; ///< of each number
  int64_t bitsLoaded = 0;
};

} // namespace tk

#endif // TK_PASSES_PLAN_ROWEXPRESSIONS_H
