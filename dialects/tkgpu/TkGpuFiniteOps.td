//===- TkGpuFiniteOps.td - values that are not finite ---------------------===//
//
// What tk-guard-masked-values adds: tests whether sums are finite, and stages without values that
// are not.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUFINITEOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUFINITEOPS_TD

include "dialects/tkgpu/TkGpuDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TkGpu_AllFiniteOp : Op<TkGpu_Dialect, "all_finite", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Test whether all elements of tiles are finite, in all threads of the block";
  let description = [{
    The operation synchronises the threads of the block, which all get the same result. It does not
    stand in a `tkgpu.warp_roles`.

    The verifier requires sources of f32 with a layout.

    ```mlir
    %all = tkgpu.all_finite %o : tensor<32xf32, #one>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$sources);
  let results = (outs I1:$result);
  let assemblyFormat = "$sources attr-dict `:` type($sources)";
  let hasVerifier = 1;
}

def TkGpu_NotedOp : Op<TkGpu_Dialect, "noted", [MemoryEffects<[MemRead]>]> {
  let summary = "Test a flag of tkgpu.doubt without synchronisation";
  let description = [{
    Flags that were set before a `tkgpu.doubted` are seen by a later `tkgpu.noted` in the same
    region, also those of other mbarriers.

    The verifier requires mbarriers that were allocated with `notes`.

    ```mlir
    %clean = tkgpu.noted %flags : <2>
    ```
  }];
  let arguments = (ins TkGpu_PhasesType:$phases);
  let results = (outs I1:$result);
  let assemblyFormat = "$phases attr-dict `:` type($phases)";
  let hasVerifier = 1;
}

def TkGpu_KeepFiniteOp : Op<TkGpu_Dialect, "keep_finite", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Wait for TMA loads of a stage, and set its elements that are not finite to 0";
  let description = [{
    The producer's thread waits for the next phase of the mbarrier, on which no other operation
    waits. Then it sets the elements of `stage` that are NaN or infinite to 0, for warpgroup
    contractions that begin after a following arrival.

    The verifier requires elements of a float type of 8 or 16 bits, and one mbarrier.

    ```mlir
    tkgpu.keep_finite %stage after %loaded
        : <[32, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, <1>
    ```
  }];
  let arguments = (ins TkGpu_SharedType:$stage, TkGpu_PhasesType:$phases);
  let assemblyFormat = "$stage `after` $phases attr-dict `:` type($stage) `,` type($phases)";
  let hasVerifier = 1;
}

#endif // TK_DIALECTS_TKGPU_TKGPUFINITEOPS_TD
