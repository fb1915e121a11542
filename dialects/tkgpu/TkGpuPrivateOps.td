//===- TkGpuPrivateOps.td - what threads compute and keep -----------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUPRIVATEOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUPRIVATEOPS_TD

include "dialects/tkgpu/TkGpuDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TkGpu_PrivateStoreOp : Op<TkGpu_Dialect, "private_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Each thread puts its part of a tile into its own shared memory";
  let description = [{
    There tkgpu.private_load finds it, without a wait. With `offsets` the value is the part of the
    stage's tile that begins there, as tkgpu.extract has it, of whole vectors.
  }];
  let arguments = (ins AnyRankedTensor:$value, TkGpu_PrivateType:$target, Index:$stage,
                       OptionalAttr<DenseI64ArrayAttr>:$offsets);
  let builders = [OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$target,
                                 "::mlir::Value":$stage),
                            "build($_builder, $_state, value, target, stage, nullptr);">];
  let assemblyFormat = "$value `,` $target `at` $stage attr-dict `:` type($value) `->` type($target)";
  let hasVerifier = 1;
}

#endif // TK_DIALECTS_TKGPU_TKGPUPRIVATEOPS_TD
