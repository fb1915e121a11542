//===- LinalgNest.cpp - loops over tiles for one statement ----------------===//
//
// 1. The indices of the statement become loops, outermost first: over tiles where BodyAnalysis
//    tiles the index, else over single values. The results are carried through them.
// 2. Behind each loop stand the values that depend on the open indices only and are used over more:
//    reductions and expensive factors, each computed once for the tile by linalg operations into a
//    tensor with one axis for each tiled index it depends on. So a row's mean stands behind the
//    loop over rows, and a matrix product behind the loops over its tiles.
// 3. A reduction around others runs over chunks of its own indices, which are then open as well;
//    rule 2 applies inside. An online reduction corrects its accumulators between chunks.
// 4. Everything else is part of the linalg operation that uses it.
// 5. The outermost loops, as far as no value stands between them, are one scf.forall.
//
//   y[r, c] = (x[r, c] - mean(r)) * g[c]     scf.forall r
//                                              m = linalg.generic sum of x[r, :]
//                                              scf.for tiles of c
//                                                linalg.generic c: (x[r, c] - m / C) * g[c]
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/LinalgEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

SmallVector<SmallVector<unsigned>> LinalgEmitter::groupResults(ComputeOp compute,
                                                               const BodyAnalysis &analysis) {
  // A result joins the first group if its indices are the outermost ones of the nest and the loops
  // inside are over tiles, which run once even for an extent of 0.
  SmallVector<SmallVector<unsigned>> groups(1);
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    SmallVector<unsigned> indices = compute.getIndicesOf(r);
    bool joins = true;
    for (auto [position, id] : llvm::enumerate(analysis.order())) {
      bool has = llvm::is_contained(indices, id);
      joins &= has == (position < indices.size());
      joins &= has || analysis.tileOf(id) > 1;
    }
    if (joins)
      groups.front().push_back(r);
    else
      groups.push_back({r});
  }
  if (groups.front().empty())
    groups.erase(groups.begin());
  return groups;
}

LinalgEmitter::LinalgEmitter(OpBuilder &builder, const IRMapping &kernelValues, ComputeOp compute,
                             const BodyAnalysis &analysis, const PresentTerms &present,
                             const CpuMachine &machine)
    : b(builder), loc(compute.getLoc()), kernelValues(kernelValues), compute(compute),
      analysis(analysis), present(present), machine(machine), state(BodyAnalysis::maxIndices) {}

