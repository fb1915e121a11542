//===- DropUnitAxes.cpp - drop trailing axes of one element ---------------===//
//
// A matrix that is known to have one column lies in memory as a vector. Read as a vector, its loads
// run along the rows and can be coalesced. A product with it becomes a plain reduction of rows or
// columns, and later passes see which operands all rows share.
//
// 1. Find the last axis of a dense parameter whose extent is at most 1.
// 2. Drop the axis if each load reads it, without padding, at an index of a compute op whose
//    results are only returned. Windows, gathers and padded loads may address a position outside of
//    the axis, so their axes stay.
// 3. Repeat with the axis before it. The first axis always stays.
// 4. Remove the axis from the parameter's type, from its extents and from the loads. The indices of
//    compute ops do not change.
//
// The pass leaves strided parameters and `inout` parameters alone.
//
//   3. An index of a reduction over several that runs over one value, as the elements of a window
//   of
// one do, goes as well: it is 0. The extent becomes the number 1, so that places of windows are
// what the tensor's axis has.
//
//   tk.bind %b[%K, %N]; tk.load %b[%k, %j]
//     =>                                                                          // N <= 1
//   tk.bind %b[%K]; tk.load %b[%k]
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/IndexGrowth.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/analysis/StrideAxes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"

namespace tk {
#define GEN_PASS_DEF_DROPUNITAXES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

namespace {

struct DropUnitAxes : tk::impl::DropUnitAxesBase<DropUnitAxes> {
  /// An index of a statement that nothing else reads. Of one that is read, it may become an index
  /// of a sum, out of which what does not depend on it moves: that would be read of no elements,
  /// too.
  static bool isPlain(Value place) {
    auto index = dyn_cast<BlockArgument>(place);
    Operation *parent = index ? index.getOwner()->getParentOp() : nullptr;
    return isa_and_nonnull<ComputeOp>(parent) &&
           llvm::all_of(parent->getUsers(),
                        [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); });
  }

  static bool mayDrop(KernelOp kernel, BindOp bind, unsigned axis) {
    return getSizeFact(kernel, bind.getExtents()[axis]).upper.value_or(2) <= 1 &&
           llvm::all_of(bind.getTensor().getUsers(), [&](Operation *user) {
             auto load = dyn_cast<LoadOp>(user);
             return user == bind || (load && !load.getPad() && isPlain(load.getIndices()[axis]));
           });
  }

  void runOnParameter(KernelOp kernel, BindOp bind) {
    Value tensor = bind.getTensor();
    auto type = cast<RankedTensorType>(tensor.getType());
    const unsigned rank = static_cast<unsigned>(type.getRank());
    llvm::SmallBitVector dropped(rank);
    for (unsigned end = rank; end > 1 && mayDrop(kernel, bind, end - 1); --end)
      dropped.set(end - 1);
    if (dropped.none())
      return;
    auto keep = [&](auto values) {
      SmallVector<typename std::decay_t<decltype(*values.begin())>> kept;
      for (auto [axis, value] : llvm::enumerate(values))
        if (!dropped[axis])
          kept.push_back(value);
      return kept;
    };
    for (Operation *user : tensor.getUsers())
      if (auto load = dyn_cast<LoadOp>(user))
        load.getIndicesMutable().assign(keep(load.getIndices()));
    bind.getExtentsMutable().assign(keep(bind.getExtents()));
    tensor.setType(RankedTensorType::get(keep(type.getShape()), type.getElementType()));
    numDropped += dropped.count();
  }

  /// A dimension or a constant that is 1.
  static bool isOne(KernelOp kernel, Value end) {
    return getConstantIndex(end) == 1 ||
           (isa<BlockArgument>(end) && getSizeFact(kernel, end).exact == 1);
  }

  /// Does a load of `reduce` step over elements along the axis that it reads at `index`? Its places
  /// stay those of windows, which a convolution stores side by side (tk-flatten-windows).
  static bool isStepped(ReduceOp reduce, BlockArgument index) {
    return reduce
        .walk([&](LoadOp load) {
          for (Value place : load.getIndices()) {
            SmallVector<BlockArgument> indices = getIterationIndices(place);
            if (!llvm::is_contained(indices, index))
              continue;
            for (BlockArgument other : indices)
              if (other != index && growth(place, other).value_or(1) > 1)
                return WalkResult::interrupt();
          }
          return WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Drops indices of reductions over one value, where others stay; true if there were any. Adds
  /// the dimensions among their extents to `ones`.
  static bool dropIndices(KernelOp kernel, llvm::SetVector<Value> &ones) {
    bool changed = false;
    kernel.walk([&](ReduceOp reduce) {
      SmallVector<Value> lower, upper;
      SmallVector<Attribute> names;
      SmallVector<unsigned> dropped;
      for (unsigned p = 0; p < reduce.getNumIndices(); ++p) {
        Value end = reduce.getUpper()[p];
        if (isOne(kernel, end) && getConstantIndex(reduce.getLower()[p]) == 0 &&
            !isStepped(reduce, reduce.getIndex(p))) {
          dropped.push_back(p);
          continue;
        }
        lower.push_back(reduce.getLower()[p]);
        upper.push_back(end);
        names.push_back(reduce.getIndexNames()[p]);
      }
      if (dropped.empty() || lower.empty())
        return;
      changed = true;
      for (unsigned p : llvm::reverse(dropped)) {
        if (isa<BlockArgument>(reduce.getUpper()[p]))
          ones.insert(reduce.getUpper()[p]);
        reduce.getIndex(p).replaceAllUsesWith(reduce.getLower()[p]);
        reduce.getBlock()->eraseArgument(p);
      }
      llvm::append_range(lower, upper);
      reduce->setOperands(lower);
      reduce.setIndexNamesAttr(ArrayAttr::get(reduce.getContext(), names));
    });
    return changed;
  }

  /// Makes `ones` the number 1, and folds what follows from it.
  static void fold(KernelOp kernel, const llvm::SetVector<Value> &ones) {
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    Value one = arith::ConstantIndexOp::create(builder, kernel.getLoc(), 1);
    for (Value extent : ones)
      extent.replaceAllUsesWith(one);
    kernel.walk([&](Operation *op) {
      if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, FloorDivOp>(op))
        return;
      builder.setInsertionPoint(op);
      SmallVector<Value> folded;
      if (failed(builder.tryFold(op, folded)) || folded.empty())
        return;
      op->replaceAllUsesWith(folded);
      op->erase();
    });
  }

  void runOnOperation() override {
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      if (kernel->hasAttr("tk.schedules"))
        continue; // its blocks name indices, and say what becomes of each
      llvm::SetVector<Value> ones;
      if (dropIndices(kernel, ones))
        fold(kernel, ones);
    }
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      for (auto [i, param] : llvm::enumerate(kernel.getParamArguments())) {
        if (!isa<RankedTensorType>(param.getType()) || kernel.getParam(i).getInout() ||
            getStrideAxes(kernel, param))
          continue;
        for (Operation *user : llvm::make_early_inc_range(param.getUsers()))
          if (auto bind = dyn_cast<BindOp>(user))
            runOnParameter(kernel, bind);
      }
  }
};

} // namespace
