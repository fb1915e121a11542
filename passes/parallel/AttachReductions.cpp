//===- AttachReductions.cpp - reductions begin where products end ---------===//
//
// The sum of the squares of each row of a product, or the extremum: where the product is stored,
// its tiles are in registers, and reading it again costs as much as storing it.
//   1. A reduction over one index of a stored product's result, of terms that are computed from its
//      element alone (and from parameters), becomes one over parts: a further result of the
//      product's statement has an element for each of the tiles that the index is cut into.
//   2. Only along the result's rows, of which a few lanes have all of a tile's elements: down its
//      columns the parts of a tile's rows would go through as many exchanges as reading it costs.
//   3. Only where nothing else of that result is read by the reduction's statement: where it is,
//      the statement has the row at hand anyway.
//
//   %y = tk.compute ["m", "n"] in (%M, %N) { product }      // tiles of 128 x 256
//   %s = tk.compute ["m"] in (%M) { reduce <sum> ["n"] from 0 to %N { %y[m, n] * %y[m, n] } }
//     =>
//   %y, %p = tk.compute ["m", "n", "tiles"] in (%M, %N, ceil(%N / 256)) { product, product^2 }
//   %s = tk.compute ["m"] in (%M) { reduce <sum> ["t"] from 0 to ceil(%N / 256) { %p[m, t] } }
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/parallel/StatementShape.h"
#include "passes/parallel/TileReductions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace tk {
#define GEN_PASS_DEF_ATTACHREDUCTIONS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

/// Adds to `compute` a result that reduces `value`, of its body, over `index` within each tile of
/// `size`; `others` are the other indices that it is over. Returns the new statement, of which that
/// is the last result; the old one is gone.
static ComputeOp addTileReduction(ComputeOp compute, Value value, ArrayRef<unsigned> others,
                                  unsigned index, int64_t size, ReduceKind kind, StringRef name) {
  OpBuilder builder(compute);
  const unsigned count = compute.getNumResults(), counter = compute.getNumIndices();
  Value step = arith::ConstantIndexOp::create(builder, compute.getLoc(), size);
  Value tiles =
      builder.createOrFold<arith::CeilDivSIOp>(compute.getLoc(), compute.getExtents()[index], step);
  SmallVector<Attribute> lists, entries, names(compute.getNames().getValue());
  auto known = compute->getAttrOfType<ArrayAttr>(tileReductionsAttrName);
  for (unsigned r = 0; r < count; ++r) {
    lists.push_back(
        builder.getDenseI64ArrayAttr(llvm::to_vector_of<int64_t>(compute.getIndicesOf(r))));
    entries.push_back(known ? known[r] : builder.getUnitAttr());
  }
  SmallVector<int64_t> positions(others);
  positions.push_back(counter);
  lists.push_back(builder.getDenseI64ArrayAttr(positions));
  entries.push_back(builder.getDictionaryAttr(
      {builder.getNamedAttr("index", builder.getI64IntegerAttr(index)),
       builder.getNamedAttr("kind", ReduceKindAttr::get(builder.getContext(), kind)),
       builder.getNamedAttr("size", builder.getI64IntegerAttr(size))}));
  names.push_back(builder.getStringAttr(name));
  SmallVector<Attribute> indexNames(compute.getIndexNames().getValue());
  indexNames.push_back(
      builder.getStringAttr("tiles_" + cast<StringAttr>(indexNames[index]).getValue()));
  SmallVector<Value> extents(compute.getExtents());
  extents.push_back(tiles);
  SmallVector<Type> types(compute.getResultTypes());
  SmallVector<int64_t> shape(positions.size(), ShapedType::kDynamic);
  for (auto [axis, position] : llvm::enumerate(positions))
    if (std::optional<int64_t> extent = getConstantIntValue(extents[position]))
      shape[axis] = *extent;
  types.push_back(RankedTensorType::get(shape, value.getType()));

  auto result =
      ComputeOp::create(builder, compute.getLoc(), types, builder.getArrayAttr(indexNames), extents,
                        builder.getArrayAttr(lists), builder.getArrayAttr(names));
  result->setDiscardableAttrs(compute->getDiscardableAttrDictionary());
  result->setAttr(tileReductionsAttrName, builder.getArrayAttr(entries));
  result.getBody().takeBody(compute.getBody());
  result.getBlock()->addArgument(builder.getIndexType(), compute.getLoc());
  result.getYield().getValuesMutable().append(value);
  auto schedule = result->getAttrOfType<gpu::ScheduleAttr>(gpu::scheduleAttrName);
  SmallVector<int64_t> tile(schedule.getTile());
  tile.push_back(1);
  result->setAttr(
      gpu::scheduleAttrName,
      gpu::ScheduleAttr::get(builder.getContext(), tile, schedule.getReduce(), schedule.getLoop(),
                             schedule.getWarps(), schedule.getPerThread(), schedule.getVector(),
                             schedule.getStages(), schedule.getGroup(), schedule.getPersistent(),
                             schedule.getCluster(), schedule.getStep(), schedule.getTeams()));
  compute->replaceAllUsesWith(result->getResults().take_front(count));
  compute->erase();
  return result;
}

