//===- SplitScans.cpp - long scans of few rows in chunks ------------------===//
//
// A block goes through all of a row that it scans. Of few long rows most multiprocessors have none.
//
// 1. Take statements whose reductions are scans along one index, all of that, and nothing else.
// 2. Cut the index in chunks of a constant length, if that is faster: what is scanned is then read
//    twice, and there are two more launches.
// 3. Reduce each chunk, in a statement of its own, and scan what the chunks before each one come
// to.
// 4. The scan begins anew with each chunk, and is combined with what came before it.
// 5. If the states of the scan decay, all by one factor, what comes before an element is weighted
//    by the power of that factor which its distance says.
//
//   %y = tk.compute ["r", "i"] {tk.scan sum "j" from 0 to %C at %i {x[r, j]}}
//     =>
//   %p = tk.compute ["r", "i.chunk"] {tk.reduce [sum] ["j"] from (k * 8192) .. {x[r, j]}}
//   %b = tk.compute ["r", "i.chunk"] {tk.scan sum "k" at k {k > 0 ? p[r, k - 1] : 0}}
//   %y = tk.compute ["r", "i"] {
//     b[r, i / 8192] + tk.scan sum "j" from i / 8192 * 8192 to %C at %i {x[r, j]}}
//
//===----------------------------------------------------------------------===//
#include "passes/machine/limits/Splits.h"
#include "passes/tensor/split/SplitReductions.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/ScanDecays.h"
#include "passes/analysis/ScanPosition.h"
#include "passes/analysis/ScheduleEntries.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/OperationCost.h"
#include "passes/plan/ScheduleBlock.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-reductions:scans";
using namespace limits::split_scans;

namespace {

class ScanSplitting {
public:
  ScanSplitting(KernelOp kernel, ComputeOp compute, gpu::TargetAttr target)
      : kernel(kernel), compute(compute), target(target) {}

  /// How many scans became chunks.
  unsigned run();

private:
  bool collect();
  bool pays();
  Value loadBefore(ScanOp scan);
  Value decayIn(OpBuilder &builder, ScanOp scan, Value steps, IRMapping mapping);
  ComputeOp createStatement(
      ScanOp scan, StringRef suffix,
      llvm::function_ref<Value(OpBuilder &, Value number, ValueRange own, IRMapping &)> body);
  void split(ScanOp scan);

  KernelOp kernel;
  ComputeOp compute;
  gpu::TargetAttr target;
  SmallVector<ScanOp> scans;
  BlockArgument index; ///< along which they run
  int64_t length = 0;  ///< of a chunk
  Value extent, numChunks;
};

} // namespace

/// Is `type` stored without rounding?
static bool isStorable(Type type) {
  return (isa<FloatType>(type) || type.isSignlessInteger()) && type.getIntOrFloatBitWidth() >= 32;
}

bool ScanSplitting::collect() {
  for (Operation &op : *compute.getBlock()) {
    if (op.getNumRegions() == 0)
      continue;
    auto scan = dyn_cast<ScanOp>(op);
    std::optional<IndexOrMirror> position = scan ? getScanPosition(scan, compute) : std::nullopt;
    if (!position || position->isMirrored || (index && index != position->index) ||
        !isConstantIntValue(scan.getLower(), 0) || !isStorable(scan.getResult().getType()) ||
        !isSameExtent(scan.getUpper(), compute.getExtents()[position->index.getArgNumber()]) ||
        llvm::any_of(
            scan.getYield().getValues(),
            [&](Value value) { return Dependence(ValueRange{position->index}).on(value); }) ||
        (hasDecays(scan) && Dependence(ValueRange{scan.getBlock()->getArgument(0)})
                                .on(scan.getYield().getValues()[1])) ||
        llvm::any_of(*scan.getBlock(), [](Operation &o) { return o.getNumRegions() > 0; }))
      return false;
    index = position->index;
    scans.push_back(scan);
  }
  return !scans.empty();
}

/// Does what is scanned lie along memory?
static bool isAlongMemory(ScanOp scan) {
  bool along = false;
  scan.getBody().walk([&](LoadOp load) {
    along |= !load.getIndices().empty() &&
             llvm::is_contained(getIterationIndices(load.getIndices().back()),
                                scan.getBlock()->getArgument(0));
  });
  return along;
}

