//===- RelevantFacts.cpp - what a variant depends on ----------------------===//
//
// A kernel is compiled once for all launches of which the facts that its schedule looks at are the
// same. Those are chosen here, and put onto the copy of the kernel that is compiled for them.
//
//===----------------------------------------------------------------------===//
#include "compiler/RelevantFacts.h"

#include "compiler/CompiledSource.h"
#include "compiler/CudaBackend.h"
#include "compiler/arch/Architecture.h"
#include "compiler/plan/KernelSignature.h"
#include "dialects/tk/TkInvariance.h"
#include "dialects/tk/TkMeshOps.h"
#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/analysis/LeastSizes.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarCases.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/analysis/StrideAxes.h"
#include "passes/layout/MemoryAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <bit>

using namespace mlir;

namespace tk {
namespace {

/// The least power of four times `base` that is not below `value`.
int64_t roundUpCoarsely(int64_t value, int64_t base) {
  while (base < value && base < (int64_t(1) << 60))
    base *= 4;
  return base;
}

/// What bounds of rows are told apart by: eighths of the next power of two.
int64_t roundUpToEighth(int64_t upper) {
  auto value = static_cast<uint64_t>(upper);
  constexpr uint64_t leastUnit = 128;
  const uint64_t power = std::bit_ceil(value), unit = std::max(power / 8, leastUnit);
  return static_cast<int64_t>(std::min((value + unit - 1) / unit * unit, power));
}

/// The least length of a row with the same bound; 0 where there is none.
int64_t leastWithBound(int64_t upper) {
  int64_t below = 0, found = std::max<int64_t>(upper, 0);
  while (found - below > 1) {
    int64_t middle = below + (found - below) / 2;
    (roundUpToEighth(fact_for(middle).upper) == upper ? found : below) = middle;
  }
  return found;
}

/// Bounds that the CPU's fusion decisions compare with; beyond them a size counts as unknown.
int64_t cpuBound(int64_t upper) {
  for (int64_t bound : {0, 1, 4, 16, 64, 4096})
    if (upper >= 0 && upper <= bound)
      return bound;
  return -1;
}

/// GPU schedules tell sizes apart by powers of two up to here, and coarsely beyond.
constexpr int64_t longestKeptBound = 32768;
/// The same for what reductions run over: how a row is held on chip depends on its length.
constexpr int64_t longestKeptRow = 1 << 20;
/// Of more rows or columns each processor gets many tiles, and of more terms all parts are long.
constexpr int64_t longestCounted = 4096;
/// Of rows or columns of products in 16 bits or less, whose tiles are large, up to which eighths of
/// a power of two are told apart.
constexpr int64_t longestTiled = 8192;
/// No tile of an index that is not reduced gains from more.
constexpr uint32_t largestKeptDivisor = 128;

/// Strides are told apart by powers of two up to here: sectors of 32 bytes of the narrowest type.
constexpr uint32_t largestStrideDivisor = 32;

/// What vector accesses need at most of a base address, in bytes.
constexpr uint32_t fullAlignment = 16;

} // namespace

std::vector<bool> findReducedDims(KernelOp kernel) {
  std::vector<bool> reduced(kernel.getNumDims());
  kernel.walk([&](Operation *op) {
    if (!isa<ReduceOp, ScanOp>(op))
      return;
    for (Value operand : op->getOperands())
      if (auto dim = dyn_cast<BlockArgument>(operand);
          dim && dim.getOwner()->getParentOp() == kernel && dim.getArgNumber() < reduced.size())
        reduced[dim.getArgNumber()] = true;
  });
  return reduced;
}

/// The extent of an index of a statement, a reduction or a scan; null if it is computed per
/// element.
static Value extentOf(BlockArgument index) {
  Operation *owner = index.getOwner()->getParentOp();
  if (auto compute = dyn_cast<ComputeOp>(owner))
    return index.getArgNumber() < compute.getNumIndices()
               ? Value(compute.getExtents()[index.getArgNumber()])
               : Value();
  auto reduce = dyn_cast<ReduceOp>(owner);
  return reduce && index.getArgNumber() < reduce.getNumIndices()
             ? Value(reduce.getUpper()[index.getArgNumber()])
             : Value();
}

/// The indices that `value` is a sum of, with constant factors; not those of what is read from
/// tensors.
static void addSummands(Value value, llvm::SmallVectorImpl<BlockArgument> &indices) {
  if (auto index = dyn_cast<BlockArgument>(value)) {
    if (!isa<KernelOp>(index.getOwner()->getParentOp()))
      indices.push_back(index);
    return;
  }
  Operation *op = value.getDefiningOp();
  const bool isSum = isa<arith::AddIOp, arith::SubIOp>(op);
  const bool hasFactor =
      isa<arith::MulIOp, FloorDivOp>(op) && llvm::any_of(op->getOperands(), [](Value factor) {
        return getConstantIndex(factor).has_value();
      });
  if (isSum || hasFactor)
    for (Value operand : op->getOperands())
      addSummands(operand, indices);
}

std::vector<bool> findWindowDims(KernelOp kernel) {
  std::vector<bool> found(kernel.getNumDims());
  auto add = [&](Value extent) {
    auto dim = dyn_cast_or_null<BlockArgument>(extent);
    if (dim && dim.getOwner()->getParentOp() == kernel && dim.getArgNumber() < found.size())
      found[dim.getArgNumber()] = true;
  };
  kernel.walk([&](LoadOp load) {
    for (Value axis : load.getIndices()) {
      SmallVector<BlockArgument> indices;
      addSummands(axis, indices);
      if (indices.size() < 2)
        continue;
      for (BlockArgument index : indices) {
        add(extentOf(index));
        if (auto reduce = dyn_cast<ReduceOp>(index.getOwner()->getParentOp()))
          for (Value end : reduce.getUpper())
            add(end);
      }
    }
  });
  return found;
}

/// The indices that `value` is computed from; not those of what is read from tensors.
static void addIndices(Value value, llvm::SmallDenseSet<Value> &indices) {
  if (auto index = dyn_cast<BlockArgument>(value)) {
    if (!isa<KernelOp>(index.getOwner()->getParentOp()))
      indices.insert(index);
    return;
  }
  if (!isa<LoadOp>(value.getDefiningOp()))
    for (Value operand : value.getDefiningOp()->getOperands())
      addIndices(operand, indices);
}

bool readsWindows(KernelOp kernel) {
  auto hasSeveral = [](Value axis) {
    llvm::SmallDenseSet<Value> indices;
    addIndices(axis, indices);
    return indices.size() > 1;
  };
  return kernel
      ->walk([&](LoadOp load) {
        return llvm::any_of(load.getIndices(), hasSeveral) ? WalkResult::interrupt()
                                                           : WalkResult::advance();
      })
      .wasInterrupted();
}

bool isGpuText(std::string_view target) {
  return detail::architecture_of(target).starts_with("sm_");
}

// Registers of threads that hold a row are counted; all else is planned in powers of two.
bool CompiledSource::hasFineBound(size_t kernel, size_t dim, std::string_view target) const {
  return isGpuText(target) && reducedDims[kernel][dim] && products[kernel] == Products::none;
}

// Products in f32 and f64 have small tiles, of which each processor gets a few, and parts. Of other
// products the rows and columns alone are counted: see findTiledDims().
bool CompiledSource::countsTiles(size_t kernel, std::string_view target) const {
  return isGpuText(target) && !servesShorter && products[kernel] == Products::wide;
}

int64_t CompiledSource::boundOfKey(size_t kernel, size_t dim, std::string_view target,
                                   const DimFact &fact) const {
  const bool isTiled = isGpuText(target) && !servesShorter && tiledDims[kernel][dim];
  if (fact.upper <= longestCounted && (countsTiles(kernel, target) || isTiled))
    return fact.upper;
  if (hasFineBound(kernel, dim, target) || (isTiled && fact.upper <= longestTiled))
    return roundUpToEighth(fact.upper);
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(fact.upper)));
}

