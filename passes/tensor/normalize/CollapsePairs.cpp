//===- CollapsePairs.cpp - make one index of two --------------------------===//
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/tensor/normalize/AxisPairs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace tk;

namespace {

/// Makes one of what the pairs say.
class AxisCollapse {
public:
  AxisCollapse(KernelOp kernel, const AxisPairs &pairs, StringRef passName)
      : kernel(kernel), pairs(pairs), passName(passName) {}
  /// Returns how many indices are gone.
  unsigned apply();

private:
  SmallVector<Value> productsOf(ValueRange extents, llvm::function_ref<bool(unsigned)> joinsNext,
                                Operation *before);
  Value productOf(ArrayRef<Value> extents, Operation *before);
  void collapseType(Value tensor);
  void collapse(BindOp bind);
  void collapse(LoadOp load);
  bool joinsIndices(LoadOp load, unsigned axis);
  void collapse(ReduceOp reduce);
  void collapse(ComputeOp compute);
  void dropIndices(Operation *owner, Block *block, unsigned count);
  ArrayAttr namesOf(Operation *owner, ArrayAttr names);

  KernelOp kernel;
  const AxisPairs &pairs;
  StringRef passName;
  /// Products that are there already, with their factors.
  SmallVector<std::pair<SmallVector<Value>, Value>> products;
  unsigned dropped = 0;
};

} // namespace

/// How many elements the extents have together, as one value for all that have the same.
Value AxisCollapse::productOf(ArrayRef<Value> extents, Operation *before) {
  for (auto &[factors, product] : products)
    if (factors.size() == extents.size() &&
        llvm::all_of(llvm::zip_equal(factors, extents),
                     [](auto pair) { return isSameExtent(std::get<0>(pair), std::get<1>(pair)); }))
      return product;
  OpBuilder builder(before);
  Value product = extents.front();
  for (Value extent : extents.drop_front())
    product = builder.createOrFold<arith::MulIOp>(before->getLoc(), product, extent);
  products.emplace_back(SmallVector<Value>(extents), product);
  return product;
}

SmallVector<Value> AxisCollapse::productsOf(ValueRange extents,
                                            llvm::function_ref<bool(unsigned)> joinsNext,
                                            Operation *before) {
  SmallVector<Value> result, factors;
  for (unsigned n = 0; n < extents.size(); ++n) {
    factors.push_back(extents[n]);
    if (joinsNext(n))
      continue;
    result.push_back(factors.size() == 1 ? factors.front() : productOf(factors, before));
    factors.clear();
  }
  return result;
}

void AxisCollapse::collapseType(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape;
  bool joinsLast = false;
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    int64_t size = type.getDimSize(axis);
    if (!joinsLast)
      shape.push_back(size);
    else if (ShapedType::isDynamic(size) || ShapedType::isDynamic(shape.back()))
      shape.back() = ShapedType::kDynamic;
    else
      shape.back() *= size;
    joinsLast = pairs.joinsNext(tensor, axis);
  }
  tensor.setType(RankedTensorType::get(shape, type.getElementType()));
}

void AxisCollapse::collapse(BindOp bind) {
  Value tensor = bind.getTensor();
  SmallVector<Value> extents = productsOf(
      bind.getExtents(), [&](unsigned axis) { return pairs.joinsNext(tensor, axis); }, bind);
  bind.getExtentsMutable().assign(extents);
  collapseType(tensor);
}

/// Is what stands at `axis` and behind it one index from now on?
bool AxisCollapse::joinsIndices(LoadOp load, unsigned axis) {
  auto index = dyn_cast<BlockArgument>(load.getIndices()[axis]);
  if (!index || axis + 1 >= load.getIndices().size())
    return false;
  Operation *owner = index.getOwner()->getParentOp();
  return isa<ComputeOp, ReduceOp>(owner) && pairs.joinsNext(owner, index.getArgNumber());
}

/// The first index of those that are one stands for all of them. It is divided where axes of the
/// tensor stay apart.
void AxisCollapse::collapse(LoadOp load) {
  SmallVector<Value> indices, extents = getExtents(kernel, load.getTensor());
  OpBuilder builder(load);
  for (unsigned axis = 0; axis < extents.size(); ++axis) {
    unsigned last = axis;
    while (joinsIndices(load, last))
      ++last;
    Value index = load.getIndices()[axis];
    // The first axes of the tensor's own indices, and how many elements each has.
    SmallVector<Value> sizes = {extents[axis]};
    for (unsigned next = axis + 1; next <= last; ++next)
      if (pairs.joinsNext(load.getTensor(), next - 1))
        sizes.back() =
            builder.createOrFold<arith::MulIOp>(load.getLoc(), sizes.back(), extents[next]);
      else
        sizes.push_back(extents[next]);
    SmallVector<Value> parts; // the last one first
    for (Value size : llvm::reverse(ArrayRef(sizes).drop_front())) {
      parts.push_back(FloorModOp::create(builder, load.getLoc(), index.getType(), index, size));
      index = FloorDivOp::create(builder, load.getLoc(), index.getType(), index, size);
    }
    parts.push_back(index);
    indices.append(parts.rbegin(), parts.rend());
    axis = last;
  }
  load.getIndicesMutable().assign(indices);
}