/// Are chunks faster? The model's times, of bytes alone.
bool ScanSplitting::pays() {
  const bool isAlong = llvm::all_of(scans, isAlongMemory);
  length = isAlong ? chunkOfRow : chunkOfColumns;
  double elements = 1, blocks = 1;
  for (auto [at, size] :
       llvm::zip_equal(compute.getBlock()->getArguments(), compute.getExtents())) {
    std::optional<int64_t> upper = getSizeFact(kernel, size).upper;
    if (!upper)
      return false;
    elements *= double(std::max<int64_t>(*upper, 1));
    blocks *= at == index ? 1 : double(std::max<int64_t>(*upper, 1));
    if (at == index && *upper <= 2 * length)
      return false;
  }
  double scanned = 0, others = 0; // bytes of an element
  compute.walk([&](LoadOp load) {
    const double bytes = elementBytes(load.getResult().getType());
    (load->getParentOfType<ScanOp>() ? scanned : others) += bytes;
  });
  for (Value result : compute.getResults())
    others += elementBytes(cast<RankedTensorType>(result.getType()).getElementType());
  if (!isAlong)
    blocks = std::max(blocks * scanned / double(leastBytesOfColumns), 1.0);
  const Machine machine = machineOf(target);
  const double reach = blocks * cost::bytesOfClock * machine.device.clock();
  const double copy = machine.device.copyRate();
  const double whole = elements * (scanned + others) / std::min(copy, reach);
  const double again = elements * scanned;
  const double chunks =
      elements * (scanned + others) / copy + 2 * cost::launch +
      again / (again <= machine.device.cacheBytes() / 2 ? machine.device.cacheRate() : copy);
  return chunks < cost::mostTimeOfChunks * whole;
}

/// A statement over the indices that `scan` depends on, with the chunk's number for the index that
/// it runs along.
ComputeOp ScanSplitting::createStatement(
    ScanOp scan, StringRef suffix,
    llvm::function_ref<Value(OpBuilder &, Value number, ValueRange own, IRMapping &)> body) {
  OpBuilder builder(compute);
  SmallVector<std::string> texts;
  SmallVector<Value> extents, mine;
  const SmallVector<BlockArgument> needed = getIterationIndices(scan.getResult());
  for (unsigned p = 0; p < compute.getNumIndices(); ++p) {
    BlockArgument at = compute.getIndex(p);
    if (at != index && !llvm::is_contained(needed, at))
      continue;
    const std::string name = cast<StringAttr>(compute.getIndexNames()[p]).getValue().str();
    texts.push_back(at == index ? name + ".chunk" : name);
    extents.push_back(at == index ? numChunks : compute.getExtents()[p]);
    mine.push_back(at);
  }
  const std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + suffix).str();
  return ComputeOp::create(builder, scan.getLoc(), llvm::to_vector_of<StringRef>(texts), extents,
                           ArrayRef<Type>{scan.getResult().getType()}, ArrayRef<StringRef>{name},
                           ArrayRef<SmallVector<unsigned>>{},
                           [&](OpBuilder &inner, Location at, ValueRange own) {
                             IRMapping mapping;
                             Value number;
                             for (auto [old, value] : llvm::zip_equal(mine, own)) {
                               if (old == index)
                                 number = value;
                               else
                                 mapping.map(old, value);
                             }
                             YieldOp::create(inner, at, body(inner, number, own, mapping));
                           });
}

/// The decay of `scan` in so many steps, at the indices that `mapping` has.
Value ScanSplitting::decayIn(OpBuilder &builder, ScanOp scan, Value steps, IRMapping mapping) {
  Location loc = scan.getLoc();
  Value decay = cloneFrom(builder, scan.getYield().getValues()[1], compute, mapping);
  Value whole = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), steps);
  Value number = arith::SIToFPOp::create(builder, loc, decay.getType(), whole);
  return math::PowFOp::create(builder, loc, decay, number);
}

