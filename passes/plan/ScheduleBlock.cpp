//===- ScheduleBlock.cpp - the schedule blocks of a program ---------------===//
//
// The frontend leaves a kernel's schedule blocks as dictionaries in `tk.schedules`: `arch`, `when`,
// `at` (the location), `places` (the location of each key), and the keys. The first block for the
// target applies. Its entries are looked up by the names of the compute op's indices.
//
//===----------------------------------------------------------------------===//
#include "passes/plan/ScheduleBlock.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/Refusal.h"
#include "passes/analysis/ScheduleEntries.h"
#include "passes/machine/Machine.h"
#include "passes/plan/Planner.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Calls `visit` with every index of a statement, those of reductions and scans included.
static void forEachIndex(StatementShape &shape, llvm::function_ref<void(Value)> visit) {
  for (Value index : shape.compute.getBlock()->getArguments())
    visit(index);
  for (Operation *op : shape.reductions) {
    auto reduction = dyn_cast<ReduceOp>(op);
    for (unsigned i = 0; i < (reduction ? reduction.getNumIndices() : 1); ++i)
      visit(op->getRegion(0).front().getArgument(i));
  }
}

/// Whether an index of a reduction has the name of an index of the statement, but ranges over other
/// values: an entry of that name means the statement's.
static bool isOtherOfName(StatementShape &shape, Value index) {
  if (index.getParentBlock() == shape.compute.getBlock())
    return false;
  for (auto [own, extent] :
       llvm::zip(shape.compute.getBlock()->getArguments(), shape.compute.getExtents()))
    if (shape.nameOf(own) == shape.nameOf(index))
      return !isSameExtent(shape.endWithoutMask(index), extent);
  return false;
}

ScheduleBlock tk::readScheduleBlock(StatementShape &shape) {
  ScheduleBlock block;
  DictionaryAttr entries = findScheduleBlock(shape.kernel);
  if (!entries)
    return block;
  auto number = [&](StringRef key) -> std::optional<int64_t> {
    auto attr = entries.getAs<IntegerAttr>(key);
    return attr ? std::optional(attr.getInt()) : std::nullopt;
  };
  block.stages = number("stages");
  block.vector = number("vector");
  block.group = number("raster"); // grouped(n)
  if (auto order = entries.getAs<StringAttr>("raster"))
    block.group = order.getValue() == "columns" ? 0 : 1;
  auto sizes = [&](StringRef key, llvm::DenseMap<Value, int64_t> &map) {
    auto axes = entries.getAs<DictionaryAttr>(key);
    if (axes)
      forEachIndex(shape, [&](Value index) {
        if (auto size = axes.getAs<IntegerAttr>(shape.nameOf(index));
            size && !isOtherOfName(shape, index))
          map[index] = llvm::bit_floor<uint64_t>(size.getInt());
      });
  };
  sizes("tile", block.tiles);
  sizes("coarsen", block.coarsen);
  block.consumers = number("consumers");
  block.teams = number("teams");
  if (entries.contains("persistent")) // alone, or with a number for its truth
    block.persistent = number("persistent").value_or(1) != 0;
  llvm::DenseMap<Value, int64_t> clusters;
  sizes("cluster", clusters);
  for (auto [index, blocks] : clusters)
    block.cluster = blocks;
  return block;
}

std::optional<int64_t> tk::splitOf(KernelOp kernel, StringRef index) {
  DictionaryAttr entries = findScheduleBlock(kernel);
  auto axes = entries ? entries.getAs<DictionaryAttr>("split") : DictionaryAttr();
  auto parts = axes ? axes.getAs<IntegerAttr>(index) : IntegerAttr();
  return parts ? std::optional(parts.getInt()) : std::nullopt;
}

