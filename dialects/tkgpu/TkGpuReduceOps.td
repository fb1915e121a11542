//===- TkGpuReduceOps.td - reductions, scans and contractions of tiles ----===//
//
// Included by TkGpuOps.td: operations that combine several elements in threads, warps and blocks.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUREDUCEOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUREDUCEOPS_TD

def TkGpu_ReduceOp : TkGpu_Op<"reduce", [Pure]> {
  let summary = "Reduce a tile along an axis";
  let description = [{
    The result has the source's shape without `axis`, and the source's element type. It is a scalar
    if the source has one axis. `max` and `min` give NaN if an element is NaN.

    With `as_integers` the threads compare f32 as integers. A maximum below 0 may then be any of
    the elements. No NaN in the source has its sign bit set.

    With `free_reference` the result is a running row maximum that cancels from all results. The
    softmax numerators of a row may be scaled by 2^-32.

    With `open` each thread keeps its own value, which the next reduction combines. With
    `beside_next` warps exchange the value together with that of the next reduction.

    The verifier requires kind `sum`, `prod`, `max`, `min`, `any` or `all` and an axis of the
    source. `as_integers` requires `max` of f32, `free_reference` requires `max`.

    ```mlir
    %m = tkgpu.reduce <max> %x axis 1 : tensor<32x8xf32> -> tensor<32xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, Tk_ReduceKindAttr:$kind, I64Attr:$axis,
                       UnitAttr:$as_integers, UnitAttr:$free_reference,
                       UnitAttr:$open, UnitAttr:$beside_next);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$kind $source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def TkGpu_ReduceRunsOp : TkGpu_Op<"reduce_runs", [Pure]> {
  let summary = "Reduce groups of neighbouring elements along an axis";
  let description = [{
    Axis `axis` of the result counts the groups, which have one length. A result of extent 8 for an
    axis of 128 has an element for each 16 elements. NaN is treated as by `tkgpu.reduce`.

    The verifier requires kind `sum`, `prod`, `max`, `min`, `any` or `all`, and a result of the
    source's shape and element type except along the axis. The length of a group is a power of two.
    With layouts the result has the source's layout, reduced along the groups.

    ```mlir
    %y = tkgpu.reduce_runs <sum> %x axis 0 : tensor<32x8xf32> -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, Tk_ReduceKindAttr:$kind, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Elements in a group.
    int64_t getRun() {
      const auto axis = static_cast<unsigned>(getAxis());
      return ::llvm::cast<::mlir::RankedTensorType>(getSource().getType()).getDimSize(axis) /
             ::llvm::cast<::mlir::RankedTensorType>(getResult().getType()).getDimSize(axis);
    }
  }];
}

