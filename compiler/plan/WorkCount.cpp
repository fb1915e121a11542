//===- WorkCount.cpp - operations and bytes of a kernel -------------------===//
#include "compiler/plan/WorkCount.h"

#include "compiler/plan/HostExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tk {
namespace {

class Counter {
public:
  Counter(KernelOp kernel, std::span<const Scalar> variables)
      : exprs(kernel, /*quiet=*/true), variables(variables) {}

  /// Operations of a body that is executed `times` times.
  double count(Region &region, double times) {
    double total = 0;
    for (Operation &op : region.front()) {
      if (auto reduce = dyn_cast<ReduceOp>(op)) {
        double trips = times;
        for (auto [lower, upper] : llvm::zip(reduce.getLower(), reduce.getUpper()))
          trips *= std::max(0.0, extent(upper) - extent(lower));
        total += trips + count(reduce.getBody(), trips);
      } else if (auto scan = dyn_cast<ScanOp>(op)) {
        total += times + count(scan.getBody(), times);
      } else if (isa<ExpDiffOp, DivOrZeroOp>(op) || isFloatOperation(&op)) {
        total += times;
      }
    }
    return total;
  }

  double extent(Value value) {
    std::optional<Expr> expr = exprs.build(value);
    if (!expr)
      return 0;
    Expected<int64_t> result = expr->evaluate_integer(variables);
    return result ? static_cast<double>(*result) : 0;
  }

private:
  static bool isFloatOperation(Operation *op) {
    if (op->getNumResults() != 1 || !isa<FloatType>(op->getResult(0).getType()))
      return false;
    // Conversions, constants and choices are not counted as work.
    if (isa<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp, arith::ConstantOp,
            arith::SelectOp>(op))
      return false;
    StringRef dialect = op->getName().getDialectNamespace();
    return dialect == "arith" || dialect == "math";
  }

  HostExprBuilder exprs;
  std::span<const Scalar> variables;
};

} // namespace

WorkCount countWork(KernelOp kernel, const Signature &signature,
                    std::span<const Scalar> variables) {
  WorkCount work;
  Counter counter(kernel, variables);
  for (ComputeOp compute : kernel.getBody().front().getOps<ComputeOp>()) {
    double times = 1;
    for (Value extent : compute.getExtents())
      times *= counter.extent(extent);
    work.flops += counter.count(compute.getBody(), times);
  }
  for (unsigned t = 0; t < signature.num_tensors(); ++t) {
    Expected<Extents> shape = shape_of(signature.tensor(t), variables);
    if (!shape)
      continue;
    double bytes = static_cast<double>(size_of(signature.tensor(t).dtype));
    for (int64_t extent : *shape)
      bytes *= static_cast<double>(extent);
    work.bytes += signature.tensor(t).in_out ? 2 * bytes : bytes;
  }
  return work;
}

} // namespace tk
