//===- SharedWork.cpp - what two compute ops both compute -----------------===//
#include "passes/tensor/fuse/SharedWork.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/machine/limits/Operands.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/Support/MathExtras.h"

#include <array>

using namespace mlir;

namespace tk {

/// In pre-order, so that outer reductions come before those in them.
template <typename OpT> static SmallVector<OpT> collect(ComputeOp compute) {
  SmallVector<OpT> ops;
  compute->walk<WalkOrder::PreOrder>([&](OpT op) { ops.push_back(op); });
  return ops;
}

/// Takes the indices of reductions over equal ranges for the same, outer ones first. Returns true
/// if `reduce` found one among `others`.
static bool identifyLoops(ScalarEquality &equality, ReduceOp reduce, ArrayRef<ReduceOp> others) {
  bool found = false;
  for (ReduceOp other : others) {
    if (!equality.equal(reduce.getLower(), other.getLower()) ||
        !equality.equal(reduce.getUpper(), other.getUpper()))
      continue;
    found = true;
    for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
      equality.identify(reduce.getIndex(n), other.getIndex(n));
  }
  return found;
}

/// Is what `load` reads a factor of a matrix product?
static bool isFactor(LoadOp load) {
  auto reduce = load->getParentOfType<ReduceOp>();
  if (!reduce || !isContraction(reduce))
    return false;
  return llvm::any_of(reduce.getYield().getValues(), [&](Value term) {
    auto product = term.getDefiningOp<arith::MulFOp>();
    return product && llvm::any_of(product->getOperands(), [&](Value factor) {
             return withoutExtension(factor) == load.getResult();
           });
  });
}

Sharing getSharing(ComputeOp small, ComputeOp large, ArrayRef<unsigned> embedding) {
  Sharing sharing;
  ScalarEquality equality;
  for (auto [n, position] : llvm::enumerate(embedding))
    equality.identify(small.getIndex(n), large.getIndex(position));
  SmallVector<ReduceOp> reduces = collect<ReduceOp>(small), others = collect<ReduceOp>(large);
  sharing.reductions = reduces.size();
  for (ReduceOp reduce : reduces)
    sharing.everyLoopShared &= identifyLoops(equality, reduce, others);
  for (ReduceOp reduce : reduces) {
    bool same = llvm::any_of(others, [&](ReduceOp other) {
      return equality.equal(reduce.getOperation(), other.getOperation());
    });
    sharing.equalReductions += same;
    // Nested ones are temporary; those of the statement itself are live to its end.
    bool isOuter = reduce->getBlock() == small.getBlock();
    sharing.ownProducts += !same && isOuter && isMatrixProduct(reduce);
  }
  SmallVector<LoadOp> largeLoads = collect<LoadOp>(large);
  for (LoadOp load : collect<LoadOp>(small)) {
    bool same = llvm::any_of(largeLoads, [&](LoadOp other) {
      return load.getTensor() == other.getTensor() &&
             equality.equal(load.getIndices(), other.getIndices());
    });
    sharing.equalLoads += same && !load.getIndices().empty();
    sharing.equalFactors += same && isFactor(load);
  }
  return sharing;
}

/// The index of `large` that `small` lacks, if that is one and the innermost one, and there are
/// rows for all multiprocessors, each of which a block holds.
static std::optional<unsigned> findRowIndex(ComputeOp small, ComputeOp large,
                                            ArrayRef<unsigned> embedding) {
  const unsigned last = large.getNumIndices() - 1;
  if (small.getNumIndices() + 1 != large.getNumIndices() || llvm::is_contained(embedding, last) ||
      !llvm::is_sorted(embedding))
    return std::nullopt;
  const int64_t length = getUpperBound(large.getExtents()[last]);
  auto target =
      large->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (!target || length < 0 || length > limits::merge_computes::longestSharedRow)
    return std::nullopt;
  int64_t rows = 1;
  for (Value extent : small.getExtents()) {
    const int64_t upper = getUpperBound(extent);
    if (upper < 0 || llvm::MulOverflow(rows, upper, rows))
      return std::nullopt;
  }
  return rows >= limits::merge_computes::rowsOfProcessor * target.getProcessors()
             ? std::optional(last)
             : std::nullopt;
}

bool reducesRowsOf(ComputeOp small, ComputeOp large, ArrayRef<unsigned> embedding) {
  std::optional<unsigned> row = findRowIndex(small, large, embedding);
  SmallVector<ReduceOp> reduces = collect<ReduceOp>(small);
  if (!row || reduces.empty() || !collect<ReduceOp>(large).empty() ||
      !collect<ScanOp>(small).empty() || !collect<ScanOp>(large).empty())
    return false;
  ScalarEquality equality;
  for (auto [n, position] : llvm::enumerate(embedding))
    equality.identify(small.getIndex(n), large.getIndex(position));
  for (ReduceOp reduce : reduces) {
    if (reduce.isOnline() || reduce->getBlock() != small.getBlock() ||
        reduce.getNumIndices() != 1 || isArgReduction(reduce.getKind(0)) ||
        !rangesOver(reduce, 0, large.getExtents()[*row]))
      return false;
    equality.identify(reduce.getIndex(0), large.getIndex(*row));
  }
  // Whole rows are read by both: each element at a place of its own.
  return llvm::any_of(collect<LoadOp>(large), [&](LoadOp load) {
    return load.getIndices().size() == large.getNumIndices() &&
           llvm::all_of(load.getIndices(), [](Value index) { return isa<BlockArgument>(index); }) &&
           load.getIndices().back() == large.getIndex(*row) &&
           llvm::any_of(collect<LoadOp>(small), [&](LoadOp other) {
             return load.getTensor() == other.getTensor() &&
                    equality.equal(other.getIndices(), load.getIndices());
           });
  });
}

unsigned countProducts(ComputeOp compute) {
  SmallVector<ReduceOp> reduces = collect<ReduceOp>(compute), different;
  ScalarEquality equality;
  for (ReduceOp reduce : reduces)
    identifyLoops(equality, reduce, reduces);
  for (ReduceOp reduce : reduces)
    if (reduce->getBlock() == compute.getBlock() && isMatrixProduct(reduce) &&
        llvm::none_of(different, [&](ReduceOp other) {
          return equality.equal(reduce.getOperation(), other.getOperation());
        }))
      different.push_back(reduce);
  return different.size();
}

bool isProductBesideReduction(ComputeOp a, ComputeOp b) {
  auto multiplies = [](ComputeOp compute) {
    return llvm::any_of(collect<ReduceOp>(compute), isMatrixProduct);
  };
  bool first = multiplies(a), second = multiplies(b);
  return (first && !second && !collect<ReduceOp>(b).empty()) ||
         (second && !first && !collect<ReduceOp>(a).empty());
}

bool areChains(ComputeOp a, ComputeOp b) {
  return llvm::all_of(std::array{a, b}, [](ComputeOp compute) {
    return llvm::any_of(collect<ReduceOp>(compute), [](ReduceOp reduce) {
      auto around = reduce->getParentOfType<ReduceOp>();
      return around && isContraction(around) && isMatrixProduct(reduce);
    });
  });
}

bool shareInnerProduct(ComputeOp a, ComputeOp b) {
  ScalarEquality equality;
  for (unsigned n = 0; n < a.getNumIndices(); ++n)
    equality.identify(a.getIndex(n), b.getIndex(n));
  SmallVector<ReduceOp> ofA = collect<ReduceOp>(a), ofB = collect<ReduceOp>(b);
  for (ReduceOp reduce : ofA)
    identifyLoops(equality, reduce, ofB);
  return llvm::any_of(ofA, [&](ReduceOp reduce) {
    return reduce->getBlock() != a.getBlock() && isMatrixProduct(reduce) &&
           llvm::any_of(ofB, [&](ReduceOp other) {
             return equality.equal(reduce.getOperation(), other.getOperation());
           });
  });
}

} // namespace tk