ArrayAttr AxisCollapse::namesOf(Operation *owner, ArrayAttr names) {
  SmallVector<std::string> joined;
  for (auto [p, name] : llvm::enumerate(names.getAsRange<StringAttr>())) {
    if (p > 0 && pairs.joinsNext(owner, p - 1))
      joined.back() += "." + name.str();
    else
      joined.push_back(name.str());
  }
  SmallVector<StringRef> list(joined.begin(), joined.end());
  return Builder(owner->getContext()).getStrArrayAttr(list);
}

void AxisCollapse::dropIndices(Operation *owner, Block *block, unsigned count) {
  for (unsigned p = count; p-- > 1;)
    if (pairs.joinsNext(owner, p - 1)) {
      block->eraseArgument(p);
      ++dropped;
    }
}

void AxisCollapse::collapse(ReduceOp reduce) {
  auto joinsNext = [&](unsigned p) { return pairs.joinsNext(reduce, p); };
  auto compute = reduce->getParentOfType<ComputeOp>();
  SmallVector<Value> operands, upper = productsOf(reduce.getUpper(), joinsNext, compute);
  for (unsigned p = 0; p < reduce.getNumIndices(); ++p)
    if (p == 0 || !joinsNext(p - 1))
      operands.push_back(reduce.getLower()[p]);
  llvm::append_range(operands, upper);
  unsigned count = reduce.getNumIndices();
  if (upper.size() == count)
    return;
  ArrayAttr names = namesOf(reduce, reduce.getIndexNames());
  note(reduce, passName, Verdict::Derived,
       "the indices of " + describe(reduce) + " are contiguous in memory and become one");
  reduce->setOperands(operands);
  reduce.setIndexNamesAttr(names);
  dropIndices(reduce, reduce.getBlock(), count);
}

void AxisCollapse::collapse(ComputeOp compute) {
  auto joinsNext = [&](unsigned p) { return pairs.joinsNext(compute, p); };
  compute.walk([&](ReduceOp reduce) { collapse(reduce); });
  for (Value result : compute.getResults())
    collapseType(result);
  unsigned count = compute.getNumIndices();
  SmallVector<Value> extents = productsOf(compute.getExtents(), joinsNext, compute);
  if (extents.size() == count)
    return;
  SmallVector<int64_t> placeOf;
  for (unsigned p = 0; p < count; ++p)
    placeOf.push_back(p == 0 ? 0 : placeOf.back() + (joinsNext(p - 1) ? 0 : 1));
  if (compute.getResultIndices()) {
    SmallVector<Attribute> lists;
    for (unsigned r = 0; r < compute.getNumResults(); ++r) {
      SmallVector<int64_t> places;
      for (unsigned p : compute.getIndicesOf(r))
        if (p == 0 || !joinsNext(p - 1))
          places.push_back(placeOf[p]);
      lists.push_back(DenseI64ArrayAttr::get(compute.getContext(), places));
    }
    compute.setResultIndicesAttr(ArrayAttr::get(compute.getContext(), lists));
  }
  compute.setIndexNamesAttr(namesOf(compute, compute.getIndexNames()));
  compute.getExtentsMutable().assign(extents);
  dropIndices(compute, compute.getBlock(), count);
}

unsigned AxisCollapse::apply() {
  // Loads first: behind them the indices that go are used by nobody.
  kernel.walk([&](LoadOp load) { collapse(load); });
  for (Operation &op : llvm::make_early_inc_range(kernel.getBody().front())) {
    if (auto bind = dyn_cast<BindOp>(op))
      collapse(bind);
    else if (auto compute = dyn_cast<ComputeOp>(op))
      collapse(compute);
  }
  return dropped;
}

unsigned tk::collapsePairs(ModuleOp module, StringRef passName, bool dividesIndices) {
  unsigned dropped = 0;
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    if (kernel->hasAttr("tk.schedules"))
      continue; // its blocks name indices, and say what becomes of each
    AxisPairs pairs(kernel, dividesIndices);
    dropped += AxisCollapse(kernel, pairs, passName).apply();
  }
  return dropped;
}
