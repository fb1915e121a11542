//===- SplitChains.cpp - split-KV of fused attention loops ----------------===//
//
// Decoding has few queries and many keys. One block for each head leaves most multiprocessors idle,
// although the loop only has to read the keys and values once. This pass cuts the keys into parts
// (split-KV). Each part yields a partial softmax state, such as a maximum, a sum and an output. The
// rescale region of the online reduction also combines two states.
//
// 1. Find one of three kinds of reduction in a compute op:
//    * its only back-to-back contraction (ChainRows.h), if its rows fit one tile of 128;
//    * several such reductions that do not need each other, such as a shared prefix and own keys;
//    * one online reduction of elements with few results, such as a maximum and a sum of
//      exponentials.
// 2. Choose the length of a part. All multiprocessors together get about 8 parts each, or 11 if a
//    warp computes a part. A part is a multiple of 128 elements long. It has at least 256 elements,
//    and about 64 for each row, so that its state is small beside its operands. If a warp has a
//    tile of 16 rows, another length is taken where fewer blocks are left for a last round
//    (ChainLength.h). If a warpgroup reads pages that a table names, it has at least 1024.
//    `split j = n` in a schedule block sets the number of parts instead.
// 3. Cut the outermost range that is known at the launch. If a mask or a length makes a row's range
//    shorter, the row's last parts are empty. If sizes are known only at the launch, a contraction
//    without rows is cut by a formula in the launch plan (ChainParts.cpp).
// 4. A new compute op with the part as its first index computes the states.
// 5. In the old compute op, a reduction over the parts combines the states in a fixed order.
//    Results therefore repeat bit by bit.
//
// In a batch-invariant kernel, chunks have one length, whatever the sizes are. Only a contraction
// without rows is cut there: a kernel with rows has many of them at times, and those need no
// chunks.
//
// The pass declines arg-max and arg-min, short ranges, and bounds that are unknown at the launch.
// It also declines if the number of rows is unknown or too large, or if there are heads enough for
// all multiprocessors.
//
//   %m, %z = tk.reduce [max, sum] ["j"] from (0) to (%u) {            t(j), exp_diff(t(j), %m)}
//                                      rescale {exp_diff(old, new)}
//     =>
//   %pm, %pz = tk.compute ["j.part", ..] in (ceil(%T / L), ..) {
//     tk.reduce [max, sum] ["j"] from (0) to (min(L, %u - part * L)) {.. t(part * L + j) ..}}
//   %m, %z = tk.reduce [max, sum] ["j.part"] from (0) to (ceil(%T / L)) {
//              pm[part], pz[part] * exp_diff(pm[part], %m)} rescale {exp_diff(old, new)}
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Splits.h"
#include "passes/numerics/ApproximateExps.h"
#include "passes/plan/ScheduleBlock.h"
#include "passes/tensor/normalize/Simplify.h"
#include "passes/tensor/split/ChainLength.h"
#include "passes/tensor/split/ChainParts.h"
#include "passes/tensor/split/ChainRows.h"
#include "passes/tensor/split/SplitReductions.h"

#include "dialects/tk/TkInvariance.h"
#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

namespace tk {
#define GEN_PASS_DEF_SPLITCHAINS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-chains";
using namespace limits::split_chains;

/// The bound at the kernel's level that `bound` does not go beyond, if it has such an operand.
static Value outermostBound(Value bound, ComputeOp compute, bool isUpper) {
  if (isKernelLevel(bound, compute))
    return bound;
  Operation *op = bound.getDefiningOp();
  if (!op || !(isUpper ? isa<arith::MinSIOp>(op) : isa<arith::MaxSIOp>(op)))
    return {};
  for (Value operand : op->getOperands())
    if (Value outermost = outermostBound(operand, compute, isUpper))
      return outermost;
  return {};
}

namespace {

class ChainSplit {
public:
  ChainSplit(KernelOp kernel, ComputeOp compute, ChainRows chain)
      : kernel(kernel), compute(compute), chain(std::move(chain)), reduce(this->chain.reduce),
        loc(reduce.getLoc()) {}

  /// Why the range stays whole, or nothing.
  std::optional<StringRef> prepare(gpu::TargetAttr target);
  void apply();

private:
  std::optional<Split> choose(gpu::TargetAttr target);
  void setRange();
  SmallVector<Value> extentsOfBatch();
  bool isOfElements() { return reduce.getBlock()->getOps<ReduceOp>().empty(); }
  SmallVector<unsigned> accumulatorsOf(unsigned k);
  SmallVector<unsigned> indicesOfState(unsigned k);
  ComputeOp createStates(Value first, Value length, Value count);
  void restrictTo(ReduceOp part, Value number, Value first, Value length);
  void combine(ComputeOp states, Value count);

