//===- AlignRows.cpp - tiles of rows that are not aligned -----------------===//
//
// If a row's length is not a multiple of a vector, each row begins at another alignment, and no
// 16-byte access fits. A tile may hold the elements of its row in any order, as long as all
// operations on the tile see the same order. If the order is rotated by the row's misalignment, a
// thread's consecutive elements are aligned vectors in memory.
//
// 1. The pass takes kernels whose tiles have at most one axis, without matrix products and scans.
// 2. For each index tile, the pass takes the loads and stores along memory by this index whose
//    other indices are scalars. It puts them in classes of rows that begin at the same alignment.
//    The class that moves the most bytes decides. Loads that all blocks share do not count.
// 3. The pass declines if the class is fast without rotation: its rows are aligned to half a
//    vector. In blocks of up to two warps, an alignment to a quarter of a vector and to two
//    elements suffices. A warp with a row of up to 1280 bytes is fast in any case. The pass also
//    declines if the tile is shorter than one vector for each thread.
// 4. The index becomes a `tkgpu.rotated_iota` by the misalignment of the class. If the rows end
//    before the tile, only the elements before the end are rotated, in whole vectors for all
//    threads. The elements past the end stay beyond all rows, and tk-drop-registers can drop them.
// 5. A load that was aligned before, such as one of a norm's weights, becomes two loads of aligned
//    vectors, the first one vector earlier. A `tkgpu.funnel` joins them by a misalignment shift.
// 6. A persistent block that loops over rows takes steps of whole vectors of rows. All its rows
//    then have one misalignment, which is known before the loop. The grid is rounded up
//    accordingly.
//
// Before: %c = tkgpu.iota
//         %x = tkgpu.load %a[%row, %c] strides(%C, 1)
//         %g = tkgpu.load %gamma[%c] strides(1)
// After:  %s = tkgpu.misalignment[%row] strides(%C) of 8
//         %c = tkgpu.rotated_iota %s
//         %x = tkgpu.load %a[%row, %c] strides(%C, 1)
//         %g = tkgpu.funnel (load %gamma[rotated_iota 8]), (load %gamma[iota]) by %s in 8
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/layout/BulkBox.h"
#include "passes/layout/MemoryAccess.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/limits/Layouts.h"

#include "dialects/tkgpu/TkGpuHistogramOps.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "dialects/tkgpu/TkGpuSortOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"

namespace tk {
#define GEN_PASS_DEF_ALIGNROWS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::align_rows;

namespace {

/// An access along memory by an index tile, its other indices being scalars.
struct RowAccess {
  Operation *op;
  FixedTerms fixed; ///< what the scalars add to the offset
  int64_t bytes;    ///< of an element
  int64_t aligned;  ///< to so many bytes as it is
  bool isAligned;   ///< vectors fit it as it is
};

/// Rotates the rows that one index tile runs over.
class RowAligner {
public:
  RowAligner(FuncOp function, IotaOp iota, AxisInfo &info)
      : function(function), iota(iota), info(info),
        length(cast<RankedTensorType>(iota.getType()).getDimSize(0)) {}

  bool run();

private:
  template <class Op> void consider(Op op);
  bool isFastAsItIs(const RowAccess &rows);
  const RowAccess *findHeaviest();
  Value startOf(Value index);
  Value createShift(const RowAccess &rows);
  void funnel(gpu::LoadOp load, Value shift);
  Value inPlain(Value value, Value index, IRMapping &mapping, OpBuilder &builder);
  bool isOfIndexAlone(Value value);

