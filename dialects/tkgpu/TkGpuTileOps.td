//===- TkGpuTileOps.td - operations that make and move tiles ------------===//
//
// Included by TkGpuOps.td: positions, and elements that move between threads.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUTILEOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUTILEOPS_TD

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def TkGpu_IotaOp : TkGpu_Op<"iota", [Pure]> {
  let summary = "Create the tile 0, 1, 2, ... with one axis";
  let description = [{
    With `end`, the elements from `end` on are outside of all accesses: no tile is read, reduced or
    stored for them.

    The verifier requires a result of one axis and element type `index` or `f32`, and an `end`
    below its extent.

    ```mlir
    %j = tkgpu.iota to 5120 : tensor<8192xindex>
    ```
  }];
  let arguments = (ins OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$end);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "(`to` $end^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def TkGpu_MisalignmentOp : TkGpu_Op<"misalignment", [Pure, SameVariadicOperandSize]> {
  let summary = "Compute the offset of an element from the last aligned address, in elements";
  let description = [{
    The result is `(sum_d indices[d] * strides[d]) mod alignment`. It is the misalignment of that
    element in a tensor whose buffer is aligned to `alignment` elements. For the misalignment of a
    row, `indices` omits the index along the row.

    The verifier requires a stride for each index and an `alignment` that is a power of two.

    ```mlir
    %s = tkgpu.misalignment[%row] strides(%C) of 8
    ```
  }];
  let arguments = (ins Variadic<Index>:$indices, Variadic<Index>:$strides,
                       ConfinedAttr<I64Attr, [IntPositive]>:$alignment);
  let results = (outs Index:$result);
  let assemblyFormat = "`[` $indices `]` `strides` `(` $strides `)` `of` $alignment attr-dict";
  let hasVerifier = 1;
}

def TkGpu_RotatedIotaOp : TkGpu_Op<"rotated_iota", [Pure]> {
  let summary = "Create the tile 0, 1, 2, ... with one axis, rotated so that element `shift` is 0";
  let description = [{
    Element `t` of n is `(t - shift) mod n`. If `shift` is the misalignment of a row, every vector
    of the tile corresponds to an aligned address in memory, except the vector that the rotation
    cuts:

    ```
    row, shift 3       . . . 0 1 2 3 4 | 5 6 7 8 9 . . .     aligned groups of 8 elements in memory
    tile of n = 16     d e f 0 1 2 3 4 | 5 6 7 8 9 a b c     the numbers that its elements are
    ```

    With `around`, element `t` is `(t - shift) mod around` for `t` below `around`. An element from
    `around` on is `t`, and outside of all accesses, as are the elements from the `end` of a
    `tkgpu.iota` on.

    The verifier requires a result of one axis and element type `index`, and `around` below its
    extent.

    ```mlir
    %j = tkgpu.rotated_iota %s : tensor<1024xindex>
    ```
  }];
  let arguments = (ins Index:$shift, OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$around);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$shift (`around` $around^)? attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// The number of leading elements that the rotation permutes.
    int64_t getLengthAround() {
      int64_t length = ::llvm::cast<::mlir::RankedTensorType>(getResult().getType()).getDimSize(0);
      return getAround().value_or(length);
    }
  }];
  let hasVerifier = 1;
}

