//===- BodyAnalysis.cpp - what a statement's values depend on -------------===//
#include "passes/lowering/cpu/BodyAnalysis.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

int64_t tk::cpu::staticExtent(Value lower, Value upper) {
  APInt lo, hi;
  if (!matchPattern(upper, m_ConstantInt(&hi)))
    return -1;
  if (!lower)
    return hi.getSExtValue();
  if (!matchPattern(lower, m_ConstantInt(&lo)))
    return -1;
  return std::max<int64_t>(0, hi.getSExtValue() - lo.getSExtValue());
}

//===----------------------------------------------------------------------===//
// Index numbers and dependences
//===----------------------------------------------------------------------===//

FailureOr<BodyAnalysis> BodyAnalysis::create(ComputeOp compute, const CpuMachine &machine) {
  BodyAnalysis analysis;
  analysis.compute = compute;
  analysis.machine = machine;
  for (auto [arg, name] : llvm::zip(compute.getBlock()->getArguments(),
                                    compute.getIndexNames().getAsValueRange<StringAttr>()))
    analysis.addIndex(arg, name);
  analysis.number(*compute.getBlock());
  if (analysis.count > maxIndices) {
    compute.emitError("not supported on the CPU: a statement with ")
        << analysis.count << " indices after fusion, at most " << maxIndices << " are";
    return failure();
  }
  analysis.tiles.assign(analysis.count, 1);
  for (BlockArgument arg : compute.getBlock()->getArguments())
    analysis.masks[arg] = bit(analysis.ids[arg]);
  analysis.computeMasks(*compute.getBlock());
  analysis.findScans();
  analysis.findContractions();
  analysis.chooseTiles();
  return analysis;
}

void BodyAnalysis::addIndex(Value index, StringRef name) {
  ids[index] = count++;
  names.push_back(name);
}

void BodyAnalysis::number(Block &block) {
  for (Operation &op : block) {
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      reduces.push_back(reduce);
      for (auto [i, name] : llvm::enumerate(reduce.getIndexNames().getAsValueRange<StringAttr>()))
        addIndex(reduce.getIndex(i), name);
      if (reduce.isOnline()) {
        runningIds[reduce] = count++;
        names.push_back("");
      }
    } else if (auto scan = dyn_cast<ScanOp>(op)) {
      addIndex(scan.getBlock()->getArgument(0), scan.getIndexName());
    }
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        number(inner);
  }
}

IndexMask BodyAnalysis::ownMask(ReduceOp reduce) const {
  IndexMask own = 0;
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i)
    own |= bit(ids.lookup(reduce.getIndex(i)));
  if (auto it = runningIds.find(reduce); it != runningIds.end())
    own |= bit(it->second);
  return own;
}

void BodyAnalysis::computeReduceMask(ReduceOp reduce) {
  IndexMask bounds = 0;
  for (Value bound :
       llvm::concat<Value>(llvm::to_vector(reduce.getLower()), llvm::to_vector(reduce.getUpper())))
    bounds |= maskOf(bound);
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i)
    masks[reduce.getIndex(i)] = bit(ids[reduce.getIndex(i)]);
  // The masks of running values grow with the terms before them; the body is in dominance order,
  // but a running value may be used before its term in the text, hence the repetition.
  unsigned n = reduce.getNumAccumulators();
  SmallVector<IndexMask> accumulators(n, bounds);
  for (unsigned round = 0; round < n; ++round) {
    for (unsigned k = 0; k + 1 < n; ++k)
      masks[reduce.getRunning(k)] = accumulators[k] | bit(runningIds[reduce]);
    computeMasks(*reduce.getBlock());
    if (!reduce.getRescale().empty()) {
      Block &rescale = reduce.getRescale().front();
      for (unsigned k = 0; k + 1 < n; ++k)
        for (unsigned which : {k, k + n - 1})
          masks[rescale.getArgument(which)] = accumulators[k] | bit(runningIds[reduce]);
      computeMasks(rescale);
    }
    for (unsigned k = 0; k < n; ++k) {
      accumulators[k] |= maskOf(reduce.getYield().getValues()[k]) & ~ownMask(reduce);
      if (k > 0)
        accumulators[k] |= maskOf(reduce.getRescale().front().getTerminator()->getOperand(k - 1)) &
                           ~ownMask(reduce);
    }
  }
  for (unsigned k = 0; k < n; ++k)
    masks[reduce.getResult(k)] = accumulators[k];
}

