//===- PlaceResults.cpp - copies of results that cannot be in place -------===//
//
// A launch writes a returned value straight to the caller's buffer. The buffer of an `inout`
// parameter still holds old elements while the launch runs, so the write may destroy elements that
// are read later.
//
// 1. Move compute ops that read old elements of an `inout` parameter before the one that replaces
//    these, if they do not need its results.
// 2. Keep a returned value as it is if it is a result of a compute op and is returned once.
// 3. If the value replaces a parameter, two more conditions hold. No later compute op reads the
//    parameter. The value's own compute op reads only the element that it writes.
// 4. Mark a compute op `tk.in_place` if it reads the parameter that it replaces, because two of its
//    buffers are then one.
// 5. For any other value add a compute op at the end of the kernel that copies the value. The
//    original is then in scratch memory. If the value is a parameter that another result replaces,
//    copy it to scratch memory first.
//
//   %y = tk.compute ["i"] { x[i - 1] + x[i] }       tk.return %y      // replaces x
//     =>
//   %y = tk.compute ["i"] { x[i - 1] + x[i] }
//   %x = tk.compute ["i"] { y[i] }                  tk.return %x
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/Passes.h"

#include "dialects/tk/TkDialect.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_PLACERESULTS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

namespace {

/// Is result `r` over all indices of its statement, in order?
bool coversAllIndices(ComputeOp compute, unsigned r) {
  SmallVector<unsigned> positions = compute.getIndicesOf(r);
  if (positions.size() != compute.getNumIndices())
    return false;
  for (auto [n, position] : llvm::enumerate(positions))
    if (n != position)
      return false;
  return true;
}

/// May `value` overwrite `param` while its statement runs, and whatever comes after it?
bool mayReplace(OpResult value, Value param) {
  auto compute = value.getDefiningOp<ComputeOp>();
  for (Operation *user : param.getUsers()) {
    if (isa<BindOp, ReturnOp>(user))
      continue;
    auto reader = dyn_cast<ComputeOp>(user);
    for (Operation *op = user; op && !reader; op = op->getParentOp())
      reader = dyn_cast<ComputeOp>(op);
    if (reader && reader != compute && reader->isBeforeInBlock(compute))
      continue;
    auto load = dyn_cast<LoadOp>(user);
    if (reader != compute || !load || load.getPad() ||
        !coversAllIndices(compute, value.getResultNumber()) ||
        !llvm::equal(load.getIndices(), compute.getBlock()->getArguments()))
      return false;
  }
  return true;
}

/// The statement of `value`; null if it has none.
ComputeOp statementOf(Value value) {
  auto result = dyn_cast<OpResult>(value);
  return result ? dyn_cast<ComputeOp>(result.getOwner()) : ComputeOp();
}

/// Does `reader` replace a parameter that what stands from `from` on up to it reads?
bool replacesReadBetween(KernelOp kernel, ComputeOp reader, ComputeOp from) {
  unsigned next = kernel.getResultNames().size();
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments())) {
    if (!kernel.getParam(i).getInout() ||
        statementOf(kernel.getReturn().getResults()[next++]) != reader)
      continue;
    for (Operation *user : param.getUsers()) {
      Operation *around = reader->getBlock()->findAncestorOpInBlock(*user);
      if (isa<ComputeOp>(around) && around != reader && !around->isBeforeInBlock(from) &&
          around->isBeforeInBlock(reader))
        return true;
    }
  }
  return false;
}