bool CompiledSource::hasClasses(size_t kernel, size_t dim, std::string_view target) const {
  const SizeRole role = sizeRoles[kernel][dim];
  return !exactSizes && !servesShorter && role != SizeRole::Shape && !windowDims[kernel][dim] &&
         !(role == SizeRole::Rows && countsTiles(kernel, target));
}

std::optional<SizeInterval> CompiledSource::sizeClass(size_t kernel, size_t dim,
                                                      std::string_view target,
                                                      const DimFact &fact) const {
  const SizeRole role = sizeRoles[kernel][dim];
  if (!hasClasses(kernel, dim, target) || fact.own_key || fact.serves_shorter || fact.upper <= 0)
    return std::nullopt;
  if (!isGpuText(target))
    return SizeInterval{0, boundOnCpu(fact), 1};
  Expected<Machine> machine = findMachine(detail::architecture_of(target), driver.device);
  return machine ? classOf(role, fact, *machine) : std::nullopt;
}

/// The CPU's code rests on which axes have stride 1, and on nothing else of addresses and strides.
static void keepUnitAxes(std::vector<TensorFact> &tensors, const Signature &signature) {
  bool hasOther = false;
  for (auto [t, fact] : llvm::enumerate(tensors)) {
    const bool isStrided = t < signature.num_tensors() && signature.tensor(t).strided;
    fact = TensorFact{1, 1, isStrided ? fact.unit_axis : last_axis, false};
    hasOther |= fact.unit_axis != last_axis;
  }
  if (!hasOther)
    tensors.clear();
}

