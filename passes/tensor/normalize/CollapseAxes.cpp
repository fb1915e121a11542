//===- CollapseAxes.cpp - collapse neighbouring axes ----------------------===//
//
// Two neighbouring axes of a dense tensor are one axis in memory if all accesses use them together.
// Later passes plan each index by itself: an index fills tiles of its own, and only one index of a
// reduction can be split into chunks. One long index therefore gives better tiles than two short
// ones. This pass replaces such pairs by one index.
//
// 1. Number each pair of neighbouring axes of a tensor, and each pair of neighbouring indices of a
//    compute op or a reduction.
// 2. Join pairs into classes. A load joins a pair of its tensor's axes with the pair of indices
//    that it uses there. A result joins a pair of its axes with a pair of its compute op's indices.
//    An `inout` parameter is joined with the value that replaces it.
// 3. Reject a class if one of its pairs cannot be collapsed:
//    * a load reads the axes at anything but two neighbouring indices, in their order;
//    * an index does not run over the whole axis, or a reduction's index does not begin at 0;
//    * an index has another use, such as a comparison, or a tensor that has only this index;
//    * the parameter is strided.
// 4. Collapse each class that is left and contains two indices of one reduction. Also collapse the
//    last two axes of a load if a reduction runs over an axis before them. A column reduction then
//    has one long range of columns, and its blocks take several neighbouring columns each.
//
// The pass leaves kernels with a schedule block alone, because the block names the indices.
//
//   %s = tk.reduce [sum] ["n", "h", "w"] to (%N, %H, %W) {x[n, h, w, c]}
//     =>
//   %NHW = %N * %H * %W
//   %s = tk.reduce [sum] ["n.h.w"] to (%NHW) {x[n.h.w, c]}
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/tensor/normalize/AxisPairs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk {
#define GEN_PASS_DEF_COLLAPSEAXES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-collapse-axes";

namespace {

/// Makes one of what the pairs say.
class AxisCollapse {
public:
  AxisCollapse(KernelOp kernel, const AxisPairs &pairs) : kernel(kernel), pairs(pairs) {}
  /// Returns how many indices are gone.
  unsigned apply();

private:
  SmallVector<Value> productsOf(ValueRange extents, llvm::function_ref<bool(unsigned)> joinsNext,
                                Operation *before);
  Value productOf(ArrayRef<Value> extents, Operation *before);
  void collapseType(Value tensor);
  void collapse(BindOp bind);
  void collapse(LoadOp load);
  void collapse(ReduceOp reduce);
  void collapse(ComputeOp compute);
  void dropIndices(Operation *owner, Block *block, unsigned count);
  ArrayAttr namesOf(Operation *owner, ArrayAttr names);

  KernelOp kernel;
  const AxisPairs &pairs;
  /// Products that are there already, with their factors.
  SmallVector<std::pair<SmallVector<Value>, Value>> products;
  unsigned dropped = 0;
};

struct CollapseAxesPass : tk::impl::CollapseAxesBase<CollapseAxesPass> {
  void runOnOperation() override {
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      if (kernel->hasAttr("tk.schedules"))
        continue; // its blocks name indices, and say what becomes of each
      AxisPairs pairs(kernel);
      numCollapsed += AxisCollapse(kernel, pairs).apply();
    }
  }
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

/// The first index of those that are one stands for all of them.
void AxisCollapse::collapse(LoadOp load) {
  SmallVector<Value> indices;
  for (unsigned axis = 0; axis < load.getIndices().size(); ++axis)
    if (axis == 0 || !pairs.joinsNext(load.getTensor(), axis - 1))
      indices.push_back(load.getIndices()[axis]);
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
