//===- TkMesh.cpp - verifiers of collectives and of shardings -------------===//
#include "dialects/tk/TkMeshOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace tk;

SmallVector<MeshAxisInfo> tk::meshOf(KernelOp kernel) {
  SmallVector<MeshAxisInfo> axes;
  auto names = kernel->getAttrOfType<ArrayAttr>(meshAttr);
  auto sizes = kernel->getAttrOfType<DenseI64ArrayAttr>(meshSizesAttr);
  for (Attribute name : names ? names.getValue() : ArrayRef<Attribute>())
    axes.push_back({cast<StringAttr>(name).getValue(), 0});
  for (size_t i = 0; sizes && i < axes.size() && i < static_cast<size_t>(sizes.size()); ++i)
    axes[i].size = sizes[i];
  return axes;
}

Sharding tk::shardingOf(KernelOp kernel, unsigned number, int64_t rank) {
  Sharding sharding(rank, noShard);
  auto all = kernel->getAttrOfType<ArrayAttr>(shardingsAttr);
  if (!all || number >= all.size())
    return sharding;
  SmallVector<MeshAxisInfo> axes = meshOf(kernel);
  for (auto [dim, name] : llvm::enumerate(cast<ArrayAttr>(all[number])))
    for (auto [axis, info] : llvm::enumerate(axes))
      if (static_cast<int64_t>(dim) < rank && info.name == cast<StringAttr>(name).getValue())
        sharding[dim] = static_cast<int>(axis);
  return sharding;
}

static LogicalResult verifyNames(KernelOp kernel, Attribute list, StringRef what) {
  auto names = dyn_cast_or_null<ArrayAttr>(list);
  if (!names || !llvm::all_of(names, llvm::IsaPred<StringAttr>))
    return kernel.emitError("expected ") << what << " to be an array of strings";
  return success();
}

LogicalResult tk::verifyMesh(KernelOp kernel) {
  Attribute mesh = kernel->getAttr(meshAttr), shardings = kernel->getAttr(shardingsAttr);
  if (!mesh && !shardings)
    return success();
  if (failed(verifyNames(kernel, mesh, meshAttr)))
    return failure();
  auto all = dyn_cast_or_null<ArrayAttr>(shardings);
  const size_t expected = kernel.getParams().size() + kernel.getResultNames().size();
  if (!all || all.size() != expected)
    return kernel.emitError("expected ")
           << shardingsAttr << " to have " << expected << " lists of axes";
  for (Attribute list : all)
    if (failed(verifyNames(kernel, list, shardingsAttr)))
      return failure();
  auto sizes = kernel->getAttrOfType<DenseI64ArrayAttr>(meshSizesAttr);
  if (sizes && (sizes.size() != static_cast<int64_t>(meshOf(kernel).size()) ||
                !llvm::all_of(sizes.asArrayRef(), [](int64_t size) { return size > 0; })))
    return kernel.emitError("expected a positive size in ") << meshSizesAttr << " for each axis";
  return success();
}

bool tk::combinesOverRanks(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Prod:
  case ReduceKind::Max:
  case ReduceKind::Min:
  case ReduceKind::Any:
  case ReduceKind::All:
    return true;
  default:
    return false;
  }
}

static LogicalResult verifyAxis(Operation *op, StringRef axis) {
  auto kernel = op->getParentOfType<KernelOp>();
  if (!kernel || llvm::any_of(meshOf(kernel), [&](auto &info) { return info.name == axis; }))
    return success();
  return op->emitOpError("expected an axis of the kernel's mesh, got \"") << axis << '"';
}

static LogicalResult verifyDim(Operation *op, Value tensor, int64_t dim) {
  const int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  if (dim >= 0 && dim < rank)
    return success();
  return op->emitOpError("expected a dimension below ") << rank << ", got " << dim;
}

static LogicalResult verifyKind(Operation *op, ReduceKind kind) {
  if (combinesOverRanks(kind))
    return success();
  return op->emitOpError("expected kind sum, prod, max, min, any or all, got ")
         << stringifyReduceKind(kind);
}

static LogicalResult verifySameElements(Operation *op, Value from, Value to) {
  auto a = cast<RankedTensorType>(from.getType()), b = cast<RankedTensorType>(to.getType());
  if (a.getElementType() == b.getElementType() && a.getRank() == b.getRank())
    return success();
  return op->emitOpError("expected a result of rank ")
         << a.getRank() << " with elements " << a.getElementType() << ", got " << b;
}

LogicalResult RankOp::verify() { return verifyAxis(*this, getAxis()); }

LogicalResult AllGatherOp::verify() {
  return failure(failed(verifyAxis(*this, getAxis())) ||
                 failed(verifySameElements(*this, getTensor(), getResult())) ||
                 failed(verifyDim(*this, getTensor(), getDim())));
}

LogicalResult AllReduceOp::verify() {
  return failure(failed(verifyAxis(*this, getAxis())) || failed(verifyKind(*this, getKind())));
}

LogicalResult ReduceScatterOp::verify() {
  return failure(failed(verifyAxis(*this, getAxis())) || failed(verifyKind(*this, getKind())) ||
                 failed(verifySameElements(*this, getTensor(), getResult())) ||
                 failed(verifyDim(*this, getTensor(), getDim())));
}

LogicalResult ExchangeOp::verify() {
  if (failed(verifyAxis(*this, getAxis())) ||
      failed(verifySameElements(*this, getTensor(), getResult())) ||
      failed(verifyDim(*this, getTensor(), 0)))
    return failure();
  for (Value counts : {getSent(), getReceived()})
    if (auto type = counts ? cast<RankedTensorType>(counts.getType()) : nullptr;
        type && (type.getRank() != 1 || !type.getElementType().isInteger(32)))
      return emitOpError("expected counts of type tensor<?xi32>, got ") << type;
  return success();
}

LogicalResult AllToAllOp::verify() {
  if (failed(verifyAxis(*this, getAxis())) ||
      failed(verifySameElements(*this, getTensor(), getResult())) ||
      failed(verifyDim(*this, getTensor(), getFrom())) ||
      failed(verifyDim(*this, getTensor(), getTo())))
    return failure();
  if (getFrom() == getTo())
    return emitOpError("expected two dimensions, got ") << getFrom() << " twice";
  return success();
}
