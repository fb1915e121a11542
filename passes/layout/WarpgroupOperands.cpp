//===- WarpgroupOperands.cpp - operands of warpgroups' products -----------===//
#include "passes/layout/WarpgroupOperands.h"

#include "dialects/tkgpu/TkGpuProducts.h"
#include "passes/layout/KeptPlaces.h"
#include "passes/layout/MemoryAccess.h"
#include "passes/layout/RepeatedRuns.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Packed.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Bytes of a row of the narrowest swizzle.
static constexpr int64_t leastSpanBytes = 32;

static RankedTensorType tileOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// What an operand was extended from, if that is a float of 8 bits, which f16 holds.
static Value extendedFrom(Value operand) {
  auto ext = operand.getDefiningOp<arith::ExtFOp>();
  return ext && isByteFloat(tileOf(ext.getIn()).getElementType()) ? ext.getIn() : Value();
}

/// Are both operands extended from 8-bit floats, of which sums of a few products may be inexact?
static bool isPromoted(DotOp dot) {
  return dot.getPrecision() != Precision::Exact && extendedFrom(dot.getA()) &&
         extendedFrom(dot.getB());
}

Value tk::getWarpgroupA(DotOp dot) {
  return isPromoted(dot) ? extendedFrom(dot.getA()) : dot.getA();
}
Value tk::getWarpgroupB(DotOp dot) {
  return isPromoted(dot) ? extendedFrom(dot.getB()) : dot.getB();
}

bool tk::haveWarpgroupProduct(DotOp dot) {
  Type a = tileOf(getWarpgroupA(dot)).getElementType(),
       b = tileOf(getWarpgroupB(dot)).getElementType();
  Type acc = tileOf(dot.getAcc()).getElementType();
  if ((a.isBF16() || a.isF16()) && a == b)
    return acc.isF32();
  if (isByteFloat(a) && isByteFloat(b))
    return acc.isF32();
  if (a.isF32() && b.isF32() && dot.getPrecision() == Precision::TF32)
    return acc.isF32();
  return a.isInteger(8) && b.isInteger(8) && acc.isInteger(32);
}

/// Notes the box that `operand` is loaded from; false and why if there is none.
bool WarpgroupOperands::readBox(Value operand, std::string &why, bool mayRepeat) {
  if (boxes.contains(operand))
    return true;
  auto load = operand.getDefiningOp<gpu::LoadOp>();
  FailureOr<BulkBox> box =
      mayRepeat ? analyseRepeatedBox(load, info, why) : analyseBulkBox(load, info, why);
  if (failed(box)) {
    why = "is not a TMA box of a tensor: " + why;
    return false;
  }
  bool isOpen = box->end || !arguments.isKnown(*box);
  if ((isOpen && !endAtWindow(*box)) || !arguments.isKnown(*box)) {
    why = "has strides or bounds that the launch does not know";
    return false;
  }
  boxes.insert({operand, *box});
  return true;
}

/// Can products take `operand` from shared memory?
bool WarpgroupOperands::readShared(Value operand, unsigned kAxis, std::string &why) {
  if (!operand.getDefiningOp<gpu::LoadOp>()) {
    why = "is computed, not loaded";
    return false;
  }
  if (!readBox(operand, why))
    return false;
  SharedType shared = boxes.find(operand)->second.shared;
  bool kContiguous = shared.getAxisOrder().front() == kAxis;
  if (!kContiguous && bytesOfElement(shared.getElementType()) != 2) {
    why = "is not contiguous along k, which only 16-bit types may be";
    return false;
  }
  return true;
}

/// Does an index of `load` differ from element to element, as where numbers are looked up? The
/// elements are nowhere together then, and threads load them one by one.
static bool isLookup(gpu::LoadOp load) {
  const size_t rank = tileOf(load.getResult()).getShape().size();
  return rank > 1 && llvm::any_of(load.getIndexDims(), [&](Attribute axes) {
           return cast<DenseI64ArrayAttr>(axes).size() == static_cast<int64_t>(rank);
         });
}

/// Is each number that `load` reads that of many neighbours, as the scale of a group is?
static bool isOfGroups(gpu::LoadOp load) {
  return llvm::any_of(load.getIndices(), [](Value index) {
    SmallVector<Value> starts;
    std::optional<RepeatedRun> run = repeatedRun(index, starts);
    return run && run->times >= limits::unpacked_elements::kLeastOfGroup;
  });
}

void WarpgroupOperands::dividePlaces() {
  for (gpu::LoadOp load : ofGroups)
    for (OpOperand &index : load.getIndicesMutable())
      if (auto tile = dyn_cast<RankedTensorType>(index.get().getType());
          tile && tile.getRank() == 1)
        if (Value same = quotientOfPlaces(index.get(), info))
          index.set(same);
}

