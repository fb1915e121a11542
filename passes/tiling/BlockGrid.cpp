//===- BlockGrid.cpp - which tile a block has -----------------------------===//
//
// Cuts the parallel indices of a compute op into tiles, and takes the block's number apart into the
// numbers of its tiles.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ChangedElements.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/TileLoops.h"
#include "passes/machine/WarpgroupTiles.h"
#include "passes/plan/MergeIndices.h"
#include "passes/plan/StatementShape.h"
#include "passes/tiling/BlockProgram.h"
#include "passes/tiling/PartLocations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

/// The index along which the blocks of a cluster lie: the first that is cut into tiles.
std::optional<unsigned> BlockProgram::clusteredIndex() {
  if (func.isSpread())
    return std::nullopt;
  for (unsigned p = 0; schedule.getCluster() > 1 && p < compute.getNumIndices(); ++p) {
    int64_t size = schedule.getTile()[p];
    std::optional<int64_t> upper = getSizeFact(kernel, compute.getExtents()[p]).upper;
    if (size > 1 && schedule.getLoop() != p && !(upper && *upper <= size))
      return p;
  }
  return std::nullopt;
}

void BlockProgram::addParallelAxes() {
  SmallVector<unsigned> tiled;
  std::optional<unsigned> clustered = clusteredIndex();
  const std::optional<ChangedPlace> changed = findChangedPlace();
  visited = findVisitedPlaces();
  if (visited)
    tiled.push_back(addElementAxis());
  auto hasOneValue = [&](unsigned p) {
    return (changed && changed->index == p) || (visited && visited->names(p));
  };
  func.setCluster(clustered || func.isSpread() ? schedule.getCluster() : 1);
  for (unsigned p = 0; p < compute.getNumIndices(); ++p) {
    if (countsTiles(p) || isMergedIntoOther(compute.getIndex(p)))
      continue;
    SmallVector<Value> merged = getMergedIndices(compute.getIndex(p));
    Value extent = merged.empty() ? compute.getExtents()[p] : mergedExtent(merged);
    SizeFact fact = getSizeFact(kernel, extent);
    int64_t size = schedule.getTile()[p], step = schedule.getStepOf(p);
    // A result that is not over this index must be written even if the index has no values.
    bool atLeastOne = false;
    for (unsigned r = 0; r < compute.getNumResults(); ++r)
      atLeastOne |= !llvm::is_contained(indicesInTile(r), p);
    atLeastOne &= !(fact.exact && *fact.exact > 0) && !elementOf;
    unsigned id = newAxis(cast<StringAttr>(compute.getIndexNames()[p]).getValue(), size);
    axisOf[compute.getIndex(p)] = id;
    for (Value index : merged)
      axisOf[index] = id;
    axes[id].rangeEnd = extent;
    axes[id].step = step;
    axes[id].isAligned = step == size;
    axes[id].isWhole = fact.upper && *fact.upper <= step;
    if (hasOneValue(p))
      continue;
    if (schedule.getLoop() == p && !axes[id].isWhole) {
      loopAxis = id;
      if (fact.divisor % size != 0)
        axes[id].limit = kernelValue(extent);
      continue;
    }
    if (p == clustered)
      clusterAxis = id;
    int64_t blocks = p == clustered ? schedule.getCluster() : 1, span = step * blocks;
    if (std::optional<unsigned> counter = counterOfBlocks(p))
      grid.push_back({compute.getExtents()[*counter], 1, false});
    else if (fact.exact != step || !axes[id].isWhole)
      grid.push_back({extent, span, atLeastOne, blocks});
    if (atLeastOne || fact.divisor % span != 0) {
      axes[id].limit = kernelValue(extent);
      axes[id].limitIsAll = axes[id].isWhole && fact.divisor % span == 0;
      axes[id].isScalar = false;
    }
    if (axes[id].isWhole)
      continue;
    axes[id].endsWithRange =
        axes[id].limit && p != clustered && merged.empty() && mayEndWithRange(p);
    // Of a multiple of two warpgroups' rows, half a tile of 256 lies behind the tensor at most: the
    // start costs more.
    const int64_t whole = step < size ? step : std::min<int64_t>(size, 2 * rowsOfWarpgroup);
    axes[id].overlapsLast =
        fact.divisor % whole != 0 && p != clustered && !axes[id].endsWithRange && mayOverlapLast(p);
    axes[id].isAligned &= !axes[id].overlapsLast;
    tiled.push_back(id);
  }
  putRowsFirst();
  addGridStarts(tiled);
  hasOneIndex = tiled.size() == 1;
  if (changed)
    setPlace({changed->index, changed->place, NamedIndex::Part::Whole, {}});
  if (visited)
    setVisitedPlaces();
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (SmallVector<Value> merged = getMergedIndices(compute.getIndex(p)); !merged.empty())
      takeApart(axisOf.lookup(compute.getIndex(p)), merged);
}

