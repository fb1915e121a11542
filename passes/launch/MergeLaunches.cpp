//===- MergeLaunches.cpp - one launch for two functions -------------------===//
#include "passes/launch/MergeLaunches.h"

#include "passes/analysis/LeastSizes.h"
#include "passes/layout/BulkBox.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

void tk::passArguments(FuncOp into, FuncOp from, LaunchOp launchOfFrom, IRMapping &mapping) {
  LaunchArguments arguments = *LaunchArguments::of(into);
  for (auto [number, value] : llvm::enumerate(launchOfFrom.getArgs())) {
    Value inside = from.getBlock()->getArgument(number);
    if (mapping.contains(inside))
      continue;
    LaunchOp launch = arguments.getLaunch();
    auto known = llvm::find(launch.getArgs(), value);
    mapping.map(inside, known != launch.getArgs().end()
                            ? into.getBlock()->getArgument(known - launch.getArgs().begin())
                            : arguments.addIndex(value, from.getArgName(number)));
  }
}

LaunchOp tk::appendResults(LaunchOp first, FuncOp into, LaunchOp second, FuncOp from, Value blocks,
                           IRMapping &mapping) {
  OpBuilder builder(second);
  SmallVector<Attribute> names(into.getArgNames().getValue()), titles;
  std::optional<ArrayAttr> facts = into.getArgFacts();
  SmallVector<Attribute> known(facts ? facts->getValue() : ArrayRef<Attribute>());
  auto least = into->getAttrOfType<DenseI64ArrayAttr>(leastSizesAttrName);
  SmallVector<int64_t> leastSizes(least ? least.asArrayRef() : ArrayRef<int64_t>());
  for (unsigned r = 0; r < second.getNumResults(); ++r) {
    BlockArgument old = from.getBlock()->getArgument(second.getArgs().size() + r);
    mapping.map(old, into.getBlock()->addArgument(old.getType(), old.getLoc()));
    names.push_back(builder.getStringAttr(from.getArgName(old.getArgNumber())));
    known.push_back(FactAttr::get(builder.getContext(), 1, -1));
    leastSizes.push_back(0);
  }
  into.setArgNamesAttr(builder.getArrayAttr(names));
  if (facts)
    into.setArgFactsAttr(builder.getArrayAttr(known));
  if (least)
    into->setAttr(leastSizesAttrName, builder.getDenseI64ArrayAttr(leastSizes));
  SmallVector<Type> types(first.getResultTypes());
  llvm::append_range(types, second.getResultTypes());
  SmallVector<Value> shapes(first.getShapes());
  llvm::append_range(shapes, second.getShapes());
  for (LaunchOp launch : {first, second})
    if (auto own = launch->getAttrOfType<ArrayAttr>("names"))
      llvm::append_range(titles, own.getValue());
  auto merged = LaunchOp::create(builder, first.getLoc(), types, first.getKernel(), blocks,
                                 first.getGridY(), first.getGridZ(), first.getArgs(), shapes);
  if (titles.size() == types.size())
    merged->setAttr("names", builder.getArrayAttr(titles));
  return merged;
}

void tk::replaceLaunches(LaunchOp first, LaunchOp second, LaunchOp merged, FuncOp from) {
  unsigned numFirst = first.getNumResults();
  first.replaceAllUsesWith(merged.getResults().take_front(numFirst));
  second.replaceAllUsesWith(merged.getResults().drop_front(numFirst));
  second.erase();
  first.erase();
  from.erase();
}