Facts CompiledSource::relevant_facts(size_t kernel, std::string_view target,
                                     const Facts &facts) const {
  Facts relevant = facts;
  // Of the conditions of schedule blocks, the one that chose counts. The CPU has no use for blocks.
  relevant.schedules.clear();
  if (target != "cpu")
    if (auto block = chooseSchedule(schedules[kernel], target, facts))
      if (auto condition = schedules[kernel][*block].condition) {
        relevant.schedules.resize(*condition + 1);
        relevant.schedules.back() = true;
      }
  bool gpu = isGpuText(target);
  while (!relevant.cases.empty() && (!gpu || !relevant.cases.back()))
    relevant.cases.pop_back();
  for (size_t d = 0; d < relevant.dims.size(); ++d) { // none without sizes
    DimFact &fact = relevant.dims[d];
    fact.own_key &= hasClasses(kernel, d, target);
    if (auto sizes = sizeClass(kernel, d, target, fact)) {
      fact = DimFact{sizes->divisor, sizes->upper, {}};
      continue;
    }
    const bool isReduced = reducedDims[kernel][d];
    // A class of sizes has one bound for all of them.
    const bool isClass = fact.serves_shorter && !servesShorter;
    fact.serves_shorter = isClass && hasFineBound(kernel, d, target);
    if (!gpu || servesShorter || !windowDims[kernel][d])
      fact.exact.reset();
    if (fact.upper > 0 && !isClass)
      fact.upper = boundOfKey(kernel, d, target, fact);
    else if (fact.upper > 0)
      fact.upper = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(fact.upper)));
    if (!gpu) {
      const bool isOpen = !sizeUses[kernel].empty() && sizeUses[kernel][d] != SizeUse::Whole;
      fact = {1, isOpen ? -1 : cpuBound(fact.upper), {}, false, fact.own_key};
      continue;
    }
    int64_t kept = isReduced ? longestKeptRow : longestKeptBound;
    if (fact.upper > kept)
      fact.upper = roundUpCoarsely(fact.upper, kept);
    // A power of two that has a key of its own is to be known as one: see classOf().
    const bool isPower = hasClasses(kernel, d, target) && !isClass && fact.upper > 0;
    if (!isReduced)
      fact.divisor =
          std::min(fact.divisor,
                   isPower ? std::max(largestKeptDivisor, static_cast<uint32_t>(fact.upper / 16))
                           : largestKeptDivisor);
  }
  const Signature &signature = kernelSignatures[kernel];
  if (!gpu) {
    keepUnitAxes(relevant.tensors, signature);
    relevant.small_tensors = false;
    return relevant;
  }
  // Code has one width for all its buffers.
  TensorFact common{fullAlignment, largestStrideDivisor};
  for (auto [t, fact] : llvm::enumerate(relevant.tensors)) {
    common.alignment = std::min(common.alignment, fact.alignment);
    const bool isStrided = t < signature.num_tensors() && signature.tensor(t).strided;
    if (isStrided)
      common.stride_divisor = std::min(common.stride_divisor, fact.stride_divisor);
    else
      fact = TensorFact();
  }
  for (TensorFact &fact : relevant.tensors) {
    fact.alignment = common.alignment;
    fact.stride_divisor = common.stride_divisor;
  }
  return relevant;
}

