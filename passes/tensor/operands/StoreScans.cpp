//===- StoreScans.cpp - scans along several indices -----------------------===//
//
// A block that scans holds the whole row of the scan, or steps through it. A compute op that scans
// along several indices would need a whole plane, which fits no tile if it is large.
//
// 1. The pattern matches compute ops with scans along two or more of their indices.
// 2. Scans along the last one of these indices stay.
// 3. Each other scan becomes a compute op over the indices that it depends on. A read of its result
//    replaces the scan. If its accesses are known to be in bounds only for values of other indices,
//    the compute op is over all indices.
//
//   %y = tk.compute ["r","c"] {%a = tk.scan sum "k" at r {x[k, c]}
//                              %b = tk.scan sum "k" at c {x[r, k]}
//                              %a + %b}
//     =>
//   %s = tk.compute ["r","c"] {tk.scan sum "k" at r {x[k, c]}}
//   %y = tk.compute ["r","c"] {%b = tk.scan sum "k" at c {x[r, k]}
//                              s[r, c] + %b}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/operands/MaterializeOperands.h"

#include "passes/analysis/BoundsApart.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/ScanPosition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-materialize-operands:scans";

/// The index of `compute` that `scan` runs along; null if its position is none of them.
static BlockArgument indexOf(ScanOp scan, ComputeOp compute) {
  std::optional<IndexOrMirror> position = getScanPosition(scan, compute);
  return position ? position->index : BlockArgument();
}

/// The scans along other indices than the last one that is scanned along.
static SmallVector<ScanOp> findStored(ComputeOp compute) {
  SmallVector<ScanOp> scans;
  unsigned last = 0;
  for (ScanOp scan : compute.getBlock()->getOps<ScanOp>())
    if (BlockArgument index = indexOf(scan, compute)) {
      scans.push_back(scan);
      last = std::max(last, index.getArgNumber());
    }
  llvm::erase_if(scans, [&](ScanOp scan) { return indexOf(scan, compute).getArgNumber() == last; });
  return scans;
}

/// The numbers of the indices that a statement for `scan` alone has.
static SmallVector<unsigned> indicesOfStatement(ScanOp scan, ComputeOp compute) {
  llvm::SmallDenseSet<unsigned> own = {indexOf(scan, compute).getArgNumber()};
  for (BlockArgument index : getIterationIndices(scan.getResult()))
    if (index.getOwner() == compute.getBlock())
      own.insert(index.getArgNumber());
  SmallVector<unsigned> all = llvm::to_vector(llvm::seq(compute.getNumIndices()));
  SmallVector<Value> others;
  for (unsigned n : all)
    if (!own.contains(n))
      others.push_back(compute.getExtents()[n]);
  Dependence onOthers(others);
  const bool isApart = llvm::all_of(getSlice(scan.getResult(), compute.getBlock()),
                                    [&](Operation *op) { return isInBoundsApart(op, onOthers); });
  if (isApart)
    llvm::erase_if(all, [&](unsigned n) { return !own.contains(n); });
  return all;
}

/// Values of an index have no memory as such.
static Type storedType(Type type, Builder &builder) {
  return type.isIndex() ? builder.getI64Type() : type;
}

static void store(ScanOp scan, ComputeOp compute) {
  Location loc = scan.getLoc();
  OpBuilder builder(compute);
  SmallVector<StringRef> names;
  SmallVector<Value> extents, place;
  for (unsigned n : indicesOfStatement(scan, compute)) {
    names.push_back(cast<StringAttr>(compute.getIndexNames()[n]).getValue());
    extents.push_back(compute.getExtents()[n]);
    place.push_back(compute.getIndex(n));
  }
  Type type = scan.getResult().getType(), inMemory = storedType(type, builder);
  std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".scanned").str();
  auto statement = ComputeOp::create(
      builder, loc, names, extents, ArrayRef<Type>{inMemory}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &body, Location at, ValueRange indices) {
        IRMapping mapping;
        mapping.map(place, indices);
        Value value = cloneFrom(body, scan.getResult(), compute, mapping);
        if (type != inMemory)
          value = arith::IndexCastOp::create(body, at, inMemory, value);
        YieldOp::create(body, at, value);
      });
  builder.setInsertionPoint(scan);
  Value read = LoadOp::create(builder, loc, statement->getResult(0), place, Value());
  if (type != inMemory)
    read = arith::IndexCastOp::create(builder, loc, type, read);
  note(scan, passName, Verdict::Derived,
       "a scan becomes a statement of its own: the statement scans along another index, too");
  scan.replaceAllUsesWith(read);
  scan.erase();
}

unsigned tk::storeScans(KernelOp kernel) {
  unsigned stored = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().front().getOps<ComputeOp>()))
    for (ScanOp scan : findStored(compute)) {
      store(scan, compute);
      ++stored;
    }
  return stored;
}