  KernelOp kernel;
  ComputeOp compute;
  ChainRows chain;
  ReduceOp reduce;
  Location loc;
  Split how{1};                 ///< which index is cut, in terms of it
  std::string partName;         ///< of the index over parts
  Value lower, upper;           ///< of the outermost range, still in the statement's terms
  std::optional<int64_t> asked; ///< how many parts the schedule block wants
  /// Parts that all processors should have together, if sizes are known at the launch alone.
  std::optional<int64_t> wantedAtLaunch;
};

struct SplitChainsPass : tk::impl::SplitChainsBase<SplitChainsPass> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
    SmallVector<ComputeOp> computes;
    getOperation()->walk([&](ComputeOp compute) { computes.push_back(compute); });
    for (ComputeOp compute : computes)
      for (ChainRows &chain : findChains(compute))
        split(compute, std::move(chain), target);
  }

private:
  void split(ComputeOp compute, ChainRows chain, gpu::TargetAttr target) {
    ReduceOp reduce = chain.reduce;
    auto kernel = compute->getParentOfType<KernelOp>();
    // Whether groups of no known size fit one tile is not known either.
    if (chain.rows.empty() && !chain.countRows(kernel, compute))
      chain.dissolveGroups();
    ChainSplit split(kernel, compute, std::move(chain));
    if (std::optional<StringRef> why = split.prepare(target)) {
      note(reduce, passName, Verdict::Declined,
           "the " + describe(reduce) + " stays whole: " + *why);
      return;
    }
    note(reduce, passName, Verdict::Derived,
         "the " + describe(reduce) + " is computed in chunks, whose partial states are combined");
    split.apply();
    ++numSplit;
  }
};

} // namespace

std::optional<Split> ChainSplit::choose(gpu::TargetAttr target) {
  if (isOfElements())
    return splitCarried(reduce, compute);
  std::optional<int64_t> length = ChainLength(kernel, compute, chain, upper).choose(target);
  return length ? std::optional(Split{*length}) : std::nullopt;
}

std::optional<StringRef> ChainSplit::prepare(gpu::TargetAttr target) {
  for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k)
    if (isArgReduction(reduce.getKind(k)))
      return StringRef("its states would not be numbers of the same kind");
  if (isOfElements() && llvm::any_of(reduce->getOperands(),
                                     [&](Value bound) { return !isKernelLevel(bound, compute); }))
    return StringRef("its bounds vary");
  setRange();
  if (!lower || !upper)
    return StringRef("its bounds are not known at the launch");
  if (isBatchInvariant(kernel)) {
    if (isOfElements() || !chain.rows.empty())
      return StringRef("its kernel is batch-invariant, and may have any number of rows");
    how = Split{termsOfInvariantPart};
    setRange();
    return std::nullopt;
  }
  asked = splitOf(kernel, cast<StringAttr>(reduce.getIndexNames()[0]).getValue());
  if (asked)
    return std::nullopt;
  std::optional<Split> chosen = choose(target);
  const bool lacksRows = target && !isOfElements() && chain.lacksRows(kernel, compute);
  if (!chosen && lacksRows) {
    wantedAtLaunch = partsOfWarpWanted * target.getProcessors();
    return std::nullopt;
  }
  if (!chosen)
    return StringRef(isOfElements()
                         ? "its results are many, or their rows are held, or sizes are not known"
                     : chain.countRows(kernel, compute) ? "it has more rows than one tile"
                                                        : "its number of rows is not known");
  how = *chosen;
  setRange();
  // Of its states, which other statements read, it gets a row.
  if (lacksRows)
    return std::nullopt;
  // One part of a chain whose rows are one index as they are.
  if (!isOfElements() && chain.rows.size() == 1 && !chain.grouped &&
      how.length >= *getSizeFact(kernel, upper).upper)
    return StringRef("there are chains enough for all processors");
  // Heads that share keys become rows in a part alone, however short it is.
  const bool lacksOwnRows = chain.grouped && chain.rows.empty();
  if (!isOfElements() && !lacksOwnRows && *getSizeFact(kernel, upper).upper <= leastTermsOfPart)
    return StringRef("it is short");
  return std::nullopt;
}

SmallVector<Value> ChainSplit::extentsOfBatch() {
  return llvm::map_to_vector(chain.batch, [&](unsigned p) { return compute.getExtents()[p]; });
}

