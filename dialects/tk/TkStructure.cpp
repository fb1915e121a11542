//===- TkStructure.cpp - kernels, compute ops and reductions --------------===//
#include "dialects/tk/TkDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

//===----------------------------------------------------------------------===//
// tk.kernel, tk.bind
//===----------------------------------------------------------------------===//

LogicalResult KernelOp::verify() {
  Block &block = getBody().front();
  size_t expected = getDimNames().size() + getParams().size();
  if (block.getNumArguments() != expected)
    return emitOpError("expected ")
           << expected << " block arguments (" << getDimNames().size() << " dimensions, "
           << getParams().size() << " parameters), got " << block.getNumArguments();
  for (auto [i, arg] : llvm::enumerate(getDimArguments()))
    if (!arg.getType().isIndex())
      return emitOpError("expected dimension ")
             << getDimNames()[i] << " to be of type index, got " << arg.getType();
  unsigned inout = 0;
  for (auto [i, attr] : llvm::enumerate(getParams())) {
    auto param = dyn_cast<ParamAttr>(attr);
    if (!param)
      return emitOpError("expected params to hold #tk.param attributes, got ") << attr;
    inout += param.getInout();
  }
  if (std::optional<ArrayAttr> facts = getFacts()) {
    if (facts->size() != getNumDims())
      return emitOpError("expected one fact for each of the ")
             << getNumDims() << " dimensions, got " << facts->size();
    for (Attribute fact : *facts)
      if (!isa<FactAttr>(fact))
        return emitOpError("expected facts to hold #tk.fact attributes, got ") << fact;
  }
  auto ret = dyn_cast_or_null<ReturnOp>(block.empty() ? nullptr : &block.back());
  if (!ret)
    return emitOpError("expected the body to end in tk.return");
  size_t results = getResultNames().size() + inout;
  if (ret.getResults().size() != results)
    return ret.emitOpError("expected ") << results << " values (results, then inout parameters), "
                                        << "got " << ret.getResults().size();
  return success();
}

StringRef KernelOp::getDimName(Value value) {
  for (auto [i, arg] : llvm::enumerate(getDimArguments()))
    if (arg == value)
      return cast<StringAttr>(getDimNames()[i]).getValue();
  return {};
}

FactAttr KernelOp::getFact(unsigned i) {
  if (std::optional<ArrayAttr> facts = getFacts())
    return cast<FactAttr>((*facts)[i]);
  return FactAttr::get(getContext(), 1, -1);
}

BindOp KernelOp::getBind(Value tensor) {
  for (Operation *user : tensor.getUsers())
    if (auto bind = dyn_cast<BindOp>(user))
      return bind;
  return {};
}

ReturnOp KernelOp::getReturn() { return cast<ReturnOp>(getBody().front().getTerminator()); }

LogicalResult BindOp::verify() {
  auto type = cast<RankedTensorType>(getTensor().getType());
  if (static_cast<int64_t>(getExtents().size()) != type.getRank())
    return emitOpError("expected ") << type.getRank() << " extents, got " << getExtents().size();
  return success();
}

//===----------------------------------------------------------------------===//
// tk.compute
//===----------------------------------------------------------------------===//

SmallVector<unsigned> ComputeOp::getIndicesOf(unsigned r) {
  if (std::optional<ArrayAttr> lists = getResultIndices()) {
    auto list = cast<DenseI64ArrayAttr>((*lists)[r]);
    return SmallVector<unsigned>(list.asArrayRef().begin(), list.asArrayRef().end());
  }
  return llvm::to_vector(llvm::seq<unsigned>(0, getNumIndices()));
}

/// The element type that a body yields for a tensor: `ui8` is held in `i8` bits.
static Type yieldedType(Type element) {
  if (element.isUnsignedInteger())
    return IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth());
  return element;
}

LogicalResult ComputeOp::verify() {
  unsigned n = getNumIndices();
  if (getExtents().size() != n)
    return emitOpError("expected ") << n << " extents, got " << getExtents().size();
  Block &block = getBody().front();
  if (block.getNumArguments() != n)
    return emitOpError("expected ") << n << " block arguments, got " << block.getNumArguments();
  for (BlockArgument arg : block.getArguments())
    if (!arg.getType().isIndex())
      return emitOpError("expected index block arguments, got ") << arg.getType();
  if (getNames().size() != getNumResults())
    return emitOpError("expected ") << getNumResults() << " names, got " << getNames().size();
  if (std::optional<ArrayAttr> lists = getResultIndices()) {
    if (lists->size() != getNumResults())
      return emitOpError("expected an index list for each of the ")
             << getNumResults() << " results, got " << lists->size();
    for (Attribute list : *lists) {
      auto positions = dyn_cast<DenseI64ArrayAttr>(list);
      if (!positions)
        return emitOpError("expected index lists of type array<i64>, got ") << list;
      for (int64_t position : positions.asArrayRef())
        if (position < 0 || position >= static_cast<int64_t>(n))
          return emitOpError("expected index positions below ") << n << ", got " << position;
    }
  }
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield)
    return emitOpError("expected the body to end in tk.yield");
  if (yield.getValues().size() != getNumResults())
    return emitOpError("expected ")
           << getNumResults() << " yielded values, got " << yield.getValues().size();
  for (auto [r, result] : llvm::enumerate(getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    size_t rank = getIndicesOf(r).size();
    if (static_cast<size_t>(type.getRank()) != rank)
      return emitOpError("expected result ") << r << " of rank " << rank << ", got " << type;
    Type yielded = yield.getValues()[r].getType();
    if (yielded != yieldedType(type.getElementType()))
      return emitOpError("expected result ")
             << r << " to be yielded as " << yieldedType(type.getElementType()) << ", got "
             << yielded;
  }
  return success();
}

