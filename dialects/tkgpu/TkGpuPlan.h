//===- TkGpuPlan.h - what was decided about a kernel ------------*- C++ -*-===//
//
// `#tkgpu.plan` on a tk.compute and on its tkgpu.func holds the decisions about a kernel.
// TkGpuPlan.td describes each. A planner or pass writes a decision once; what reads it asks the
// plan, and nothing recognises it again.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUPLAN_H
#define TK_DIALECTS_TKGPU_TKGPUPLAN_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "dialects/tkgpu/TkGpuPlanEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/tkgpu/TkGpuPlanAttributes.h.inc"

namespace tk::gpu {

/// The name of the plan on an operation.
inline constexpr llvm::StringLiteral planAttrName = "tkgpu.plan";

/// The parameters of `#tkgpu.plan` with their defaults.
struct KernelPlan {
  PlanFamily family = PlanFamily::None;
  PlanUnit unit = PlanUnit::None;
  ScheduleAttr tiles;
  bool inPlace = false;
  mlir::DenseI64ArrayAttr mergedRows;
  bool mergedTerms = false;
  mlir::ArrayAttr tileReductions;
  bool carriesTiles = false;
  mlir::DenseI64ArrayAttr workUnits;
  WarpRoles roles = WarpRoles::None;
  WarpgroupOrder order = WarpgroupOrder::None;
  RowMaximum rowMaximum = RowMaximum::EachStep;
  MaximumType maximumType = MaximumType::Float;
  RowSums rowSums = RowSums::Threads;

  PlanAttr toAttr(mlir::MLIRContext *context) const;
};

/// The plan of a compute op or a function; all defaults if it has none.
KernelPlan getPlan(mlir::Operation *op);
/// Replaces the plan of `op`, which goes if all of it is default.
void setPlan(mlir::Operation *op, const KernelPlan &plan);

/// The plan of a function for people: "family = gemm, unit = wgmma, tiles = ...".
std::string describePlan(FuncOp function);

/// Does the plan of a function say what the function has?
mlir::LogicalResult verifyPlan(FuncOp function);

/// Changes one decision about `op`.
template <typename Change> void changePlan(mlir::Operation *op, Change change) {
  KernelPlan plan = getPlan(op);
  change(plan);
  setPlan(op, plan);
}

/// The tiles of a compute op or a function; null if none were chosen.
inline ScheduleAttr getTiles(mlir::Operation *op) { return getPlan(op).tiles; }
void setTiles(mlir::Operation *op, ScheduleAttr tiles);

/// How a scalar operation is computed, as `tkgpu.math` says.
inline constexpr llvm::StringLiteral mathAttrName = "tkgpu.math";
bool hasMode(mlir::Operation *op, MathMode mode);
void addMode(mlir::Operation *op, MathMode mode);
void removeMode(mlir::Operation *op, MathMode mode);

/// How a tkgpu.load uses the caches; null if that is left to the hardware.
inline constexpr llvm::StringLiteral cacheAttrName = "tkgpu.cache";
inline CacheAttr getCache(LoadOp load) { return load->getAttrOfType<CacheAttr>(cacheAttrName); }

void addCacheHint(LoadOp load, CacheAttr hint);

/// How a shared buffer is used; nothing if its place says nothing.
inline constexpr llvm::StringLiteral bufferAttrName = "tkgpu.buffer";
inline bool isBuffer(AllocSharedOp alloc, BufferUse use) {
  auto attr = alloc->getAttrOfType<BufferUseAttr>(bufferAttrName);
  return attr && attr.getValue() == use;
}
inline void setBuffer(AllocSharedOp alloc, BufferUse use) {
  alloc->setAttr(bufferAttrName, BufferUseAttr::get(alloc.getContext(), use));
}

/// How a tile of random numbers is drawn.
inline constexpr llvm::StringLiteral randomAttrName = "tkgpu.random";
inline RandomAttr getRandom(mlir::Operation *op) {
  return op->getAttrOfType<RandomAttr>(randomAttrName);
}

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPUPLAN_H
