//===- BlockRecurrence.cpp - scans whose states decay ---------------------===//
//
// A scan whose terms have decays is a tkgpu.recurrence of a tile. What the block has carried to a
// tile joins the tile's first term. The decay of the first term of all has nothing to weight. A
// scan that is not along a tile is the sum, over its range, of the terms times the decays behind
// them.
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "passes/tiling/BlockProgram.h"

#include "passes/analysis/ScalarExpr.h"

#include "dialects/tkgpu/TkGpuExchange.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tk;

/// Is the tile of the loop not the first one?
Value BlockProgram::isLaterTile(unsigned depth) {
  Value begin = cast<scf::ForOp>(loopOp).getInductionVar();
  return arith::CmpIOp::create(at(depth), loc, arith::CmpIPredicate::sgt, begin,
                               indexConstant(0, depth));
}

/// The decayed state before a tile and the term, all over the axes of the latter, where `isJoined`
/// says so; else the term.
Value BlockProgram::joinState(const TileValue &isJoined, const TileValue &state,
                              const TileValue &decay, const TileValue &term) {
  const unsigned depth = term.depth;
  Value before = broadcast(state, term.axes, depth).value;
  Value decayed = arith::MulFOp::create(at(depth), loc, decay.value, before);
  Value both = arith::AddFOp::create(at(depth), loc, decayed, term.value);
  Value test = isJoined.axes.empty() ? isJoined.value : broadcast(isJoined, term.axes, depth).value;
  return arith::SelectOp::create(at(depth), loc, test, both, term.value);
}

TileValue BlockProgram::recur(tk::ScanOp op, unsigned id, bool isBackward, TileValue *state) {
  TileValue term = get(op.getYield().getValues()[0]), decay = get(op.getYield().getValues()[1]);
  // Elements beyond the end come after all others; backward, they come first, and are no terms.
  if (isBackward)
    if (std::optional<TileValue> mask = exactMask(id)) {
      const TypedAttr none = identityOf(op.getKind(), op.getResult().getType());
      term = select(*mask, term, none);
      decay = select(*mask, decay, none);
    }
  Axes all = unite(term.axes, decay.axes);
  unsigned depth = std::max(term.depth, decay.depth);
  if (state) {
    all = unite(all, state->axes);
    depth = std::max(depth, state->depth);
  }
  if (!axes[id].isScalar)
    all = unite(all, {id});
  return inScope(depth, [&] {
    TileValue result = broadcast(term, all, depth);
    const TileValue decays = broadcast(decay, all, depth);
    if (axes[id].isScalar) {
      result.value = joinState({isLaterTile(depth), {}, depth}, *state, decays, result);
      state->value = broadcast(result, state->axes, depth).value;
      return result;
    }
    if (state) {
      Value numbers = numbersAlong(axes[id], builder.getIndexType());
      const int64_t first = isBackward ? axes[id].size - 1 : 0;
      Value place = broadcast({indexConstant(first, depth), {}, depth}, {id}, depth).value;
      Value isFirst =
          arith::CmpIOp::create(at(depth), loc, arith::CmpIPredicate::eq, numbers, place);
      Value isLater = broadcast({isLaterTile(depth), {}, depth}, {id}, depth).value;
      isFirst = arith::AndIOp::create(at(depth), loc, isFirst, isLater);
      result.value = joinState({isFirst, {id}, depth}, *state, decays, result);
    }
    const int64_t place = llvm::find(all, id) - all.begin();
    TileValue last = result;
    last.axes.erase(last.axes.begin() + place);
    auto recurrence = gpu::RecurrenceOp::create(at(depth), op.getLoc(), result.value.getType(),
                                                tileType(last.axes, op.getResult().getType()),
                                                decays.value, result.value, place);
    if (isBackward)
      recurrence->setAttr(gpu::backwardAttrName, builder.getUnitAttr());
    result.value = recurrence.getResult();
    last.value = recurrence.getLast();
    if (state)
      state->value = broadcast(last, state->axes, depth).value;
    return result;
  });
}

/// Multiplies the term of a reduction that a scan has become by the decays between it and the end.
void BlockProgram::weightTerms(tk::ReduceOp reduction, Value end) {
  Block &body = *reduction.getBlock();
  auto yield = cast<tk::YieldOp>(body.getTerminator());
  Value term = yield.getValues()[0], decay = yield.getValues()[1];
  OpBuilder inner(yield);
  Value one = arith::ConstantIndexOp::create(inner, loc, 1);
  Value next = arith::AddIOp::create(inner, loc, reduction.getIndex(0), one);
  auto weight = tk::ReduceOp::create(inner, loc, ReduceKind::Prod, ArrayRef<StringRef>{"later"},
                                     ValueRange{next}, ValueRange{end}, decay.getType(),
                                     [&](OpBuilder &each, Location, ValueRange index) -> Value {
                                       IRMapping mapping;
                                       mapping.map(reduction.getIndex(0), index.front());
                                       return cloneSlice(each, decay, &body, mapping);
                                     });
  reduceTiles[weight] = {1};
  Value weighted = arith::MulFOp::create(inner, loc, weight.getResult(0), term);
  yield->setOperands(weighted);
}