def TkGpu_FunnelOp : TkGpu_Op<"funnel", [Pure, AllTypesMatch<["before", "here", "result"]>]> {
  let summary = "Shift the elements of two tiles within groups of `vector` elements, to align "
                "them with a misaligned row";
  let description = [{
    `shift` is from 0 to `vector` - 1. Element `j` of a group of the result is element `j - shift`
    of the same group of `here` if that is not negative, and element `j - shift + vector` of the
    same group of `before` otherwise. The shift needs no exchange between threads.

    The verifier requires tiles of one axis and of one type, and a `vector` that is a power of two
    and divides their extent. With a layout a thread has whole groups in neighbouring registers.

    ```mlir
    %g = tkgpu.funnel %before, %here by %s in 8 : tensor<1024xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$before, AnyRankedTensor:$here, Index:$shift,
                       ConfinedAttr<I64Attr, [IntPositive]>:$vector);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$before `,` $here `by` $shift `in` $vector attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def TkGpu_RowsBoundOp : TkGpu_Op<"rows_bound", [Pure]> {
  let summary = "Give a loop bound for all rows of a tile, and tighter bounds for parts of the "
                "rows";
  let description = [{
    The result is `whole`, which holds for all rows. The rows lie along the first axis of the tiles
    that the loop reads. Bound `parts[w]` holds for the rows of warpgroup `w` if as many warpgroups
    as there are parts share the rows in order. `tk-bound-warpgroups` gives each warpgroup its own
    bound.

    ```mlir
    %end = tkgpu.rows_bound %whole parts(%first, %second)
    ```
  }];
  let arguments = (ins Index:$whole, Variadic<Index>:$parts);
  let results = (outs Index:$result);
  let assemblyFormat = "$whole `parts` `(` $parts `)` attr-dict";
}

def TkGpu_BroadcastOp : TkGpu_Op<"broadcast", [Pure]> {
  let summary = "Repeat a scalar or a tile along new axes";
  let description = [{
    Axis `a` of the source is axis `dims[a]` of the result. `dims` is empty for a scalar.

    The verifier requires equal element types, one entry of `dims` for each axis of the source,
    increasing entries below the rank of the result, and equal extents on these axes.

    ```mlir
    %t = tkgpu.broadcast %m dims [0] : tensor<16xf32> -> tensor<16x8xf32>
    ```
  }];
  let arguments = (ins AnyType:$source, DenseI64ArrayAttr:$dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `dims` $dims attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TkGpu_TransposeOp : TkGpu_Op<"transpose", [Pure]> {
  let summary = "Permute the axes of a tile";
  let description = [{
    Axis `a` of the result is axis `permutation[a]` of the source. The verifier requires a
    permutation of all axes and a result of the permuted shape.

    ```mlir
    %t = tkgpu.transpose %x by [1, 0] : tensor<16x8xf32> -> tensor<8x16xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, DenseI64ArrayAttr:$permutation);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "$source `by` $permutation attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def TkGpu_ExtractOp : TkGpu_Op<"extract", [Pure]> {
  let summary = "Take a part of a tile at constant offsets";
  let description = [{
    With layouts no element moves between threads: each thread keeps those of its registers that
    lie in the part.

    The verifier requires equal ranks and element types. Each offset is a multiple of the result's
    extent on its axis, and the part lies inside of the source.

    ```mlir
    %h = tkgpu.extract %j at [256] : tensor<512xindex> -> tensor<256xindex>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, DenseI64ArrayAttr:$offsets);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "$source `at` $offsets attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def TkGpu_JoinOp : TkGpu_Op<"join", [Pure]> {
  let summary = "Concatenate equal parts along an axis";
  let description = [{
    The operation is the inverse of `tkgpu.extract`. With layouts no element moves between threads.

    The verifier requires an `axis` of the result (0 by default) and parts of the result's element
    type, whose extents along the axis add up to the result's.

    ```mlir
    %r = tkgpu.join %x, %y axis 1 : tensor<64x8xf32>, tensor<64x8xf32> -> tensor<64x16xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$parts, DefaultValuedAttr<I64Attr, "0">:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$parts (`axis` $axis^)? attr-dict `:` type($parts) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::ValueRange":$parts), [{
    build($_builder, $_state, result, parts, /*axis=*/0);
  }]>];
  let hasVerifier = 1;
}

