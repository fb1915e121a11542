//===- PackRows.cpp - pack rows that share operands -----------------------===//
//
// In grouped-query attention several query heads read the same keys and values. A loop for each
// head reads these operands again. This pass packs all rows that share the streamed operands into
// one index, so that one tile reads the operands once.
//
// 1. Find compute ops whose one reduction is a back-to-back contraction (ChainRows.h). All users
//    must be loads without padding, so the tensor is scratch and its axes may change. A padded load
//    could address a position past an axis' end, which would lie in another row after packing.
// 2. The streamed operands may use an index only by its quotient, such as `k[h / R]`. Split such an
//    index into the group and the position in the group. The position becomes one more row.
// 3. Pattern `merged-rows`: all rows become one index, with the last row running fastest, if there
//    are at most 128 rows, the number that the largest tile has. Indices of extent 1 stay.
// 4. Pattern `unit-rows`: a back-to-back contraction without any row gets a row of one element
//    (UnitRows.cpp).
// 5. Rewrite the loads of the results.
//
// The pass declines if the number of rows is unknown, or if a result depends on some of the rows
// only.
//
//   %s = tk.compute ["b", "h", "i"] in (%B, %H, %S) {.. q[b, h, i, d] .. k[b, h / R, j, d] ..}
//   .. load %s[b, h, i]
//     =>
//   %s = tk.compute ["b", "h.group", "h.i"] in (%B, %G, R * %S) {
//     .. q[b, group * R + row / S, row % S, d] .. k[b, group, j, d] ..}
//   .. load %s[b, h / R, h % R * S + i]
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/tensor/split/ChainRows.h"
#include "passes/tensor/split/UnitRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_PACKROWS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-pack-rows";

namespace {

/// A row of the new statement's one: how many values it has, and which old index it is, or is the
/// place in the group of.
struct Row {
  unsigned position;
  Value extent;
};

class RowPacking {
public:
  RowPacking(KernelOp kernel, ComputeOp compute, ChainRows chain)
      : kernel(kernel), compute(compute), chain(std::move(chain)), loc(compute.getLoc()) {}

  /// Whether there is anything to do.
  bool prepare();
  void apply();

private:
  bool isRow(unsigned position) {
    return llvm::any_of(rows, [&](const Row &row) { return row.position == position; });
  }
  bool isGrouped(unsigned position) { return chain.grouped == position; }
  void planIndices();
  void mapIndices(OpBuilder &body, ValueRange indices, IRMapping &mapping);
  void dissolveQuotients(ComputeOp packed);
  SmallVector<Value> addressOf(OpBuilder &builder, LoadOp load, unsigned result);

  KernelOp kernel;
  ComputeOp compute;
  ChainRows chain;
  Location loc;
  SmallVector<Row> rows; ///< what is packed, the fastest last
  /// The new statement's indices, and for each old position that of its index or of its group; the
  /// packed row has a place of its own.
  SmallVector<std::string> names;
  SmallVector<Value> extents;
  SmallVector<unsigned> placeOf;
  unsigned placeOfRow = 0;
};

struct PackRowsPass : tk::impl::PackRowsBase<PackRowsPass> {
  using PackRowsBase::PackRowsBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    SmallVector<ComputeOp> computes;
    getOperation()->walk([&](ComputeOp compute) { computes.push_back(compute); });
    for (ComputeOp compute : computes) {
      auto isLoaded = [](Operation *user) {
        auto load = dyn_cast<LoadOp>(user);
        return load && !load.getPad();
      };
      if (!llvm::all_of(compute->getUsers(), isLoaded))
        continue;
      auto kernel = compute->getParentOfType<KernelOp>();
      std::optional<ChainRows> chain = matchChain(kernel, compute);
      if (!chain)
        continue;
      if (chain->rows.empty() && !chain->countRows(kernel, compute))
        chain->dissolveGroups();
      if (chain->lacksRows(kernel, compute)) {
        ComputeOp made;
        patterns.run("unit-rows", [&] { made = addUnitRow(compute, *chain); });
        if (made) {
          note(made, passName, Verdict::Derived,
               "the row of " + describe(made) +
                   " is one element, so that operands are read once for all columns");
          ++numPacked;
        }
        continue;
      }
      RowPacking packing(kernel, compute, std::move(*chain));
      if (!packing.prepare())
        continue;
      patterns.run("merged-rows", [&] {
        packing.apply();
        ++numPacked;
      });
    }
  }
};

} // namespace

bool RowPacking::prepare() {
  std::optional<int64_t> count = chain.countRows(kernel, compute);
  if (!count || *count > mostSharingRows)
    return false;
  for (unsigned p = 0; p < compute.getNumIndices(); ++p) {
    if (isGrouped(p))
      rows.push_back({p, chain.groupSize});
    else if (llvm::is_contained(chain.rows, p) &&
             getSizeFact(kernel, compute.getExtents()[p]).upper.value_or(2) > 1)
      rows.push_back({p, compute.getExtents()[p]});
  }
  // A result is over all rows or over none.
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    SmallVector<unsigned> over = compute.getIndicesOf(r);
    unsigned own = llvm::count_if(over, [&](unsigned p) { return isRow(p); });
    if (own != 0 && own != rows.size())
      return false;
  }
  return chain.grouped || rows.size() > 1;
}

