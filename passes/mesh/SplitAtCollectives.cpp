//===- SplitAtCollectives.cpp - local kernels and collectives, in order ---===//
//
// A gather sends a parameter instead of a copy of it, and a result that only copies what a
// collective delivers is that.
//
// 1. A level is what runs between two rounds of collectives. Parameters, and collectives of them,
//    have level 0; a compute op has the highest level of what it reads; a collective of a computed
//    tensor makes a tensor of the next level.
//    A compute op that an exchange sends is of the next level if it reads a reduction of rows that
//    a gather of this level delivers, unless the exchange has tk.together.
// 2. A compute op that only later levels read moves there, so that it may be fused with
//    its readers.
// 3. The compute ops of a level become one local kernel (LocalKernel.cpp). A compute op without
//    reductions is computed again in each level that reads it, instead of being stored, unless it
//    is a result or a collective's operand.
// 4. The placed kernel runs, for each level, the collectives that lead to it and then its kernel.
//
//===----------------------------------------------------------------------===//
#include "passes/mesh/LocalKernel.h"
#include "passes/mesh/MeshPasses.h"

#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk {
#define GEN_PASS_DEF_SPLITATCOLLECTIVES
#include "passes/mesh/MeshPasses.h.inc"
} // namespace tk

using namespace mlir;

using namespace tk;

namespace {

bool isCollective(Operation *op) {
  return isa<AllGatherOp, AllReduceOp, ReduceScatterOp, AllToAllOp, ExchangeOp>(op);
}

/// The tensors that an operation, its body included, reads.
SmallVector<Value> tensorsOf(Operation *op) {
  SmallVector<Value> tensors;
  for (Value input : getInputs(op))
    if (isa<RankedTensorType>(input.getType()))
      tensors.push_back(input);
  return tensors;
}

/// The compute ops, collectives or returns at the kernel's level that read a tensor.
llvm::SetVector<Operation *> readersOf(Value tensor, Block *block) {
  llvm::SetVector<Operation *> readers;
  for (Operation *user : tensor.getUsers())
    readers.insert(block->findAncestorOpInBlock(*user));
  return readers;
}

class Splitter {
public:
  explicit Splitter(KernelOp kernel)
      : kernel(kernel), block(&kernel.getBody().front()), builder(kernel.getContext()) {}
  void run();

private:
  bool isOverwritten(BlockArgument tensor);
  void leaveOutCopies();
  void setLevels();
  bool waitsForGather(Operation *op, unsigned level);
  void sink();
  bool isRepeated(Operation *compute) const;
  void need(Value tensor, unsigned level, mesh::LocalPart &part);
  mesh::LocalPart partOf(unsigned level, const llvm::SetVector<Value> &demanded);
  std::string nameOfPart(unsigned number);

  KernelOp kernel;
  Block *block;
  OpBuilder builder;
  llvm::MapVector<Operation *, unsigned> levels; ///< of compute ops and of collectives' results
  llvm::DenseSet<Operation *> pinned;            ///< stay in the level of the gather that they read
  unsigned last = 0;
};

} // namespace

void Splitter::setLevels() {
  for (Operation &op : *block) {
    if (!isa<ComputeOp>(op) && !isCollective(&op))
      continue;
    unsigned level = 0;
    for (Value tensor : tensorsOf(&op))
      if (Operation *source = tensor.getDefiningOp())
        level = std::max(level, levels.lookup(source) +
                                    (isCollective(&op) && isa<ComputeOp>(source) ? 1 : 0));
    if (isa<ComputeOp>(op) && waitsForGather(&op, level))
      ++level;
    levels[&op] = level;
    last = std::max(last, level);
  }
}

