//===- RowBlocks.cpp - local kernels that run for blocks of rows ----------===//
#include "passes/mesh/RowBlocks.h"

#include "passes/machine/CostModel.h"
#include "passes/mesh/IndexUses.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tk::mesh {
namespace {

/// Goes from tensors to the compute ops that read or make them, and back, until nothing is new.
class RowSearch {
public:
  RowSearch(KernelOp local, std::string &why) : local(local), why(why) {}
  std::optional<RowBlocks> run(Value tensor);

private:
  bool refuse(const Twine &reason) {
    why = reason.str();
    return false;
  }
  bool addTensor(Value tensor);
  bool addIndex(ComputeOp compute, BlockArgument index);
  bool usesOfExtentAreRows() const;

  KernelOp local;
  std::string &why;
  RowBlocks rows;
  DenseMap<Operation *, BlockArgument> indices; ///< the row index of each compute op
};

bool RowSearch::addTensor(Value tensor) {
  if (!rows.tensors.insert(tensor.getAsOpaquePointer()).second)
    return true;
  const SmallVector<Value> extents = extentsOf(tensor);
  if (extents.empty() || !isSame(extents[0], rows.extent))
    return refuse("a tensor that is read by rows has another extent");
  if (auto compute = tensor.getDefiningOp<ComputeOp>()) {
    const unsigned result = cast<OpResult>(tensor).getResultNumber();
    if (!addIndex(compute, compute.getIndex(compute.getIndicesOf(result)[0])))
      return false;
  }
  for (OpOperand &use : tensor.getUses()) {
    auto load = dyn_cast<LoadOp>(use.getOwner());
    if (!load)
      continue; // a bind or the return
    auto compute = load->getParentOfType<ComputeOp>();
    auto index = dyn_cast<BlockArgument>(load.getIndices()[0]);
    if (!index || index.getOwner() != compute.getBlock())
      return refuse("a row of a result needs other rows of an operand");
    if (!addIndex(compute, index))
      return false;
  }
  return true;
}

bool RowSearch::addIndex(ComputeOp compute, BlockArgument index) {
  auto [known, isNew] = indices.try_emplace(compute, index);
  if (!isNew)
    return known->second == index || refuse("two indices of a statement are rows");
  if (!isSame(extentOf(index), rows.extent))
    return refuse("a statement goes through other rows");
  for (unsigned r = 0; r < compute.getNumResults(); ++r)
    if (compute.getIndicesOf(r).empty() || compute.getIndicesOf(r)[0] != index.getArgNumber())
      return refuse("the rows are not the outermost dimension of a result");
  for (Value result : compute.getResults())
    if (!addTensor(result))
      return false;
  for (OpOperand &use : index.getUses()) {
    auto load = dyn_cast<LoadOp>(use.getOwner());
    if (!load || &load.getIndicesMutable()[0] != &use)
      return refuse("a statement uses the number of a row");
    if (!addTensor(load.getTensor()))
      return false;
  }
  return true;
}

/// Whether a block may have fewer rows: nothing else has their number.
bool RowSearch::usesOfExtentAreRows() const {
  for (OpOperand &use : rows.extent.getUses()) {
    if (auto bind = dyn_cast<BindOp>(use.getOwner())) {
      if (!rows.has(bind.getTensor()) || &bind.getExtentsMutable()[0] != &use)
        return false;
      continue;
    }
    auto compute = dyn_cast<ComputeOp>(use.getOwner());
    auto row = compute ? indices.find(compute) : indices.end();
    if (row == indices.end() || use.getOperandNumber() != row->second.getArgNumber())
      return false;
  }
  return true;
}

std::optional<RowBlocks> RowSearch::run(Value tensor) {
  const SmallVector<Value> extents = extentsOf(tensor);
  auto dim = extents.empty() ? BlockArgument() : dyn_cast<BlockArgument>(extents[0]);
  if (!dim) {
    why = "the number of rows is not a dimension of the local kernel";
    return std::nullopt;
  }
  rows.extent = dim;
  if (!addTensor(tensor))
    return std::nullopt;
  for (ComputeOp compute : local.getOps<ComputeOp>())
    if (!indices.contains(compute)) {
      why = "a statement beside it does not go through the rows";
      return std::nullopt;
    }
  if (!usesOfExtentAreRows()) {
    why = "the number of rows is used for something else";
    return std::nullopt;
  }
  return rows;
}

} // namespace

std::optional<RowBlocks> rowBlocksOf(KernelOp local, Value tensor, std::string &why) {
  return RowSearch(local, why).run(tensor);
}

void BlockWork::add(ComputeOp compute, llvm::function_ref<bool(Value)> isRow) {
  double outer = elementsOf(compute.getExtents());
  for (const TensorUse &use : usesOf(compute))
    if (Value tensor = use.load.getTensor();
        isa<BlockArgument>(tensor) && seen.insert(tensor.getAsOpaquePointer()).second)
      (isRow(tensor) ? rowBytes : wholeBytes) += bytesOf(tensor);
  for (Value result : compute.getResults())
    (isRow(result) ? rowBytes : wholeBytes) += bytesOf(result);
  compute.walk([&](ReduceOp reduce) {
    if (reduce.getKind(0) != ReduceKind::Sum)
      return;
    double length = 1;
    for (Value upper : reduce.getUpper())
      length *= estimate(upper);
    const Type widest = widestOperand(reduce);
    math += costs.products(outer * length, widest ? widest : reduce.getResult(0).getType());
  });
}

double BlockWork::launch(double blocks) const {
  return cost::launch + std::max(math / blocks, costs.bytes(wholeBytes + rowBytes / blocks));
}

} // namespace tk::mesh