def TkGpu_HoldOp : TkGpu_Op<"hold", [Pure, SameOperandsAndResultType]> {
  let summary = "Keep a tile in registers, and hide its origin from the CUDA compiler";
  let description = [{
    The result equals the source. The CUDA compiler cannot tell that a value computed from the
    result equals one that was computed from the source. It therefore recomputes such values
    instead of keeping them in registers. The elements are in registers before the next operation
    begins.

    The verifier requires elements of 8, 16 or 32 bits. With a layout the elements of a thread fill
    whole words of 32 bits.

    ```mlir
    %h = tkgpu.hold %x : tensor<1024xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def TkGpu_SelectAtOp : TkGpu_Op<"select_at", [Pure, AllTypesMatch<["at", "otherwise", "result"]>]> {
  let summary = "Replace one element of a tile by the same element of another tile";
  let description = [{
    The element at `index` is that of `at`, if the tile has such an element. All other elements are
    those of `otherwise`. Only the thread that has the element uses `at`.

    The verifier requires tiles of one type with one axis.

    ```mlir
    %r = tkgpu.select_at %less at %n else %x : tensor<2048xf32>
    ```
  }];
  let arguments = (ins Index:$index, AnyRankedTensor:$at, AnyRankedTensor:$otherwise);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$at `at` $index `else` $otherwise attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def TkGpu_ScaledExpDiffOp : TkGpu_Op<"scaled_exp_diff", [Pure, SameOperandsAndResultType, Elementwise,
                                                         Scalarizable, Vectorizable, Tensorizable]> {
  let summary = "Compute `exp((a - b) * scale) * 2^power`, and 0 if `a` is -inf";
  let description = [{
    The result is the numerator of a softmax with the scores `a * scale` and the maximum `b *
    scale`. Requirements: `a <= b` and `scale > 0`. The value is `2^(a c - round(b c - power))`
    with `c = round(scale * log2(e))`. Its relative error is at most 2^-19.

    Operands and result have one type. `power` is an integer, 0 by default.

    ```mlir
    %e = tkgpu.scaled_exp_diff %score, %max by %scale : tensor<64xf32>
    ```
  }];
  let arguments = (ins FloatLike:$a, FloatLike:$b, FloatLike:$scale,
                       DefaultValuedAttr<I64Attr, "0">:$power);
  let results = (outs FloatLike:$result);
  let assemblyFormat = "$a `,` $b `by` $scale (`power` $power^)? attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$a, "::mlir::Value":$b,
                                 "::mlir::Value":$scale),
                            [{ build($_builder, $_state, type, a, b, scale, 0); }]>];
}

def TkGpu_ScaledExponentOp : TkGpu_Op<"scaled_exponent", [Pure, SameOperandsAndResultType, Elementwise,
                                                          Scalarizable, Vectorizable, Tensorizable]> {
  let summary = "Compute the binary logarithm of tkgpu.scaled_exp_diff";
  let description = [{
    The result is `a c - round(b c - power)` with `c = round(scale * log2(e))`. Operands and result
    have one type. `power` is an integer, 0 by default.

    ```mlir
    %x = tkgpu.scaled_exponent %score, %max by %scale : tensor<64xf32>
    ```
  }];
  let arguments = (ins FloatLike:$a, FloatLike:$b, FloatLike:$scale,
                       DefaultValuedAttr<I64Attr, "0">:$power);
  let results = (outs FloatLike:$result);
  let assemblyFormat = "$a `,` $b `by` $scale (`power` $power^)? attr-dict `:` type($result)";
}

def TkGpu_ConvertLayoutOp : TkGpu_Op<"convert_layout", [Pure]> {
  let summary = "Change the layout of a tile";
  let description = [{
    If elements move between threads, the tile goes through scratch in shared memory. Otherwise
    each thread only renames registers. `offset` is the first byte of the scratch, once a pass has
    planned it. `padding` is the number of padding elements at the end of each row of the scratch.

    The verifier requires a result of the source's shape and element type.

    ```mlir
    %o = tkgpu.convert_layout %s : tensor<16x32xf32, #t> -> tensor<16x32xf32, #u>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, OptionalAttr<I64Attr>:$offset,
                       OptionalAttr<I64Attr>:$padding);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

#endif // TK_DIALECTS_TKGPU_TKGPUTILEOPS_TD
