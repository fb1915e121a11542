//===- HostSteps.cpp - what launches compute of scalars -------------------===//
#include "passes/analysis/HostSteps.h"

#include "mlir/IR/Operation.h"

using namespace mlir;
using namespace tk;

int64_t HostSteps::count(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return 1;
  if (auto it = known.find(value); it != known.end())
    return it->second;
  int64_t steps = 1;
  for (Value operand : op->getOperands())
    steps = std::min(steps + count(operand), most + 1);
  return known[value] = steps;
}