namespace {

/// A reduction over one index of a result of another statement.
struct Attachment {
  ReduceOp reduce;
  OpResult stored;
  unsigned index = 0;            ///< of the stored result's statement: the one reduced over
  SmallVector<unsigned> others;  ///< the stored result's other indices, in order
  SmallVector<Value> readerArgs; ///< what the reduction's statement calls those
};

} // namespace

/// Do the loads of `result` in the body of `reduce` read one element, of which the reduction's
/// index is one coordinate and indices of the reduction's statement are the others?
static std::optional<Attachment> matchLoads(ReduceOp reduce, ComputeOp reader, OpResult stored) {
  Attachment found{reduce, stored, 0, {}, {}};
  auto producer = stored.getDefiningOp<ComputeOp>();
  SmallVector<unsigned> positions = producer.getIndicesOf(stored.getResultNumber());
  LoadOp first;
  for (LoadOp load : reduce.getBlock()->getOps<LoadOp>()) {
    if (load.getTensor() != stored)
      continue;
    if (load.getPad() || (first && load.getIndices() != first.getIndices()))
      return std::nullopt;
    first = load;
  }
  if (!first)
    return std::nullopt;
  bool isReduced = false;
  for (auto [position, index] : llvm::zip_equal(positions, first.getIndices())) {
    auto argument = dyn_cast<BlockArgument>(index);
    if (!argument || llvm::is_contained(found.readerArgs, index))
      return std::nullopt;
    if (argument == reduce.getIndex(0) && !isReduced) {
      isReduced = true;
      found.index = position;
    } else if (argument.getOwner() == reader.getBlock()) {
      found.others.push_back(position);
      found.readerArgs.push_back(index);
    } else {
      return std::nullopt;
    }
  }
  if (!isReduced || found.index != positions.back() ||
      !matchPattern(reduce.getLower()[0], m_Zero()) ||
      reduce.getUpper()[0] != producer.getExtents()[found.index])
    return std::nullopt;
  return found;
}

/// Can the terms of the reduction be computed where the stored result is, from its element?
static bool hasOwnTerms(const Attachment &attachment) {
  ReduceOp reduce = attachment.reduce;
  Block *terms = reduce.getBlock(), *kernel = reduce->getParentOp()->getBlock();
  auto isAtHand = [&](Value value) {
    if (value.getParentBlock() == terms || value == Value(attachment.stored) ||
        llvm::is_contained(attachment.readerArgs, value))
      return true;
    Operation *def = value.getDefiningOp();
    return def ? def->hasTrait<OpTrait::ConstantLike>() : value.getParentBlock() == kernel;
  };
  return llvm::all_of(*terms, [&](Operation &op) {
    return op.getNumRegions() == 0 && llvm::all_of(op.getOperands(), isAtHand);
  });
}

static bool isPlain(ReduceKind kind) {
  return kind == ReduceKind::Sum || kind == ReduceKind::Max || kind == ReduceKind::Min;
}

static std::optional<Attachment> findAttachment(ReduceOp reduce) {
  auto reader = dyn_cast<ComputeOp>(reduce->getParentOp());
  if (!reader || reduce.getNumIndices() != 1)
    return std::nullopt;
  for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k)
    if (!isPlain(reduce.getKind(k)) || !isa<FloatType>(reduce.getResult(k).getType()) ||
        !reduce.standsAlone(k))
      return std::nullopt;
  for (LoadOp load : reduce.getBlock()->getOps<LoadOp>()) {
    auto stored = dyn_cast<OpResult>(load.getTensor());
    auto producer = stored ? stored.getDefiningOp<ComputeOp>() : ComputeOp();
    if (!producer || getTileReduction(producer, stored.getResultNumber()))
      continue;
    std::optional<Attachment> found = matchLoads(reduce, reader, stored);
    if (found && hasOwnTerms(*found))
      return found;
  }
  return std::nullopt;
}

/// Is the result's index cut into tiles in a statement that multiplies matrices, so that each tile
/// is computed at once?
static bool isTiledProduct(KernelOp kernel, const Attachment &attachment) {
  auto producer = attachment.stored.getDefiningOp<ComputeOp>();
  auto schedule = producer->getAttrOfType<gpu::ScheduleAttr>(gpu::scheduleAttrName);
  constexpr int64_t leastTile = 16; // below, there is as much to store again as there is to read
  return schedule && schedule.getTile()[attachment.index] >= leastTile &&
         schedule.getLoop() != attachment.index && schedule.getStep().empty() &&
         !analyzeStatement(kernel, producer).contractions.empty();
}

