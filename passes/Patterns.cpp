//===- Patterns.cpp - rewrites of a pass that have names ------------------===//
#include "passes/Patterns.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace tk {

static constexpr PatternInfo simplifyPatterns[] = {
    {.name = "fold", .summary = "Fold expressions."},
    {.name = "merge-expressions", .summary = "Merge equal expressions."},
    {.name = "pad-conditions",
     .summary = "Leave out conditions that only keep an access inside its tensor."},
    {.name = "band-products", .summary = "Multiply blocks of results by a band of a long filter."},
    {.name = "form-windows", .summary = "Let ranges of a bounded length begin at 0."},
    {.name = "unroll", .summary = "Write out reductions of few elements."},
    {.name = "only-terms", .summary = "Write out reductions of one element at most."},
    {.name = "chunk-products",
     .summary = "Multiply decayed states chunk by chunk on the matrix unit."},
    {.name = "form-scans", .summary = "Make scans of reductions up to an index."},
    {.name = "form-recurrences", .summary = "Make scans of sums whose terms decay with distance."},
    {.name = "order-indices",
     .summary = "Make the index that loads are contiguous along innermost."},
    {.name = "merge-equal", .summary = "Merge reductions and scans that are equal."},
    {.name = "separate-products", .summary = "Give each contraction in a sum a sum of its own."},
    {.name = "hoist-factors", .summary = "Move factors that do not vary out of a sum."},
    {.name = "group-factors",
     .summary = "Multiply the factors of a sum in the order that makes two operands of them."},
    {.name = "reuse-weights", .summary = "Reuse exponentials that are the elements of a sum."},
    {.name = "running-maxima",
     .summary = "Refer exponentials to the running maximum of their loop."},
};

static constexpr PatternInfo producerPatterns[] = {
    {.name = "elements", .summary = "Inline results that are computed element by element."},
    {.name = "reductions", .summary = "Inline reductions of rows."},
    {.name = "contractions",
     .summary = "Inline contractions into their epilogue, or into another."},
};

static constexpr PatternInfo persistPatterns[] = {
    {.name = "work-units", .summary = "Let a thread block go through the tiles of a work unit."},
    {.name = "tiles", .summary = "Let thread blocks loop over tiles if the plan says so."},
};

static constexpr PatternInfo promotePatterns[] = {
    {.name = "tma-tiles", .summary = "Choose how tiles that TMA loads bring are read."},
    {.name = "operands",
     .summary = "Bring operands of contractions, and layout changes, through shared memory."},
    {.name = "slices", .summary = "Cut contractions along k, and load each slice's operands."},
};

static constexpr PatternInfo fetchPatterns[] = {
    {.name = "next-rows", .summary = "Load the rows that come next under a row's reduction."},
    {.name = "next-scans", .summary = "Load the chunk that comes next under a chunk's scan."},
    {.name = "next-terms", .summary = "Load the terms that come next under sums across rows."},
};

static constexpr PatternInfo splitPatterns[] = {
    {.name = "ranges",
     .summary = "Have reductions run over the indices alone whose quotient or remainder is asked "
                "for."},
    {.name = "histograms", .summary = "Give sums by a key a sum for each key in shared memory."},
    {.name = "rows",
     .summary = "Sort rows of products by the operand that a table selects for each."},
    {.name = "segments",
     .summary = "Sort the elements of reductions by a key that must equal an index."},
    {.name = "counts", .summary = "Count elements by two digits of their key."},
    {.name = "key-ranges",
     .summary = "Bound reductions by the first and the last element with their key."},
    {.name = "thresholds",
     .summary = "Compare keys with the threshold of their row in place of a sum with its limit."},
    {.name = "ranks",
     .summary = "Sort the terms of reductions under a comparison of two rows, and scan them."},
    {.name = "decays",
     .summary = "Sum elements that are weighted by a power of their distance chunk by chunk."},
    {.name = "contraction-order",
     .summary = "Sum products of three or more factors pair by pair if that takes less time."},
    {.name = "axis-order",
     .summary = "Copy tensors whose axes are not in the order of a matrix product."},
    {.name = "windows", .summary = "Reduce windows of several axes one axis after the other."},
    {.name = "chunks", .summary = "Cut long reductions of few results in parallel chunks."},
    {.name = "taps", .summary = "Sum the terms of neighbouring taps in one loop."},
    {.name = "distances", .summary = "Take sums of squared distances from sums that exist."},
    {.name = "scans", .summary = "Cut long scans of few rows in parallel chunks."},
};