void ChainSplit::setRange() {
  lower = outermostBound(reduce.getLower()[how.position], compute, /*isUpper=*/false);
  upper = outermostBound(reduce.getUpper()[how.position], compute, /*isUpper=*/true);
  auto index = cast<StringAttr>(reduce.getIndexNames()[how.position]);
  partName = (index.getValue() + ".part").str();
}

/// The accumulators whose running values accumulator `k` needs, and itself: those that its term or
/// the rule by which it is rescaled reads, and what these need.
SmallVector<unsigned> ChainSplit::accumulatorsOf(unsigned k) {
  SmallVector<unsigned> needed = {k};
  for (unsigned n = 0; n < needed.size(); ++n)
    for (unsigned other = 0, user = needed[n]; other < user; ++other) {
      SmallVector<Value> values = {reduce.getRunning(other)};
      bool isRead = Dependence(values).on(reduce.getYield().getValues()[user]);
      if (reduce.isOnline()) {
        Block &rule = reduce.getRescale().front();
        SmallVector<Value> states = {rule.getArgument(other),
                                     rule.getArgument(reduce.getNumAccumulators() - 1 + other)};
        isRead |= Dependence(states).on(rule.getTerminator()->getOperand(user - 1));
      }
      if (isRead && !llvm::is_contained(needed, other))
        needed.push_back(other);
    }
  return needed;
}

/// Which of the statement's indices accumulator `k` depends on: all those that the range, its term
/// and those of the accumulators that it needs are over.
SmallVector<unsigned> ChainSplit::indicesOfState(unsigned k) {
  SmallVector<unsigned> positions, needed = accumulatorsOf(k);
  for (unsigned p = 0; p < compute.getNumIndices(); ++p) {
    Dependence onIndex(ValueRange{compute.getIndex(p)});
    auto isOver = [&](Value value) { return onIndex.on(value); };
    if (llvm::any_of(reduce->getOperands(), isOver) ||
        llvm::any_of(needed, [&](unsigned n) { return isOver(reduce.getYield().getValues()[n]); }))
      positions.push_back(p);
  }
  return positions;
}

/// Makes `part`, a copy of the reduction, one of the `length` terms from `first` on.
void ChainSplit::restrictTo(ReduceOp part, Value number, Value base, Value length) {
  OpBuilder builder(part);
  Value offset = arith::MulIOp::create(builder, loc, number, length);
  Value first = getConstantIndex(base) == 0
                    ? offset
                    : arith::AddIOp::create(builder, loc, base, offset).getResult();
  if (isOfElements()) { // those of a part are a row of their own, as in tk-split-reductions
    Value behind = arith::AddIOp::create(builder, loc, first, length);
    Value end = arith::MinSIOp::create(builder, loc, behind, part.getUpper()[how.position]);
    part.getLowerMutable()[how.position].set(first);
    part.getUpperMutable()[how.position].set(end);
    if (how.isAlong)
      moveIndex(part, how.position, 0);
    return;
  }
  Value end = arith::SubIOp::create(builder, loc, part.getUpper()[0], first);
  part.getUpperMutable()[0].set(arith::MinSIOp::create(builder, loc, length, end));
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  if (!isKernelLevel(reduce.getLower()[0], compute)) {
    Value begin = arith::SubIOp::create(builder, loc, part.getLower()[0], first);
    zero = arith::MaxSIOp::create(builder, loc, zero, begin);
  }
  part.getLowerMutable()[0].set(zero);
  OpBuilder inner = OpBuilder::atBlockBegin(part.getBlock());
  Value place = part.getIndex(0);
  auto at = arith::AddIOp::create(inner, loc, first, place);
  place.replaceAllUsesExcept(at, at);
}

ComputeOp ChainSplit::createStates(Value base, Value length, Value count) {
  OpBuilder builder(compute);
  std::string statement = cast<StringAttr>(compute.getNames()[0]).getValue().str();
  SmallVector<StringRef> names = {partName};
  for (Attribute name : compute.getIndexNames())
    names.push_back(cast<StringAttr>(name).getValue());
  SmallVector<Value> extents = {count};
  llvm::append_range(extents, compute.getExtents());
  SmallVector<std::string> results;
  SmallVector<SmallVector<unsigned>> over;
  for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k) {
    results.push_back(statement + ".state" + std::to_string(k));
    over.emplace_back(SmallVector<unsigned>{0});
    for (unsigned p : indicesOfState(k))
      over.back().push_back(p + 1);
  }
  SmallVector<Type> types(reduce->getResultTypes());
  return ComputeOp::create(
      builder, loc, names, extents, types, SmallVector<StringRef>(results.begin(), results.end()),
      over, [&](OpBuilder &body, Location, ValueRange indices) {
        IRMapping mapping;
        mapping.map(compute.getBlock()->getArguments(), indices.drop_front());
        auto part = cloneSlice(body, reduce.getResult(0), compute.getBlock(), mapping)
                        .getDefiningOp<ReduceOp>();
        restrictTo(part, indices.front(), base, length);
        YieldOp::create(body, loc, part.getResults());
      });
}