void ComputeOp::build(OpBuilder &builder, OperationState &state, ArrayRef<StringRef> indexNames,
                      ValueRange extents, ArrayRef<Type> elementTypes, ArrayRef<StringRef> names,
                      ArrayRef<SmallVector<unsigned>> resultIndices,
                      function_ref<void(OpBuilder &, Location, ValueRange)> bodyBuilder) {
  SmallVector<Type> types;
  SmallVector<Attribute> lists;
  for (auto [r, element] : llvm::enumerate(elementTypes)) {
    SmallVector<unsigned> indices = resultIndices.empty()
                                        ? llvm::to_vector(llvm::seq<unsigned>(0, extents.size()))
                                        : resultIndices[r];
    SmallVector<int64_t> shape, positions;
    for (unsigned i : indices) {
      APInt constant;
      bool isStatic = matchPattern(extents[i], m_ConstantInt(&constant));
      shape.push_back(isStatic ? constant.getSExtValue() : ShapedType::kDynamic);
      positions.push_back(i);
    }
    types.push_back(RankedTensorType::get(shape, element));
    lists.push_back(builder.getDenseI64ArrayAttr(positions));
  }
  ArrayAttr listsAttr = resultIndices.empty() ? ArrayAttr() : builder.getArrayAttr(lists);
  build(builder, state, types, builder.getStrArrayAttr(indexNames), extents, listsAttr,
        builder.getStrArrayAttr(names));
  OpBuilder::InsertionGuard guard(builder);
  Region *region = state.regions.front().get();
  SmallVector<Type> argTypes(extents.size(), builder.getIndexType());
  SmallVector<Location> locs(extents.size(), state.location);
  Block *block = builder.createBlock(region, region->end(), argTypes, locs);
  bodyBuilder(builder, state.location, block->getArguments());
}

//===----------------------------------------------------------------------===//
// tk.reduce, tk.scan
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::verify() {
  unsigned n = getNumAccumulators(), indices = getNumIndices();
  if (n == 0 || indices == 0)
    return emitOpError("expected at least one accumulator and one index");
  if (getNumResults() != n)
    return emitOpError("expected ") << n << " results, got " << getNumResults();
  if (getLower().size() != indices || getUpper().size() != indices)
    return emitOpError("expected ") << indices << " lower and upper bounds, got "
                                    << getLower().size() << " and " << getUpper().size();
  Block &block = getBody().front();
  if (block.getNumArguments() != indices + n - 1)
    return emitOpError("expected ")
           << indices + n - 1 << " body arguments (" << indices << " indices, " << n - 1
           << " running values), got " << block.getNumArguments();
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getValues().size() != n)
    return emitOpError("expected the body to yield ") << n << " terms";
  for (unsigned k = 0; k < n; ++k) {
    Type term = yield.getValues()[k].getType(), result = getResult(k).getType();
    if (isArgReduction(getKind(k))) {
      if ((!result.isInteger(32) && !result.isInteger(64)) || indices != 1)
        return emitOpError("expected argmax and argmin over one index with an i32 or i64 result");
    } else if (term != result) {
      return emitOpError("expected term ") << k << " of type " << result << ", got " << term;
    }
  }
  if (n == 1) {
    if (!getRescale().empty())
      return emitOpError("expected no rescale region with one accumulator");
    return success();
  }
  if (getRescale().empty())
    return emitOpError("expected a rescale region with several accumulators");
  Block &rescale = getRescale().front();
  if (rescale.getNumArguments() != 2 * (n - 1))
    return emitOpError("expected ")
           << 2 * (n - 1) << " rescale arguments, got " << rescale.getNumArguments();
  auto factors = dyn_cast<YieldOp>(rescale.getTerminator());
  if (!factors || factors.getValues().size() != n - 1)
    return emitOpError("expected the rescale region to yield ") << n - 1 << " factors";
  for (unsigned k = 0; k + 1 < n; ++k) {
    Type running = block.getArgument(indices + k).getType();
    if (running != getResult(k).getType())
      return emitOpError("expected running value ")
             << k << " of type " << getResult(k).getType() << ", got " << running;
    Type factor = factors.getValues()[k].getType();
    if (factor != getResult(k + 1).getType())
      return emitOpError("expected the factor of accumulator ")
             << k + 1 << " of type " << getResult(k + 1).getType() << ", got " << factor;
  }
  return success();
}