SmallVector<Value> LinalgEmitter::emit(ArrayRef<unsigned> wanted, ArrayRef<Value> destinations,
                                       Value replacedParam) {
  results.assign(wanted.begin(), wanted.end());
  outputs.assign(destinations.begin(), destinations.end());
  replaced = replacedParam;
  IndexMask used = 0;
  for (unsigned r : results)
    for (unsigned i : compute.getIndicesOf(r))
      used |= bit(i);
  for (unsigned id : analysis.order())
    if (used & bit(id))
      order.push_back(id);
  for (unsigned r : results)
    findLive(compute.getYield().getValues()[r]);
  emitParallel(countParallelLevels());
  return outputs;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Value LinalgEmitter::extentOf(unsigned id) { return kernelValues.lookup(compute.getExtents()[id]); }

Value LinalgEmitter::tileCount(unsigned id) {
  int64_t tile = analysis.tileOf(id);
  if (tile == 1)
    return extentOf(id);
  Value count = ceilDivide(extentOf(id), tile);
  bool everywhere = llvm::all_of(
      results, [&](unsigned r) { return llvm::is_contained(compute.getIndicesOf(r), id); });
  return everywhere ? count : maxOf(count, index(1));
}

void LinalgEmitter::openTile(unsigned id, Value number) {
  int64_t tile = analysis.tileOf(id);
  IndexState &own = state[id];
  if (tile == 1) {
    own.global = own.base = number;
    own.current = b.getIndexAttr(1);
    return;
  }
  own.base = multiply(number, index(tile));
  own.first = b.getIndexAttr(0);
  own.current = getAsOpFoldResult(minOf(index(tile), subtract(extentOf(id), own.base)));
}

/// The part of a result that the current iteration of the loops over `indices` computes: offsets,
/// and sizes; all of the other axes.
SmallVector<OpFoldResult> LinalgEmitter::partOf(unsigned result, IndexMask indices,
                                                SmallVector<OpFoldResult> &sizes) {
  SmallVector<OpFoldResult> offsets;
  for (unsigned i : compute.getIndicesOf(result)) {
    bool isPart = indices & bit(i);
    bool beginsThere = outputsBeginAtTile & bit(i);
    offsets.push_back(!isPart || beginsThere ? OpFoldResult(b.getIndexAttr(0))
                                             : getAsOpFoldResult(state[i].base));
    sizes.push_back(isPart || beginsThere ? state[i].current : getAsOpFoldResult(extentOf(i)));
  }
  return offsets;
}

void LinalgEmitter::storeGroup(ArrayRef<unsigned> ids, ArrayRef<unsigned> members) {
  Values roots, parts;
  SmallVector<SmallVector<OpFoldResult>> offsets, sizes;
  for (unsigned r : members) {
    roots.push_back(compute.getYield().getValues()[results[r]]);
    SmallVector<OpFoldResult> size;
    offsets.push_back(partOf(results[r], openMask(order.size()), size));
    sizes.push_back(size);
  }
  if (ids.empty()) {
    for (auto [k, r] : llvm::enumerate(members)) {
      Values position;
      for (OpFoldResult at : offsets[k])
        position.push_back(asValue(at));
      outputs[r] =
          tensor::InsertOp::create(b, loc, toStorage(eval(roots[k])), outputs[r], position);
    }
    return;
  }
  for (auto [k, r] : llvm::enumerate(members)) {
    SmallVector<bool> kept;
    for (unsigned i : compute.getIndicesOf(results[r]))
      kept.push_back(analysis.tileOf(i) > 1);
    parts.push_back(extractSlice(outputs[r], offsets[k], sizes[k], kept));
  }
  // What is replaced is not an input besides: bound to the element that the body finds there.
  auto bindReplaced = [&](Value element) {
    compute.walk([&](LoadOp load) {
      if (load.getTensor() == replaced)
        bindings[load] = element == parts[0] ? element : fromStorage(element, load.getType());
    });
  };
  if (replaced)
    bindReplaced(parts[0]);
  Values stored = emitGeneric(ids, {}, roots, parts, ids, [&](ValueRange old) {
    if (replaced)
      bindReplaced(old[0]);
    Values values;
    for (Value root : roots)
      values.push_back(toStorage(eval(root)));
    return values;
  });
  for (auto [k, r] : llvm::enumerate(members))
    outputs[r] = insertSlice(stored[k], outputs[r], offsets[k], sizes[k]);
}

void LinalgEmitter::emitStores(unsigned level) {
  SmallVector<std::pair<Ids, Ids>> groups; // ids, numbers in `results`
  for (auto [number, r] : llvm::enumerate(results)) {
    if (storeLevel(r) != level)
      continue;
    Ids ids;
    for (unsigned i : compute.getIndicesOf(r))
      if (analysis.tileOf(i) > 1)
        ids.push_back(i);
    auto it = llvm::find_if(groups, [&](auto &group) { return group.first == ids; });
    if (it == groups.end())
      groups.push_back({ids, {unsigned(number)}});
    else
      it->second.push_back(number);
  }
  for (auto &[ids, members] : groups)
    storeGroup(ids, members);
}

void LinalgEmitter::emitLevel(unsigned level) {
  IndexMask open = openMask(level);
  if (level > 0 && analysis.sequentialId() == order[level - 1]) {
    SmallVector<ScanOp> running = runningScans();
    for (ScanOp scan : llvm::reverse(running)) {
      prepare(scan.getYield().getValues()[0], open);
      updateScan(scan);
    }
  }
  for (unsigned r : results)
    prepare(compute.getYield().getValues()[r], open);
  emitStores(level);
  if (level == order.size())
    return;
  unsigned id = order[level];
  Values carried = outputs;
  SmallVector<ScanOp> scans;
  if (analysis.sequentialId() == id) {
    scans = runningScans();
    llvm::append_range(carried, startScans());
  }
  Values after = forLoop(index(0), tileCount(id), 1, carried, [&](Value number, ValueRange inside) {
    unsigned n = outputs.size();
    outputs.assign(inside.begin(), inside.begin() + n);
    for (auto [k, scan] : llvm::enumerate(scans))
      tiles[scan.getResult()].value = inside[n + k];
    openTile(id, number);
    emitLevel(level + 1);
    Values next = outputs;
    for (ScanOp scan : scans)
      next.push_back(tiles[scan.getResult()].value);
    return next;
  });
  outputs.assign(after.begin(), after.begin() + outputs.size());
}

void LinalgEmitter::emitParallel(unsigned levels) {
  IndexMask parallel = openMask(levels);
  SmallVector<OpFoldResult> counts;
  Ids looped;
  if (levels > 0) { // scalars computed once for all iterations
    for (unsigned r : results)
      prepare(compute.getYield().getValues()[r], 0);
    emitStores(0);
  }
  for (unsigned id : ArrayRef(order).take_front(levels)) {
    OpFoldResult count = getAsOpFoldResult(tileCount(id));
    if (isConstantIntValue(count, 1)) {
      openTile(id, index(0));
      continue;
    }
    counts.push_back(count);
    looped.push_back(id);
  }
  if (looped.empty())
    return emitLevel(levels);
  auto loop = scf::ForallOp::create(b, loc, counts, outputs, /*mapping=*/std::nullopt);
  SmallVector<StringRef> names;
  for (unsigned id : looped)
    names.push_back(analysis.nameOf(id));
  loop->setAttr("tk.indices", b.getStrArrayAttr(names));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  for (auto [id, number] : llvm::zip(looped, loop.getInductionVars()))
    openTile(id, number);
  SmallVector<SmallVector<OpFoldResult>> offsets, sizes;
  for (auto [r, whole] : llvm::zip(results, loop.getRegionIterArgs())) {
    SmallVector<OpFoldResult> size;
    offsets.push_back(partOf(r, parallel, size));
    sizes.push_back(size);
    outputs[sizes.size() - 1] =
        extractSlice(whole, offsets.back(), size, SmallVector<bool>(size.size(), true));
  }
  outputsBeginAtTile = parallel;
  emitLevel(levels);
  b.setInsertionPointToEnd(loop.getTerminator().getBody());
  for (auto [k, whole] : llvm::enumerate(loop.getRegionIterArgs())) {
    SmallVector<OpFoldResult> strides(sizes[k].size(), b.getIndexAttr(1));
    tensor::ParallelInsertSliceOp::create(b, loc, outputs[k], whole, offsets[k], sizes[k], strides);
  }
  outputs.assign(loop.getResults().begin(), loop.getResults().end());
}
