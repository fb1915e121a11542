//===- TkGpuPlan.cpp - what was decided about a kernel --------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tk::gpu;

#include "dialects/tkgpu/TkGpuPlanEnums.cpp.inc"

//===----------------------------------------------------------------------===//
// The plan as a struct
//===----------------------------------------------------------------------===//

PlanAttr KernelPlan::toAttr(MLIRContext *context) const {
  return PlanAttr::get(context, family, unit, tiles, inPlace, mergedRows, mergedTerms,
                       tileReductions, carriesTiles, workUnits, roles, order, rowMaximum,
                       maximumType, rowSums);
}

KernelPlan tk::gpu::getPlan(Operation *op) {
  auto attr = op->getAttrOfType<PlanAttr>(planAttrName);
  if (!attr)
    return {};
  return {attr.getFamily(),         attr.getUnit(),         attr.getTiles(),
          attr.getInPlace(),        attr.getMergedRows(),   attr.getMergedTerms(),
          attr.getTileReductions(), attr.getCarriesTiles(), attr.getWorkUnits(),
          attr.getRoles(),          attr.getOrder(),        attr.getRowMaximum(),
          attr.getMaximumType(),    attr.getRowSums()};
}

void tk::gpu::setPlan(Operation *op, const KernelPlan &plan) {
  MLIRContext *context = op->getContext();
  PlanAttr attr = plan.toAttr(context);
  if (attr == KernelPlan().toAttr(context))
    op->removeAttr(planAttrName);
  else
    op->setAttr(planAttrName, attr);
}

std::string tk::gpu::describePlan(FuncOp function) {
  std::string text;
  llvm::raw_string_ostream(text) << getPlan(function).toAttr(function.getContext());
  StringRef fields(text);
  fields.consume_front("#tkgpu.plan<");
  fields.consume_back(">");
  return fields.str();
}

void tk::gpu::setTiles(Operation *op, ScheduleAttr tiles) {
  changePlan(op, [&](KernelPlan &plan) { plan.tiles = tiles; });
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Two numbers of which the first is at least 0, and the second greater than `least`.
static bool isPair(DenseI64ArrayAttr numbers, int64_t distance) {
  return numbers.size() == 2 && numbers[0] >= 0 && numbers[1] >= distance;
}

LogicalResult PlanAttr::verify(function_ref<InFlightDiagnostic()> emitError, PlanFamily family,
                               PlanUnit unit, ScheduleAttr tiles, bool,
                               DenseI64ArrayAttr mergedRows, bool, ArrayAttr tileReductions,
                               bool carriesTiles, DenseI64ArrayAttr workUnits, WarpRoles,
                               WarpgroupOrder, RowMaximum, MaximumType, RowSums) {
  const bool multiplies = family == PlanFamily::Gemm || family == PlanFamily::FusedGemm ||
                          family == PlanFamily::Pairwise;
  if (multiplies != (unit != PlanUnit::None))
    return emitError() << "expected a unit for gemm, fused_gemm and pairwise alone, got "
                       << stringifyPlanUnit(unit) << " for " << stringifyPlanFamily(family);
  // A pass of tensors chooses histograms and sorted rows; a planner gives them their tiles.
  if (family != PlanFamily::None && family != PlanFamily::Histogram &&
      family != PlanFamily::RowReduction && !tiles)
    return emitError() << "expected tiles for the family " << stringifyPlanFamily(family);
  const auto numIndices = tiles ? static_cast<int64_t>(tiles.getTile().size()) : INT64_MAX;
  if (mergedRows && !(isPair(mergedRows, mergedRows.size() == 2 ? mergedRows[0] + 2 : 0) &&
                      mergedRows[1] <= numIndices))
    return emitError() << "expected merged_rows to be a range of several of the tiled indices";
  for (Attribute entry : tileReductions ? tileReductions.getValue() : ArrayRef<Attribute>()) {
    auto reduction = dyn_cast<TileReductionAttr>(entry);
    if (!reduction && !isa<UnitAttr>(entry))
      return emitError() << "expected unit or #tkgpu.tile_reduction for each result, got " << entry;
    if (reduction && llvm::any_of(reduction.getCounters().asArrayRef(),
                                  [&](int64_t counter) { return counter >= numIndices; }))
      return emitError() << "expected counters below the number of tiled indices, " << numIndices;
  }
  if (workUnits && !isPair(workUnits, 1))
    return emitError() << "expected work_units to be an argument and a positive count";
  if (workUnits && carriesTiles)
    return emitError() << "expected blocks to go through work units or to carry tiles, not both";
  return success();
}

LogicalResult TileReductionAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                        tk::ReduceKindAttr, DenseI64ArrayAttr counters,
                                        DenseI64ArrayAttr indices, DenseI64ArrayAttr sizes, bool) {
  if (counters.empty() || counters.size() != indices.size() || counters.size() != sizes.size())
    return emitError() << "expected as many counters, indices and sizes, and at least one, got "
                       << counters.size() << ", " << indices.size() << " and " << sizes.size();
  if (llvm::any_of(sizes.asArrayRef(), [](int64_t size) { return size < 1; }))
    return emitError() << "expected positive sizes";
  return success();
}

