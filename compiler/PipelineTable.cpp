//===- PipelineTable.cpp - the passes of tk, in order ---------------------===//
//
// The only list of passes: docs/reference/pipeline.md is written from it
// (scripts/generate-reference). A row has its group and the reason why it stands where it does.
// Rows that `--disable-pass` leaves out run as `whenOff` says, where code needs them.
//
//===----------------------------------------------------------------------===//
#include "compiler/Pipeline.h"

namespace tk {

static const PatternRow axisPatterns[] = {
    {"unit-axes", "tk-drop-unit-axes", "", "",
     "A matrix of one column is a vector before other passes look at how it lies in memory."},
    {"neighbours", "tk-collapse-axes", "", "",
     "Later passes see one index where neighbouring axes are reduced together."},
};

static const PatternRow windowPatterns[] = {
    {"residues", "tk-split-residues", "", "",
     "Sums stand where the program has them; a sum for each residue is over windows."},
    {"pixels", "tk-flatten-windows", "simplification", "",
     "Sums over windows stand where the program has them, and their readers may still move."},
};

static const PatternRow isolationPatterns[] = {
    {"groups", "tk-divide-indices", "", "",
     "A reduction over groups of a row then reads the row by the row's own indices."},
    {"own-computes", "tk-separate-reductions", "", "",
     "A reduction over fewer indices than its compute op then is a compute op of its own, and "
     "fusion decides about it as about a named one."},
};

static const PassRow normalizeRows[] = {
    {"tk-normalize-axes", "fusion", "",
     "Other passes look at tensors that have no more axes than their accesses need.", axisPatterns},
    {"tk-simplify", "simplification", "",
     "Equal expressions are one before passes estimate the cost of an expression."},
    {"tk-isolate-reductions", "fusion", "",
     "Expressions are simple: fusion then decides about each reduction by its own indices.",
     isolationPatterns},
    {"tk-lower-windows", "fusion", "",
     "Sums stand where the program has them: those over windows become matrix products.",
     windowPatterns},
};

static const PassRow fuseRows[] = {
    {"tk-fuse-producers", "fusion", "",
     "Compute ops are in normal form: each is inlined into its readers where that saves time."},
    {"tk-simplify", "simplification", "",
     "Inlining leaves equal reductions and factors that do not vary with a sum's index."},
    {"tk-split-reductions", "fusion", "",
     "Long reductions with few results get parallel chunks before compute ops are merged, so that "
     "the chunks merge, too."},
    {"tk-merge-computes", "fusion", "", "Compute ops over the same indices share one kernel."},
    {"tk-simplify", "simplification", "", "Merged compute ops share equal reductions."},
};

static const PatternRow parallelizePatterns[] = {
    {"masked-operands", "tk-mask-operands", "splitting", "",
     "Contractions are final: a masked operand is stored by itself from here on."},
    {"f32-emulation", "tk-split-significands", "emulation", "",
     "Contractions are final, and fusion would inline the stored bf16 parts again."},
    {"packed-operands", "tk-pack-operands", "splitting", "",
     "The sums that are no contractions are known."},
    {"split-k", "tk-split-contractions", "splitting", "",
     "Everything is merged: the number of tiles of a contraction is known."},
    {"depths", "tk-split-depths", "splitting", "",
     "Online reductions exist: an inner sum has one tile, whose extent is a power of two."},
    {"split-softmax", "tk-split-chains", "splitting", "",
     "Online reductions exist: those of few rows get parallel chunks."},
    {"pack-rows", "tk-pack-rows", "fusion", "",
     "Rows that share the operands of a chunk fill one tile."},
    {"work-units", "tk-share-parts", "fusion", "",
     "Rows are packed: ranges of any length are cut into equal work units."},
};

static const PatternRow rowIndexPatterns[] = {
    {"stored-rows", "tk-collapse-rows", "", "",
     "It is known what is stored: a product reads a tensor by one index where the compute op that "
     "wrote it needs two."},
    {"groups", "tk-group-rows", "", "",
     "Contractions are inside the elements of reductions; later passes see rows that read the same "
     "table entry."},
};

static const PatternRow boundPatterns[] = {
    {"masks", "tk-restrict-ranges", "", "", "Masks become bounds."},
    {"offsets", "tk-shift-ranges", "", "",
     "Bounds are known: ranges between offsets begin at 0, and many of them share a block."},
};

static const PassRow restructureRows[] = {
    {"tk-arrange-rows", "fusion", "",
     "Fusion has ended: the row indices of contractions become those that tiles are made of.",
     rowIndexPatterns},
    {"tk-bound-ranges", "fusion", "",
     "Reductions are separate: an online reduction needs equal bounds.", boundPatterns},
    {"tk-online-reductions", "fusion", "",
     "Bounds are equal: dependent reductions become one loop."},
    {"tk-simplify", "simplification", "", "Online reductions leave expressions that fold."},
    {"tk-parallelize-reductions", "splitting", "",
     "The set of compute ops is final: reductions that leave multiprocessors idle are cut in "
     "chunks.",
     parallelizePatterns},
    {"tk-materialize-operands", "operands", "",
     "Chunks are known: operands that the hardware cannot read as they lie are stored in another "
     "form."},
    {"tk-bound-masks", "fusion", "",
     "Compute ops do not change any more: masks that read tensors get ranges of elements."},
};

static const PatternRow schedulePatterns[] = {
    {"smallest", "tk-select-schedule", "", "tk-select-schedule",
     "Each thread computes one element: the schedule from which the others start."},
    {"coarsen", "tk-coarsen-threads", "coarsening", "", "A thread computes several elements."},
    {"overwrite-rows", "tk-overwrite-rows", "", "",
     "Tiles say which rows of a parameter in place a block reads whole."},
    {"widen", "tk-widen-vectors", "vectorization", "",
     "Tiles are final: an access moves several elements."},
};

static const PatternRow numericsPatterns[] = {
    {"indices", "tk-convert-indices", "", "",
     "Bodies of compute ops are final, and sizes are known."},
    {"functions", "tk-approximate-functions", "", "",
     "Bodies of compute ops are final: it is known which results are rounded to few bits."},
};

static const PassRow planRows[] = {
    {"tk-place-results", "placement", "tk-place-results",
     "Compute ops are final: a result that replaces values which are still read is copied."},
    {"tk-scatter-rows", "placement", "",
     "It is known which results are in place: blocks visit the rows of them that change."},
    {"tk-choose-schedule", "schedule", "",
     "Sizes and structure decide the tiles of each compute op.", schedulePatterns},
    {"tk-attach-reductions", "fusion", "",
     "Tiles are chosen: a reduction of a contraction's result begins in the tile that stores it."},
    {"tk-choose-arithmetic", "numerics", "",
     "Bodies of compute ops are final: each operation gets the type and the form that it needs.",
     numericsPatterns},
};

static const PatternRow cleanPatterns[] = {
    {"canonicalize", "canonicalize", "", "", "Index arithmetic folds."},
    {"cse", "cse", "", "", "Equal tiles are loaded once, equal indices computed once."},
};

static const PassRow tileRows[] = {
    {"tk-tile", "tiling", "tk-tile{naive=true}", "Each compute op becomes a kernel over tiles."},
    {"tk-refine-tiles", "numerics", "",
     "Kernels over tiles exist: work on elements moves to rows and to accumulators."},
    {"tk-clean", "cleanup", "", "Tiling writes every index and every tile where it is used.",
     cleanPatterns},
    {"tk-fold-masks", "masks", "",
     "Equal masks are one value; loads then bring the identity value of the reduction."},
    {"tk-persist-blocks", "persistence", "",
     "Thread blocks loop over tiles, so that the end of one tile and the start of the next "
     "overlap."},
};

static const PassRow layoutRows[] = {
    {"tk-form-warpgroup-dots", "warpgroups", "",
     "Indices are still plain: contractions of loaded tiles go to warpgroups and TMA loads."},
    {"tk-align-rows", "coalescing", "",
     "Indices are still plain: rows of any alignment get tiles of aligned vectors."},
    {"tk-coalesce-accesses", "coalescing", "tk-coalesce-accesses{naive=true}",
     "All tiles exist: each gets a layout."},
    {"tk-promote-shared", "shared-memory", "",
     "Layouts are known: operands and layout changes go through shared memory."},
    {"tk-clean", "cleanup", "",
     "Layouts compute indices anew; equal ones in equal layouts are one.", cleanPatterns},
};

static const PatternRow deferPatterns[] = {
    {"sums", "tk-defer-exchanges", "", "",
     "Layouts say which threads share a row, and loops are still whole."},
    {"states", "tk-defer-states", "", "",
     "A thread has a maximum and a sum of its own in a loop over columns or chunks of rows."},
};

static const PatternRow storePatterns[] = {
    {"idle-warps", "tk-leave-out-warps", "warps", "",
     "Layouts say which rows a warp has, and plain stores still have masks."},
    {"bulk-stores", "tk-form-bulk-stores", "", "",
     "Fragments are stored as whole lines by TMA, while the threads go on."},
};

static const PassRow roleRows[] = {
    {"tk-arrange-stores", "warpgroups", "", "Layouts say which rows a warp has.", storePatterns},
    {"tk-specialize-warps", "roles", "tk-specialize-warps{one-role=true}",
     "TMA loads are known: producer warps issue them, or all warps wait for them at once."},
    {"tk-bound-warpgroups", "loops", "",
     "Warpgroups have rows of their own, producers have a loop of their own, and loops are whole."},
    {"tk-defer-combining", "loops", "",
     "Loops are whole: threads combine their parts of a row after the loop.", deferPatterns},
};

static const PatternRow overlapPatterns[] = {
    {"products", "tk-overlap-products", "", "",
     "One iteration's contractions run under the next iteration's work."},
    {"operands", "tk-overlap-operands", "", "",
     "The next iteration's operands are loaded under this iteration's contractions."},
    {"chains", "tk-overlap-chains", "", "",
     "Work on logits runs under the second contraction of the iteration before."},
    {"scaled-sums", "tk-pair-sums", "", "",
     "A block's partial sum is scaled under the next block's contraction."},
    {"tiles", "tk-overlap-tiles", "", "",
     "Work on a tile's first logits runs under the last contraction of the tile before."},
};

static const PatternRow dividePatterns[] = {
    {"boundary-tiles", "tk-join-ends", "", "",
     "A window's first and last iteration become one tile of logits."},
    {"masked-steps", "tk-split-masked-steps", "", "",
     "It is known which contractions are in flight where masks branch."},
    {"stagger", "tk-stagger-warpgroups", "", "",
     "One warpgroup works on its results under the other's last contractions."},
};

static const PatternRow warpgroupPatterns[] = {
    {"next-logits", "tk-overlap-scores", "", "",
     "Iterations without masks are a loop of their own; contractions in flight with them are "
     "known."},
    {"matrix-unit", "tk-alternate-warpgroups", "turns", "",
     "One warpgroup's work runs under the other's contractions."},
};

static const PatternRow maximumPatterns[] = {
    {"deferred-rescaling", "tk-keep-references", "", "",
     "Iterations without masks are a loop behind those with masks."},
    {"integers", "tk-compare-as-integers", "", "",
     "Loops are divided, and contractions in flight are where they stay."},
};

static const PassRow loopRows[] = {
    {"tk-overlap-iterations", "overlap", "",
     "Roles are final: work of neighbouring iterations and tiles overlaps.", overlapPatterns},
    {"tk-divide-loops", "loops", "", "Contractions in flight are known where a loop is divided.",
     dividePatterns},
    {"tk-order-warpgroups", "overlap", "",
     "Loops are divided: warpgroups take the matrix unit one after the other.", warpgroupPatterns},
    {"tk-simplify-maxima", "numerics", "",
     "The loops are final: those without masks need no running maximum at each iteration.",
     maximumPatterns},
    {"tk-guard-masked-values", "masks", "",
     "Loops over tiles are final: a tile whose sums are not finite is computed again."},
};

static const PatternRow loadPatterns[] = {
    {"copies", "tk-pipeline-copies", "", "",
     "Asynchronous copies of the next tile run under this tile's work."},
    {"converted-operands", "tk-fetch-operands", "", "",
     "Operands that threads convert have no other copies in flight beside theirs."},
    {"short-loops", "tk-unroll-loops", "", "", "Several small loads of a loop are in flight."},
};

static const PatternRow placePatterns[] = {
    {"weights", "tk-keep-weights", "persistence", "",
     "The loop over rows is known, and the layout of the tiles that rows share."},
    {"next-rows", "tk-fetch-ahead", "persistence", "",
     "Rows are loaded while others are reduced, each thread its own elements."},
    {"long-rows", "tk-keep-rows", "", "",
     "Long rows leave registers to the values computed from them."},
};

static const PatternRow accessPatterns[] = {
    {"loads", "tk-hoist-loads", "", "", "Small loads begin with the row's load."},
    {"stores", "tk-advance-stores", "", "",
     "Values that are known before the threads synchronise are stored before it."},
    {"quotients", "tk-count-quotients", "loops", "",
     "Loops of producers are final: what they divide their counters by is carried."},
};

static const PatternRow registerPatterns[] = {
    {"unused", "tk-drop-registers", "", "", "All tiles exist, in their layouts."},
    {"elements", "tk-select-elements", "", "", "All choices between elements of tiles exist."},
    {"reductions", "tk-join-reductions", "", "",
     "Layouts say which threads synchronise; recomputation between reductions follows."},
    {"packed-tiles", "tk-hold-narrow-tiles", "", "",
     "Rows stay packed in registers between the reductions over them."},
    {"stores", "tk-cut-stores", "", "", "It is known which values are computed for a store alone."},
    {"refills", "tk-refill-parts", "", "",
     "It is known where a chunk of a row is read for the last time."},
    {"random-numbers", "tk-share-random-blocks", "", "",
     "No tile is cut any more: neighbouring random numbers share a Philox block."},
};

static const PassRow rowRows[] = {
    {"tk-load-ahead", "pipelining", "",
     "Loops have their final form: loads move ahead of their use.", loadPatterns},
    {"tk-place-rows", "registers", "",
     "Pipelines have their shared memory: rows and tiles that rows share get the rest.",
     placePatterns},
    {"tk-clean", "cleanup", "", "Addresses of several pipeline stages have much in common.",
     cleanPatterns},
    {"tk-move-accesses", "registers", "",
     "Addresses are folded: accesses move across synchronisation, and loops count what addresses "
     "need.",
     accessPatterns},
    {"tk-reduce-registers", "registers", "", "Tiles are final: fewer registers hold them.",
     registerPatterns},
};

static const PatternRow orderPatterns[] = {
    {"row-sums", "tk-sum-in-products", "", "",
     "Softmax numerators are carried to the contraction that takes them."},
    {"releases", "tk-order-arrivals", "", "",
     "Loops are divided, and no operation moves across a release of a pipeline stage any more."},
    {"starts", "tk-begin-products", "", "",
     "Contractions are where they stay; operations that do not feed them go behind them."},
};

static const PatternRow tilePatterns[] = {
    {"next-slices", "tk-overlap-slices", "overlap", "",
     "Barriers are placed: the next slice's first fragments are loaded under a contraction."},
    {"elements", "tk-recompute-elements", "masks", "",
     "Tiles are final: elements of those that are stored may be computed again."},
};

static const PatternRow launchPatterns[] = {
    {"last-blocks", "tk-join-launches", "", "",
     "Kernels are final: a kernel's last thread blocks do the next kernel's work."},
    {"shared-grids", "tk-share-grids", "", "",
     "Kernels do the work of later kernels: two short kernels that are left run side by side."},
    {"early-starts", "tk-overlap-launches", "", "",
     "Kernels are joined: a kernel starts as the one before it ends, and waits for it itself."},
    {"work-queue", "tk-hand-out-tiles", "persistence", "",
     "No pass looks at the loop over tiles any more: a counter hands the tiles out."},
    {"cache-hints", "tk-keep-reads", "", "",
     "It is known how much a thread block moves, and whether it waits for others."},
};

static const PassRow finishRows[] = {
    {"tk-order-products", "overlap", "", "Operations are final: the order of contractions is set.",
     orderPatterns},
    {"tk-limit-registers", "registers", "", "The registers that a thread needs are known."},
    {"tk-plan-shared-memory", "shared-memory", "tk-plan-shared-memory",
     "No operation that touches memory moves any more: offsets, waits and barriers are placed."},
    {"tk-finish-tiles", "shared-memory", "",
     "Barriers are placed, and no tile that is stored is cut or moved any more.", tilePatterns},
    {"tk-finish-launches", "launches", "",
     "Kernels are final: what is left is how they are launched.", launchPatterns},
};

llvm::ArrayRef<PhaseRow> phaseTable() {
  static const PhaseRow phases[] = {
      {"normalize", Stage::Fused, "Bring compute ops into a normal form.", normalizeRows},
      {"fuse", Stage::Fused, "Decide which compute ops are one kernel.", fuseRows},
      {"restructure", Stage::Fused,
       "Make dependent reductions online, cut long ones in chunks, store operands in another form.",
       restructureRows},
      {"plan", Stage::Tiled, "Choose the tiles of each compute op.", planRows},
      {"tile", Stage::Tiled, "Write each compute op as a kernel over tiles.", tileRows},
      {"layout", Stage::Gpu, "Give every tile a layout and a memory.", layoutRows},
      {"roles", Stage::Gpu, "Divide the work between producer and consumer warps.", roleRows},
      {"loop", Stage::Gpu, "Order the main loop of contractions.", loopRows},
      {"rows", Stage::Gpu, "Load ahead, and keep rows where they fit.", rowRows},
      {"finish", Stage::Gpu, "Place tiles in shared memory, set barriers, connect launches.",
       finishRows},
  };
  return phases;
}

} // namespace tk
