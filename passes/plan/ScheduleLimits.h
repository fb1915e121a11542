//===- ScheduleLimits.h - schedules that do not fit -------------*- C++ -*-===//
#ifndef TK_PASSES_PLAN_SCHEDULELIMITS_H
#define TK_PASSES_PLAN_SCHEDULELIMITS_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk::gpu {

/// On a module of which a kernel was planned with more shared memory, or more elements of a thread,
/// than there are: the name of its function.
inline constexpr llvm::StringLiteral needsLessAttrName = "tkgpu.needs_less";
/// On a module in which no plan fits with reductions computed where they are read: all are stored.
inline constexpr llvm::StringLiteral storesReductionsAttrName = "tk.store_reductions";

/// On a module in which the functions of these names reduce one element at a time: no plan fits.
inline constexpr llvm::StringLiteral singleTermsAttrName = "tkgpu.single_terms";

/// Reports that a function would need `bytes` of shared memory: at the kernel's schedule block if
/// that shaped it, which is the program's mistake; else as an error of ours, and the module gets
/// `needsLessAttrName`: planned for less shared memory it may fit. `fittingStages` is what there
/// is room for, where that is known.
void reportSharedLimit(FuncOp function, int64_t bytes, TargetAttr target,
                       std::optional<int64_t> fittingStages = {});

/// Reports that a product would have each thread hold more than 1024 elements of `factor`, a tile:
/// at the kernel's schedule block if it asks for tiles, else as an error of ours, as above.
void reportFactorLimit(FuncOp function, mlir::Value factor);

/// Whether the schedule block of the function's kernel says how many stages there are.
bool asksForStages(FuncOp function);

} // namespace tk::gpu

#endif // TK_PASSES_PLAN_SCHEDULELIMITS_H