LogicalResult CacheAttr::verify(function_ref<InFlightDiagnostic()> emitError, bool once,
                                bool common, int64_t keptFrom) {
  if (keptFrom < 0)
    return emitError() << "expected a number of blocks of at least 0, got " << keptFrom;
  if (!once && !common && keptFrom == 0)
    return emitError() << "expected once, common or kept_from";
  return success();
}

LogicalResult MathModeAttr::verify(function_ref<InFlightDiagnostic()> emitError, MathMode mode) {
  constexpr MathMode refinements = MathMode::Wide | MathMode::SharedRows | MathMode::Reciprocal;
  if (bitEnumContainsAny(mode, refinements) && !bitEnumContainsAll(mode, MathMode::Approx))
    return emitError() << "expected approx beside " << stringifyMathMode(mode & refinements);
  return success();
}

LogicalResult RandomAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t neighbours,
                                 bool) {
  if (neighbours != 1 && neighbours != 2 && neighbours != 4)
    return emitError() << "expected 1, 2 or 4 neighbours, got " << neighbours;
  return success();
}

LogicalResult tk::gpu::verifyPlan(FuncOp function) {
  const KernelPlan plan = getPlan(function);
  const unsigned numArguments = function.getBlock()->getNumArguments();
  if (plan.workUnits && plan.workUnits[0] >= numArguments)
    return function.emitOpError("expected work_units of one of ")
           << numArguments << " arguments, got " << plan.workUnits[0];
  const bool isOfRoles =
      plan.roles == WarpRoles::ProducerConsumer || plan.order != WarpgroupOrder::None ||
      plan.rowMaximum != RowMaximum::EachStep || plan.maximumType != MaximumType::Float;
  auto isRoles = [](WarpRolesOp) { return WalkResult::interrupt(); };
  if (isOfRoles && !function.walk(isRoles).wasInterrupted())
    return function.emitOpError("expected tkgpu.warp_roles for the plan's roles, order or row "
                                "maxima, got none");
  return success();
}

//===----------------------------------------------------------------------===//
// Modes of scalar operations
//===----------------------------------------------------------------------===//

bool tk::gpu::hasMode(Operation *op, MathMode mode) {
  auto attr = op->getAttrOfType<MathModeAttr>(mathAttrName);
  return attr && bitEnumContainsAll(attr.getValue(), mode);
}

void tk::gpu::addMode(Operation *op, MathMode mode) {
  auto attr = op->getAttrOfType<MathModeAttr>(mathAttrName);
  op->setAttr(mathAttrName,
              MathModeAttr::get(op->getContext(), attr ? attr.getValue() | mode : mode));
}

void tk::gpu::removeMode(Operation *op, MathMode mode) {
  auto attr = op->getAttrOfType<MathModeAttr>(mathAttrName);
  const uint32_t rest = attr ? static_cast<uint32_t>(bitEnumClear(attr.getValue(), mode)) : 0;
  if (rest == 0)
    op->removeAttr(mathAttrName);
  else
    op->setAttr(mathAttrName, MathModeAttr::get(op->getContext(), static_cast<MathMode>(rest)));
}

//===----------------------------------------------------------------------===//
// Hints of loads
//===----------------------------------------------------------------------===//

void tk::gpu::addCacheHint(LoadOp load, CacheAttr hint) {
  if (CacheAttr old = getCache(load))
    hint = CacheAttr::get(load.getContext(), old.getOnce() || hint.getOnce(),
                          old.getCommon() || hint.getCommon(),
                          std::max(old.getKeptFrom(), hint.getKeptFrom()));
  load->setAttr(cacheAttrName, hint);
}
