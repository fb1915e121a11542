//===- TkGpuReduceOps.td - reductions, scans and products of tiles --------===//
//
// Included by TkGpuOps.td: what makes one element of several, in threads, warps and blocks.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUREDUCEOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUREDUCEOPS_TD

def TkGpu_ReduceOp : TkGpu_Op<"reduce", [Pure]> {
  let summary = "Reduces a tile along an axis; a scalar where that was its only one";
  let description = [{
    Kinds sum, prod, max, min, any and all; max and min propagate NaN. With `as_integers` a maximum of f32
    that is below 0 may be any of the elements; no NaN in the source has a sign. With `free_reference` a maximum is of
    use as the reference of weights alone, which cancels from results: all weights of a row may be 2^-32 of
    what they are.
  }];
  let arguments = (ins AnyRankedTensor:$source, Tk_ReduceKindAttr:$kind, I64Attr:$axis,
                       UnitAttr:$as_integers, UnitAttr:$free_reference);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$kind $source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def TkGpu_ReduceRunsOp : TkGpu_Op<"reduce_runs", [Pure]> {
  let summary = "Reduces runs of neighbours along an axis, which are all of one length";
  let description = [{
    The result's axis counts the runs: a result of extent 8 of an axis of 128 has one for each 16
    elements. Kinds as of tkgpu.reduce.
  }];
  let arguments = (ins AnyRankedTensor:$source, Tk_ReduceKindAttr:$kind, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Elements in a run.
    int64_t getRun() {
      const auto axis = static_cast<unsigned>(getAxis());
      return ::llvm::cast<::mlir::RankedTensorType>(getSource().getType()).getDimSize(axis) /
             ::llvm::cast<::mlir::RankedTensorType>(getResult().getType()).getDimSize(axis);
    }
  }];
}

def TkGpu_ReduceInThreadsOp : TkGpu_Op<"reduce_in_threads", [Pure]> {
  let summary = "Reduces along an axis what each thread has";
  let description = [{
    The result has an element along the axis for each of the threads that share it; reduced along it
    too it is what tkgpu.reduce makes of the source, in another order. Tiles have layouts.
  }];
  let arguments = (ins AnyRankedTensor:$source, Tk_ReduceKindAttr:$kind, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$source, "::tk::ReduceKind":$kind,
                                 "int64_t":$axis)>];
  let hasVerifier = 1;
}

def TkGpu_SpreadInThreadsOp : TkGpu_Op<"spread_in_threads", [Pure]> {
  let summary = "Repeats along an axis what each thread has";
  let description = [{
    The source has an element along the axis for each of the threads that share it, as what
    tkgpu.reduce_in_threads makes of the result's type; a thread's elements are copies of its own.
    Tiles have layouts.
  }];
  let arguments = (ins AnyRankedTensor:$source, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def TkGpu_FirstInThreadsOp : TkGpu_Op<"first_in_threads", [Pure]> {
  let summary = "Of elements along an axis that are all equal, the first one each thread has";
  let description = "Tiles have layouts; the result's is that of tkgpu.reduce.";
  let arguments = (ins AnyRankedTensor:$source, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def TkGpu_MomentsOp : TkGpu_Op<"moments", [Pure]> {
  let summary = "The mean of a tile of one axis and the sum of squared differences from it"
                ", in one exchange";
  let description = [{
    Each thread has those of its own elements; parts a and b of m elements each are joined with
    `(mean_a - mean_b)^2 * m / 2` (Chan, Golub and LeVeque), so that nothing cancels.
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs F32:$mean, F32:$squares);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def TkGpu_WeightsOp : TkGpu_Op<"weights", [Pure, AllTypesMatch<["source", "weights", "scales"]>]> {
  let summary = "The maximum of a tile of one axis and the sum of exponentials under it"
                ", in one exchange";
  let description = [{
    `sum` is that of `exp(x - max)`, exact enough for 16 bits. Each warp has exponentials under a maximum
    of its own: `weights * scales` are those under `max`, and the elements of `scales` in one warp are
    the same.
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs F32:$max, F32:$sum, AnyRankedTensor:$weights, AnyRankedTensor:$scales);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def TkGpu_ArgReduceOp : TkGpu_Op<"arg_reduce", [Pure]> {
  let summary = "The extremum along an axis and the least index at which it stands";
  let description = [{
    `indices` accompanies `source` element by element. Kinds argmax and argmin; NaN counts as the
    extremum.
  }];
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$indices, Tk_ReduceKindAttr:$kind,
                       I64Attr:$axis);
  let results = (outs AnyType:$value, AnyType:$index);
  let assemblyFormat = [{
    $kind $source `,` $indices `axis` $axis attr-dict `:` type($source) `,` type($indices) `->`
    type($value) `,` type($index)
  }];
  let hasVerifier = 1;
}

def TkGpu_ScanOp : TkGpu_Op<"scan", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "The inclusive prefix reductions (sum, prod, max, min) along an axis, and the last";
  let description = [{
    `total` is what the whole axis reduces to, without that axis (a scalar where it is the only one).
  }];
  let arguments = (ins AnyRankedTensor:$source, Tk_ReduceKindAttr:$kind, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result, AnyType:$total);
  let assemblyFormat = [{
    $kind $source `axis` $axis attr-dict `:` type($source) `->` type($total)
  }];
  let hasVerifier = 1;
}

def TkGpu_DotOp : TkGpu_Op<"dot", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc + a * b, for a of MxK, b of KxN and acc of MxN";
  let description = [{
    With a region it is what this yields instead, of an element of `a`, one of `b` and what has been
    summed so far, for one k after the other: distances, or the least of sums. The region reads
    scalars from outside, and no tiles.

    ```mlir
    %d = tkgpu.dot %x, %y, %sum by {
    ^bb0(%a: f32, %b: f32, %old: f32):
      %0 = arith.subf %a, %b : f32
      %1 = math.absf %0 : f32
      %2 = arith.addf %old, %1 : f32
      tk.yield %2 : f32
    } : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b, AnyRankedTensor:$acc,
                       DefaultValuedAttr<Tk_PrecisionAttr, "::tk::Precision::Default">:$precision);
  let regions = (region VariadicRegion<SizedRegion<1>>:$term);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $acc (`precision` $precision^)? (`by` $term^)? attr-dict `:` type($a) `,`
    type($b) `->` type($result)
  }];
  let builders = [
    /// A sum of products.
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$a, "::mlir::Value":$b,
                   "::mlir::Value":$acc, "::tk::Precision":$precision)>
  ];
  let extraClassDeclaration = [{
    /// Is it anything but a sum of products?
    bool hasTerm() { return !getTerm().empty(); }
    /// The same of parts of its operands.
    DotOp ofParts(::mlir::OpBuilder &builder, ::mlir::Value a, ::mlir::Value b, ::mlir::Value acc);
  }];
  let hasVerifier = 1;
}

#endif // TK_DIALECTS_TKGPU_TKGPUREDUCEOPS_TD