/// Replaces the reduction by one over the parts' states.
void ChainSplit::combine(ComputeOp states, Value count) {
  OpBuilder builder(reduce);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  auto combined =
      ReduceOp::create(builder, loc, reduce->getResultTypes(), reduce.getKinds(),
                       builder.getStrArrayAttr({partName}), ValueRange{zero}, ValueRange{count},
                       PrecisionAttr::get(builder.getContext(), Precision::Default));
  Block *body = builder.createBlock(&combined.getBody());
  body->addArgument(builder.getIndexType(), loc);
  for (Type type : llvm::drop_end(reduce->getResultTypes()))
    body->addArgument(type, loc);
  SmallVector<Value> loaded, terms;
  for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k) {
    SmallVector<Value> at = {combined.getIndex(0)};
    SmallVector<unsigned> positions = states.getIndicesOf(k);
    for (unsigned p : ArrayRef(positions).drop_front())
      at.push_back(compute.getIndex(p - 1));
    loaded.push_back(LoadOp::create(builder, loc, states.getResult(k), at, Value()));
  }
  terms = loaded;
  if (reduce.isOnline()) {
    // A state joins as the running one would: its sums follow from its maximum to the new one.
    Block *rule = &reduce.getRescale().front();
    unsigned running = reduce.getNumAccumulators() - 1;
    IRMapping mapping;
    for (unsigned k = 0; k < running; ++k) {
      mapping.map(rule->getArgument(k), loaded[k]);
      mapping.map(rule->getArgument(running + k), combined.getRunning(k));
    }
    for (Operation &op : rule->without_terminator())
      builder.clone(op, mapping);
    for (unsigned k = 1; k <= running; ++k) {
      Value factor = mapping.lookupOrDefault(rule->getTerminator()->getOperand(k - 1));
      // A sum of integers is carried as it is.
      if (!matchPattern(factor, m_OneFloat()) && !matchPattern(factor, m_One()))
        terms[k] = arith::MulFOp::create(builder, loc, loaded[k], factor);
    }
    IRMapping copy;
    reduce.getRescale().cloneInto(&combined.getRescale(), copy);
  }
  YieldOp::create(builder, loc, terms);
  reduce->replaceAllUsesWith(combined);
  reduce.erase();
}

void ChainSplit::apply() {
  // What weights are of use for is seen while their sums are read here.
  if (isOfElements())
    markApproximateExps(compute);
  OpBuilder builder(compute);
  IRMapping hoisted;
  Value base = cloneSlice(builder, lower, compute.getBlock(), hoisted);
  Value end = cloneSlice(builder, upper, compute.getBlock(), hoisted);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto ceilDiv = [&](Value value, int64_t divisor) -> Value {
    Value padded = arith::AddIOp::create(builder, loc, value, constant(divisor - 1));
    return FloorDivOp::create(builder, loc, padded, constant(divisor));
  };
  Value range = end;
  if (getConstantIndex(base) != 0)
    range = arith::SubIOp::create(builder, loc, end, base);
  range = arith::MaxSIOp::create(builder, loc, range, constant(0));
  Value length, count;
  if (asked) {
    // At least one tile: where there are no terms, their number is still divided by it.
    Value units =
        arith::MaxSIOp::create(builder, loc, ceilDiv(range, *asked * termsOfPartUnit), constant(1));
    length = arith::MulIOp::create(builder, loc, units, constant(termsOfPartUnit));
    Value rest = arith::SubIOp::create(builder, loc, length, constant(1));
    Value padded = arith::AddIOp::create(builder, loc, range, rest);
    count = FloorDivOp::create(builder, loc, padded, length);
    // It is at most as many as were asked for, which nobody sees in the quotient.
    count = arith::MinSIOp::create(builder, loc, count, constant(*asked));
  } else if (wantedAtLaunch) {
    std::tie(length, count) = createParts(
        builder, loc, range,
        {extentsOfBatch(), *wantedAtLaunch, termsOfPartUnit, leastTermsOfPart / termsOfPartUnit});
  } else {
    length = constant(how.length);
    count = ceilDiv(range, how.length);
  }
  combine(createStates(base, length, count), count);
}