/// Brings the axes of strided tensors into the order that `facts` tell.
static void orderAxes(KernelOp kernel, const Signature &signature,
                      const std::vector<TensorFact> &facts, bool keepsStrides) {
  llvm::SmallVector<AxisOrder> orders;
  for (auto [t, fact] : llvm::enumerate(facts)) {
    const bool hasNone = fact.unit_axis == no_axis;
    orders.push_back({hasNone ? noUnitAxis : fact.unit_axis, fact.dense});
    if (hasNone && signature.tensor(t).strided)
      note(kernel.getReturn(), "strides", Verdict::Declined,
           "'" + signature.tensor(t).name +
               "' is slow to access: none of its axes has stride 1, so that each thread's "
               "elements are accessed one by one");
  }
  orderStridedAxes(kernel, orders, keepsStrides);
}

/// Makes constants of the dimensions whose sizes are part of the variant.
static void settleExactDims(KernelOp kernel, const Facts &facts) {
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  for (auto [d, fact] : llvm::enumerate(facts.dims))
    if (fact.exact)
      kernel.getBody().getArgument(d).replaceAllUsesWith(
          arith::ConstantIndexOp::create(builder, kernel.getLoc(), *fact.exact));
}

Expected<OwningOpRef<ModuleOp>> CompiledSource::isolateFor(size_t kernel, std::string_view target,
                                                           const Facts &facts) {
  OwningOpRef<ModuleOp> copy = ModuleOp::create(module->getLoc());
  copy->getOperation()->setAttrs(module->getOperation()->getAttrDictionary());
  OpBuilder builder = OpBuilder::atBlockEnd(copy->getBody());
  KernelOp original = kernelOp(kernel);
  auto clone = cast<KernelOp>(builder.clone(*original));
  clone.walk([](ComputeOp compute) { compute->removeAttr(frontend::beginsAttrName); });
  for (StringRef attribute : {meshAttr, shardingsAttr}) // without a mesh a rank has all
    clone->removeAttr(attribute);
  clone.walk([](ReduceOp reduce) { reduce->removeAttr(wireAttr); });
  if (clone->hasAttr(batchInvariantAttrName))
    copy->getOperation()->setAttr(batchInvariantAttrName, builder.getUnitAttr());
  keepSchedule(clone,
               target == "cpu" ? std::nullopt : chooseSchedule(schedules[kernel], target, facts));
  settleScalarCases(clone, facts.cases);
  if (!facts.tensors.empty())
    orderAxes(clone, kernelSignatures[kernel], facts.tensors, /*keepsStrides=*/target == "cpu");
  if (!facts.dims.empty()) {
    // Keys tell powers of two by larger divisors than plans are made for.
    Facts planned = facts;
    for (auto [d, fact] : llvm::enumerate(planned.dims))
      if (isGpuText(target) && !reducedDims[kernel][d])
        fact.divisor = std::min(fact.divisor, largestKeptDivisor);
    clone.setFactsAttr(factsAttr(context.get(), planned));
  }
  settleExactDims(clone, facts);
  SmallVector<int64_t> least(facts.dims.size());
  // Bounds of batch-invariant kernels are raised, and say nothing of least sizes.
  for (size_t d = 0; d < facts.dims.size() && sizeUses[kernel].empty(); ++d) {
    // A launch may have a smaller size than the one that the plan is for.
    if (options.plan_dims.count(kernelSignatures[kernel].dims[d]))
      continue;
    if (auto sizes = sizeClass(kernel, d, target, facts.dims[d]))
      least[d] = sizes->above + 1;
    else if (!servesShorter && !facts.dims[d].serves_shorter && hasFineBound(kernel, d, target) &&
             facts.dims[d].upper <= longestKeptRow)
      least[d] = leastWithBound(facts.dims[d].upper);
  }
  if (llvm::any_of(least, [](int64_t size) { return size > 0; }))
    clone->setAttr(leastSizesAttrName, builder.getDenseI64ArrayAttr(least));
  if (isGpuText(target)) {
    if (Status attached = attachCudaTarget(*copy, target, driver.device); !attached)
      return attached.error();
    if (facts.small_tensors)
      copy->getOperation()->setAttr(smallTensorsAttrName, builder.getUnitAttr());
    // Facts without tensors leave the usual case: what allocators return is aligned.
    if (!facts.tensors.empty() && facts.tensors[0].alignment < fullAlignment)
      copy->getOperation()->setAttr(baseAlignmentAttrName,
                                    builder.getI64IntegerAttr(facts.tensors[0].alignment));
    if (!facts.tensors.empty())
      copy->getOperation()->setAttr(strideDivisorAttrName,
                                    builder.getI64IntegerAttr(facts.tensors[0].stride_divisor));
  }
  return copy;
}

} // namespace tk