/// `reader` and what it needs of the operations behind `writer`, in order.
SmallVector<Operation *> neededBehind(ComputeOp reader, ComputeOp writer) {
  llvm::SetVector<Operation *> needed;
  needed.insert(reader);
  for (size_t n = 0; n < needed.size(); ++n)
    for (Value input : getInputs(needed[n])) {
      Operation *op = input.getDefiningOp();
      if (op && op->getBlock() == writer->getBlock() && writer->isBeforeInBlock(op))
        needed.insert(op);
    }
  SmallVector<Operation *> inOrder = needed.takeVector();
  llvm::sort(inOrder, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return inOrder;
}

/// Moves `reader`, which needs nothing of `writer`, before it, with what it needs, if none of these
/// replaces a parameter that others read before.
void moveBefore(KernelOp kernel, ComputeOp reader, ComputeOp writer) {
  SmallVector<Operation *> needed = neededBehind(reader, writer);
  bool replaces = llvm::any_of(needed, [&](Operation *op) {
    auto compute = dyn_cast<ComputeOp>(op);
    return compute && replacesReadBetween(kernel, compute, writer);
  });
  if (replaces)
    return;
  for (Operation *op : needed)
    op->moveBefore(writer);
}

/// Lets statements that read the old elements of a parameter come before the one that replaces
/// them.
void readBeforeReplacing(KernelOp kernel) {
  unsigned next = kernel.getResultNames().size();
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments())) {
    if (!kernel.getParam(i).getInout())
      continue;
    ComputeOp writer = statementOf(kernel.getReturn().getResults()[next++]);
    if (!writer)
      continue;
    llvm::SetVector<ComputeOp> readers;
    for (Operation *user : param.getUsers())
      if (auto reader = dyn_cast<ComputeOp>(writer->getBlock()->findAncestorOpInBlock(*user));
          reader && writer->isBeforeInBlock(reader))
        readers.insert(reader);
    Dependence onResult(writer->getResults());
    for (ComputeOp reader : readers)
      if (writer->isBeforeInBlock(reader) && // else it moved with what needs it
          !llvm::any_of(getInputs(reader), [&](Value input) { return onResult.on(input); }))
        moveBefore(kernel, reader, writer);
  }
}

struct PlaceResults : tk::impl::PlaceResultsBase<PlaceResults> {
  /// That of the plan.
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<gpu::TkGpuDialect>();
  }

  /// A statement at the end of the kernel whose result is `value`, element by element.
  Value copyOf(KernelOp kernel, Value value, StringRef name) {
    OpBuilder builder(kernel.getReturn());
    SmallVector<std::string> names;
    SmallVector<Value> extents = getExtents(kernel, value);
    for (unsigned axis = 0; axis < extents.size(); ++axis)
      names.push_back("i" + std::to_string(axis));
    auto type = cast<RankedTensorType>(value.getType());
    Location loc = isa<BlockArgument>(value) ? kernel.getReturn().getLoc() : value.getLoc();
    auto copy = ComputeOp::create(
        builder, loc, llvm::to_vector_of<StringRef>(names), extents,
        ArrayRef<Type>{type.getElementType()}, ArrayRef<StringRef>{name},
        ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &body, Location at, ValueRange indices) {
          Value element = LoadOp::create(body, at, value, indices, Value());
          YieldOp::create(body, at, ValueRange{element});
        });
    ++numCopied;
    return copy.getResult(0);
  }

  void runOnKernel(KernelOp kernel) {
    ReturnOp ret = kernel.getReturn();
    unsigned numResults = kernel.getResultNames().size();
    SmallVector<std::pair<Value, StringRef>> places;
    for (unsigned r = 0; r < numResults; ++r)
      places.emplace_back(Value(), cast<StringAttr>(kernel.getResultNames()[r]).getValue());
    for (auto [i, param] : llvm::enumerate(kernel.getParamArguments()))
      if (kernel.getParam(i).getInout())
        places.emplace_back(param, kernel.getParam(i).getName());
    llvm::DenseSet<Value> taken;
    SmallVector<unsigned> copies;
    for (auto [n, place] : llvm::enumerate(places)) {
      Value value = ret.getResults()[n], param = place.first;
      if (param && value == param)
        continue;
      auto result = dyn_cast<OpResult>(value);
      bool direct = result && isa<ComputeOp>(result.getOwner()) && !taken.contains(value) &&
                    (!param || mayReplace(result, param));
      if (!direct) {
        copies.push_back(n);
        continue;
      }
      taken.insert(value);
      if (param && llvm::any_of(param.getUsers(), [&](Operation *user) {
            return result.getOwner()->isProperAncestor(user);
          }))
        gpu::changePlan(result.getOwner(), [](gpu::KernelPlan &plan) { plan.inPlace = true; });
    }
    // A copy may read a parameter that another copy replaces: those that read come first, by way
    // of scratch memory.
    SmallVector<Value> sources;
    for (unsigned n : copies) {
      Value value = ret.getResults()[n];
      bool replaced = isa<BlockArgument>(value) &&
                      llvm::any_of(places, [&](auto &place) { return place.first == value; });
      sources.push_back(replaced ? copyOf(kernel, value, places[n].second) : value);
    }
    for (auto [n, source] : llvm::zip(copies, sources))
      ret->setOperand(n, copyOf(kernel, source, places[n].second));
  }

  void runOnOperation() override {
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      readBeforeReplacing(kernel);
      runOnKernel(kernel);
    }
  }
};

} // namespace