/// Whether what an exchange sends is computed from the result of a reduction over gathered rows.
/// Both then are kernels of their own, and each may run beside its collective.
bool Splitter::waitsForGather(Operation *op, unsigned level) {
  const bool isSent = llvm::any_of(op->getUsers(), [](Operation *user) {
    auto exchange = dyn_cast<ExchangeOp>(user);
    return exchange && !exchange.getSent() && !exchange->hasAttr(mesh::togetherAttr);
  });
  if (!isSent)
    return false;
  llvm::SetVector<Operation *> sources;
  sources.insert(op);
  bool isGathered = false;
  for (size_t i = 0; i < sources.size(); ++i) // grows
    for (Value tensor : tensorsOf(sources[i])) {
      Operation *source = tensor.getDefiningOp();
      if (source && levels.lookup(source) == level) {
        isGathered |= i > 0 && isa<AllGatherOp>(source);
        if (isa<ComputeOp>(source))
          sources.insert(source);
      }
    }
  auto reduces = [](Operation *source) {
    return source->walk([](ReduceOp) { return WalkResult::interrupt(); }).wasInterrupted();
  };
  if (!isGathered || llvm::none_of(llvm::drop_begin(sources), reduces))
    return false;
  pinned.insert(sources.begin() + 1, sources.end());
  return true;
}

void Splitter::sink() {
  for (Operation &op : llvm::reverse(*block)) {
    if (!isa<ComputeOp>(op) || pinned.contains(&op))
      continue;
    unsigned least = ~0U;
    for (Value result : op.getResults())
      for (Operation *reader : readersOf(result, block))
        least = std::min(least, isa<ComputeOp>(reader) ? levels[reader] : levels[&op]);
    if (least != ~0U)
      levels[&op] = std::max(levels[&op], least);
  }
}

/// Whether a compute op is computed in each level that reads it.
bool Splitter::isRepeated(Operation *compute) const {
  bool isCheap = true;
  compute->walk([&](Operation *op) { isCheap &= !isa<ReduceOp, ScanOp>(op); });
  if (!isCheap)
    return false;
  for (Value result : compute->getResults())
    for (Operation *reader : readersOf(result, block))
      if (!isa<ComputeOp>(reader))
        return false;
  return true;
}

/// Adds a tensor that a level reads: as what it computes, or as an input.
void Splitter::need(Value tensor, unsigned level, mesh::LocalPart &part) {
  Operation *source = tensor.getDefiningOp();
  const bool isHere =
      source && isa<ComputeOp>(source) && (levels.lookup(source) == level || isRepeated(source));
  if (!isHere) {
    part.inputs.insert(tensor);
    return;
  }
  if (part.computes.contains(source))
    return;
  for (Value input : tensorsOf(source))
    need(input, level, part);
  part.computes.insert(source);
}

/// The part of a level, of which later levels read `demanded`, too.
mesh::LocalPart Splitter::partOf(unsigned level, const llvm::SetVector<Value> &demanded) {
  mesh::LocalPart part;
  for (auto [op, own] : levels) {
    if (!isa<ComputeOp>(op) || own != level)
      continue;
    for (Value result : op->getResults())
      if (demanded.contains(result) ||
          llvm::any_of(readersOf(result, block),
                       [](Operation *reader) { return !isa<ComputeOp>(reader); }))
        part.results.insert(result);
  }
  for (Value result : part.results)
    need(result, level, part);
  return part;
}

std::string Splitter::nameOfPart(unsigned number) {
  auto module = kernel->getParentOfType<ModuleOp>();
  std::string name = (kernel.getSymName() + "_" + Twine(number)).str();
  while (module.lookupSymbol(name))
    name += "_";
  return name;
}

/// The tensor whose element at its own indices each element of `compute` is, but for conversions to
/// a wider type and back; null if there is none, or another compute op makes it of more.
static Value copiedBy(ComputeOp compute) {
  if (compute.getNumResults() != 1 || compute.getResultIndices())
    return {};
  Type type = getElementTypeOrSelf(compute.getResult(0).getType());
  ComputeOp at = compute;
  Value value = compute.getYield().getValues()[0];
  while (value) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(op)) {
      value = op->getOperand(0);
      // In another type of no more bits, an element may be another number.
      if (value.getType() != type &&
          value.getType().getIntOrFloatBitWidth() <= type.getIntOrFloatBitWidth())
        return {};
      continue;
    }
    auto load = dyn_cast_or_null<LoadOp>(op);
    if (!load || load.getPad() || !llvm::equal(load.getIndices(), at.getBlock()->getArguments()))
      return {};
    Value tensor = load.getTensor();
    at = tensor.getDefiningOp<ComputeOp>();
    if (!at)
      return tensor.getType() == compute.getResult(0).getType() ? tensor : Value();
    if (at.getNumResults() != 1 || at.getResultIndices())
      return {};
    value = at.getYield().getValues()[0];
  }
  return {};
}

