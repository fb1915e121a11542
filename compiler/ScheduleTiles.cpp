//===- ScheduleTiles.cpp - a plan's tiles by the names of indices ---------===//
#include "compiler/ScheduleTiles.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tk {

/// The largest tile that a schedule block can ask for.
static constexpr int64_t largestTile = 1024;

static std::vector<std::string> namesOf(ComputeOp compute) {
  std::vector<std::string> names;
  auto add = [&](ArrayAttr of) {
    for (Attribute name : of)
      names.push_back(cast<StringAttr>(name).getValue().str());
  };
  add(compute.getIndexNames());
  compute.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto reduce = dyn_cast<ReduceOp>(op))
      add(reduce.getIndexNames());
  });
  return names;
}

std::vector<std::vector<std::string>> tileNamesOf(ModuleOp module) {
  std::vector<std::vector<std::string>> names;
  module.walk([&](ComputeOp compute) { names.push_back(namesOf(compute)); });
  return names;
}

NamedTiles namedTiles(gpu::ScheduleAttr tiles, ArrayRef<std::string> names) {
  if (!tiles || tiles.getTile().size() + tiles.getReduce().size() != names.size())
    return {};
  NamedTiles named;
  for (auto [name, size] :
       llvm::zip(names, llvm::concat<const int64_t>(tiles.getTile(), tiles.getReduce()))) {
    if (size > largestTile)
      return {};
    if (llvm::none_of(named, [&](const auto &entry) { return entry.first == name; }))
      named.emplace_back(name, size);
  }
  return named;
}

} // namespace tk
