//===- StagedOperands.cpp - operands of wgmma in shared memory ------------===//
//
// Each load becomes a TMA load to shared memory, once for all products that read it. Gathered rows
// take a TMA load for each group of rows. In a cluster, blocks that want the same tile share it by
// multicast. A tile that goes through registers is read from shared memory as late as possible.
//
//===----------------------------------------------------------------------===//
#include "passes/layout/StagedOperands.h"

#include "passes/layout/MemoryAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Does `value` follow from the block's position in its cluster?
static bool dependsOnRank(Value value) {
  Operation *op = value ? value.getDefiningOp() : nullptr;
  return op && (isa<ClusterRankOp>(op) || llvm::any_of(op->getOperands(), dependsOnRank));
}

/// Do the blocks of a cluster execute `op` equally often? A range that ends with the rows of a tile
/// is of another length in each.
static bool isAlikeInCluster(Operation *op) {
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (dependsOnRank(loop.getLowerBound()) || dependsOnRank(loop.getUpperBound()))
      return false;
  return true;
}

/// The tensor's axis along which the tile's rows lie, if all blocks of a cluster want the same tile
/// of `load` and each can bring whole groups of eight rows, within which chunks are permuted.
std::optional<unsigned> StagedOperands::sharedRows(const BulkBox &box, Operation *load) {
  SharedType shared = box.shared;
  int64_t rows = shared.getShape()[shared.getAxisOrder()[1]], cluster = function.getCluster();
  if (cluster == 1 || box.end || box.places || rows % (8 * cluster) != 0 ||
      !isAlikeInCluster(load) || llvm::any_of(box.coordinates, [](ArrayRef<Value> summands) {
        return llvm::any_of(summands, dependsOnRank);
      }))
    return std::nullopt;
  return box.rowsAxis();
}

/// The map of `box`. Boxes that are alike in all but where they lie have one, if their products are
/// summed together.
Value StagedOperands::mapOf(const BulkBox &box) {
  if (!areParts || box.end || box.gatheredRows)
    return arguments.addTensorMap(box);
  for (auto &[like, map] : mapsOfParts)
    if (like.buffer == box.buffer && like.strides == box.strides && like.limits == box.limits &&
        like.firstLimit == box.firstLimit && like.box == box.box && like.shared == box.shared &&
        like.roundsToTf32 == box.roundsToTf32)
      return map;
  return mapsOfParts.emplace_back(box, arguments.addTensorMap(box)).second;
}

Value StagedOperands::stage(Value operand, bool isMultiplied) {
  Value &shared = staged[operand];
  if (shared)
    return shared;
  BulkBox &box = operands.boxes.find(operand)->second;
  Operation *load = operand.getDefiningOp();
  Location loc = load->getLoc();
  builder.setInsertionPointToStart(function.getBlock());
  shared = AllocSharedOp::create(builder, loc, box.shared, nullptr);
  // The product would cut off what tf32 has no bits for.
  box.roundsToTf32 =
      isMultiplied && cast<RankedTensorType>(operand.getType()).getElementType().isF32();
  IntegerAttr multicast;
  if (std::optional<unsigned> axis = sharedRows(box, load)) {
    multicast = builder.getI64IntegerAttr(*axis);
    box.box[*axis] /= function.getCluster();
  }
  Maps maps = {mapOf(box), Value(), Value()};
  if (box.end)
    maps.before = arguments.addTensorMap(box, /*isBefore=*/true);
  builder.setInsertionPoint(load);
  SmallVector<Value> coordinates = buildCoordinates(builder, loc, box);
  maps.arePanelsInside = box.end ? arguments.arePanelsInside(builder, box) : Value();
  if (box.gatheredRows) {
    copyGroups(box, shared, maps, coordinates);
    return shared;
  }
  Value map = box.end ? endCopy(box, maps, box.endBase, Value(), coordinates) : maps.plain;
  BulkCopyOp::create(builder, loc, shared, map, coordinates, Value(), Value(), multicast,
                     /*first_row=*/nullptr, buildDistances(builder, loc, box));
  return shared;
}

