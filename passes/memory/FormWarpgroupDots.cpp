//===- FormWarpgroupDots.cpp - products of warpgroups on bulk copies ------===//
//
// On a machine with warpgroup products:
// 1. A product whose rows four warps can share, of operand types that the hardware multiplies, and
//    whose operands are loads of boxes (BulkBox.h) used by such products alone, is computed by
//    warpgroups, if that is true of all products of the function. The left operand may also be
//    computed from another product: it stays in registers.
// 2. Each load becomes a bulk copy to shared memory at the same place, once for all products that
//    use it. Which operand is transposed is a matter of how the tile lies there: 16-bit types go
//    either way, others need k to be contiguous.
// 3. The product is waited for at once; tk-overlap-products moves the wait.
// 4. Tensor maps become arguments of the launch.
//
//   %x = tkgpu.load %a[%i, %k] ...           tkgpu.bulk_copy %sx, %a_map[%i0, %k0]
//   %y = tkgpu.load %b[%k, %j] ...       →   tkgpu.bulk_copy %sy, %b_map[%k0, %j0]
//   %d = tkgpu.dot %x, %y, %acc              %p = tkgpu.warpgroup_dot %sx, %sy, %acc
//                                            %d = tkgpu.warpgroup_wait %p pending 0
//
// Why a product is left to mma.sync is noted on the kernel.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Notes.h"
#include "passes/memory/BulkBox.h"
#include "passes/memory/MemoryAccess.h"
#include "passes/memory/TransposedLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"

namespace tk {
#define GEN_PASS_DEF_FORMWARPGROUPDOTS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The largest n of one wgmma.
static constexpr int64_t kWidestProduct = 256;

static RankedTensorType tileOf(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {

class WarpgroupForming {
public:
  WarpgroupForming(FuncOp function, LaunchArguments arguments)
      : function(function), arguments(arguments), builder(function.getContext()) {}

  unsigned run();

private:
  bool decide(DotOp dot);
  bool decline(DotOp dot, const Twine &why);
  bool hasProduct(DotOp dot);
  bool readOperand(DotOp dot, Value operand, unsigned kAxis, StringRef name);
  bool isStagedForAll(DotOp dot);
  std::optional<unsigned> sharedRows(const BulkBox &box);
  Value stage(Value operand);
  void rewrite(DotOp dot);

  FuncOp function;
  LaunchArguments arguments;
  OpBuilder builder;
  AxisInfo info;
  llvm::MapVector<Value, BulkBox> sources;
  DenseMap<Value, Value> staged;
  llvm::SetVector<Operation *> formed;
};

} // namespace

bool WarpgroupForming::decline(DotOp dot, const Twine &why) {
  note(arguments.getLaunch(), "tk-form-warpgroup-dots", Verdict::Declined,
       "the product over tiles of " + Twine(tileOf(dot.getAcc()).getDimSize(0)) + " x " +
           Twine(tileOf(dot.getAcc()).getDimSize(1)) + " is left to warps: " + why);
  return false;
}

/// Does the hardware multiply such operands?
bool WarpgroupForming::hasProduct(DotOp dot) {
  Type a = tileOf(dot.getA()).getElementType(), b = tileOf(dot.getB()).getElementType();
  Type acc = tileOf(dot.getAcc()).getElementType();
  if ((a.isBF16() || a.isF16()) && a == b)
    return acc.isF32();
  if (isa<Float8E4M3FNType, Float8E5M2Type>(a) && isa<Float8E4M3FNType, Float8E5M2Type>(b))
    return acc.isF32();
  return a.isInteger(8) && b.isInteger(8) && acc.isInteger(32);
}

bool WarpgroupForming::readOperand(DotOp dot, Value operand, unsigned kAxis, StringRef name) {
  auto load = operand.getDefiningOp<gpu::LoadOp>();
  if (!load)
    return decline(dot, name + " is computed, not loaded");
  if (!load->getBlock()->findAncestorOpInBlock(*dot))
    return decline(dot, name + " is not loaded around the product");
  std::string why;
  auto known = sources.find(operand);
  if (known == sources.end()) {
    FailureOr<BulkBox> box = analyseBulkBox(load, info, why);
    if (failed(box))
      return decline(dot, name + " is no box of a tensor: " + why);
    if (!arguments.isKnown(*box))
      return decline(dot, name + " has strides or bounds that the launch does not know");
    known = sources.insert({operand, *box}).first;
  }
  SharedType shared = known->second.shared;
  bool kContiguous = shared.getAxisOrder().front() == kAxis;
  if (!kContiguous && bytesOfElement(shared.getElementType()) != 2)
    return decline(dot, name + " is not contiguous along k, which only 16-bit types may be");
  return true;
}

/// Is the left operand computed from another product's result? It then is in the registers of the
/// warps that multiply it.
static bool isInRegisters(DotOp dot) {
  SmallVector<Value> work = {dot.getA()};
  llvm::SmallPtrSet<Operation *, 8> visited;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !visited.insert(op).second)
      continue;
    if (isa<DotOp>(op))
      return bytesOfElement(tileOf(dot.getA()).getElementType()) == 2;
    if (op->hasTrait<OpTrait::Elementwise>())
      llvm::append_range(work, op->getOperands());
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      for (Region &region : branch->getRegions())
        llvm::append_range(work, region.front().getTerminator()->getOperands());
  }
  return false;
}

