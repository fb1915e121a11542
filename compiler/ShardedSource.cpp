//===- ShardedSource.cpp - a kernel on a mesh of ranks --------------------===//
//
// The local kernels of a sharded kernel make a source of their own, which is compiled like any
// other.
//
//===----------------------------------------------------------------------===//
#include "compiler/CompiledSource.h"

#include "compiler/PassDiagnostics.h"
#include "compiler/plan/MeshPlanBuilder.h"
#include "compiler/plan/StepBounds.h"
#include "dialects/tk/TkMeshOps.h"
#include "passes/analysis/Notes.h"
#include "passes/mesh/MeshPasses.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tk {

/// Gives the axes of a kernel their sizes. Axes that the mesh lacks have one rank, unless they
/// shard a tensor of the kernel.
static Status setSizes(KernelOp kernel, std::span<const MeshAxis> axes) {
  Builder builder(kernel.getContext());
  if (!kernel->hasAttr(meshAttr)) { // every rank computes all
    SmallVector<Attribute> none(kernel.getParams().size() + kernel.getResultNames().size(),
                                builder.getStrArrayAttr({}));
    kernel->setAttr(meshAttr, builder.getStrArrayAttr({}));
    kernel->setAttr(shardingsAttr, builder.getArrayAttr(none));
  }
  SmallVector<int64_t> sizes;
  for (const MeshAxisInfo &axis : meshOf(kernel)) {
    const auto found = std::find_if(axes.begin(), axes.end(),
                                    [&](const MeshAxis &a) { return a.name == axis.name; });
    bool isUsed = false;
    for (Attribute list : kernel->getAttrOfType<ArrayAttr>(shardingsAttr))
      isUsed |= llvm::is_contained(cast<ArrayAttr>(list), builder.getStringAttr(axis.name));
    if (found == axes.end() && isUsed)
      return Error(ErrorCode::invalid_argument, "kernel '" + kernel.getSymName().str() +
                                                    "' is sharded by axis '" + axis.name.str() +
                                                    "', which the mesh does not have");
    sizes.push_back(found == axes.end() ? 1 : found->size);
  }
  kernel->setAttr(meshSizesAttr, builder.getDenseI64ArrayAttr(sizes));
  return {};
}

Expected<CompiledSource::Placement> CompiledSource::placeOn(size_t kernel,
                                                            std::span<const MeshAxis> axes,
                                                            std::span<const int64_t> dims,
                                                            const std::string &network) const {
  std::shared_ptr<CompiledSource> source(new CompiledSource());
  source->exactSizes = exactSizes.load();
  source->options = options;
  source->driver = driver;
  if (Status parsed = source->parse(sources.file(mainFile).text(), frontend::Kernels::AsWritten);
      !parsed)
    return parsed.error();
  PassDiagnostics collect(source->context.get());
  KernelOp op = source->kernelOp(kernel);
  for (KernelOp other : llvm::make_early_inc_range(source->module->getOps<KernelOp>()))
    if (other != op)
      other.erase();
  if (Status sized = setSizes(op, axes); !sized)
    return sized.error();
  if (!dims.empty())
    op->setAttr(meshDimsAttr,
                Builder(op.getContext()).getDenseI64ArrayAttr({dims.data(), dims.size()}));
  if (!network.empty())
    op->setAttr(networkAttr, StringAttr::get(op.getContext(), network));
  KernelOp placed = placeCollectives(op);
  if (!placed || failed(splitAtCollectives(placed)) || failed(overlapCollectives(placed)) ||
      failed(verify(*source->module)))
    return Error(ErrorCode::compile_failed,
                 "kernel '" + kernelNames[kernel] +
                     "' cannot be placed on the mesh: " + collect.text());
  std::vector<std::string> names;
  for (KernelOp local : source->module->getOps<KernelOp>())
    if (local != placed)
      names.push_back(local.getSymName().str());
  std::optional<MeshPlan> built = meshPlanOf(placed, names);
  if (!built)
    return Error(ErrorCode::internal, "no plan for a kernel on a mesh: " + collect.text());
  Placement placement{source, std::move(*built), {}, source->remarksOf(placed)};
  dropNotes(placed);
  {
    llvm::raw_string_ostream out(placement.text);
    placed->print(out);
    out << "\n";
  }
  placed.erase();
  if (Status added = source->addKernels(); !added)
    return added.error();
  return placement;
}

Expected<detail::ShardedKernel> CompiledSource::shard(size_t kernel, std::span<const MeshAxis> axes,
                                                      std::span<const int64_t> dims,
                                                      const std::string &network) {
  offerStepBounds();
  Expected<Placement> placement = placeOn(kernel, axes, dims, network);
  if (!placement)
    return placement.error();
  return detail::ShardedKernel{std::move(placement->locals), std::move(placement->plan)};
}

} // namespace tk