  FuncOp function;
  IotaOp iota;
  AxisInfo &info;
  int64_t length, vector = 1;
  IntegerAttr around; ///< where elements go around an end before the tile's
  SmallVector<RowAccess> accesses;
};

} // namespace

template <class Op> void RowAligner::consider(Op op) {
  MemoryAccess access = MemoryAccess::of(op);
  std::optional<FixedTerms> fixed = fixedTermsBeside(access, iota);
  if (!fixed || access.tile.getRank() != 1)
    return;
  int64_t most = std::min(vectorBytesOf(function), access.baseAlignment);
  int64_t divisor = kAnyDivisor;
  for (auto [index, stride] : *fixed)
    divisor = std::min(divisor, info.divisibilityOf(index) * info.divisibilityOf(stride));
  int64_t aligned = divisor * access.elementBytes();
  accesses.push_back({op, *fixed, access.elementBytes(), aligned, aligned >= most});
}

/// Do accesses as they are take fewer instructions than vectors that follow where rows begin, whose
/// ends are apart?
bool RowAligner::isFastAsItIs(const RowAccess &rows) {
  int64_t most = vectorBytesOf(function), warps = function.getNumWarps();
  int64_t end = iota.getEnd().value_or(length);
  bool isInPairs = rows.aligned >= 2 * rows.bytes && 4 * rows.aligned >= most;
  return rows.isAligned || 2 * rows.aligned >= most || (isInPairs && warps <= mostWarpsOfPairs) ||
         (warps == 1 && end * rows.bytes <= shortRowBytes);
}

/// The first access of the class whose accesses move most bytes, if it is to be aligned.
const RowAccess *RowAligner::findHeaviest() {
  llvm::MapVector<const RowAccess *, int64_t> weights;
  for (const RowAccess &access : accesses) {
    if (access.fixed.empty())
      continue;
    auto known = llvm::find_if(weights, [&](auto &entry) {
      return entry.first->fixed == access.fixed || (entry.first->isAligned && access.isAligned);
    });
    if (known != weights.end())
      known->second += access.bytes;
    else
      weights[&access] = access.bytes;
  }
  auto heaviest = llvm::max_element(weights, [](auto &a, auto &b) { return a.second < b.second; });
  return heaviest == weights.end() || isFastAsItIs(*heaviest->first) ? nullptr : heaviest->first;
}

/// The loop in which the blocks of `function` go through the numbers that `index` is; null if there
/// is none.
static scf::ForOp findLoopOverBlocks(FuncOp function, Value index) {
  auto argument = dyn_cast<BlockArgument>(index);
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  bool isOverBlocks = loop && argument == loop.getInductionVar() &&
                      loop->getBlock() == function.getBlock() &&
                      loop.getLowerBound().getDefiningOp<ProgramIdOp>() &&
                      loop.getStep().getDefiningOp<NumProgramsOp>();
  return isOverBlocks ? loop : scf::ForOp();
}

/// A number that is misaligned as `index` is: of one that blocks go through, where they begin.
/// There are so many of them from here on that they do so in steps of vectors.
Value RowAligner::startOf(Value index) {
  scf::ForOp loop = findLoopOverBlocks(function, index);
  std::optional<LaunchArguments> arguments = LaunchArguments::of(function);
  if (!loop || !arguments || function.getCluster() != 1)
    return loopStart(index, vector, info);
  Location loc = loop.getLoc();
  LaunchOp launch = arguments->getLaunch();
  auto inVectors = [&](OpBuilder &builder, Value count, int64_t more) -> Value {
    auto constant = [&](int64_t value) {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    if (more != 0)
      count = arith::AddIOp::create(builder, loc, count, constant(more));
    count = FloorDivOp::create(builder, loc, count, constant(vector));
    return arith::MulIOp::create(builder, loc, count, constant(vector));
  };
  // As many as are launched: fewer would leave rows out.
  OpBuilder host(launch);
  launch.getGridXMutable().assign(inVectors(host, launch.getGridX(), vector - 1));
  launch.setResident(false);
  OpBuilder builder = OpBuilder::atBlockBegin(function.getBlock());
  GridAxis axis = loop.getStep().getDefiningOp<NumProgramsOp>().getAxis();
  Value first = ProgramIdOp::create(builder, loc, axis);
  Value count = NumProgramsOp::create(builder, loc, axis);
  loop.setLowerBound(first);
  loop.setStep(inVectors(builder, count, 0));
  return first;
}

/// The misalignment of a class of rows, as soon as its indices are known; null where the index is
/// used earlier.
Value RowAligner::createShift(const RowAccess &rows) {
  Block *entry = function.getBlock();
  Operation *last = nullptr;
  SmallVector<Value> indices, strides;
  for (auto [index, stride] : rows.fixed) {
    indices.push_back(startOf(index));
    strides.push_back(stride);
    for (Value value : {indices.back(), stride}) {
      if (value.getParentBlock() != entry)
        return {};
      Operation *def = value.getDefiningOp();
      if (def && (!last || last->isBeforeInBlock(def)))
        last = def;
    }
  }
  OpBuilder builder = OpBuilder::atBlockBegin(entry);
  if (last)
    builder.setInsertionPointAfter(last);
  for (Operation *user : iota->getUsers())
    if (Operation *here = entry->findAncestorOpInBlock(*user);
        last && (!here || !last->isBeforeInBlock(here)))
      return {};
  return MisalignmentOp::create(builder, iota.getLoc(), builder.getIndexType(), indices, strides,
                                vector);
}

/// Does `value` follow from the index tile, constants and scalars by operations on elements?
bool RowAligner::isOfIndexAlone(Value value) {
  return !isTile(value) || value == iota.getResult() ||
         (isCheapTile(value) && !value.getDefiningOp<RotatedIotaOp>());
}

/// `value`, which is of the index alone, with `index` in its place.
Value RowAligner::inPlain(Value value, Value index, IRMapping &mapping, OpBuilder &builder) {
  if (value == iota.getResult())
    return index;
  if (!isTile(value))
    return value;
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    mapping.map(operand, inPlain(operand, index, mapping, builder));
  return builder.clone(*op, mapping)->getResult(0);
}

void RowAligner::funnel(gpu::LoadOp load, Value shift) {
  OpBuilder builder(load);
  Location loc = load.getLoc();
  Type type = iota.getType();
  Value here = IotaOp::create(builder, loc, type, around);
  Value whole = arith::ConstantIndexOp::create(builder, loc, vector);
  Value before = RotatedIotaOp::create(builder, loc, type, whole, around);
  auto loadAt = [&](Value index) -> Value {
    IRMapping mapping;
    for (Value operand : load->getOperands())
      mapping.map(operand, inPlain(operand, index, mapping, builder));
    return builder.clone(*load, mapping)->getResult(0);
  };
  Value first = loadAt(before), second = loadAt(here);
  Value joined = FunnelOp::create(builder, loc, load.getType(), first, second, shift, vector);
  load.getResult().replaceAllUsesWith(joined);
  load.erase();
}

bool RowAligner::run() {
  for (Operation *user : iota->getUsers()) {
    if (auto load = dyn_cast<gpu::LoadOp>(user); load && isTile(load.getResult()))
      consider(load);
    else if (auto store = dyn_cast<StoreOp>(user); store && isTile(store.getValue()))
      consider(store);
  }
  const RowAccess *rows = findHeaviest();
  if (!rows)
    return false;
  // Vectors of the elements that most bytes consist of.
  DenseMap<int64_t, int64_t> moved;
  for (const RowAccess &access : accesses)
    if (access.fixed == rows->fixed)
      moved[access.bytes] += access.bytes;
  auto most = llvm::max_element(moved, [](auto &a, auto &b) {
    return std::pair(a.second, -a.first) < std::pair(b.second, -b.first);
  });
  vector = vectorBytesOf(function) / most->first;
  // A thread has whole vectors.
  int64_t ofThreads = vector * 32 * int64_t(function.getNumWarps());
  if (vector <= 1 || length < ofThreads)
    return false;
  Value shift = createShift(*rows);
  if (!shift)
    return false;
  OpBuilder builder(function.getContext());
  builder.setInsertionPointAfterValue(shift);
  int64_t end = llvm::alignTo(iota.getEnd().value_or(length), ofThreads);
  if (end < length)
    around = builder.getI64IntegerAttr(end);
  for (const RowAccess &access : accesses) {
    auto load = dyn_cast<gpu::LoadOp>(access.op);
    bool isPlain = load && access.isAligned &&
                   llvm::all_of(load->getOperands(), [&](Value v) { return isOfIndexAlone(v); });
    if (isPlain)
      funnel(load, shift);
  }
  Value rotated = RotatedIotaOp::create(builder, iota.getLoc(), iota.getType(), shift, around);
  iota.getResult().replaceAllUsesWith(rotated);
  iota.erase();
  return true;
}

/// Does a function consist of operations that see no order of a tile's elements, on tiles of one
/// axis?
static bool mayRotate(FuncOp function) {
  bool may = true;
  function.walk([&](Operation *op) {
    may &= !isa<DotOp, WarpgroupDotOp, gpu::ScanOp, HistogramOp, RecurrenceOp, SortOp>(op);
    // Numbers of elements that are used as floats would have to be rotated as well.
    may &= !isa<IotaOp>(op) || getElementTypeOrSelf(op->getResult(0).getType()).isIndex();
    for (Type type : op->getResultTypes())
      if (auto tile = dyn_cast<RankedTensorType>(type))
        may &= tile.getRank() <= 1;
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue()))
        may &= elements.isSplat();
  });
  return may;
}

namespace {

struct AlignRows : tk::impl::AlignRowsBase<AlignRows> {
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      if (!mayRotate(function))
        continue;
      SmallVector<IotaOp> iotas;
      function.walk([&](IotaOp iota) { iotas.push_back(iota); });
      for (IotaOp iota : iotas) {
        AxisInfo info;
        numAligned += RowAligner(function, iota, info).run();
      }
    }
  }
};

} // namespace