static constexpr PatternInfo mergePatterns[] = {
    {.name = "equal-sizes", .summary = "Make extents that are known to be equal one value."},
    {.name = "merge", .summary = "Merge compute ops over the same indices."},
};

static constexpr PatternInfo onlinePatterns[] = {
    {.name = "weights", .summary = "Store softmax numerators that several contractions take."},
    {.name = "join", .summary = "Join dependent reductions in one loop."},
};

static constexpr StringRef transposeFactors = "tk-transpose-factors",
                           transposition = "transposition";

static constexpr PatternInfo operandPatterns[] = {
    {.name = "gather",
     .summary = "Store operands whose rows a table gathers.",
     .former = transposeFactors,
     .group = transposition},
    {.name = "packed-numbers",
     .summary = "Store operands in 16 bits whose elements select packed numbers.",
     .group = transposition},
    {.name = "unpack",
     .summary = "Store operands that are packed several numbers to a byte.",
     .former = transposeFactors,
     .group = transposition},
    {.name = "computed",
     .summary = "Store operands that each tile would compute again.",
     .former = transposeFactors,
     .group = transposition},
    {.name = "batches",
     .summary = "Store operands that lie along a batch index.",
     .former = transposeFactors,
     .group = transposition},
    {.name = "align-sums",
     .summary = "Store operands of sums over several indices in one order.",
     .former = transposeFactors,
     .group = transposition},
    {.name = "transpose",
     .summary = "Store operands that lie across the sum.",
     .former = transposeFactors,
     .group = transposition},
    {.name = "pad",
     .summary = "Store operands with padding behind rows of no alignment.",
     .former = transposeFactors,
     .group = transposition},
    {.name = "invariants",
     .summary = "Store long functions that many elements share.",
     .former = "tk-store-invariants",
     .group = "fusion"},
    {.name = "scans",
     .summary = "Store scans of a compute op that scans along another index, too.",
     .former = "tk-store-scans"},
};

static constexpr PatternInfo maskPatterns[] = {
    {.name = "loaded-bounds", .summary = "Take ranges from bounds that are loaded at each row."},
    {.name = "block-lists", .summary = "List the blocks that a mask by tables admits."},
    {.name = "row-groups", .summary = "Find the range that a mask admits for a group of rows."},
};

static constexpr PatternInfo indexPatterns[] = {
    {.name = "widen",
     .summary = "Compute with 64 bits where 32 do not hold a value.",
     .needed = true},
    {.name = "floats", .summary = "Convert indices to floats before they are added."},
};

static constexpr PatternInfo functionPatterns[] = {
    {.name = "exponentials", .summary = "Mark exponentials whose results are rounded to 16 bits."},
    {.name = "logits", .summary = "Mark functions in logits under such exponentials."},
    {.name = "bounded-logits",
     .summary = "Give softmaxes of bounded logits one reference for a row."},
    {.name = "narrow-results", .summary = "Mark functions whose results are rounded to 16 bits."},
    {.name = "logistic", .summary = "Compute logistic functions by the hardware's tanh."},
    {.name = "reciprocals", .summary = "Divide by a row's value with one reciprocal."},
    {.name = "scales", .summary = "Move positive scales from logits into their exponentials."},
    {.name = "powers", .summary = "Move powers of two into the exponentials' argument."},
    {.name = "references", .summary = "Mark running maxima that cancel from the results."},
};

static constexpr PatternInfo tilePatterns[] = {
    {.name = "row-parts", .summary = "Add the row's part of a bias to the maximum of the row."},
    {.name = "accumulators", .summary = "Begin a contraction with the sums that it is added to."},
};

