//===- SeparateQuotients.cpp - reductions at a quotient of an index -------===//
//
// Part of tk-divide-indices. The maximum of a block of a row, `max[k in 0..128](x[r, c / 128 * 128
// + k])`, is the same for the 128 columns of the block, but is computed for each of them.
//
// 1. Find a reduction of a compute op that depends on an index `c` as `c / n` alone, with one
//    number `n`, or on several such indices. It is no matrix product, and its result has 32 bits at
//    least.
// 2. A new compute op has the indices of the reduction, of which `c` has become the quotient. There
//    are `ceil(C / n)` of it, so that no value is computed that was not computed before.
// 3. The reduction is replaced by a load at `c / n`.
//
// tk-divide-indices then splits `c`, so that tk-fuse-producers may compute block and reader in one
// launch.
//
//   %y = tk.compute ["r", "c"] in(%R, %C) {tk.reduce [max] ["k"] {x[%r, %c / 128 * 128 + %k]}}
//     =>
//   %s = tk.compute ["r", "c.group"] in(%R, (%C + 127) / 128) {
//          tk.reduce [max] ["k"] {x[%r, %group * 128 + %k]}}
//   %y = tk.compute ["r", "c"] in(%R, %C) {load %s[%r, %c / 128]}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/ranges/SeparateQuotients.h"

#include "passes/analysis/BoundsApart.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProducerKind.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;

namespace {
/// An index that a reduction depends on as `index / size` alone.
struct Quotient {
  BlockArgument index;
  int64_t size;
};
} // namespace

/// The operations of the compute op that `reduce` is made of, itself and those inside included.
static llvm::SetVector<Operation *> operationsOf(ReduceOp reduce) {
  llvm::SetVector<Operation *> found;
  for (Operation *op : getSlice(reduce.getResults(), reduce->getBlock()))
    op->walk([&](Operation *inner) { found.insert(inner); });
  return found;
}

static SmallVector<Quotient> findQuotients(ReduceOp reduce, ComputeOp compute) {
  const llvm::SetVector<Operation *> operations = operationsOf(reduce);
  SmallVector<Quotient> found;
  for (BlockArgument index : compute.getBlock()->getArguments()) {
    std::optional<int64_t> size;
    bool isAlone = true;
    for (Operation *user : index.getUsers()) {
      if (!operations.contains(user))
        continue;
      auto quotient = dyn_cast<FloorDivOp>(user);
      std::optional<int64_t> by =
          quotient && quotient.getLhs() == index && quotient.getRhs() != index
              ? getConstantIndex(quotient.getRhs())
              : std::nullopt;
      isAlone &= by && *by > 1 && (!size || size == by);
      size = by;
    }
    if (isAlone && size)
      found.push_back({index, *size});
  }
  return found;
}

/// May `reduce` be computed apart from `compute`, over the indices that it depends on?
static bool isSeparable(ReduceOp reduce, ComputeOp compute, ArrayRef<BlockArgument> own) {
  const Type type = reduce.getResult(0).getType();
  if (reduce.isOnline() || reduce.getNumResults() != 1 || isHeavy(reduce) || !type.isIntOrFloat() ||
      type.getIntOrFloatBitWidth() < 32 || llvm::any_of(own, [&](BlockArgument index) {
        return index.getOwner() != compute.getBlock();
      }))
    return false;
  SmallVector<Value> others;
  for (BlockArgument index : compute.getBlock()->getArguments())
    if (!llvm::is_contained(own, index))
      others.push_back(compute.getExtents()[index.getArgNumber()]);
  Dependence onOthers(others);
  return llvm::all_of(getSlice(reduce.getResults(), reduce->getBlock()),
                      [&](Operation *op) { return isInBoundsApart(op, onOthers); });
}

static void separate(ReduceOp reduce, ComputeOp compute, ArrayRef<Quotient> quotients,
                     ArrayRef<BlockArgument> own) {
  auto quotientOf = [&](BlockArgument index) {
    return llvm::find_if(quotients, [&](const Quotient &q) { return q.index == index; });
  };
  OpBuilder builder(compute);
  Location loc = reduce.getLoc();
  SmallVector<std::string> names;
  SmallVector<Value> extents;
  for (BlockArgument index : own) {
    const unsigned p = index.getArgNumber();
    names.push_back(cast<StringAttr>(compute.getIndexNames()[p]).getValue().str());
    extents.push_back(compute.getExtents()[p]);
    const Quotient *quotient = quotientOf(index);
    if (quotient == quotients.end())
      continue;
    names.back() += ".group";
    Value rest = arith::ConstantIndexOp::create(builder, loc, quotient->size - 1);
    Value size = arith::ConstantIndexOp::create(builder, loc, quotient->size);
    Value sum = arith::AddIOp::create(builder, loc, extents.back(), rest);
    extents.back() = FloorDivOp::create(builder, loc, sum.getType(), sum, size);
  }
  const std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".groups").str();
  auto groups = ComputeOp::create(
      builder, loc, llvm::to_vector_of<StringRef>(names), extents,
      ArrayRef<Type>{reduce.getResult(0).getType()}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &inner, Location, ValueRange indices) {
        // The quotients are the index itself: the compute op's own would be `index * size`.
        IRMapping mapping;
        SmallVector<std::pair<Value, Value>> firsts; // of a group, and its number
        for (auto [index, mine] : llvm::zip_equal(own, indices)) {
          mapping.map(index, mine);
          const Quotient *quotient = quotientOf(index);
          if (quotient == quotients.end())
            continue;
          Value size = arith::ConstantIndexOp::create(inner, loc, quotient->size);
          Value first = arith::MulIOp::create(inner, loc, mine, size);
          mapping.map(index, first);
          firsts.emplace_back(first, mine);
        }
        Value result = cloneFrom(inner, reduce.getResult(0), compute, mapping);
        YieldOp::create(inner, loc, result);
        for (auto [first, group] : firsts)
          for (Operation *user : llvm::make_early_inc_range(first.getUsers())) {
            user->getResult(0).replaceAllUsesWith(group);
            user->erase();
          }
      });
  OpBuilder at(reduce);
  SmallVector<Value> place;
  for (BlockArgument index : own) {
    place.push_back(index);
    const Quotient *quotient = quotientOf(index);
    if (quotient == quotients.end())
      continue;
    Value size = arith::ConstantIndexOp::create(at, loc, quotient->size);
    place.back() = FloorDivOp::create(at, loc, index.getType(), index, size);
  }
  Value loaded = LoadOp::create(at, loc, groups.getResult(0), place, Value());
  note(reduce, "tk-divide-indices", Verdict::Derived,
       "the " + describe(reduce) + " becomes a statement of its own: it is the same for " +
           Twine(quotients.front().size) + " values of an index");
  reduce.getResult(0).replaceAllUsesWith(loaded);
  reduce.erase();
}

unsigned tk::separateQuotients(KernelOp kernel) {
  unsigned count = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().front().getOps<ComputeOp>()))
    for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>())) {
      SmallVector<BlockArgument> own = getIterationIndices(reduce.getResult(0));
      llvm::sort(own, [](BlockArgument a, BlockArgument b) {
        return a.getArgNumber() < b.getArgNumber();
      });
      const SmallVector<Quotient> quotients = findQuotients(reduce, compute);
      if (quotients.empty() || !isSeparable(reduce, compute, own))
        continue;
      separate(reduce, compute, quotients, own);
      ++count;
    }
  return count;
}