/// Can the left operand's elements be computed, in the product's block, from loads of boxes? Loads
/// of fewer elements, of which each is used for many, stay as they are, and so do lookups.
bool WarpgroupOperands::readElements(DotOp dot, std::string &why) {
  SmallVector<Value> work = {getWarpgroupA(dot)};
  if (auto load = work.front().getDefiningOp<gpu::LoadOp>();
      load && load->getBlock() != dot->getBlock()) {
    why += ", and is loaded outside of the product's block";
    return false;
  }
  llvm::SmallPtrSet<Operation *, 8> visited;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() != dot->getBlock() || !visited.insert(op).second)
      continue;
    auto load = dyn_cast<gpu::LoadOp>(op);
    auto tile = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (load && tile && isLookup(load)) {
      llvm::append_range(work, load.getIndices());
      llvm::append_range(work, load.getMasks());
    } else if (load && tile && tile.getShape() == tileOf(dot.getA()).getShape()) {
      if (readBox(load.getResult(), why, /*mayRepeat=*/true))
        throughRegisters.insert(load);
      else if (isOfGroups(load))
        ofGroups.insert(load);
      else
        return false;
    } else if (op->hasTrait<OpTrait::Elementwise>() ||
               isa<BroadcastOp, IotaOp, FloorDivOp, FloorModOp>(op)) {
      llvm::append_range(work, op->getOperands());
    } else if (!isa<gpu::LoadOp>(op)) {
      why = "is not computed element by element";
      return false;
    }
  }
  return true;
}

/// The product from whose result the left operand is computed, if it is: the operand then is in the
/// registers of the warps that multiply it.
static DotOp sourceOfLeft(DotOp dot) {
  SmallVector<Value> work = {dot.getA()};
  llvm::SmallPtrSet<Operation *, 8> visited;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !visited.insert(op).second)
      continue;
    if (auto source = dyn_cast<DotOp>(op))
      return source;
    if (op->hasTrait<OpTrait::Elementwise>())
      llvm::append_range(work, op->getOperands());
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      for (Region &region : branch->getRegions())
        llvm::append_range(work, region.front().getTerminator()->getOperands());
  }
  return {};
}

/// Can a left operand that is computed from the result of `source` stay in registers? A thread
/// holds neighbouring pairs of a result's columns, and as left operand whole words of k: for
/// operands of 8 bits the columns are dealt out to two parts, by the order of the rows that they
/// come from.
bool WarpgroupOperands::readProduct(DotOp dot, DotOp source, std::string &why) {
  int64_t parts = 4 / (2 * bytesOfElement(tileOf(getWarpgroupA(dot)).getElementType()));
  if (parts < 1) {
    why = "is computed from a product, of more than 16 bits";
    return false;
  }
  if (parts == 1)
    return true;
  Value rows = getWarpgroupB(source);
  auto box = boxes.find(rows);
  if (box == boxes.end() || !rows.hasOneUse() || dot->getParentOfType<FuncOp>().getCluster() > 1) {
    why = "is computed, of 8 bits, from a product whose columns cannot be put in its order";
    return false;
  }
  if (!arguments.canGroupRows(box->second, 2 * parts, info)) {
    why = "is computed, of 8 bits, and the rows that its columns come from are not known to divide "
          "into groups of " +
          std::to_string(2 * parts);
    return false;
  }
  box->second.shared = box->second.shared.withInterleave(parts);
  return true;
}

/// Leaves out the columns of a right operand from the `count`-th on, if these are rows of its box
/// or spans of a swizzle.
static void keepColumns(BulkBox &box, int64_t count) {
  const Type stored = box.shared.getElementType();
  const SmallVector<int64_t> order = box.shared.getAxisOrder();
  const int64_t bytes = count * bytesOfElement(stored),
                span = std::min(bytes & -bytes, swizzleBytes);
  const std::optional<unsigned> rows = box.rowsAxis();
  if (box.places || box.gatheredRows || box.end ||
      (order.front() == 1 ? span < leastSpanBytes : !rows))
    return;
  const SmallVector<int64_t> shape = {box.shared.getShape()[0], count};
  box.shared =
      SharedType::get(stored.getContext(), shape, stored, order, /*padding=*/0,
                      box.shared.getChunk(), box.shared.getPerPhase(), box.shared.getPhases(),
                      order.front() == 1 ? 0 : box.shared.getPanel(),
                      /*interleave=*/1, /*ones=*/0, /*pitch=*/0);
  if (order.front() == 1)
    box.cutRows(span);
  else
    box.box[*rows] = count;
}

bool WarpgroupOperands::read(DotOp dot, std::string &why) {
  Value a = getWarpgroupA(dot), b = getWarpgroupB(dot);
  for (Value operand : {a, b})
    if (Operation *op = operand.getDefiningOp();
        op && !op->getBlock()->findAncestorOpInBlock(*dot)) {
      why = "an operand is not loaded around the product";
      return false;
    }
  DotOp source = sourceOfLeft(dot);
  bool isRead =
      source ? readProduct(dot, source, why) : readShared(a, 1, why) || readElements(dot, why);
  if (!isRead) {
    why = "the left operand " + why;
    return false;
  }
  if (!readShared(b, 0, why)) {
    why = "the right operand " + why;
    return false;
  }
  BulkBox &right = boxes.find(b)->second;
  if (const int64_t kept = countKeptColumns(dot->getParentOfType<FuncOp>(), tileOf(dot.getAcc()));
      kept < right.shared.getShape()[1] && !isPromoted(dot))
    keepColumns(right, kept);
  return true;
}