std::optional<Location> tk::placeOfKey(KernelOp kernel, ArrayRef<StringRef> keys) {
  DictionaryAttr entries = findScheduleBlock(kernel);
  for (StringRef key : keys) {
    if (!entries || !entries.contains(key))
      continue;
    auto places = entries.getAs<DictionaryAttr>("places");
    auto place = places ? places.getAs<LocationAttr>(key) : LocationAttr();
    return place ? Location(place) : kernel.getLoc();
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// What cannot be had, and what has no effect
//===----------------------------------------------------------------------===//

LogicalResult tk::checkThreadsHold(StatementShape &shape, gpu::ScheduleAttr schedule) {
  std::optional<Location> place = placeOfKey(shape.kernel, {"tile", "coarsen"});
  if (!place)
    return success();
  int64_t outputs = 1;
  for (int64_t size : schedule.getTile())
    outputs *= size;
  int64_t threads = 32 * schedule.getWarps();
  if (outputs <= mostOutputsOfThread * threads)
    return success();
  InFlightDiagnostic refusal = refuse(*place, Refusal::ScheduleDoesNotFit);
  refusal << "a tile of " << outputs << " outputs leaves " << outputs / threads << " to each of "
          << threads << " threads, which hold at most " << mostOutputsOfThread;
  refusal.attachNote() << "try a tile of at most " << mostOutputsOfThread * threads << " outputs";
  return refusal;
}

LogicalResult tk::checkConsumers(StatementShape &shape, gpu::ScheduleAttr schedule,
                                 StringRef pass) {
  Planner planner(shape, getTarget(shape.kernel), /*coarse=*/true);
  int64_t consumers = planner.block.consumers.value_or(0);
  if (consumers == 0 || !planner.block.coarsen.empty() ||
      schedule.getWarps() - schedule.getSpareWarps() == 4 * consumers)
    return success();
  Location place = *placeOfKey(shape.kernel, {"consumers"});
  for (Contraction &product : shape.contractions) {
    if (!planner.isForWarpgroups(product))
      continue;
    int64_t rows = planner.block.tiles.lookup(product.m);
    if (!llvm::isPowerOf2_64(consumers)) {
      noteAt(place, shape.kernel, pass, Verdict::Declined,
             "'consumers' has no effect: only two contractions in one loop have tiles of " +
                 Twine(64 * consumers) + " rows");
      continue;
    }
    if (rows == 0) {
      noteAt(place, shape.kernel, pass, Verdict::Declined,
             "'consumers' has no effect: a tile for these sizes has too few rows");
      continue;
    }
    InFlightDiagnostic refusal = refuse(place, Refusal::ScheduleDoesNotFit);
    refusal << "a tile of " << rows << " rows cannot be shared by " << consumers
            << " warpgroups: each computes 64 rows, or a multiple";
    refusal.attachNote() << "try tile " << shape.nameOf(product.m) << " = " << 64 * consumers;
    return refusal;
  }
  return success();
}

namespace {

/// What the statements of a kernel offer to the keys of a schedule block.
struct KeyUses {
  llvm::StringSet<> indices;
  bool hasProduct = false, hasGrid = false, hasWarpgroups = false, hasTeams = false;

  explicit KeyUses(KernelOp kernel) {
    kernel.walk([&](ComputeOp compute) {
      StatementShape shape = analyzeStatement(kernel, compute);
      forEachIndex(shape, [&](Value index) { indices.insert(shape.nameOf(index)); });
      Planner planner(shape, getTarget(kernel), /*coarse=*/true);
      for (Contraction &product : shape.contractions) {
        if (!planner.block.coarsen.empty())
          continue;
        bool isSingle = planner.isForWarpgroups(product);
        hasWarpgroups |= isSingle || planner.isChainForWarpgroups(product);
        hasTeams |= isSingle && !planner.isWideForFewRows(product);
      }
      hasProduct |= !shape.contractions.empty();
      hasGrid |= compute.getNumIndices() > 1;
    });
  }
};

} // namespace

void tk::noteUnusedKeys(KernelOp kernel, StringRef pass) {
  DictionaryAttr entries = findScheduleBlock(kernel);
  if (!entries)
    return;
  if (auto at = entries.getAs<LocationAttr>("at"))
    noteAt(at, kernel, pass, Verdict::Derived, "this schedule block applies");
  KeyUses uses(kernel);
  auto decline = [&](StringRef key, const Twine &why) {
    noteAt(*placeOfKey(kernel, {key}), kernel, pass, Verdict::Declined, why);
  };
  for (StringRef key : {"tile", "coarsen", "cluster", "split"})
    if (auto axes = entries.getAs<DictionaryAttr>(key))
      for (NamedAttribute axis : axes)
        if (!uses.indices.contains(axis.getName()))
          decline(key, "'" + key + " " + axis.getName().getValue() +
                           "' has no effect: no statement is left with that index");
  if (entries.contains("stages") && !uses.hasProduct)
    decline("stages", "'stages' has no effect: there is no product whose operands could be loaded "
                      "ahead");
  for (StringRef key : {"consumers", "cluster", "persistent"})
    if (entries.contains(key) && !uses.hasWarpgroups)
      decline(key, "'" + key + "' has no effect: no product goes to warpgroups");
  if (entries.contains("teams") && !uses.hasTeams)
    decline("teams", "'teams' has no effect: no product of many rows goes to warpgroups by itself");
  if (entries.contains("raster") && !uses.hasGrid)
    decline("raster", "'raster' has no effect: blocks follow one index only");
}
