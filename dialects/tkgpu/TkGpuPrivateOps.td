//===- TkGpuPrivateOps.td - stores to thread-private staging --------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUPRIVATEOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUPRIVATEOPS_TD

include "dialects/tkgpu/TkGpuDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TkGpu_PrivateStoreOp : Op<TkGpu_Dialect, "private_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Store a tile to thread-private staging";
  let description = [{
    Each thread writes its own part of stage `stage`. A `tkgpu.private_load` reads it without a
    barrier. With `offsets` the value is the part of the tile that begins there, as for
    `tkgpu.extract`.

    The verifier requires a value of the staged type, or of a part that consists of whole vectors
    of each thread.

    ```mlir
    tkgpu.private_store %v, %rows at %c0 : tensor<512xbf16, #row> ->
        <3 x tensor<512xbf16, #row>, vector = 8>
    ```
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