static constexpr PatternInfo foldPatterns[] = {
    {.name = "unite-loads", .summary = "Make loads of one tile under several masks one load."},
    {.name = "identities", .summary = "Let masked loads bring the identity value of a reduction."},
};

static constexpr PatternInfo warpPatterns[] = {
    {.name = "stream-hints", .summary = "Mark loads whose data no other thread block reads."},
    {.name = "reuse-hints", .summary = "Mark TMA loads whose data is read again soon."},
    {.name = "results-in-stages", .summary = "Put a tile's results into a free pipeline stage."},
    {.name = "ones", .summary = "Place columns of ones behind values for row sums by MMA."},
    {.name = "roles", .summary = "Give TMA loads to producer warps. Left out, all warps load."},
};

static constexpr PatternInfo packPatterns[] = {
    {.name = "unit-rows",
     .summary = "Add a row index of one value to columns that share operands."},
    {.name = "merged-rows", .summary = "Make one index of the rows that share operands."},
};

static constexpr PatternInfo attachPatterns[] = {
    {.name = "partial-results",
     .summary = "Begin a reduction in the tile that stores its operand."},
    {.name = "carried-columns",
     .summary = "Carry sums over columns through a block's loop over rows."},
};

static constexpr PatternInfo contractionPatterns[] = {
    {.name = "transposed-loads", .summary = "Load a tile that is transposed as it is read."},
    {.name = "contractions", .summary = "Give contractions of loaded tiles to warpgroups."},
};

static constexpr PatternInfo layoutPatterns[] = {
    {.name = "transposed-loads", .summary = "Load a tile that is transposed as it is read."},
    {.name = "layouts", .summary = "Give each tile a layout.", .needed = true},
    {.name = "vectors", .summary = "Access several elements at a time."},
    {.name = "vector-masks", .summary = "Compare once for the elements of a vector."},
};

static constexpr PatternInfo flightPatterns[] = {
    {.name = "across-iterations",
     .summary = "Keep contractions in flight during the next iteration."},
    {.name = "within-iterations",
     .summary = "Start contractions early, and wait where a result is used."},
};

static constexpr PatternInfo stepPatterns[] = {
    {.name = "plain-loops", .summary = "Give iterations without masks a loop of their own."},
    {.name = "window-ends", .summary = "Mask the first and the last iteration of a window alone."},
};

static constexpr PatternInfo turnPatterns[] = {
    {.name = "ping-pong", .summary = "Let warpgroups start contractions one after the other."},
    {.name = "wait-ahead", .summary = "Wait for all pipeline stages before a contraction starts."},
};

static constexpr PatternInfo unrollPatterns[] = {
    {.name = "windows", .summary = "Unroll loops over a window of few elements."},
    {.name = "small-loads", .summary = "Unroll loops whose iterations load few bytes."},
};

static constexpr PatternInfo dropPatterns[] = {
    {.name = "row-ends", .summary = "Drop registers of elements behind the end of every row."},
    {.name = "true-masks", .summary = "Drop masks that are statically true."},
};

static constexpr PatternInfo joinPatterns[] = {
    {.name = "moments", .summary = "Reduce a mean and a variance in one exchange."},
    {.name = "differences", .summary = "Take a sum of differences from the moments."},
    {.name = "maxima", .summary = "Reduce a maximum and a sum of exponentials in one exchange."},
    {.name = "means",
     .summary = "Separate a sum about a mean into sums that do not need the mean."},
    {.name = "next-rows", .summary = "Exchange the next row's sums while this row is computed."},
};

static constexpr PatternInfo refillPatterns[] = {
    {.name = "chunks", .summary = "Load a chunk of the next row when this row's chunk was read."},
    {.name = "early-loads", .summary = "Load the next row before the threads synchronise."},
    {.name = "late-waits", .summary = "Wait for each chunk of a row where it is read."},
};

static constexpr PatternInfo startPatterns[] = {
    {.name = "waits", .summary = "Start a contraction before waits for other pipeline stages."},
    {.name = "row-work", .summary = "Start a contraction before work on a tile's rows."},
};

