//===- TkGpuFiniteOps.td - values that are not finite ---------------------===//
//
// What tk-guard-masked-values adds: tests whether sums are finite, and stages without values that
// are not; and what tk-recompute-elements takes and adds.
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
    contractions that begin after a following arrival. If there are any, it sets the flag beside the
    mbarrier. A thread that has waited for that arrival sees it with `tkgpu.noted`.

    The verifier requires elements of a float type of 8 or 16 bits, and one mbarrier that was
    allocated with `notes`.

    ```mlir
    tkgpu.keep_finite %stage after %loaded
        : <[32, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, <2>
    ```
  }];
  let arguments = (ins TkGpu_SharedType:$stage, TkGpu_PhasesType:$phases);
  let assemblyFormat = "$stage `after` $phases attr-dict `:` type($stage) `,` type($phases)";
  let hasVerifier = 1;
}

def TkGpu_ElementOp : Op<TkGpu_Dialect, "element", [
    IsolatedFromAbove, SingleBlock, HasParent<"::mlir::ModuleOp">]> {
  let summary = "Define one element of a launch's result, without tiles";
  let description = [{
    The body computes an element of result `result` of the function `function` in f32 or f64, before
    it is rounded. Argument `n` of the body is the function's argument `arguments[n]`. If that number is
    negative, it is the index along axis `-1 - arguments[n]` of the result. An index behind the last
    one counts as the last one.

    The function is named by a string: it has one launch, and no other symbol use.

    A sum of softmax numerators is `under` another result, which holds the row's reference `m`: its
    terms have a factor `exp(s - m)`. The body then ends with the element and the reference that the
    element is under.

    An element that `reads_tile` depends on more than one element that the result replaces, all of
    the same tile: no thread of the block may have stored any of these.

    The verifier requires a number for each argument of the body, and a reference at the body's end
    exactly if the operation names a result for it.

    ```mlir
    tkgpu.element "attention_o" result 0 arguments [0, 2, -1, -2] {
    ^bb0(%S: index, %v: !tkgpu.buffer<bf16>, %i: index, %e: index):
      %sum = arith.constant 0.0 : f32
      tkgpu.element_end %sum : f32
    }
    ```
  }];
  let arguments = (ins StrAttr:$function, I64Attr:$result_number,
                       OptionalAttr<I64Attr>:$reference_number, DenseI64ArrayAttr:$arguments,
                       UnitAttr:$reads_tile);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$function `result` $result_number (`under` $reference_number^)? `arguments` $arguments $body attr-dict";
  let hasVerifier = 1;
}

def TkGpu_RepairOp : Op<TkGpu_Dialect, "repair", [
    SingleBlock, AttrSizedOperandSegments, AllTypesMatch<["source", "result"]>,
    MemoryEffects<[MemRead]>]> {
  let summary = "Compute those elements of a tile again that are not finite, each by itself";
  let description = [{
    The body computes an element from its place in the tile, an index for each axis. It runs for
    each element that is NaN or infinite, in the threads that have it. Other elements stay. So does
    the tile in threads whose `doubted` is true: their block computes it again.

    If the tile is `under` another, the body has an element of that as its last argument: the
    reference of the row that the result is for.

    If threads repair the tile `together`, they first synchronise, and again behind the body if it has
    run in any of them: none of them stores anything meanwhile. These are the threads that a
    `tkgpu.barrier` in its place synchronises.

    If the tile is `stored` already, threads synchronise, and the body stores its elements again by
    `tkgpu.put_element`. Nothing uses the result then: registers that hold the tile are free.

    The verifier requires a tile of f32 or f64 with a layout, as many indices among the arguments of
    the body as the tile has axes, and a number of the tile's type behind them if there is a
    reference. The result of a repair of what is stored has no uses.

    ```mlir
    %p = tkgpu.repair %o {
    ^bb0(%place: index):
      tkgpu.element_end %sum : f32
    } : tensor<32xf32, #one>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, Optional<I1>:$doubted,
                       Optional<AnyRankedTensor>:$reference, UnitAttr:$together,
                       UnitAttr:$stored);
  let results = (outs AnyRankedTensor:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$source (`unless` $doubted^)? (`under` $reference^ `:` type($reference))? "
                       "(`together` $together^)? (`stored` $stored^)? $body attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def TkGpu_PutElementOp : Op<TkGpu_Dialect, "put_element", [MemoryEffects<[MemWrite]>]> {
  let summary = "Store an element that this thread computes again to an offset of a buffer";
  let description = [{
    The operation stands in the body of a `tkgpu.repair` of what is `stored`. Each thread that runs
    it writes, also if others hold the same element.

    The verifier requires a value of the buffer's element type.

    ```mlir
    tkgpu.put_element %sum, %y[%place] : f32, <f32>
    ```
  }];
  let arguments = (ins AnyFloat:$value, TkGpu_BufferType:$buffer, Index:$offset);
  let assemblyFormat = "$value `,` $buffer `[` $offset `]` attr-dict `:` type($value) `,` type($buffer)";
  let hasVerifier = 1;
}

def TkGpu_ElementEndOp : Op<TkGpu_Dialect, "element_end", [
    Pure, Terminator, ParentOneOf<["ElementOp", "RepairOp"]>,
    OptionalTypesMatchWith<"reference has the value's type", "value", "reference", "$_self">]> {
  let summary = "End the body of a tkgpu.element or of a tkgpu.repair with the element's value";
  let description = [{
    The body of a `tkgpu.element` that is under another result ends with its reference, too.

    ```mlir
    tkgpu.element_end %sum : f32
    tkgpu.element_end %sum under %max : f32
    ```
  }];
  let arguments = (ins AnyTypeOf<[F32, F64]>:$value,
                       Optional<AnyTypeOf<[F32, F64]>>:$reference);
  let assemblyFormat = "$value (`under` $reference^)? attr-dict `:` type($value)";
}

#endif // TK_DIALECTS_TKGPU_TKGPUFINITEOPS_TD