void ReduceOp::build(OpBuilder &builder, OperationState &state, ReduceKind kind,
                     ArrayRef<StringRef> indexNames, ValueRange lower, ValueRange upper,
                     Type resultType,
                     function_ref<Value(OpBuilder &, Location, ValueRange)> bodyBuilder,
                     Precision precision) {
  MLIRContext *context = builder.getContext();
  build(builder, state, TypeRange{resultType},
        builder.getArrayAttr({ReduceKindAttr::get(context, kind)}),
        builder.getStrArrayAttr(indexNames), lower, upper, PrecisionAttr::get(context, precision));
  OpBuilder::InsertionGuard guard(builder);
  Region *region = state.regions.front().get();
  SmallVector<Type> argTypes(lower.size(), builder.getIndexType());
  SmallVector<Location> locs(lower.size(), state.location);
  Block *block = builder.createBlock(region, region->end(), argTypes, locs);
  Value term = bodyBuilder(builder, state.location, block->getArguments());
  YieldOp::create(builder, state.location, ValueRange{term});
}

LogicalResult ScanOp::verify() {
  switch (getKind()) {
  case ReduceKind::Sum:
  case ReduceKind::Prod:
  case ReduceKind::Max:
  case ReduceKind::Min:
    break;
  default:
    return emitOpError("expected kind sum, prod, max or min, got ")
           << stringifyReduceKind(getKind());
  }
  Block &block = getBody().front();
  if (block.getNumArguments() != 1 || !block.getArgument(0).getType().isIndex())
    return emitOpError("expected one body argument of type index");
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  const bool isSum = getKind() == ReduceKind::Sum && isa<FloatType>(getResult().getType());
  if (!yield || yield.getValues().empty() || yield.getValues().size() > (isSum ? 2 : 1) ||
      llvm::any_of(yield.getValues(),
                   [&](Value value) { return value.getType() != getResult().getType(); }))
    return emitOpError("expected the body to yield one value of type ")
           << getResult().getType() << ", or a term and a decay of a sum of floats";
  return success();
}

void ScanOp::build(OpBuilder &builder, OperationState &state, ReduceKind kind, StringRef indexName,
                   Value lower, Value upper, Value position, Type resultType,
                   function_ref<Value(OpBuilder &, Location, ValueRange)> bodyBuilder) {
  build(builder, state, resultType, ReduceKindAttr::get(builder.getContext(), kind),
        builder.getStringAttr(indexName), lower, upper, position);
  OpBuilder::InsertionGuard guard(builder);
  Region *region = state.regions.front().get();
  Block *block =
      builder.createBlock(region, region->end(), {builder.getIndexType()}, {state.location});
  Value term = bodyBuilder(builder, state.location, block->getArguments());
  YieldOp::create(builder, state.location, ValueRange{term});
}

YieldOp ComputeOp::getYield() { return cast<YieldOp>(getBlock()->getTerminator()); }
bool ReduceOp::standsAlone(unsigned k) {
  unsigned count = getNumAccumulators();
  if (count == 1)
    return true;
  Block &rescale = getRescale().front();
  if (k > 0) {
    Value factor = cast<YieldOp>(rescale.getTerminator()).getValues()[k - 1];
    if (!matchPattern(factor, m_OneFloat()) && !matchPattern(factor, m_One()))
      return false;
  }
  return k + 1 == count || (getRunning(k).use_empty() && rescale.getArgument(k).use_empty() &&
                            rescale.getArgument(count - 1 + k).use_empty());
}

YieldOp ReduceOp::getYield() { return cast<YieldOp>(getBlock()->getTerminator()); }
YieldOp ScanOp::getYield() { return cast<YieldOp>(getBlock()->getTerminator()); }

//===----------------------------------------------------------------------===//
// Names of block arguments
//===----------------------------------------------------------------------===//

static StringRef nameAt(ArrayAttr names, unsigned i) {
  return cast<StringAttr>(names[i]).getValue();
}

void KernelOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.empty() ||
      region.front().getNumArguments() != getDimNames().size() + getParams().size())
    return;
  for (auto [i, arg] : llvm::enumerate(getDimArguments()))
    setName(arg, nameAt(getDimNames(), i));
  for (auto [i, arg] : llvm::enumerate(getParamArguments()))
    if (auto param = dyn_cast<ParamAttr>(getParams()[i]))
      setName(arg, param.getName());
}

void ComputeOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.empty() || region.front().getNumArguments() != getIndexNames().size())
    return;
  for (auto [i, arg] : llvm::enumerate(region.front().getArguments()))
    setName(arg, nameAt(getIndexNames(), i));
}

void ReduceOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (&region != &getBody() || region.empty() ||
      region.front().getNumArguments() < getIndexNames().size())
    return;
  for (unsigned i = 0; i < getNumIndices(); ++i)
    setName(getIndex(i), nameAt(getIndexNames(), i));
  for (unsigned k = 0; k + 1 < getNumAccumulators(); ++k)
    setName(region.front().getArgument(getNumIndices() + k),
            ("running_" + stringifyReduceKind(getKind(k))).str());
}

void ScanOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (!region.empty() && region.front().getNumArguments() == 1)
    setName(region.front().getArgument(0), getIndexName());
}
