//===- Pipeline.cpp - the passes of tk, in order --------------------------===//
#include "compiler/Pipeline.h"

#ifdef TK_HAS_CPU
#include "compiler/target/cpu/CpuPipeline.h"
#endif
#include "passes/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

using namespace mlir;

namespace tk {

llvm::ArrayRef<PassRow> passTable() {
  static const PassRow rows[] = {
      {"tk-collapse-axes", Stage::Fused, "fusion", "",
       "statements are as they were written: later ones have indices of several"},
      {"tk-simplify", Stage::Fused, "", "", "equal expressions become one before costs are judged"},
      {"tk-divide-indices", Stage::Fused, "fusion", "",
       "what groups of a row are reduced to is then read over the row's own indices"},
      {"tk-separate-reductions", Stage::Fused, "fusion", "",
       "what a statement reduces for only some of its indices is then decided as if it had a name"},
      {"tk-fuse-producers", Stage::Fused, "fusion", "",
       "statements are inlined into those that read them"},
      {"tk-simplify", Stage::Fused, "", "", "inlining made equal reductions and movable factors"},
      {"tk-split-reductions", Stage::Fused, "fusion", "",
       "long reductions with few results get parallel parts, which may merge"},
      {"tk-merge-computes", Stage::Fused, "fusion", "",
       "statements over the same indices share one launch"},
      {"tk-simplify", Stage::Fused, "", "", "merged statements share reductions"},
      {"tk-group-rows", Stage::Fused, "fusion", "",
       "products stand in each other's terms; what follows sees rows that gather the same"},
      {"tk-restrict-ranges", Stage::Fused, "fusion", "",
       "masks become bounds while reductions are still separate"},
      {"tk-online-reductions", Stage::Fused, "fusion", "",
       "reductions that depend on one another become one loop"},
      {"tk-simplify", Stage::Fused, "", "", "what the derivation left over"},
      {"tk-split-significands", Stage::Fused, "", "",
       "products are whole, and what stores a factor anew would be inlined again before"},
      {"tk-split-contractions", Stage::Fused, "splitting", "",
       "once all else has been merged: products with too few tiles for the machine"},
      {"tk-split-chains", Stage::Fused, "splitting", "",
       "once reductions are carried together: few rows over a long range"},
      {"tk-pack-rows", Stage::Fused, "fusion", "",
       "rows that share the factors of what is split fill one tile"},
      {"tk-share-parts", Stage::Fused, "fusion", "",
       "rows are packed; ranges of any length are cut across sequences"},
      {"tk-transpose-factors", Stage::Fused, "transposition", "",
       "what would otherwise inline the statement that stores a factor anew has run"},
      {"tk-store-invariants", Stage::Fused, "fusion", "",
       "what stores a value once more would be inlined again before; factors are stored"},
      {"tk-store-scans", Stage::Fused, "", "",
       "what would put scans along two indices into one statement has run"},
      {"tk-bound-masks", Stage::Fused, "fusion", "",
       "what is left of masks stays in the terms, and statements stay as they are"},
      {"tk-place-results", Stage::Tiled, "", "tk-place-results",
       "copies where a result replaces what is still read"},
      {"tk-select-schedule", Stage::Tiled, "", "tk-select-schedule",
       "one output a thread, from sizes and structure"},
      {"tk-coarsen-threads", Stage::Tiled, "coarsening", "", "several outputs a thread"},
      {"tk-widen-vectors", Stage::Tiled, "vectorization", "", "accesses of several elements"},
      {"tk-attach-reductions", Stage::Tiled, "fusion", "",
       "tiles are chosen; what is reduced of a product need not be read again"},
      {"tk-tile", Stage::Tiled, "tiling", "tk-tile{naive=true}",
       "statements become block-level tile programs"},
      {"canonicalize", Stage::Tiled, "", "", "folds index arithmetic"},
      {"cse", Stage::Tiled, "", "", "equal tiles are loaded once"},
      {"tk-fold-masks", Stage::Tiled, "", "", "equal masks are one; loads bring identities"},
      {"tk-persist-blocks", Stage::Tiled, "persistence", "",
       "blocks go through tiles, so that one tile's end and the next one's beginning overlap"},
      {"tk-form-warpgroup-dots", Stage::Gpu, "warpgroups", "",
       "products of loaded tiles go to warpgroups and bulk copies while indices are still plain"},
      {"tk-align-rows", Stage::Gpu, "coalescing", "",
       "rows that begin anywhere get tiles of aligned vectors, while indices are still plain"},
      {"tk-coalesce-accesses", Stage::Gpu, "coalescing", "tk-coalesce-accesses{naive=true}",
       "every tile gets a layout"},
      {"tk-promote-shared", Stage::Gpu, "", "",
       "operands of products and layout changes go through shared memory"},
      {"canonicalize", Stage::Gpu, "", "", "indices that layouts made again"},
      {"cse", Stage::Gpu, "", "", "equal indices in equal layouts are one"},
      {"tk-leave-out-warps", Stage::Gpu, "", "",
       "layouts say which rows a warp has, and plain stores still have masks"},
      {"tk-form-bulk-stores", Stage::Gpu, "warpgroups", "",
       "fragments are stored by whole lines, while the threads go on"},
      {"tk-specialize-warps", Stage::Gpu, "roles", "tk-specialize-warps{one-role=true}",
       "bulk copies become a role of their own, or are waited for at once"},
      {"tk-bound-warpgroups", Stage::Gpu, "", "",
       "warpgroups have rows of their own, and copies a program; loops are still whole"},
      {"tk-defer-exchanges", Stage::Gpu, "", "",
       "layouts say which threads share a row; loops are still whole"},
      {"tk-defer-states", Stage::Gpu, "", "",
       "what threads carry through a loop that reads columns or parts of rows is theirs"},
      {"tk-overlap-products", Stage::Gpu, "", "",
       "an iteration's products run under the next one's"},
      {"tk-overlap-operands", Stage::Gpu, "", "",
       "the next iteration's operands are loaded under this one's products"},
      {"tk-overlap-chains", Stage::Gpu, "", "",
       "what happens to scores runs under the product of the weights before"},
      {"tk-overlap-tiles", Stage::Gpu, "", "",
       "a tile's first scores are worked on under the last product of the tile before"},
      {"tk-join-ends", Stage::Gpu, "", "",
       "a window's first and last steps are one tile of scores"},
      {"tk-split-masked-steps", Stage::Gpu, "", "",
       "what is in flight where masks branch is known"},
      {"tk-stagger-warpgroups", Stage::Gpu, "", "",
       "one warpgroup's results are worked on under the other's last products"},
      {"tk-overlap-scores", Stage::Gpu, "", "",
       "steps without masks are apart; what is in flight with them is known"},
      {"tk-alternate-warpgroups", Stage::Gpu, "turns", "",
       "one warpgroup's work runs under the other's products"},
      {"tk-keep-references", Stage::Gpu, "", "",
       "steps without masks are loops of their own behind those with masks"},
      {"tk-compare-as-integers", Stage::Gpu, "", "",
       "loops of warpgroups are divided, and products in flight in their places"},
      {"tk-pipeline-copies", Stage::Gpu, "", "",
       "copies of the next tile run under this one's work"},
      {"tk-unroll-loops", Stage::Gpu, "", "", "several small reads of a loop are on their way"},
      {"tk-keep-weights", Stage::Gpu, "persistence", "",
       "what rows share is known before the loop over them, in its layout"},
      {"tk-fetch-ahead", Stage::Gpu, "persistence", "",
       "rows come while others are reduced, each thread's part to itself"},
      {"tk-keep-rows", Stage::Gpu, "", "",
       "long rows leave registers to what is computed from them"},
      {"canonicalize", Stage::Gpu, "", "", "folds the pipeline's index arithmetic"},
      {"cse", Stage::Gpu, "", "", "addresses of several stages have much in common"},
      {"tk-hoist-loads", Stage::Gpu, "", "",
       "labels and what they name are loaded while the row is"},
      {"tk-advance-stores", Stage::Gpu, "", "", "sums of rows are stored while the threads meet"},
      {"tk-drop-registers", Stage::Gpu, "", "", "tiles are all there, in their layouts"},
      {"tk-select-elements", Stage::Gpu, "", "", "choices between elements of tiles are all there"},
      {"tk-join-reductions", Stage::Gpu, "", "",
       "layouts say which threads meet; what is recomputed between reductions follows"},
      {"tk-hold-narrow-tiles", Stage::Gpu, "", "",
       "rows stay packed in registers between the reductions over them"},
      {"tk-cut-stores", Stage::Gpu, "", "",
       "what is computed for a store alone is known once phases are apart"},
      {"tk-refill-parts", Stage::Gpu, "", "", "rows are read for the last time a part at a time"},
      {"tk-sum-in-products", Stage::Gpu, "", "",
       "weights are carried to the product that takes them"},
      {"tk-order-arrivals", Stage::Gpu, "", "",
       "loops are divided, and nothing moves across arrivals any more"},
      {"tk-begin-products", Stage::Gpu, "", "",
       "products are where they stay; what does not feed them goes behind them"},
      {"tk-share-random-blocks", Stage::Gpu, "", "",
       "tiles are all there, in their layouts, and none is cut any more"},
      {"tk-limit-registers", Stage::Gpu, "", "", "registers of what is left are known"},
      {"tk-plan-shared-memory", Stage::Gpu, "", "tk-plan-shared-memory",
       "offsets, waits and barriers, once nothing that touches memory moves any more"},
      {"tk-overlap-slices", Stage::Gpu, "", "",
       "where threads meet is known; the next slice's first fragments come under a product"},
      {"tk-join-launches", Stage::Gpu, "", "",
       "what launches read of each other, and in which blocks, is all there"},
      {"tk-overlap-launches", Stage::Gpu, "", "",
       "launches begin as those before them end; behind their waits nothing moves any more"},
      {"tk-hand-out-tiles", Stage::Gpu, "persistence", "",
       "which tiles come ahead of which is decided; nothing looks at the loop over them any more"},
      {"tk-keep-reads", Stage::Gpu, "", "",
       "what a block moves, and whether it waits for others, is known"},
  };
  return rows;
}

unsigned lastTensorPass() {
  return static_cast<unsigned>(
      llvm::count_if(passTable(), [](const PassRow &row) { return row.stage <= Stage::Fused; }));
}

bool isKnownPass(StringRef name) {
  return llvm::any_of(passTable(),
                      [&](const PassRow &row) { return row.name == name || row.group == name; });
}

bool isPrintablePass(StringRef name) {
#ifdef TK_HAS_CPU
  if (cpu::isCpuPass(name))
    return true;
#endif
  return name == "all" || isKnownPass(name);
}

void printAfter(StringRef pass, Operation *op, const PipelineOptions &options) {
  if (!options.printAfter.contains(pass) && !options.printAfter.contains("all"))
    return;
  llvm::errs() << "// ---- after " << pass << "\n";
  op->print(llvm::errs());
  llvm::errs() << "\n";
}

static void registerOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    registerTkPasses();
    registerCanonicalizerPass();
    registerCSEPass();
  });
}

static LogicalResult runOne(ModuleOp module, StringRef pipeline, const PipelineOptions &options) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  manager.enableVerifier(options.verify);
  if (failed(parsePassPipeline(pipeline, manager, llvm::errs())))
    return module.emitError("internal: no pass '") << pipeline << "'";
  return manager.run(module);
}

LogicalResult runPipeline(ModuleOp module, Stage from, Stage to, const PipelineOptions &options) {
  registerOnce();
  unsigned number = 0;
  for (const PassRow &row : passTable()) {
    ++number;
    if (row.stage <= from || row.stage > to)
      continue;
    bool off = number > options.last || options.disabled.contains(row.name) ||
               (!row.group.empty() && options.disabled.contains(row.group));
    StringRef pipeline = off ? row.whenOff : row.name;
    if (pipeline.empty())
      continue;
    if (failed(runOne(module, pipeline, options)))
      return failure();
    printAfter(row.name, module, options);
    if (options.afterPass && number <= options.last &&
        failed(options.afterPass({row.name, number}, module)))
      return failure();
  }
  return success();
}

} // namespace tk