def TkGpu_ReduceInThreadsOp : TkGpu_Op<"reduce_in_threads", [Pure]> {
  let summary = "Reduce along an axis the elements of each thread, without an exchange between "
                "threads";
  let description = [{
    Axis `axis` of the result has an element for each of the threads that share the axis. A
    `tkgpu.reduce` of the result along the axis equals a `tkgpu.reduce` of the source, up to the
    order of the elements.

    The verifier requires kind `sum`, `prod`, `max`, `min`, `any` or `all`, and a source with a
    layout. The type of the result follows from it.

    ```mlir
    %y = tkgpu.reduce_in_threads <sum> %x axis 1 : tensor<8x8xf32, #wide> ->
        tensor<8x4xf32, #narrow>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, Tk_ReduceKindAttr:$kind, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$source, "::tk::ReduceKind":$kind,
                                 "int64_t":$axis)>];
  let hasVerifier = 1;
}

def TkGpu_SpreadInThreadsOp : TkGpu_Op<"spread_in_threads", [Pure]> {
  let summary = "Repeat along an axis the element of each thread";
  let description = [{
    Axis `axis` of the source has an element for each of the threads that share the axis. All
    elements of a thread along the axis of the result are copies of that thread's element.

    The verifier requires a result with a layout, and a source of the type that
    `tkgpu.reduce_in_threads` gives for the result's type.

    ```mlir
    %y = tkgpu.spread_in_threads %x axis 1 : tensor<8x4xf32, #narrow> -> tensor<8x8xf32, #wide>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def TkGpu_FirstInThreadsOp : TkGpu_Op<"first_in_threads", [Pure]> {
  let summary = "Take the first element of each thread along an axis whose elements are equal";
  let description = [{
    All elements of the source along `axis` are equal. The result has the source's shape without
    the axis.

    The verifier requires a source with a layout. The result has the layout of a `tkgpu.reduce`.

    ```mlir
    %y = tkgpu.first_in_threads %x axis 1 : tensor<8x8xf32, #wide> -> tensor<8xf32, #slice>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def TkGpu_MomentsOp : TkGpu_Op<"moments", [Pure]> {
  let summary = "Compute the mean of a tile and the sum of squared differences from it, with "
                "one barrier";
  let description = [{
    `mean` is the mean of all elements. `squares` is the sum of `(x - mean)^2` over all elements.

    Each thread computes the moments of its own elements. Two parts a and b of m elements each are
    combined with the term `(mean_a - mean_b)^2 * m / 2`, so that no cancellation occurs. Source:
    Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
    variances" (1979).

    The verifier requires a source of f32 with one axis.

    ```mlir
    %mean, %squares = tkgpu.moments %x : tensor<128xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs F32:$mean, F32:$squares);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def TkGpu_WeightsOp : TkGpu_Op<"weights", [Pure, AllTypesMatch<["source", "weights", "scales"]>]> {
  let summary = "Compute the maximum and the softmax numerators of a tile and their sum, with "
                "one barrier";
  let description = [{
    `max` is the maximum of all elements. `sum` is the sum of `exp(x - max)`, exact enough for a
    result of 16 bits.

    Each warp computes numerators `weights` relative to the warp's own maximum. `weights * scales`
    are the numerators relative to `max`. The elements of `scales` are equal within a warp.

    The verifier requires a source of f32 with one axis. `weights` and `scales` have its type.

    ```mlir
    %max, %sum, %w, %g = tkgpu.weights %x : tensor<2048xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs F32:$max, F32:$sum, AnyRankedTensor:$weights, AnyRankedTensor:$scales);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def TkGpu_ArgReduceOp : TkGpu_Op<"arg_reduce", [Pure]> {
  let summary = "Find the extremum along an axis and the least index at which it stands";
  let description = [{
    `indices` has an index for each element of the source. `value` is the extremum along `axis`.
    `index` is the least index of the elements that equal it. NaN counts as the extremum.

    The verifier requires kind `argmax` or `argmin`, `indices` of the source's shape, and results
    of that shape without the axis. The results are scalars if the source has one axis. `index` has
    the element type of `indices`, such as `index`, `i32` or `i64`.

    ```mlir
    %best, %where = tkgpu.arg_reduce <argmax> %x, %j axis 1 : tensor<16x32xf32>, tensor<16x32xi64>
        -> tensor<16xf32>, tensor<16xi64>
    ```
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
  let summary = "Compute the inclusive prefix reductions along an axis, and the total";
  let description = [{
    Element `j` along `axis` of the result reduces elements 0 to `j` of the source. `total` reduces
    the whole axis. It has the source's shape without the axis, and is a scalar if the source has
    one axis. Kinds are `sum`, `prod`, `max` and `min`.

    The verifier requires an axis of the source, a result of the source's type and a `total` of the
    reduced shape.

    ```mlir
    %prefix, %total = tkgpu.scan <sum> %x axis 1 : tensor<16x32xf32> -> tensor<16xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, Tk_ReduceKindAttr:$kind, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result, AnyType:$total);
  let assemblyFormat = [{
    $kind $source `axis` $axis attr-dict `:` type($source) `->` type($total)
  }];
  let hasVerifier = 1;
}

def TkGpu_DotOp : TkGpu_Op<"dot", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "Compute the contraction `acc + a * b` of an MxK and a KxN tile";
  let description = [{
    `acc` and the result have MxN elements of the accumulator's type. The warps of the thread block
    compute the contraction by `mma.sync` or by FMA, depending on the types and on `precision`.

    With a region the operation is a pairwise contraction that is no matrix product. For one k
    after the other, the region maps an element of `a`, an element of `b` and the accumulator so
    far to the new accumulator. It may read scalars from outside, but no tiles. The example sums
    absolute differences.

    The verifier requires operands of two axes with fitting extents. A region has one block, whose
    arguments are an element of each operand, and yields one element of the accumulator.

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
    /// Builds a matrix product.
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$a, "::mlir::Value":$b,
                   "::mlir::Value":$acc, "::tk::Precision":$precision)>
  ];
  let extraClassDeclaration = [{
    /// True if the contraction has a region, and is thus no matrix product.
    bool hasTerm() { return !getTerm().empty(); }
    /// The same contraction of parts of its operands.
    DotOp ofParts(::mlir::OpBuilder &builder, ::mlir::Value a, ::mlir::Value b, ::mlir::Value acc);
  }];
  let hasVerifier = 1;
}

#endif // TK_DIALECTS_TKGPU_TKGPUREDUCEOPS_TD