void BodyAnalysis::computeMasks(Block &block) {
  for (Operation &op : block) {
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      computeReduceMask(reduce);
      continue;
    }
    IndexMask mask = 0;
    for (Value operand : op.getOperands())
      mask |= maskOf(operand);
    if (auto scan = dyn_cast<ScanOp>(op)) {
      BlockArgument index = scan.getBlock()->getArgument(0);
      masks[index] = bit(ids[index]);
      computeMasks(*scan.getBlock());
      mask |= maskOf(scan.getYield().getValues()[0]) & ~bit(ids[index]);
    }
    for (Value result : op.getResults())
      masks[result] = mask;
  }
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

void BodyAnalysis::findScans() {
  for (ScanOp scan : compute.getBlock()->getOps<ScanOp>()) {
    auto position = dyn_cast<BlockArgument>(scan.getPosition());
    if (!position || position.getOwner() != compute.getBlock())
      continue;
    unsigned id = ids[position];
    IndexMask others =
        maskOf(scan.getLower()) | maskOf(scan.getUpper()) | maskOf(scan.getYield().getValues()[0]);
    if ((others & bit(id)) || (sequential && *sequential != id))
      continue;
    // A term with reductions inside would need buffers along the scanned index.
    if (!scan.getBlock()->getOps<ReduceOp>().empty() || !scan.getBlock()->getOps<ScanOp>().empty())
      continue;
    sequential = id;
    runningScans.insert(scan);
  }
}

//===----------------------------------------------------------------------===//
// Products, tiles, buffers
//===----------------------------------------------------------------------===//

void BodyAnalysis::findContractions() {
  for (ReduceOp reduce : reduces)
    for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k)
      if (reduce.getKind(k) == ReduceKind::Sum)
        addContraction(reduce, k);
}

void BodyAnalysis::addContraction(ReduceOp reduce, unsigned k) {
  Operation *product = reduce.getYield().getValues()[k].getDefiningOp();
  if (!product || !isa<arith::MulFOp, arith::MulIOp>(product) ||
      product->getBlock() != reduce.getBlock())
    return;
  Type type = product->getResult(0).getType();
  if (!type.isF32() && !type.isF64() && !type.isInteger(32))
    return;
  IndexMask indices = 0;
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i)
    indices |= bit(ids[reduce.getIndex(i)]);
  IndexMask real = ~IndexMask(0);
  for (auto &[op, id] : runningIds)
    real &= ~bit(id);
  if (sequential)
    real &= ~bit(*sequential);
  Value a = product->getOperand(0), b = product->getOperand(1);
  IndexMask maskA = maskOf(a) & real, maskB = maskOf(b) & real;
  if ((maskA & indices) != indices || (maskB & indices) != indices)
    return;
  IndexMask onlyA = maskA & ~maskB, onlyB = maskB & ~maskA;
  if (!onlyA || !onlyB)
    return;
  unsigned idA = 63 - llvm::countl_zero(onlyA), idB = 63 - llvm::countl_zero(onlyB);
  Contraction contraction{a, b, idA, idB};
  if (idA > idB)
    contraction = {b, a, idB, idA};
  contractions.insert({{reduce, k}, contraction});
}

void BodyAnalysis::chooseTiles() {
  unsigned numIndices = compute.getNumIndices();
  // More shared indices go further out, so that a value over few indices is stored once.
  SmallVector<unsigned> uses(numIndices, 0);
  for (unsigned r = 0; r < compute.getNumResults(); ++r)
    for (unsigned i : compute.getIndicesOf(r))
      ++uses[i];
  loopOrder = llvm::to_vector(llvm::seq<unsigned>(0, numIndices));
  llvm::sort(loopOrder, [&](unsigned a, unsigned b) {
    if (sequential && (a == *sequential) != (b == *sequential))
      return b == *sequential;
    return std::pair(-int(uses[a]), a) < std::pair(-int(uses[b]), b);
  });

  for (auto &[key, contraction] : contractions) {
    tiles[contraction.rowId] = std::max(tiles[contraction.rowId], machine.rowTile);
    bool innerColumn = contraction.columnId >= numIndices;
    tiles[contraction.columnId] =
        std::max(tiles[contraction.columnId], innerColumn ? machine.keyTile : machine.columnTile);
  }
  for (unsigned i = 0; i < numIndices; ++i) {
    if (tiles[i] == 1)
      continue;
    int64_t extent = staticExtent({}, compute.getExtents()[i]);
    int64_t unit = machine.registerVectors * machine.vectorBytes / 4;
    if (extent > 0)
      tiles[i] = std::min<int64_t>(tiles[i], llvm::alignTo(extent, unit));
  }
  if (contractions.empty() && numIndices > 0) {
    // A scan along the innermost index runs row by row, one along another runs all columns at once.
    unsigned last = numIndices - 1;
    if (!sequential || *sequential != last)
      tiles[last] = machine.vectorTile;
  }
  chooseChunks();
  keepConsistentContractions();
  bufferExpensiveFactors();
}