/// What the chunks before that of the index come to, at the statement's indices.
Value ScanSplitting::loadBefore(ScanOp scan) {
  Location loc = scan.getLoc();
  const ReduceKind kind = scan.getKind();
  const Type type = scan.getResult().getType();
  const StringRef name = scan.getIndexName();
  auto constant = [&](OpBuilder &at, int64_t value) -> Value {
    return arith::ConstantIndexOp::create(at, loc, value);
  };
  auto partial = createStatement(
      scan, ".chunks",
      [&](OpBuilder &inner, Value number, ValueRange, IRMapping &mapping) -> Value {
        Value first = arith::MulIOp::create(inner, loc, number, constant(inner, length));
        Value end = arith::AddIOp::create(inner, loc, first, constant(inner, length));
        end = arith::MinSIOp::create(inner, loc, end, extent);
        auto reduce = ReduceOp::create(
            inner, loc, kind, ArrayRef<StringRef>{name}, ValueRange{first}, ValueRange{end}, type,
            [&](OpBuilder &body, Location, ValueRange indices) -> Value {
              mapping.map(scan.getBlock()->getArgument(0), indices.front());
              Value term = cloneFrom(body, scan.getYield().getValues()[0], compute, mapping);
              if (!hasDecays(scan))
                return term;
              Value next = arith::AddIOp::create(body, loc, indices.front(), constant(body, 1));
              Value later = arith::SubIOp::create(body, loc, end, next);
              return arith::MulFOp::create(body, loc, decayIn(body, scan, later, mapping), term);
            });
        return reduce.getResult(0);
      });
  auto before = createStatement(
      scan, ".before",
      [&](OpBuilder &inner, Value number, ValueRange own, IRMapping &mapping) -> Value {
        auto scanned = ScanOp::create(
            inner, loc, kind, "chunk", constant(inner, 0), numChunks, number, type,
            [&](OpBuilder &body, Location, ValueRange indices) -> Value {
              Value zero = constant(body, 0), k = indices.front();
              Value earlier = arith::SubIOp::create(body, loc, k, constant(body, 1));
              SmallVector<Value> at(own);
              llvm::replace(at, number,
                            arith::MaxSIOp::create(body, loc, earlier, zero).getResult());
              Value element = LoadOp::create(body, loc, partial->getResult(0), at, Value());
              Value isLater = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::sgt, k, zero);
              return arith::SelectOp::create(body, loc, isLater, element,
                                             createIdentity(body, loc, kind, type));
            });
        if (hasDecays(scan)) {
          OpBuilder body(scanned.getYield());
          scanned.getYield()->insertOperands(1,
                                             decayIn(body, scan, constant(body, length), mapping));
        }
        return scanned.getResult();
      });
  OpBuilder builder(scan);
  const SmallVector<BlockArgument> needed = getIterationIndices(scan.getResult());
  SmallVector<Value> at;
  for (BlockArgument own : compute.getBlock()->getArguments()) {
    if (own == index)
      at.push_back(FloorDivOp::create(builder, loc, own.getType(), own, constant(builder, length)));
    else if (llvm::is_contained(needed, own))
      at.push_back(own);
  }
  return LoadOp::create(builder, loc, before->getResult(0), at, Value());
}

void ScanSplitting::split(ScanOp scan) {
  note(scan, passName, Verdict::Derived,
       "the scan over " + scan.getIndexName() + " is computed in chunks of " + Twine(length));
  Value before = loadBefore(scan);
  Location loc = scan.getLoc();
  OpBuilder builder(scan);
  Value size = arith::ConstantIndexOp::create(builder, loc, length);
  Value chunk = FloorDivOp::create(builder, loc, index.getType(), index, size);
  scan.getLowerMutable().assign(arith::MulIOp::create(builder, loc, chunk, size));
  builder.setInsertionPointAfter(scan);
  if (hasDecays(scan)) {
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value next = arith::AddIOp::create(builder, loc, index, one);
    Value steps = arith::SubIOp::create(builder, loc, next, scan.getLower());
    before = arith::MulFOp::create(builder, loc, decayIn(builder, scan, steps, {}), before);
    // Weights may be infinite where there is nothing to weight.
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value isLater = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, chunk, zero);
    Value none = createIdentity(builder, loc, scan.getKind(), before.getType());
    before = arith::SelectOp::create(builder, loc, isLater, before, none);
  }
  Value all = createCombination(builder, loc, scan.getKind(), before, scan.getResult());
  scan.getResult().replaceAllUsesExcept(all, all.getDefiningOp());
}

unsigned ScanSplitting::run() {
  if (!collect() || !pays())
    return 0;
  OpBuilder builder(compute);
  Location loc = compute.getLoc();
  extent = compute.getExtents()[index.getArgNumber()];
  Value size = arith::ConstantIndexOp::create(builder, loc, length);
  Value more = arith::ConstantIndexOp::create(builder, loc, length - 1);
  Value padded = arith::AddIOp::create(builder, loc, extent, more);
  numChunks = FloorDivOp::create(builder, loc, padded.getType(), padded, size);
  for (ScanOp scan : scans)
    split(scan);
  return scans.size();
}

unsigned tk::splitScans(KernelOp kernel) {
  auto target =
      kernel->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (!target || findScheduleBlock(kernel))
    return 0;
  unsigned split = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().front().getOps<ComputeOp>()))
    split += ScanSplitting(kernel, compute, target).run();
  return split;
}
