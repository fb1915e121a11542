//===- TkGpuHistogramOps.td - sums by a key in shared memory --------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUHISTOGRAMOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUHISTOGRAMOPS_TD

include "dialects/tkgpu/TkGpuDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TkGpu_HistogramOp : Op<TkGpu_Dialect, "histogram", [Pure, AllShapesMatch<["bins", "weights"]>,
                                                 AllElementTypesMatch<["weights", "result"]>]> {
  let summary = "Sum the elements of a tile by their bin (histogram with weights)";
  let description = [{
    Element `b` of the result is the sum of the `weights` whose element of `bins` is `b`. An element
    whose bin is negative, or the result's extent at least, is in no sum. The sums are in shared
    memory.

    Sums of i32 wrap, so that they do not depend on the order of the elements: the threads of a
    block add atomically. Sums of f32 have a fixed order: each warp has sums of its own.

    The verifier requires bins of i32, weights of i32 or f32, and a result with one axis.

    ```mlir
    %h = tkgpu.histogram %bins, %weights : tensor<4096xi32>, tensor<4096xi32> -> tensor<512xi32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$bins, AnyRankedTensor:$weights);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$bins `,` $weights attr-dict `:` type($bins) `,` type($weights) `->` type($result)";
  let hasVerifier = 1;
}

#endif // TK_DIALECTS_TKGPU_TKGPUHISTOGRAMOPS_TD