void BodyAnalysis::chooseChunks() {
  // Innermost first: a chunked reduction is itself a buffered value of those around it.
  for (ReduceOp reduce : llvm::reverse(reduces)) {
    bool hasProduct = false, inner = false;
    for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k)
      hasProduct |= contractions.contains({reduce, k});
    IndexMask own = ownMask(reduce);
    reduce.getBody().walk([&](Operation *op) {
      if (isa<ReduceOp, ScanOp>(op))
        for (Value result : op->getResults())
          inner |= (maskOf(result) & own) != 0;
    });
    if (!hasProduct && !inner && !reduce.isOnline())
      continue;
    chunked.insert(reduce);
    unsigned n = reduce.getNumIndices();
    for (unsigned i = 0; i < n; ++i) {
      unsigned id = ids[reduce.getIndex(i)];
      bool last = i + 1 == n;
      if (tiles[id] > 1)
        continue; // a column index of a product inside
      if (hasProduct && n > 1)
        tiles[id] = i == 0 ? 32 : n == 2 ? 8 : 4;
      else if (last)
        tiles[id] = hasProduct ? machine.depthTile : inner ? 64 : machine.onlineTile;
    }
  }
}

void BodyAnalysis::keepConsistentContractions() {
  // A product needs exactly one tiled row and one tiled column index, and bounds that vary with at
  // most one of the two.
  auto consistent = [&](ReduceOp reduce, const Contraction &contraction) {
    IndexMask own = ownMask(reduce);
    if (tiledIds(maskOf(contraction.row) & ~own) != SmallVector<unsigned>{contraction.rowId} ||
        tiledIds(maskOf(contraction.column) & ~own) != SmallVector<unsigned>{contraction.columnId})
      return false;
    IndexMask bounds = 0;
    for (unsigned i = 0; i < reduce.getNumIndices(); ++i)
      bounds |= maskOf(reduce.getLower()[i]) | maskOf(reduce.getUpper()[i]);
    SmallVector<unsigned> varying = tiledIds(bounds);
    return varying.empty() || varying == SmallVector<unsigned>{contraction.rowId} ||
           varying == SmallVector<unsigned>{contraction.columnId};
  };
  contractions.remove_if(
      [&](auto &entry) { return !consistent(cast<ReduceOp>(entry.first.first), entry.second); });
}

static bool isExpensive(Operation *op) {
  return isa<ExpDiffOp, RandOp, math::ExpOp, math::Exp2Op, math::ExpM1Op, math::TanhOp, math::ErfOp,
             math::LogOp, math::Log2Op, math::Log1pOp, math::PowFOp, math::SinOp, math::CosOp,
             DivOrZeroOp>(op);
}

void BodyAnalysis::bufferExpensiveFactors() {
  for (auto &[key, contraction] : contractions) {
    IndexMask own = ownMask(cast<ReduceOp>(key.first));
    SmallVector<Value> worklist = {contraction.row, contraction.column};
    DenseSet<Value> seen;
    while (!worklist.empty()) {
      Value value = worklist.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!op || !seen.insert(value).second || !compute->isProperAncestor(op) ||
          isa<ReduceOp, ScanOp>(op))
        continue;
      if (isExpensive(op) && (maskOf(value) & own)) {
        buffered.insert(value);
        continue;
      }
      llvm::append_range(worklist, op->getOperands());
    }
  }
}

bool BodyAnalysis::isBuffered(Value value) const {
  return buffered.contains(value) || isa_and_nonnull<ReduceOp, ScanOp>(value.getDefiningOp());
}

SmallVector<unsigned> BodyAnalysis::tiledIds(IndexMask mask) const {
  SmallVector<unsigned> result;
  for (unsigned id = 0; id < count; ++id)
    if ((mask & bit(id)) && tiles[id] > 1)
      result.push_back(id);
  return result;
}

const Contraction *BodyAnalysis::contractionOf(ReduceOp reduce, unsigned k) const {
  auto it = contractions.find({reduce, k});
  return it == contractions.end() ? nullptr : &it->second;
}