/// Has a copy end where the rows do; returns the map that it takes. A box that is outside the
/// tensor as a whole has the hardware touch a map's base address (H200: an illegal address where no
/// memory is mapped). The map that begins before the tensor copies only boxes that are in part
/// inside. Of several panels the ones that lie outside take the map that begins with the tensor, at
/// the same coordinates: the condition says whether none does, and the emitter compares for each.
Value StagedOperands::endCopy(const BulkBox &box, Maps maps, ValueRange base, Value isInside,
                              SmallVectorImpl<Value> &coordinates) {
  Location loc = maps.plain.getLoc();
  Value isPart = endRows(builder, loc, box, base, isInside, coordinates);
  if (maps.arePanelsInside)
    isPart = arith::AndIOp::create(builder, loc, isPart, maps.arePanelsInside);
  return arith::SelectOp::create(builder, loc, isPart, maps.before, maps.plain);
}

/// Copies each group of rows that are gathered together.
void StagedOperands::copyGroups(const BulkBox &box, Value shared, Maps maps,
                                ArrayRef<Value> coordinates) {
  SharedType type = box.shared;
  int64_t rows = type.getShape()[type.getAxisOrder()[1]];
  Location loc = shared.getLoc();
  for (int64_t row = 0; row < rows; row += box.gatheredRows) {
    SmallVector<Value> place(coordinates);
    for (auto [axis, index] : llvm::enumerate(box.gathered))
      if (index)
        place[axis] = elements.at(index, row);
    Value map = maps.plain, isGroupInside;
    for (Value mask : box.groupMasks) {
      Value holds = elements.at(mask, row);
      isGroupInside =
          isGroupInside ? arith::AndIOp::create(builder, loc, isGroupInside, holds) : holds;
    }
    if (box.end)
      map = endCopy(box, maps, elements.at(box.endIndex, row), isGroupInside, place);
    for (auto [axis, index] : llvm::enumerate(box.gathered)) {
      if (!index)
        continue;
      // What lies before the tensor is zero.
      for (Value mask : box.groupMasks)
        place[axis] = arith::SelectOp::create(
            builder, loc, elements.at(mask, row), place[axis],
            arith::ConstantIndexOp::create(builder, loc, -box.gatheredRows));
    }
    BulkCopyOp::create(builder, loc, shared, map, place, Value(), Value(), /*multicast=*/nullptr,
                       builder.getI64IntegerAttr(row));
  }
}

/// The first operation of `op`'s block that uses its result, itself or inside.
static Operation *firstUseOf(Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers())
    if (Operation *here = op->getBlock()->findAncestorOpInBlock(*user))
      if (!first || here->isBeforeInBlock(first))
        first = here;
  return first;
}

LocalLoadOp StagedOperands::readLate(gpu::LoadOp load) {
  llvm::SetVector<Operation *> computed;
  computed.insert(load);
  for (Operation *op = load->getNextNode(); op; op = op->getNextNode())
    if (op->hasTrait<OpTrait::Elementwise>() && llvm::any_of(op->getOperands(), [&](Value operand) {
          return computed.contains(operand.getDefiningOp());
        }))
      computed.insert(op);
  for (Operation *op : llvm::reverse(computed.getArrayRef().drop_front()))
    if (Operation *use = firstUseOf(op))
      op->moveBefore(use);
  Value shared = stage(load.getResult(), /*isMultiplied=*/false);
  builder.setInsertionPoint(firstUseOf(load));
  auto read = LocalLoadOp::create(builder, load.getLoc(), load.getType(), shared, nullptr, nullptr,
                                  nullptr, builder.getI64IntegerAttr(1));
  load.replaceAllUsesWith(read.getResult());
  return read;
}

void StagedOperands::eraseLoads() {
  for (auto &[operand, shared] : staged)
    operand.getDefiningOp()->erase();
}
