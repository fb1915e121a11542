//===- Branches.cpp - results of branches ----------------------------------===//
#include "passes/layout/Branches.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

Value tk::addResult(scf::IfOp &branch, Value ofThen, Value ofElse) {
  SmallVector<Type> types(branch.getResultTypes());
  types.push_back(ofThen.getType());
  OpBuilder builder(branch);
  auto larger = scf::IfOp::create(builder, branch.getLoc(), types, branch.getCondition(),
                                  /*withElseRegion=*/true);
  larger.getThenRegion().takeBody(branch.getThenRegion());
  larger.getElseRegion().takeBody(branch.getElseRegion());
  larger.thenYield()->insertOperands(larger.thenYield().getNumOperands(), ofThen);
  larger.elseYield()->insertOperands(larger.elseYield().getNumOperands(), ofElse);
  branch.replaceAllUsesWith(larger.getResults().drop_back());
  branch.erase();
  branch = larger;
  return larger.getResults().back();
}