/// The packed row stands where the last of its parts did.
void RowPacking::planIndices() {
  std::string packed;
  for (const Row &row : rows) {
    StringRef name = cast<StringAttr>(compute.getIndexNames()[row.position]).getValue();
    packed += (packed.empty() ? "" : ".") + name.str();
  }
  placeOf.resize(compute.getNumIndices());
  for (unsigned p = 0; p < compute.getNumIndices(); ++p) {
    StringRef name = cast<StringAttr>(compute.getIndexNames()[p]).getValue();
    placeOf[p] = names.size();
    if (isGrouped(p)) {
      names.push_back((name + ".group").str());
      extents.push_back(chain.numGroups);
    } else if (!isRow(p)) {
      names.push_back(name.str());
      extents.push_back(compute.getExtents()[p]);
    }
    if (p == rows.back().position) {
      placeOfRow = names.size();
      names.push_back(packed);
      OpBuilder builder(compute);
      Value count;
      for (const Row &row : rows)
        count = count ? builder.createOrFold<arith::MulIOp>(loc, count, row.extent) : row.extent;
      extents.push_back(count);
    }
  }
}

/// The old indices in terms of the new ones.
void RowPacking::mapIndices(OpBuilder &body, ValueRange indices, IRMapping &mapping) {
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (!isRow(p))
      mapping.map(compute.getIndex(p), indices[placeOf[p]]);
  Value rest = indices[placeOfRow];
  for (auto [n, row] : llvm::enumerate(llvm::reverse(rows))) {
    Value own = rest;
    if (n + 1 < rows.size()) {
      own = FloorModOp::create(body, loc, rest.getType(), rest, row.extent);
      rest = FloorDivOp::create(body, loc, rest.getType(), rest, row.extent);
    }
    if (isGrouped(row.position)) {
      Value first = arith::MulIOp::create(body, loc, indices[placeOf[row.position]], row.extent);
      own = arith::AddIOp::create(body, loc, first, own);
    }
    mapping.map(compute.getIndex(row.position), own);
  }
}

/// (group * size + place) / size is the group.
void RowPacking::dissolveQuotients(ComputeOp packed) {
  if (!chain.grouped)
    return;
  ScalarEquality equality;
  Value group = packed.getIndex(placeOf[*chain.grouped]);
  SmallVector<FloorDivOp> quotients;
  packed.walk([&](FloorDivOp quotient) {
    auto sum = quotient.getLhs().getDefiningOp<arith::AddIOp>();
    auto first = sum ? sum.getLhs().getDefiningOp<arith::MulIOp>() : arith::MulIOp();
    if (first && first.getLhs() == group && equality.equal(first.getRhs(), quotient.getRhs()))
      quotients.push_back(quotient);
  });
  for (FloorDivOp quotient : quotients) {
    quotient.replaceAllUsesWith(group);
    quotient.erase();
  }
}

/// Where the value of `load`, from what result `result` was, is now.
SmallVector<Value> RowPacking::addressOf(OpBuilder &builder, LoadOp load, unsigned result) {
  SmallVector<Value> olds(compute.getNumIndices());
  for (auto [axis, position] : llvm::enumerate(compute.getIndicesOf(result)))
    olds[position] = load.getIndices()[axis];
  SmallVector<Value> news(names.size());
  Value packed;
  for (const Row &row : rows) {
    Value own = olds[row.position];
    if (!own)
      continue;
    if (isGrouped(row.position)) {
      news[placeOf[row.position]] =
          FloorDivOp::create(builder, loc, own.getType(), own, row.extent);
      own = FloorModOp::create(builder, loc, own.getType(), own, row.extent);
    }
    packed =
        packed ? arith::AddIOp::create(builder, loc,
                                       arith::MulIOp::create(builder, loc, packed, row.extent), own)
                     .getResult()
               : own;
  }
  news[placeOfRow] = packed; // null where the result is over no row
  for (unsigned p = 0; p < olds.size(); ++p)
    if (olds[p] && !isRow(p))
      news[placeOf[p]] = olds[p];
  llvm::erase(news, Value());
  return news;
}

void RowPacking::apply() {
  planIndices();
  OpBuilder builder(compute);
  SmallVector<SmallVector<unsigned>> over;
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    llvm::SmallSetVector<unsigned, 4> places;
    for (unsigned p : compute.getIndicesOf(r)) {
      if (!isRow(p) || isGrouped(p))
        places.insert(placeOf[p]);
      if (isRow(p))
        places.insert(placeOfRow);
    }
    over.push_back(places.takeVector());
    llvm::sort(over.back());
  }
  SmallVector<Type> types;
  SmallVector<StringRef> results;
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    types.push_back(cast<RankedTensorType>(compute.getResult(r).getType()).getElementType());
    results.push_back(cast<StringAttr>(compute.getNames()[r]).getValue());
  }
  auto packed =
      ComputeOp::create(builder, loc, SmallVector<StringRef>(names.begin(), names.end()), extents,
                        types, results, over, [&](OpBuilder &body, Location, ValueRange indices) {
                          IRMapping mapping;
                          mapIndices(body, indices, mapping);
                          for (Operation &op : *compute.getBlock())
                            body.clone(op, mapping);
                        });
  dissolveQuotients(packed);
  for (unsigned r = 0; r < compute.getNumResults(); ++r)
    for (Operation *user : llvm::make_early_inc_range(compute.getResult(r).getUsers())) {
      auto load = cast<LoadOp>(user);
      OpBuilder before(load);
      Value moved = LoadOp::create(before, load.getLoc(), packed.getResult(r),
                                   addressOf(before, load, r), load.getPad());
      load.replaceAllUsesWith(moved);
      load.erase();
    }
  note(packed, passName, Verdict::Derived,
       "'" + names[placeOfRow] + "' is one index of " + describe(packed) +
           ", whose operands are read once for all of its rows");
  compute.erase();
}