/// May tiles end with the range of index `p`, so that the one that has the rest of it is the first?
/// Where the index bounds a reduction, that one is the shortest then, and the last one, which is
/// the longest, has all warpgroups at work. These keep whole multiples of their rows from where the
/// range begins on, so that masks cut as many of their steps as before. Tiles of a power of two of
/// rows stay at multiples of it, and what counts tiles counts from the first one.
bool BlockProgram::mayEndWithRange(unsigned p) {
  const int64_t size = schedule.getTile()[p], step = schedule.getStepOf(p);
  bool isOfAll = true;
  for (unsigned r = 0; r < compute.getNumResults(); ++r)
    isOfAll &= llvm::is_contained(indicesInTile(r), p) && !getTileReduction(compute, r);
  return isOfAll && step < size && boundsReduction(compute, p) && !counterOfBlocks(p) &&
         getSizeFact(kernel, compute.getExtents()[p]).divisor % rowsOfWarpgroup == 0;
}

/// May the last tile of index `p` compute elements of the tile before it again? Rows of a bulk copy
/// that lie behind the tensor take about five times as long as others (H200: 6.5 ns for 1.2), so
/// that tiles of warpgroup products should have none. Both tiles compute the same bits, as long as
/// each element is stored once and is no operand.
bool BlockProgram::mayOverlapLast(unsigned p) {
  const gpu::KernelPlan plan = gpu::getPlan(compute);
  const int64_t size = schedule.getTile()[p];
  if (plan.family != gpu::PlanFamily::Gemm || plan.unit != gpu::PlanUnit::Wgmma || plan.inPlace ||
      plan.carriesTiles || plan.workUnits || size < rowsOfWarpgroup || counterOfBlocks(p))
    return false;
  BlockArgument index = compute.getIndex(p);
  const bool isMerged = !getMergedIndices(index).empty();
  // Vectors along the result's rows stay aligned.
  unsigned bits = 8 * boxAlignment;
  for (Type type : compute.getResultTypes())
    bits = std::min(bits, getElementTypeOrSelf(type).getIntOrFloatBitWidth());
  if (!isMerged && p + 1 == compute.getNumIndices() &&
      getSizeFact(kernel, compute.getExtents()[p]).divisor % (8 * boxAlignment / bits) != 0)
    return false;
  for (unsigned r = 0; r < compute.getNumResults(); ++r)
    if (!llvm::is_contained(indicesInTile(r), p) || getTileReduction(compute, r))
      return false;
  // Bounds that follow the index begin a tile's loops elsewhere: sums would be grouped otherwise.
  Dependence onIndex(ValueRange{index});
  WalkResult bounds = compute.walk([&](ReduceOp reduce) {
    const bool follows =
        llvm::any_of(reduce.getLower(), [&](Value at) { return onIndex.on(at); }) ||
        llvm::any_of(reduce.getUpper(), [&](Value at) { return onIndex.on(at); });
    return follows ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (bounds.wasInterrupted())
    return false;
  // Where a stored operand is padded, TMA takes tiles that begin at multiples of their size alone.
  WalkResult others = compute.walk([&](LoadOp load) {
    const SmallVector<Value> extents = getExtents(kernel, load.getTensor());
    bool isPlain = isMerged || extents.size() == load.getIndices().size();
    for (auto [at, extent] : llvm::zip(load.getIndices(), extents))
      isPlain &= isMerged || !onIndex.on(at) ||
                 (at == index && isSameExtent(extent, compute.getExtents()[p]));
    return isPlain ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !others.wasInterrupted();
}

/// Tiles of products have their rows first.
void BlockProgram::putRowsFirst() {
  SmallVector<int64_t> tile(schedule.getTile());
  std::optional<unsigned> rows = rowsOfTile(compute, tile);
  if (!rows)
    return;
  const unsigned id = axisOf.lookup(compute.getIndex(*rows));
  unsigned *first = llvm::find_if(order, [&](unsigned axis) { return axes[axis].size > 1; });
  std::swap(*first, *llvm::find(order, id));
}

/// Is some factor over the index of axis `id` by what a table has at it alone?
bool BlockProgram::looksUpFactor(unsigned id) {
  auto index = llvm::find_if(compute.getBlock()->getArguments(),
                             [&](BlockArgument at) { return axisOf.lookup(at) == id; });
  if (index == compute.getBlock()->getArguments().end())
    return false;
  Dependence onIndex(ValueRange{*index});
  auto finds = [&](LoadOp load) {
    SmallVector<Value> over;
    llvm::copy_if(load.getIndices(), std::back_inserter(over),
                  [&](Value at) { return onIndex.on(at); });
    return !over.empty() && llvm::all_of(over, [](Value at) {
      auto cast = at.getDefiningOp<arith::IndexCastOp>();
      return cast && cast.getIn().getDefiningOp<LoadOp>();
    });
  };
  return compute
      ->walk([&](LoadOp load) {
        return finds(load) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// How many tiles the index of axis `id` has.
Value BlockProgram::tilesOf(unsigned id) {
  Value extent = kernelValue(axes[id].rangeEnd);
  int64_t span = axes[id].step * (id == clusterAxis ? func.getCluster() : 1);
  if (span == 1)
    return extent;
  Value sum = arith::AddIOp::create(at(0), loc, extent, indexConstant(span - 1));
  return arith::DivSIOp::create(at(0), named(axes[id].name + "_tiles", loc), sum,
                                indexConstant(span));
}

/// Has the tile of axis `id` begin where that of number `tile` does.
void BlockProgram::setStart(unsigned id, Value tile) {
  // Blocks start in order: the longest first, so that the last to end are short.
  if (axes[id].size > 1 && boundsReduction(compute, id)) {
    if (!tile.getDefiningOp<gpu::ProgramIdOp>())
      nameValue(tile, axes[id].name + "_tile_from_last");
    Value last = arith::SubIOp::create(at(0), loc, tilesOf(id), indexConstant(1));
    tile = arith::SubIOp::create(at(0), loc, last, tile);
  }
  if (llvm::any_of(llvm::seq(compute.getNumIndices()), [&](unsigned p) {
        return axisOf.lookup(compute.getIndex(p)) == id && counterOfBlocks(p);
      }))
    tile = beginTiles(id, tile);
  if (id == clusterAxis) {
    if (!tile.getDefiningOp<gpu::ProgramIdOp>())
      nameValue(tile, axes[id].name + "_cluster");
    Value first = arith::MulIOp::create(at(0), loc, tile, indexConstant(func.getCluster()));
    Value rank = gpu::ClusterRankOp::create(at(0), loc);
    nameValue(first, "cluster_first_" + axes[id].name + "_tile");
    nameValue(rank, "block_in_cluster");
    tile = arith::AddIOp::create(at(0), loc, first, rank);
  }
  if (axes[id].step != 1) {
    nameValue(tile, axes[id].name + "_tile");
    tile = arith::MulIOp::create(at(0), loc, tile, indexConstant(axes[id].step));
  }
  if (axes[id].endsWithRange) {
    Value all = arith::MulIOp::create(at(0), loc, tilesOf(id), indexConstant(axes[id].step));
    Value beyond = arith::SubIOp::create(at(0), loc, all, kernelValue(axes[id].rangeEnd));
    tile = arith::SubIOp::create(at(0), loc, tile, beyond);
  }
  if (axes[id].overlapsLast) {
    Value last = arith::SubIOp::create(at(0), loc, kernelValue(axes[id].rangeEnd),
                                       indexConstant(axes[id].step));
    last = arith::MaxSIOp::create(at(0), loc, last, indexConstant(0));
    tile = arith::MinSIOp::create(at(0), loc, tile, last);
  }
  nameValue(tile, axes[id].isScalar ? axes[id].name : axes[id].name + "_begin");
  axes[id].start = tile;
}

/// The row and the column of tile `part` if so many rows as the schedule's group are walked
/// together, column by column, in groups that may be known to be whole.
std::pair<Value, Value> BlockProgram::placeInGroups(Value part, Value rows, Value columns,
                                                    bool areWhole) {
  OpBuilder &b = at(0);
  Value group = schedule.getGroup() ? indexConstant(schedule.getGroup()) : rows;
  Value width = arith::MulIOp::create(b, loc, group, columns);
  Value number = arith::DivSIOp::create(b, loc, part, width);
  Value first = arith::MulIOp::create(b, loc, number, group);
  Value height = group;
  if (!areWhole) {
    height = arith::SubIOp::create(b, loc, rows, first);
    nameValue(height, "row_tiles_left");
    height = arith::MinSIOp::create(b, loc, height, group);
    nameValue(height, "group_row_tiles_left");
  }
  // Beyond the last tile, of which copies ahead may compute the place, there are no rows.
  height = arith::MaxSIOp::create(b, loc, height, indexConstant(1));
  Value inside = arith::RemSIOp::create(b, loc, part, width);
  Value row = arith::RemSIOp::create(b, loc, inside, height);
  nameValue(width, "group_tiles");
  nameValue(number, "group");
  nameValue(first, "group_first_row_tile");
  nameValue(height, "group_row_tiles");
  nameValue(inside, "tile_in_group");
  nameValue(row, "row_tile_in_group");
  return {arith::AddIOp::create(b, loc, first, row),
          arith::DivSIOp::create(b, loc, inside, height)};
}

/// Has an argument of the function for each index of the result of which the program computes an
/// element. What lies behind the last index is the last one, and what lies before the first one the
/// first.
void BlockProgram::addElementStarts(ArrayRef<unsigned> tiled) {
  for (unsigned p : compute.getIndicesOf(*elementOf)) {
    std::optional<unsigned> &number = elementIndices.emplace_back();
    const unsigned id = axisOf.lookup(compute.getIndex(p));
    if (!llvm::is_contained(tiled, id))
      continue;
    number = arguments.size();
    arguments.push_back(compute.getExtents()[p]);
    argumentNames.push_back("at_" + axes[id].name);
    Value place = func.getBlock()->addArgument(builder.getIndexType(), loc);
    Value extent = kernelValue(axes[id].rangeEnd);
    Value last = arith::SubIOp::create(at(0), loc, extent, indexConstant(1));
    Value least = arith::MaxSIOp::create(at(0), loc, place, indexConstant(0));
    axes[id].start = arith::MinSIOp::create(at(0), loc, least, last);
    nameValue(least, axes[id].name + "_from_0");
    nameValue(axes[id].start, axes[id].name + "_inside");
  }
}

/// Takes the block's number apart: the last index's tile runs fastest. With groups, `group` tiles
/// (all if that is 0) of the last index but one are walked together, so that blocks that run at
/// once share operands; the values of another index at which a table finds a factor
/// count as rows there. Where the only tiled index bounds a reduction, the tiles of so many values
/// of the others are, the longest first: whoever takes one in each round then has as much as the
/// next.
void BlockProgram::addGridStarts(ArrayRef<unsigned> tiled) {
  if (elementOf)
    return addElementStarts(tiled);
  if (tiled.empty())
    return;
  OpBuilder &b = at(0);
  Value rest = gpu::ProgramIdOp::create(b, loc, gpu::GridAxis::X);
  if (clusterAxis || func.isSpread()) {
    rest = arith::DivSIOp::create(b, loc, rest, indexConstant(func.getCluster()));
    if (clusterAxis)
      nameValue(rest, "cluster");
  }
  std::string taken; // off the number; the last number left is that of an index, which names it
  auto takeOff = [&](Value count, const std::string &indices) {
    if (!taken.empty())
      nameValue(rest, "tile_without_" + taken);
    taken = indices;
    Value part = arith::RemSIOp::create(at(0), loc, rest, count);
    rest = arith::DivSIOp::create(at(0), loc, rest, count);
    return part;
  };
  SmallVector<unsigned> large, others;
  for (unsigned id : tiled)
    (axes[id].size > 1 ? large : others).push_back(id);
  const bool isLookup =
      others.size() == 1 && others.front() != clusterAxis && looksUpFactor(others.front());
  if (schedule.getGroup() != 1 && !large.empty() && large.size() <= 2 && isLookup) {
    // What a table finds for one value it may find for the next: these count as rows.
    Value all = tilesOf(others.front()), rows;
    if (large.size() == 2) {
      rows = tilesOf(large.front());
      all = arith::MulIOp::create(b, loc, all, rows);
    }
    auto [row, column] = placeInGroups(rest, all, tilesOf(large.back()), /*areWhole=*/false);
    setStart(large.back(), column);
    setStart(others.front(), rows ? arith::DivSIOp::create(b, loc, row, rows).getResult() : row);
    if (rows)
      setStart(large.front(), arith::RemSIOp::create(b, loc, row, rows));
    return;
  }
  if (schedule.getGroup() != 1 && large.size() == 2) {
    tiled = others;
    Value rows = tilesOf(large.front()), columns = tilesOf(large.back()), part = rest;
    if (!tiled.empty()) {
      const std::string both = axes[large.front()].name + "_" + axes[large.back()].name;
      part = takeOff(arith::MulIOp::create(at(0), loc, rows, columns), both);
      nameValue(part, both + "_tile");
    }
    auto [row, column] = placeInGroups(part, rows, columns, /*areWhole=*/false);
    setStart(large.front(), row);
    setStart(large.back(), column);
  } else if (schedule.getGroup() != 1 && large.size() == 1 && !others.empty() &&
             (boundsReduction(compute, large.front()) || beginsReduction(compute, large.front()))) {
    tiled = others;
    Value rows = tilesOf(others.front());
    int64_t divisor = 1;
    for (unsigned id : others) {
      if (id != others.front())
        rows = arith::MulIOp::create(b, loc, rows, tilesOf(id));
      if (axes[id].step == 1 && id != clusterAxis)
        divisor *= getSizeFact(kernel, axes[id].rangeEnd).divisor;
    }
    const int64_t group = schedule.getGroup();
    auto [row, column] =
        placeInGroups(rest, rows, tilesOf(large.front()), group == 0 || divisor % group == 0);
    setStart(large.front(), column);
    rest = row;
  }
  // Of an index that blocks go through there are as many numbers as blocks.
  auto blocksOf = [&](unsigned id) {
    for (unsigned p = 0; p < compute.getNumIndices(); ++p)
      if (std::optional<unsigned> counter = counterOfBlocks(p);
          counter && axisOf.lookup(compute.getIndex(p)) == id)
        return kernelValue(compute.getExtents()[*counter]);
    return tilesOf(id);
  };
  while (tiled.size() > 1) {
    setStart(tiled.back(), takeOff(blocksOf(tiled.back()), axes[tiled.back()].name));
    tiled = tiled.drop_back();
  }
  if (!tiled.empty())
    setStart(tiled.front(), rest);
}