static constexpr PatternInfo limitPatterns[] = {
    {.name = "consumers", .summary = "Limit the registers of consumer warps to those in use."},
    {.name = "blocks", .summary = "Ask for thread blocks that hide the latency of memory."},
    {.name = "products", .summary = "Ask for two blocks whose threads convert operands in turn."},
    {.name = "elements",
     .summary = "Leave registers for loads beside arithmetic that does not need them."},
};

ArrayRef<PatternInfo> patternsOf(StringRef pass) {
  using Patterns = ArrayRef<PatternInfo>;
  return llvm::StringSwitch<Patterns>(pass)
      .Case("tk-simplify", simplifyPatterns)
      .Case("tk-fuse-producers", producerPatterns)
      .Case("tk-persist-blocks", persistPatterns)
      .Case("tk-promote-shared", promotePatterns)
      .Case("tk-fetch-ahead", fetchPatterns)
      .Case("tk-split-reductions", splitPatterns)
      .Case("tk-merge-computes", mergePatterns)
      .Case("tk-online-reductions", onlinePatterns)
      .Case("tk-materialize-operands", operandPatterns)
      .Case("tk-bound-masks", maskPatterns)
      .Case("tk-convert-indices", indexPatterns)
      .Case("tk-approximate-functions", functionPatterns)
      .Case("tk-refine-tiles", tilePatterns)
      .Case("tk-fold-masks", foldPatterns)
      .Case("tk-specialize-warps", warpPatterns)
      .Case("tk-pack-rows", packPatterns)
      .Case("tk-attach-reductions", attachPatterns)
      .Case("tk-form-warpgroup-dots", contractionPatterns)
      .Case("tk-coalesce-accesses", layoutPatterns)
      .Case("tk-overlap-products", flightPatterns)
      .Case("tk-split-masked-steps", stepPatterns)
      .Case("tk-alternate-warpgroups", turnPatterns)
      .Case("tk-unroll-loops", unrollPatterns)
      .Case("tk-drop-registers", dropPatterns)
      .Case("tk-join-reductions", joinPatterns)
      .Case("tk-refill-parts", refillPatterns)
      .Case("tk-begin-products", startPatterns)
      .Case("tk-limit-registers", limitPatterns)
      .Default({});
}

std::string nearestOf(StringRef word, ArrayRef<std::string> words) {
  unsigned least = 1 + static_cast<unsigned>(word.size()) / 3;
  std::string nearest;
  for (const std::string &candidate : words) {
    const unsigned distance = word.edit_distance(candidate, /*AllowReplacements=*/true, least);
    if (distance < least || (distance == least && nearest.empty())) {
      nearest = candidate;
      least = distance;
    }
  }
  return nearest;
}

LogicalResult NamedPatterns::verify() {
  std::vector<std::string> names;
  for (const PatternInfo &info : patternsOf(pass))
    names.push_back(info.name.str());
  for (ArrayRef<std::string> option : {disable, only})
    for (const std::string &name : option) {
      if (llvm::is_contained(names, name))
        continue;
      InFlightDiagnostic error = emitError(root->getLoc());
      error << "unknown pattern '" << name << "' of " << pass;
      if (std::string nearest = nearestOf(name, names); !nearest.empty())
        error << "; did you mean '" << nearest << "'?";
      return error;
    }
  return success();
}

bool NamedPatterns::isOn(StringRef pattern) const {
  assert(llvm::any_of(patternsOf(pass), [&](const PatternInfo &p) { return p.name == pattern; }) &&
         "a pattern that Patterns.cpp does not name");
  return only.empty() ? !llvm::is_contained(disable, pattern) : llvm::is_contained(only, pattern);
}

void NamedPatterns::run(StringRef pattern, llvm::function_ref<void()> rewrite) {
  if (!isOn(pattern))
    return;
  root->getContext()->executeAction<PatternAction>(rewrite, {IRUnit(root)}, pass, pattern);
}

} // namespace tk
