//===- TkGpuSortOps.td - rows sorted in shared memory ---------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUSORTOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUSORTOPS_TD

include "dialects/tkgpu/TkGpuDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TkGpu_SortOp : Op<TkGpu_Dialect, "sort", [Pure, AllShapesMatch<["source", "result"]>,
                                              AllElementTypesMatch<["source", "result"]>]> {
  let summary = "Sort the elements of a tile in ascending order (bitonic sort)";
  let description = [{
    Element `r` of the result is the one of which `r` others stand before it in ascending order. The
    threads of a block sort in registers, and exchange elements through shared memory.

    The verifier requires a tile of i64 with one axis, whose extent is a power of two from 256 to
    16384.

    ```mlir
    %sorted = tkgpu.sort %keys : tensor<4096xi64> -> tensor<4096xi64>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

#endif // TK_DIALECTS_TKGPU_TKGPUSORTOPS_TD
