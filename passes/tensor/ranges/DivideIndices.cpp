//===- DivideIndices.cpp - split an index into group and position ---------===//
//
// A quantized row has one scale for each group of, say, 128 elements. The quantizing compute op
// reads the scale at `d / 128`, and the reduction that computes the scale reads the row at
// `b * 128 + j`. The two cannot be fused, because their indices differ. Over the group and the
// position in the group, both become a reduction over a row and its elements.
//
// 1. Give a reduction that is the same for all positions of a group a compute op of its own
//    (SeparateQuotients.cpp).
// 2. Find a compute op without reductions that loads a result of another compute op at `d / n`.
//    That result must be a reduction over `j` in `0..n` of elements at `b * n + j`, or be computed
//    from such a reduction at the same `b`. The extent of `d` must be known to be `n` times that of
//    `b`.
// 3. Replace `d` by the two indices `b` and `j`. Do the same in the compute ops without reductions
//    whose elements both ops read, and in the loads of all results that change.
// 4. A returned tensor keeps its place in memory, because the elements of a group are adjacent.
//
// A matrix product of blocks reads its operands at `d / n` and at `d % n`, as in
// `sum[k](x[m, d / 256 * 256 + k] * w[d / 256, k, d % 256])`. With group and position for `d` it is
// a product for each block. The pass splits such an index, too, if the product has no other use of
// it.
//
// The pass declines if the compute op replaces an `inout` parameter. It also declines if the
// compute op is the only reader of a matrix product, because the op then becomes the product's
// epilogue.
//
//   %s = tk.compute ["t", "b"] {tk.reduce [max] ["j"] to(%c128) {load %x[%t, %b * 128 + %j]}}
//   %q = tk.compute ["t", "d"] in(%T, %D) {divf (load %x[%t, %d]), (load %s[%t, %d / 128])}
//     =>
//   %q = tk.compute ["t", "d.group", "d"] in(%T, %D / 128, 128) {
//     divf (load %x[%t, %group * 128 + %d]), (load %s[%t, %group])}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/ranges/DivideIndices.h"

#include "passes/Passes.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProducerKind.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/tensor/ranges/BlockProducts.h"
#include "passes/tensor/ranges/SeparateQuotients.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_DIVIDEINDICES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-divide-indices";

namespace {

/// A statement's index, by its position.
using Index = std::pair<ComputeOp, unsigned>;

struct DivideIndices : tk::impl::DivideIndicesBase<DivideIndices> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(gpu::targetAttrName))
      return;
    getOperation()->walk([&](KernelOp kernel) {
      separateQuotients(kernel);
      while (divideOne(kernel) || divideProduct(kernel))
        ++numDivided;
    });
  }

private:
  bool divideOne(KernelOp kernel);
  bool divideProduct(KernelOp kernel);
};

} // namespace

static bool isConstant(Value value, int64_t number) {
  std::optional<int64_t> constant = getConstantIntValue(value);
  return constant && *constant == number;
}

/// Is `index` one of `0 .. size`, that of a reduction or a statement?
static bool isPlaceInGroup(Value index, int64_t size) {
  auto argument = dyn_cast<BlockArgument>(index);
  if (!argument)
    return false;
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto compute = dyn_cast<ComputeOp>(parent))
    return isConstant(compute.getExtents()[argument.getArgNumber()], size);
  auto reduce = dyn_cast<ReduceOp>(parent);
  unsigned n = argument.getArgNumber();
  return reduce && n < reduce.getNumIndices() && isConstant(reduce.getLower()[n], 0) &&
         isConstant(reduce.getUpper()[n], size);
}

/// The group of `index` if that is `group * size + place`.
static std::optional<std::pair<Value, Value>> matchGroup(Value index, int64_t size) {
  auto sum = index.getDefiningOp<arith::AddIOp>();
  auto start = sum ? sum.getLhs().getDefiningOp<arith::MulIOp>() : arith::MulIOp();
  if (!start || !isConstant(start.getRhs(), size) || !isPlaceInGroup(sum.getRhs(), size))
    return std::nullopt;
  return std::pair(start.getLhs(), sum.getRhs());
}

