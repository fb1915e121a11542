//===- PlanRules.cpp - how planners choose what a schedule block sets -----===//
#include "passes/plan/PlanRules.h"

#include <optional>

using namespace tk;

namespace {

struct Rule {
  std::optional<gpu::PlanFamily> family; ///< none: of each family that has no row of its own
  std::optional<gpu::PlanUnit> unit;
  llvm::StringLiteral key, text;
};

} // namespace

static constexpr llvm::StringLiteral keys[] = {"tile",  "coarsen", "stages", "consumers",
                                               "teams", "vector",  "raster", "persistent",
                                               "split", "cluster"};

using gpu::PlanFamily, gpu::PlanUnit;

/// The first row that fits a plan is its rule.
static constexpr Rule rules[] = {
    {PlanFamily::FusedGemm, PlanUnit::Wgmma, "tile",
     "64 rows for each warpgroup that registers have room for, and 128 terms a step, or 64 where "
     "scores, weights and sums leave no registers or shared memory (PlanChains.cpp)"},
    {PlanFamily::FusedGemm, PlanUnit::Wgmma, "consumers",
     "two warpgroups; three or four for up to 64 columns, where tiles are enough for all "
     "multiprocessors (PlanChains.cpp)"},
    {PlanFamily::FusedGemm, PlanUnit::Wgmma, "raster",
     "columns where the values of the other indices are few; groups of heads for up to 64 columns; "
     "else rows, as reading more at a time was measured to cost more than an uneven last round "
     "(walkedTogether in PlanChains.cpp)"},
    {PlanFamily::FusedGemm, PlanUnit::Wgmma, "stages",
     "as many as shared memory has room for, four tiles at most (PlanChains.cpp)"},
    {PlanFamily::FusedGemm, PlanUnit::Wgmma, "persistent",
     "blocks stay, unless a tensor holds the lengths of ranges: the next tile is loaded while one "
     "ends (PlanChains.cpp)"},
    {PlanFamily::FusedGemm, std::nullopt, "split",
     "parts where rows fit one tile of 128, about 8 for each multiprocessor (SplitChains.cpp)"},
    {PlanFamily::FusedGemm, std::nullopt, "tile",
     "128 rows or fewer, and 64 terms, so that several blocks hide each other's latencies "
     "(PlanSchedule.cpp)"},
    {PlanFamily::Gemm, PlanUnit::Wgmma, "tile",
     "the least time over whole waves of tiles, at the rate that was measured of each shape; "
     "slices "
     "of 128 bytes (FastestTile.cpp)"},
    {PlanFamily::Gemm, PlanUnit::Wgmma, "consumers",
     "one warpgroup for 64 rows, two for 128 rows or more (PlanHopper.cpp)"},
    {PlanFamily::Gemm, PlanUnit::Wgmma, "teams",
     "two where the epilogue that they hide was measured to take longer than what they read twice "
     "(PlanTeams.cpp)"},
    {PlanFamily::Gemm, PlanUnit::Wgmma, "raster",
     "16 rows of tiles together, 8 where rows straddle sectors of 32 bytes, 32 or 16 for teams "
     "(PlanHopper.cpp)"},
    {PlanFamily::Gemm, PlanUnit::Wgmma, "stages",
     "as many as shared memory has room for, eight at most; six or four of small tiles that "
     "threads convert (PlanHopper.cpp)"},
    {PlanFamily::Gemm, PlanUnit::Wgmma, "persistent",
     "blocks stay where tiles are more than multiprocessors: a tile is loaded while another one is "
     "stored (PlanHopper.cpp)"},
    {PlanFamily::Gemm, PlanUnit::Wgmma, "cluster",
     "two blocks where rows do not begin at sectors of 32 bytes, else one (PlanHopper.cpp)"},
    {PlanFamily::Gemm, std::nullopt, "split",
     "parts where they take less time with the best tile than the whole sum, storing and adding "
     "them included (SplitContractions.cpp)"},
    {PlanFamily::Gemm, PlanUnit::Cores, "tile",
     "the least time by the measured time of each tile's step (CoreTiles.h)"},
    {PlanFamily::Gemm, std::nullopt, "tile",
     "128 x 128, smaller while multiprocessors would have no tile (PlanSchedule.cpp)"},
    {PlanFamily::RowReduction, std::nullopt, "tile",
     "the whole row if registers or shared memory hold it, else chunks; short rows share a block "
     "(PlanRows.cpp)"},
    {PlanFamily::RowReduction, std::nullopt, "persistent",
     "blocks stay where the next row fits beside this one (PlanRows.cpp)"},
    {PlanFamily::RowReduction, std::nullopt, "cluster",
     "several blocks for a row that is too long for one (PlanRows.cpp)"},
    {PlanFamily::ColumnReduction, std::nullopt, "tile",
     "threads run along the contiguous index and take a few elements at a time (PlanAcross.cpp)"},
    {PlanFamily::SharedTerms, std::nullopt, "tile",
     "several results that share what a thread loads (PlanShared.cpp)"},
    {PlanFamily::Gemv, std::nullopt, "tile",
     "several rows a block, which read the vector once (PlanFactorRows.cpp)"},
    {PlanFamily::Pairwise, std::nullopt, "tile",
     "as a contraction on CUDA cores: 8 x 8 results a thread at most (PlanPairs.cpp)"},
    {PlanFamily::Histogram, std::nullopt, "tile",
     "all bins that shared memory is to hold, and as many terms as threads hold "
     "(PlanHistogram.cpp)"},
    {PlanFamily::Elementwise, std::nullopt, "tile",
     "a run of elements along memory, or a square where tensors are contiguous along different "
     "indices (PlanElements.cpp)"},
    {std::nullopt, std::nullopt, "tile", "by the shape of the statement (PlanSchedule.cpp)"},
    {std::nullopt, std::nullopt, "coarsen",
     "as many results a thread as the tile has for its threads (CoarsenThreads.cpp)"},
    {std::nullopt, std::nullopt, "stages",
     "two to four, as far as shared memory has room (PlanSchedule.cpp)"},
    {std::nullopt, std::nullopt, "consumers", "for products on warpgroups (PlanHopper.cpp)"},
    {std::nullopt, std::nullopt, "teams",
     "for one product on warpgroups, not for chains (PlanTeams.cpp)"},
    {std::nullopt, std::nullopt, "vector",
     "the widest access of the hardware, 16 bytes (WidenVectors.cpp)"},
    {std::nullopt, std::nullopt, "raster", "rows (PlanSchedule.cpp)"},
    {std::nullopt, std::nullopt, "persistent",
     "one tile a block, unless the family has another rule (PlanSchedule.cpp)"},
    {std::nullopt, std::nullopt, "split",
     "parts where a launch would have fewer blocks than multiprocessors (passes/tensor/split)"},
    {std::nullopt, std::nullopt, "cluster", "one block (PlanSchedule.cpp)"},
};

llvm::ArrayRef<llvm::StringLiteral> tk::ruledKeys() { return keys; }

llvm::StringRef tk::planRule(const gpu::KernelPlan &plan, llvm::StringRef key) {
  for (const Rule &rule : rules)
    if (rule.key == key && rule.family.value_or(plan.family) == plan.family &&
        rule.unit.value_or(plan.unit) == plan.unit)
      return rule.text;
  return "";
}
