//===- PartialResults.cpp - compute ops of partial results ----------------===//
//
// What tk-split-reductions makes of a reduction that it splits: a compute op of the parts, and the
// reduction of these in the place of the old one.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/EqualComputes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/tensor/normalize/Simplify.h"
#include "passes/tensor/split/SplitReductions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

std::pair<Value, Value> Parts::boundsOf(Value number, OpBuilder &builder, Location loc) const {
  Value offset = arith::MulIOp::create(builder, loc, number, length);
  Value first = arith::AddIOp::create(builder, loc, lower, offset);
  Value end = arith::AddIOp::create(builder, loc, first, length);
  return {first, arith::MinSIOp::create(builder, loc, end, upper)};
}

std::string tk::chunkNameOf(ReduceOp reduce, const Split &how) {
  return (cast<StringAttr>(reduce.getIndexNames()[how.position]).getValue() + ".chunk").str();
}

Operation *tk::createPartial(
    ReduceOp reduce, ComputeOp compute, const Parts &parts, ArrayRef<StringRef> suffixes,
    llvm::function_ref<SmallVector<Value>(OpBuilder &, Value number, IRMapping &mapping)> body) {
  OpBuilder builder(compute);
  SmallVector<StringRef> names;
  for (Attribute name : compute.getIndexNames())
    names.push_back(cast<StringAttr>(name).getValue());
  std::string chunkName = chunkNameOf(reduce, parts.how);
  names = withChunk(names, StringRef(chunkName), parts.how);
  SmallVector<Value> extents =
      withChunk(SmallVector<Value>(compute.getExtents()), parts.count, parts.how);
  SmallVector<std::string> results;
  for (StringRef suffix : suffixes)
    results.push_back((cast<StringAttr>(compute.getNames()[0]).getValue() + suffix).str());
  SmallVector<Type> types(suffixes.size(), reduce.getResult(0).getType());
  return ComputeOp::create(builder, reduce.getLoc(), names, extents, types,
                           SmallVector<StringRef>(results.begin(), results.end()),
                           ArrayRef<SmallVector<unsigned>>{},
                           [&](OpBuilder &inner, Location loc, ValueRange indices) {
                             bool isAcross = parts.how.isAcross;
                             IRMapping mapping;
                             mapping.map(compute.getBlock()->getArguments(),
                                         isAcross ? indices.drop_front() : indices.drop_back());
                             Value number = isAcross ? indices.front() : indices.back();
                             YieldOp::create(inner, loc, body(inner, number, mapping));
                           });
}

/// Of `parts`, the one whose place's term is the extremum: that term is computed again.
static ReduceOp combinePlaces(ReduceOp reduce, const Parts &parts, OpBuilder &builder,
                              llvm::function_ref<Value(OpBuilder &, Value number)> load) {
  Location loc = reduce.getLoc();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  std::string chunkName = chunkNameOf(reduce, parts.how);
  return ReduceOp::create(
      builder, loc, reduce.getKind(0), ArrayRef<StringRef>{chunkName}, ValueRange{zero},
      ValueRange{parts.count}, reduce.getResult(0).getType(),
      [&](OpBuilder &inner, Location, ValueRange indices) -> Value {
        Value place = load(inner, indices.front());
        IRMapping mapping;
        mapping.map(reduce.getIndex(0),
                    arith::IndexCastOp::create(inner, loc, inner.getIndexType(), place));
        return cloneSlice(inner, reduce.getYield().getValues()[0], reduce.getBlock(), mapping);
      });
}

Value tk::splitPlain(ReduceOp reduce, ComputeOp compute, const Parts &parts,
                     SmallVectorImpl<ComputeOp> &earlier) {
  Location loc = reduce.getLoc();
  auto partial = cast<ComputeOp>(createPartial(
      reduce, compute, parts, {".partial"},
      [&](OpBuilder &body, Value number, IRMapping &mapping) -> SmallVector<Value> {
        auto [first, end] = parts.boundsOf(number, body, loc);
        Value whole = cloneSlice(body, reduce.getResult(0), compute.getBlock(), mapping);
        auto part = whole.getDefiningOp<ReduceOp>();
        part.getLowerMutable()[parts.how.position].set(first);
        part.getUpperMutable()[parts.how.position].set(end);
        if (parts.how.isAlong)
          moveIndex(part, parts.how.position, 0);
        return {whole};
      }));
  if (ComputeOp equal = findEqual(earlier, partial)) {
    partial.erase();
    partial = equal;
  } else {
    earlier.push_back(partial);
  }
  OpBuilder builder(reduce);
  auto load = [&](OpBuilder &at, Value number) -> Value {
    SmallVector<Value> own(compute.getBlock()->getArguments());
    return LoadOp::create(at, loc, partial->getResult(0), withChunk(own, number, parts.how),
                          Value());
  };
  if (isArgReduction(reduce.getKind(0))) {
    Value best = combinePlaces(reduce, parts, builder, load).getResult(0);
    return load(builder, arith::IndexCastOp::create(builder, loc, builder.getIndexType(), best));
  }
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  std::string chunkName = chunkNameOf(reduce, parts.how);
  auto combined =
      ReduceOp::create(builder, loc, reduce.getKind(0), ArrayRef<StringRef>{chunkName},
                       ValueRange{zero}, ValueRange{parts.count}, reduce.getResult(0).getType(),
                       [&](OpBuilder &inner, Location, ValueRange indices) -> Value {
                         return load(inner, indices.front());
                       });
  return combined.getResult(0);
}