bool Splitter::isOverwritten(BlockArgument tensor) {
  for (auto [param, argument] : llvm::enumerate(kernel.getParamArguments()))
    if (argument == tensor)
      return kernel.getParam(param).getInout();
  return true;
}

/// What a collective delivers is the result itself where nothing is left to compute, and a
/// parameter is what it sends: a launch would copy it.
void Splitter::leaveOutCopies() {
  llvm::SmallSetVector<ComputeOp, 4> copies;
  for (auto gather : block->getOps<AllGatherOp>()) {
    auto compute = gather->getOperand(0).getDefiningOp<ComputeOp>();
    auto sent = compute ? dyn_cast_or_null<BlockArgument>(copiedBy(compute)) : BlockArgument();
    if (!sent || isOverwritten(sent))
      continue;
    gather->setOperand(0, sent);
    copies.insert(compute);
  }
  Operation *end = block->getTerminator();
  for (OpOperand &result : end->getOpOperands()) {
    auto compute = result.get().getDefiningOp<ComputeOp>();
    Value tensor = compute ? copiedBy(compute) : Value();
    Operation *source = tensor ? tensor.getDefiningOp() : nullptr;
    if (!source || !isa<AllGatherOp, AllReduceOp, ReduceScatterOp, AllToAllOp>(source) ||
        llvm::is_contained(end->getOperands(), tensor))
      continue;
    result.set(tensor);
    copies.insert(compute);
  }
  for (ComputeOp compute : copies)
    if (compute->use_empty())
      compute->erase();
}

void Splitter::run() {
  leaveOutCopies();
  setLevels();
  sink();
  Operation *end = block->getTerminator();
  SmallVector<Operation *> computes;
  for (auto [op, level] : levels)
    if (isa<ComputeOp>(op))
      computes.push_back(op);
  SmallVector<mesh::LocalPart> parts(last + 1);
  llvm::SetVector<Value> demanded;
  for (unsigned level = last + 1; level-- > 0;) {
    parts[level] = partOf(level, demanded);
    demanded.insert(parts[level].inputs.begin(), parts[level].inputs.end());
  }
  builder.setInsertionPoint(end);
  unsigned number = 0;
  SmallVector<std::pair<Value, Value>> launched;
  for (unsigned level = 0; level <= last; ++level) {
    for (auto [op, own] : levels)
      if (isCollective(op) && own == level)
        op->moveBefore(end);
    if (parts[level].results.empty())
      continue;
    LaunchOp launch = mesh::outline(parts[level], kernel, nameOfPart(++number), builder);
    for (auto [result, made] : llvm::zip(parts[level].results, launch.getResults()))
      launched.emplace_back(result, made);
  }
  // Local kernels hold copies of the compute ops, which go once all of them are made.
  for (auto [result, made] : launched)
    result.replaceUsesWithIf(made, [](OpOperand &use) {
      return isa<LaunchOp, ReturnOp>(use.getOwner()) || isCollective(use.getOwner());
    });
  for (Operation *op : llvm::reverse(computes))
    op->erase();
}

LogicalResult tk::splitAtCollectives(KernelOp kernel) {
  Splitter(kernel).run();
  return success();
}

namespace {
struct SplitAtCollectivesPass : tk::impl::SplitAtCollectivesBase<SplitAtCollectivesPass> {
  void runOnOperation() override {
    for (KernelOp kernel : llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      if (kernel->hasAttr(placedAttr) && failed(splitAtCollectives(kernel)))
        return signalPassFailure();
  }
};
} // namespace
