//===- TkGpuRecurrenceOps.td - linear recurrences along an axis -----------===//
#ifndef TK_DIALECTS_TKGPU_TKGPURECURRENCEOPS_TD
#define TK_DIALECTS_TKGPU_TKGPURECURRENCEOPS_TD

include "dialects/tkgpu/TkGpuDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TkGpu_RecurrenceOp
    : Op<TkGpu_Dialect, "recurrence", [Pure, AllTypesMatch<["decays", "source", "result"]>]> {
  let summary = "Compute a linear recurrence along an axis, and its last element";
  let description = [{
    Element `j` along `axis` of the result is the decay `j` times element `j - 1` of the result, plus
    element `j` of the source. The first one is that of the source. `last` is the last element. It
    has the source's shape without the axis, and is a scalar if the source has one axis. Threads
    combine the pairs of decay and element as scans combine elements.

    The verifier requires an axis of the source, elements of f32 or f64, and a `last` of the reduced
    shape.

    ```mlir
    %y, %last = tkgpu.recurrence %a, %x axis 1 : tensor<16x32xf32> -> tensor<16xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$decays, AnyRankedTensor:$source, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result, AnyType:$last);
  let assemblyFormat = [{
    $decays `,` $source `axis` $axis attr-dict `:` type($source) `->` type($last)
  }];
  let hasVerifier = 1;
}

#endif // TK_DIALECTS_TKGPU_TKGPURECURRENCEOPS_TD