bool WarpgroupForming::decide(DotOp dot) {
  RankedTensorType acc = tileOf(dot.getAcc());
  int64_t depth = tileOf(dot.getA()).getDimSize(1);
  for (Operation *parent = dot->getParentOp(); parent != function; parent = parent->getParentOp())
    if (!isa<scf::ForOp>(parent))
      return decline(dot, "it is not computed in all cases");
  if (!hasProduct(dot))
    return decline(dot, "there is no product of such types");
  if (!warpgroupAccumulatorLayout(dot.getContext(), acc.getDimSize(0), acc.getDimSize(1),
                                  function.getNumWarps()) ||
      acc.getDimSize(1) > kWidestProduct)
    return decline(dot, "it does not divide into rows of 64 and up to 256 columns a warpgroup");
  if (depth * bytesOfElement(tileOf(dot.getA()).getElementType()) % 32 != 0)
    return decline(dot, "k is not a multiple of 32 bytes");
  if (!isInRegisters(dot) && !readOperand(dot, dot.getA(), 1, "the left operand"))
    return false;
  return readOperand(dot, dot.getB(), 0, "the right operand");
}

/// Are the product's operands used by products of warpgroups alone?
bool WarpgroupForming::isStagedForAll(DotOp dot) {
  for (Value operand : {dot.getA(), dot.getB()}) {
    if (!sources.contains(operand))
      continue; // in registers
    for (Operation *user : operand.getUsers())
      if (!formed.contains(user))
        return decline(dot, "an operand is used by other operations too");
  }
  return true;
}

/// Does `value` follow from the block's position in its cluster?
static bool dependsOnRank(Value value) {
  Operation *op = value ? value.getDefiningOp() : nullptr;
  return op && (isa<ClusterRankOp>(op) || llvm::any_of(op->getOperands(), dependsOnRank));
}

/// The tensor's axis along which the tile's rows lie, if all blocks of a cluster want the same tile
/// and each can bring whole groups of eight rows, within which chunks are permuted.
std::optional<unsigned> WarpgroupForming::sharedRows(const BulkBox &box) {
  SharedType shared = box.shared;
  int64_t rows = shared.getShape()[shared.getAxisOrder()[1]], cluster = function.getCluster();
  if (cluster == 1 || rows % (8 * cluster) != 0 ||
      llvm::any_of(box.coordinates,
                   [](ArrayRef<Value> summands) { return llvm::any_of(summands, dependsOnRank); }))
    return std::nullopt;
  return box.rowsAxis();
}

Value WarpgroupForming::stage(Value operand) {
  Value &shared = staged[operand];
  if (shared)
    return shared;
  BulkBox &box = sources.find(operand)->second;
  Operation *load = operand.getDefiningOp();
  Location loc = load->getLoc();
  builder.setInsertionPointToStart(function.getBlock());
  shared = AllocSharedOp::create(builder, loc, box.shared, nullptr);
  IntegerAttr multicast;
  if (std::optional<unsigned> axis = sharedRows(box)) {
    multicast = builder.getI64IntegerAttr(*axis);
    box.box[*axis] /= function.getCluster();
  }
  Value map = arguments.addTensorMap(box);
  builder.setInsertionPoint(load);
  SmallVector<Value> coordinates = buildCoordinates(builder, loc, box);
  BulkCopyOp::create(builder, loc, shared, map, coordinates, Value(), Value(), multicast);
  return shared;
}

void WarpgroupForming::rewrite(DotOp dot) {
  Value a = sources.contains(dot.getA()) ? stage(dot.getA()) : dot.getA();
  Value b = stage(dot.getB());
  builder.setInsertionPoint(dot);
  Value product = WarpgroupDotOp::create(builder, dot.getLoc(), dot.getType(), a, b, dot.getAcc(),
                                         /*accumulate=*/Value(), dot.getPrecision());
  auto done = WarpgroupWaitOp::create(builder, dot.getLoc(), product, 0);
  note(arguments.getLaunch(), "tk-form-warpgroup-dots", Verdict::Derived,
       "the product over tiles of " + Twine(tileOf(dot.getAcc()).getDimSize(0)) + " x " +
           Twine(tileOf(dot.getAcc()).getDimSize(1)) + " is computed by warpgroups");
  dot.replaceAllUsesWith(done.getResult(0));
  dot.erase();
}

unsigned WarpgroupForming::run() {
  SmallVector<DotOp> dots;
  function.walk([&](DotOp dot) { dots.push_back(dot); });
  bool all = true;
  for (DotOp dot : dots) {
    all &= decide(dot);
    formed.insert(dot);
  }
  // Accumulators and what is computed between products share layouts: all products or none.
  if (!all || !llvm::all_of(dots, [&](DotOp dot) { return isStagedForAll(dot); }))
    return 0;
  for (DotOp dot : dots)
    rewrite(dot);
  for (auto &[operand, shared] : staged)
    operand.getDefiningOp()->erase();
  return dots.size();
}

namespace {

struct FormWarpgroupDots : tk::impl::FormWarpgroupDotsBase<FormWarpgroupDots> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    if (!target || !target.getHopper())
      return;
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      std::optional<LaunchArguments> arguments = LaunchArguments::of(function);
      if (!arguments)
        continue;
      foldTransposedLoads(function);
      numFormed += WarpgroupForming(function, *arguments).run();
    }
  }
};

} // namespace
