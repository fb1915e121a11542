//===- DropUnitAxes.cpp - parameters without last axes of one element -----===//
//
// A matrix that is known to have one column lies in memory as a vector does. As one it is read
// along the index of its rows, a product with it is a reduction of rows or of columns, and what is
// the same for all rows of another factor is seen to be.
//
//   1. The last axis of a dense parameter goes if its extent is at most 1, it is not the only one
//      left, and each load reads it at an index of a statement that gives a result. Then the axis
//      before it is looked at. Windows keep theirs, and so do gathers and padded loads, whose
//      places on the axis may lie outside it.
//   2. The parameter's type, its extents and the loads lose it. Indices stay as they are.
//
//   tk.bind %b[%K, %N]; tk.load %b[%k, %j]
//     =>                                                                          // N <= 1
//   tk.bind %b[%K]; tk.load %b[%k]
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/StrideAxes.h"
#include "passes/tiling/SizeFacts.h"

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