static bool isPointwise(ComputeOp compute) {
  return !compute
              ->walk([&](Operation *op) {
                return isa<ReduceOp, ScanOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

/// The loads in `compute` of what other statements define.
static SmallVector<LoadOp> getLocalLoads(ComputeOp compute) {
  SmallVector<LoadOp> loads;
  compute->walk([&](LoadOp load) {
    if (load.getTensor().getDefiningOp<ComputeOp>())
      loads.push_back(load);
  });
  return loads;
}

/// The position of the index that stands at `axis` of a statement's result.
static Index indexAt(Value result, unsigned axis) {
  auto compute = result.getDefiningOp<ComputeOp>();
  return {compute, compute.getIndicesOf(cast<OpResult>(result).getResultNumber())[axis]};
}

/// Whether groups of `size` are reduced for each value of `index`, in its statement or where that
/// reads others at the same index. `statements`: all of these.
static bool reducesGroups(Index index, int64_t size, llvm::SetVector<ComputeOp> &statements) {
  auto [compute, position] = index;
  Value group = compute.getIndex(position);
  statements.insert(compute);
  bool reduces = false;
  compute->walk([&](LoadOp load) {
    for (Value at : load.getIndices())
      if (auto matched = matchGroup(at, size))
        reduces |= matched->first == group &&
                   isa<ReduceOp>(cast<BlockArgument>(matched->second).getOwner()->getParentOp());
  });
  for (LoadOp load : getLocalLoads(compute))
    for (auto [axis, at] : llvm::enumerate(load.getIndices()))
      if (at == group)
        reduces |= reducesGroups(indexAt(load.getTensor(), axis), size, statements);
  return reduces;
}

/// Is `count` the number of groups of `size` that `whole`, a multiple of it, has: rounded down or
/// up?
static bool countsGroups(Value count, Value whole, int64_t size) {
  std::optional<int64_t> number = getConstantIntValue(count), all = getConstantIntValue(whole);
  if (number && all)
    return *number * size == *all;
  auto quotient = count.getDefiningOp<FloorDivOp>();
  if (!quotient || !isConstant(quotient.getRhs(), size))
    return false;
  Value dividend = quotient.getLhs();
  if (auto sum = dividend.getDefiningOp<arith::AddIOp>(); sum && isConstant(sum.getRhs(), size - 1))
    dividend = sum.getLhs();
  return isSameExtent(dividend, whole);
}

/// The groups of an index of `compute` at whose quotient it reads what they are reduced to.
/// `statements`: those that reduce them.
static std::optional<std::pair<unsigned, Groups>>
findGroups(KernelOp kernel, ComputeOp compute, llvm::SetVector<ComputeOp> &statements) {
  for (LoadOp load : getLocalLoads(compute))
    for (auto [axis, at] : llvm::enumerate(load.getIndices())) {
      auto quotient = at.getDefiningOp<FloorDivOp>();
      std::optional<int64_t> size =
          quotient ? getConstantIntValue(quotient.getRhs()) : std::nullopt;
      auto index = quotient ? dyn_cast<BlockArgument>(quotient.getLhs()) : BlockArgument();
      if (!size || *size < 2 || !index || index.getOwner() != compute.getBlock())
        continue;
      auto [producer, position] = indexAt(load.getTensor(), axis);
      Value whole = compute.getExtents()[index.getArgNumber()];
      Value count = producer.getExtents()[position];
      statements.clear();
      if (isMultipleOf(kernel, whole, *size) && countsGroups(count, whole, *size) &&
          reducesGroups({producer, position}, *size, statements))
        return std::pair(index.getArgNumber(), Groups{whole, count, *size});
    }
  return std::nullopt;
}

/// Is some product read by `compute` alone, whose tiles it could be computed in?
static bool endsProduct(ComputeOp compute) {
  return llvm::any_of(getLocalLoads(compute), [&](LoadOp load) {
    auto result = cast<OpResult>(load.getTensor());
    return classify(result) == ProducerKind::Products &&
           llvm::all_of(result.getUsers(),
                        [&](Operation *user) { return compute->isAncestor(user); });
  });
}

/// The statements without reductions, and their indices, that go over the groups' elements where
/// `readers` read them.
static llvm::SetVector<Index> findElements(KernelOp kernel, ArrayRef<ComputeOp> readers, Index main,
                                           const Groups &groups) {
  llvm::SetVector<Index> found;
  for (ComputeOp reader : readers)
    for (LoadOp load : getLocalLoads(reader))
      for (auto [axis, at] : llvm::enumerate(load.getIndices())) {
        bool isElement =
            at == main.first.getIndex(main.second) || matchGroup(at, groups.size).has_value();
        Index index = indexAt(load.getTensor(), axis);
        auto [producer, position] = index;
        if (isElement && isPointwise(producer) && !replacesParameter(kernel, producer) &&
            isSameExtent(producer.getExtents()[position], groups.whole))
          found.insert(index);
      }
  return found;
}

/// Group and place of an index that stood where two stand now.
static std::pair<Value, Value> divide(OpBuilder &builder, Location loc, Value index, Value size,
                                      int64_t number) {
  if (auto matched = matchGroup(index, number))
    return *matched;
  Value group = FloorDivOp::create(builder, loc, index.getType(), index, size);
  Value place = FloorModOp::create(builder, loc, index.getType(), index, size);
  return {group, place};
}

/// The body of `compute` over the new indices, in which quotients by the size are groups.
static void cloneBody(OpBuilder &body, ComputeOp compute, unsigned position, const Groups &groups,
                      Value size, ValueRange indices) {
  Location loc = compute.getLoc();
  Value old = compute.getIndex(position), group = indices[position], place = indices[position + 1];
  IRMapping mapping;
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (p != position)
      mapping.map(compute.getIndex(p), indices[p + (p > position)]);
  Value start = arith::MulIOp::create(body, loc, group, size);
  Value index = arith::AddIOp::create(body, loc, start, place);
  mapping.map(old, index);
  for (Operation &op : *compute.getBlock())
    body.clone(op, mapping);
  for (Operation *user : llvm::make_early_inc_range(index.getUsers()))
    if (isa<FloorDivOp, FloorModOp>(user) && user->getOperand(0) == index &&
        isConstant(user->getOperand(1), groups.size)) {
      user->getResult(0).replaceAllUsesWith(isa<FloorDivOp>(user) ? group : place);
      user->erase();
    }
}

void tk::divideIndex(ComputeOp compute, unsigned position, const Groups &groups) {
  OpBuilder builder(compute);
  Location loc = compute.getLoc();
  Value size = arith::ConstantIndexOp::create(builder, loc, groups.size);
  IRMapping known;
  Value count = cloneSlice(builder, groups.count, compute->getBlock(), known);
  SmallVector<std::string> names;
  SmallVector<Value> extents;
  for (auto [p, name] : llvm::enumerate(compute.getIndexNames().getAsValueRange<StringAttr>())) {
    if (p == position) {
      names.push_back((name + ".group").str());
      extents.push_back(count);
    }
    names.push_back(name.str());
    extents.push_back(p == position ? size : compute.getExtents()[p]);
  }
  SmallVector<Type> types;
  SmallVector<SmallVector<unsigned>> over;
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    types.push_back(cast<RankedTensorType>(compute.getResult(r).getType()).getElementType());
    over.emplace_back();
    for (unsigned p : compute.getIndicesOf(r)) {
      over.back().push_back(p + (p > position));
      if (p == position)
        over.back().push_back(p + 1);
    }
  }
  auto divided =
      ComputeOp::create(builder, loc, llvm::to_vector_of<StringRef>(names), extents, types,
                        llvm::to_vector(compute.getNames().getAsValueRange<StringAttr>()), over,
                        [&](OpBuilder &body, Location, ValueRange indices) {
                          cloneBody(body, compute, position, groups, size, indices);
                        });
  for (auto [r, result] : llvm::enumerate(compute->getResults()))
    for (OpOperand &use : llvm::make_early_inc_range(result.getUses())) {
      auto load = dyn_cast<LoadOp>(use.getOwner());
      if (!load) {
        use.set(divided.getResult(r));
        continue;
      }
      OpBuilder before(load);
      SmallVector<Value> indices;
      for (auto [axis, at] : llvm::enumerate(load.getIndices())) {
        indices.push_back(at);
        if (indexAt(result, axis).second != position)
          continue;
        auto [group, place] = divide(before, load.getLoc(), at, size, groups.size);
        indices.back() = group;
        indices.push_back(place);
      }
      Value moved =
          LoadOp::create(before, load.getLoc(), divided.getResult(r), indices, load.getPad());
      load.replaceAllUsesWith(moved);
      load.erase();
    }
  compute.erase();
}

/// `whole / size`. The extent `H * 2` divided by 2 is H itself, as in the tensors with that axis.
static Value quotientOf(OpBuilder &builder, Location loc, Value whole, int64_t size) {
  if (auto product = whole.getDefiningOp<arith::MulIOp>())
    for (unsigned n : {0, 1})
      if (isConstantIntValue(product->getOperand(n), size))
        return product->getOperand(1 - n);
  Value by = arith::ConstantIndexOp::create(builder, loc, size);
  return FloorDivOp::create(builder, loc, builder.getIndexType(), whole, by);
}

bool DivideIndices::divideOne(KernelOp kernel) {
  for (ComputeOp compute : kernel.getBody().front().getOps<ComputeOp>()) {
    if (!isPointwise(compute) || replacesParameter(kernel, compute) || endsProduct(compute))
      continue;
    llvm::SetVector<ComputeOp> readers;
    auto found = findGroups(kernel, compute, readers);
    if (!found)
      continue;
    auto [position, groups] = *found;
    readers.insert(compute);
    const Index main(compute, position);
    llvm::SetVector<Index> elements = findElements(kernel, readers.getArrayRef(), main, groups);
    note(compute, passName, Verdict::Derived,
         "index '" + cast<StringAttr>(compute.getIndexNames()[position]).getValue() + "' of " +
             describe(compute) + " is split into groups of " + Twine(groups.size) +
             " and positions in them: a reduction over the groups is read");
    // A statement is made anew: of one that is read along two axes at once (a diagonal) one is
    // divided.
    llvm::SmallPtrSet<Operation *, 4> divided = {compute};
    for (auto [statement, axis] : elements)
      if (divided.insert(statement).second)
        divideIndex(statement, axis, groups);
    divideIndex(compute, position, groups);
    return true;
  }
  return false;
}

/// Splits an index of a matrix product of blocks.
bool DivideIndices::divideProduct(KernelOp kernel) {
  for (ComputeOp compute : kernel.getBody().front().getOps<ComputeOp>()) {
    auto reduces = llvm::to_vector(compute.getBlock()->getOps<ReduceOp>());
    if (replacesParameter(kernel, compute) || reduces.size() != 1 || !isContraction(reduces[0]))
      continue;
    for (BlockArgument index : compute.getBlock()->getArguments()) {
      const unsigned position = index.getArgNumber();
      Value whole = compute.getExtents()[position];
      std::optional<int64_t> size = findBlocks(reduces[0], index);
      if (!size || !isMultipleOf(kernel, whole, *size))
        continue;
      OpBuilder builder(compute);
      Value count = quotientOf(builder, compute.getLoc(), whole, *size);
      note(compute, passName, Verdict::Derived,
           "index '" + cast<StringAttr>(compute.getIndexNames()[position]).getValue() + "' of " +
               describe(compute) + " is split into blocks of " + Twine(*size) +
               " and positions in them: each block is a product of its own");
      divideIndex(compute, position, Groups{whole, count, *size});
      return true;
    }
  }
  return false;
}