/// Puts the terms into the stored result's statement, and what is left into the reduction.
static void attach(const Attachment &attachment) {
  ReduceOp reduce = attachment.reduce;
  auto producer = attachment.stored.getDefiningOp<ComputeOp>();
  YieldOp yield = producer.getYield();
  OpBuilder body(yield);
  IRMapping mapping;
  mapping.map(reduce.getIndex(0), producer.getIndex(attachment.index));
  for (auto [argument, position] : llvm::zip_equal(attachment.readerArgs, attachment.others))
    mapping.map(argument, producer.getIndex(position));
  for (Operation &op : reduce.getBlock()->without_terminator()) {
    auto load = dyn_cast<LoadOp>(op);
    if (load && load.getTensor() == attachment.stored)
      mapping.map(load.getResult(), yield.getValues()[attachment.stored.getResultNumber()]);
    else
      body.clone(op, mapping);
  }
  const StringRef stored =
      cast<StringAttr>(producer.getNames()[attachment.stored.getResultNumber()]).getValue();
  SmallVector<Value> terms;
  for (Value term : reduce.getYield().getValues())
    terms.push_back(mapping.lookupOrDefault(term));
  OpBuilder builder(reduce);
  for (auto [k, term] : llvm::enumerate(terms)) {
    auto schedule = producer->getAttrOfType<gpu::ScheduleAttr>(gpu::scheduleAttrName);
    const std::string name = (stored + "_" + stringifyReduceKind(reduce.getKind(k))).str();
    producer = addTileReduction(producer, term, attachment.others, attachment.index,
                                schedule.getTile()[attachment.index], reduce.getKind(k), name);
    auto rest = ReduceOp::create(
        builder, reduce.getLoc(), reduce.getKind(k), {"tile"}, reduce.getLower(),
        ValueRange(producer.getExtents().back()), reduce.getResult(k).getType(),
        [&](OpBuilder &inner, Location loc, ValueRange indices) {
          SmallVector<Value> at(attachment.readerArgs);
          at.push_back(indices[0]);
          return LoadOp::create(inner, loc, producer.getResults().back(), at, Value()).getResult();
        });
    reduce.getResult(k).replaceAllUsesWith(rest.getResult(0));
  }
  reduce->erase();
}

namespace {

struct AttachReductions : tk::impl::AttachReductionsBase<AttachReductions> {
  void runOnOperation() override {
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      for (ComputeOp reader : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
        attachReductionsOf(kernel, reader);
  }

private:
  void attachReductionsOf(KernelOp kernel, ComputeOp reader) {
    auto schedule = reader->getAttrOfType<gpu::ScheduleAttr>(gpu::scheduleAttrName);
    if (!schedule)
      return;
    SmallVector<Attachment> attachments;
    for (ReduceOp reduce : reader.getBlock()->getOps<ReduceOp>())
      if (std::optional<Attachment> found = findAttachment(reduce);
          found && isTiledProduct(kernel, *found) && readsNothingElse(reader, found->stored))
        attachments.push_back(*found);
    if (attachments.empty())
      return;
    StatementShape shape = analyzeStatement(kernel, reader);
    const bool coarse = schedule != planSchedule(shape, getTarget(kernel), false);
    // The statement that stores a result is made anew with each reduction that is attached to it.
    for (const Attachment &attachment : attachments)
      if (std::optional<Attachment> now = findAttachment(attachment.reduce)) {
        note(reader, getArgument(), Verdict::Derived,
             describe(now->reduce) + " begins in the tiles of " +
                 describe(now->stored.getDefiningOp<ComputeOp>()));
        attach(*now);
        ++numAttached;
      }
    shape = analyzeStatement(kernel, reader);
    schedule = planSchedule(shape, getTarget(kernel), coarse);
    reader->setAttr(gpu::scheduleAttrName, widenVectors(shape, getTarget(kernel), schedule));
  }

  /// Are all reads of `stored` in `reader` inside reductions that could be attached?
  static bool readsNothingElse(ComputeOp reader, OpResult stored) {
    WalkResult others = reader.walk([&](LoadOp load) {
      if (load.getTensor() != stored)
        return WalkResult::advance();
      auto reduce = dyn_cast<ReduceOp>(load->getParentOp());
      std::optional<Attachment> found =
          reduce ? findAttachment(reduce) : std::optional<Attachment>();
      return found && found->stored == stored ? WalkResult::advance() : WalkResult::interrupt();
    });
    return !others.wasInterrupted();
  }
};

} // namespace
