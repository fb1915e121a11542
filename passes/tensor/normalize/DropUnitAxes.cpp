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
//   tk.bind %b[%K, %N]; tk.load %b[%k, %j]
//     =>                                                                          // N <= 1
//   tk.bind %b[%K]; tk.load %b[%k]
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/analysis/StrideAxes.h"

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

  void runOnOperation() override {
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
