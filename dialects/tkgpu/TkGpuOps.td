//===- TkGpuOps.td - operations of the block-level dialect ----------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUOPS_TD

include "dialects/tk/TkDialect.td"
include "dialects/tkgpu/TkGpuDialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class TkGpu_Op<string mnemonic, list<Trait> traits = []>
    : Op<TkGpu_Dialect, mnemonic, traits>;

// A list of axis lists, one for each index or mask of an access.
def TkGpu_DimsAttr : TypedArrayAttrBase<DenseI64ArrayAttr, "array of axis lists">;

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def TkGpu_LaunchOp : TkGpu_Op<"launch", [AttrSizedOperandSegments, Pure]> {
  let summary = "Launch a function on a grid of thread blocks";
  let description = [{
    The operation stands in a `tk.kernel`. The results are the tensors that the function writes.
    The grid has `grid_x` x `grid_y` x `grid_z` blocks. A grid with an extent of 0 launches
    nothing. With `resident` the blocks loop over their tiles, and the launch cuts `grid_x` to the
    number of blocks that are resident at once.

    `args` are tensors, sizes and other scalars, and TMA descriptors. They become the leading
    arguments of the function; a tensor becomes a `!tkgpu.buffer`. The results become the trailing
    buffers, in order. `shapes` has the extents of all axes of all results.

    The verifier requires a `tkgpu.func` of the given name with an argument of the right type for
    each of `args` and each result, and an extent in `shapes` for each axis of each result.

    ```mlir
    %y = tkgpu.launch @numbers grid(%N, %c1, %c1) args(%N, %counter : index, tensor<i32>)
        shapes(%N) : tensor<?xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Index:$grid_x, Index:$grid_y, Index:$grid_z,
                       Variadic<AnyType>:$args, Variadic<Index>:$shapes, UnitAttr:$resident);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $kernel `grid` `(` $grid_x `,` $grid_y `,` $grid_z `)` `args` `(` ($args^ `:` type($args))? `)`
    `shapes` `(` $shapes `)` attr-dict `:` type($results)
  }];
  let hasVerifier = 1;
}

def TkGpu_StrideOp : TkGpu_Op<"stride", [Pure]> {
  let summary = "Read the stride of a `strided` tensor along one axis, in elements";
  let description = [{
    The operation stands in a `tk.kernel`. `tensor` counts the kernel's tensor parameters in order,
    then its results. `axis` is an axis of the caller's tensor.

    ```mlir
    %ld = tkgpu.stride 0 axis 0
    ```
  }];
  let arguments = (ins I64Attr:$tensor, I64Attr:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$tensor `axis` $axis attr-dict";
}

def TkGpu_CounterOp : TkGpu_Op<"counter", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Allocate an atomic counter that is 0 between launches";
  let description = [{
    The operation stands in a `tk.kernel`. The counter is an argument of one launch, which leaves
    it at 0. The runtime sets it to 0 once, when it allocates the memory. Launches that may overlap
    have different counters.

    ```mlir
    %counter = tkgpu.counter : tensor<i32>
    ```
  }];
  let results = (outs 0DTensorOf<[I32]>:$counter);
  let assemblyFormat = "attr-dict `:` type($counter)";
}

def TkGpu_FuncOp : TkGpu_Op<"func", [IsolatedFromAbove, Symbol, SingleBlock]> {
  let summary = "Define the program of one thread block";
  let description = [{
    The entry block's arguments are buffers, TMA descriptors, `index` sizes and other scalars.
    `arg_names` names them. `arg_facts` has a `#tk.fact` for each argument; only those of `index`
    arguments matter.

    | attribute | meaning |
    |---|---|
    | `num_warps` | warps that share a tile |
    | `producer_warps` | warps after the others, which run only the `producer` region of a `tkgpu.warp_roles` |
    | `spare_warps` | the last of the `num_warps` warps, which do not run. Layouts need a power of two; another block computes these warps' part. Shared memory need not hold their rows |
    | `teams` | groups of `num_warps` consumer warps. Each team runs the `consumer` region of a `tkgpu.warp_roles` on tiles of its own |
    | `cluster` | blocks of a cluster along x, which run at the same time and reach each other's shared memory |
    | `index_bits` | the width of `index` in the emitted text. 32 requires every offset into every buffer to be below 2^31 |
    | `shared_bytes` | bytes of shared memory, once a pass has planned them |
    | `min_blocks` | blocks that a multiprocessor should hold at least, which limits the registers of a thread |

    More than 32 `num_warps` are the warps of all blocks of the cluster, which run the program
    together.

    The verifier requires:

    - a name and, with `arg_facts`, a `#tk.fact` for each argument,
    - `index_bits` of 32 or 64,
    - at most 32 x `cluster` warps,
    - fewer `spare_warps` than `num_warps`, and none for a program that a cluster runs together,
    - one team, or several of 4 warps each,
    - a body that ends in a `tkgpu.return`.

    ```mlir
    tkgpu.func @numbers args ["n", "counter", "y"] {
    ^bb0(%n: index, %counter: !tkgpu.buffer<i32>, %y: !tkgpu.buffer<f32>):
      %drawn = tkgpu.draw %counter to %n : <i32>
      tkgpu.tell %drawn
      %told = tkgpu.told
      tkgpu.return
    } {num_warps = 64 : i64, cluster = 4 : i64}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$arg_names,
                       OptionalAttr<ArrayAttr>:$arg_facts,
                       DefaultValuedAttr<I64Attr, "4">:$num_warps,
                       DefaultValuedAttr<I64Attr, "64">:$index_bits,
                       OptionalAttr<I64Attr>:$shared_bytes, OptionalAttr<I64Attr>:$min_blocks,
                       DefaultValuedAttr<I64Attr, "0">:$producer_warps,
                       DefaultValuedAttr<I64Attr, "1">:$cluster,
                       DefaultValuedAttr<I64Attr, "0">:$spare_warps,
                       DefaultValuedAttr<I64Attr, "1">:$teams);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `args` $arg_names (`facts` $arg_facts^)? $body attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
    ::llvm::StringRef getArgName(unsigned i) {
      return ::llvm::cast<::mlir::StringAttr>(getArgNames()[i]).getValue();
    }
    /// The fact about argument `i`; the weakest fact if none is recorded.
    ::tk::FactAttr getArgFact(unsigned i);
    /// True if all blocks of a cluster run this program together.
    bool isSpread() { return getNumWarps() > 32; }
    /// Warps of one team of a block that run.
    int64_t getTeamWarps() {
      return (isSpread() ? getNumWarps() / getCluster() : getNumWarps()) - getSpareWarps();
    }
    /// The rows of the warps that run, of `rows` rows that are divided among all warps.
    int64_t getRowsThatRun(int64_t rows) { return rows - rows * getSpareWarps() / getNumWarps(); }
    /// Warps of one block that run.
    int64_t getBlockWarps() { return getTeamWarps() * getTeams(); }
  }];
}

def TkGpu_ReturnOp : TkGpu_Op<"return", [Terminator, HasParent<"FuncOp">]> {
  let summary = "End a function";
  let description = [{
    ```mlir
    tkgpu.return
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def TkGpu_ProgramIdOp : TkGpu_Op<"program_id", [Pure]> {
  let summary = "Get the position of the thread block along an axis of the grid";
  let description = [{
    ```mlir
    %id = tkgpu.program_id x
    ```
  }];
  let arguments = (ins TkGpu_AxisAttr:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$axis attr-dict";
}

def TkGpu_ClusterRankOp : TkGpu_Op<"cluster_rank", [Pure]> {
  let summary = "Get the position of the thread block in its cluster";
  let description = [{
    ```mlir
    %rank = tkgpu.cluster_rank
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def TkGpu_NumProgramsOp : TkGpu_Op<"num_programs", [Pure]> {
  let summary = "Get the number of thread blocks along an axis of the grid";
  let description = [{
    ```mlir
    %n = tkgpu.num_programs x
    ```
  }];
  let arguments = (ins TkGpu_AxisAttr:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$axis attr-dict";
}

//===----------------------------------------------------------------------===//
// The dynamic tile scheduler of clusters
//===----------------------------------------------------------------------===//

def TkGpu_DrawOp : TkGpu_Op<"draw", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Take the next tile number, 0 to `count` - 1, from the counter of a dynamic "
                "tile scheduler";
  let description = [{
    One thread of the cluster increments the counter atomically and does not wait for the number.
    Only that thread has the number. The other threads get it from a `tkgpu.told`; their result of
    this operation has no use.

    The counter returns to 0 after the number `count` - 1. A launch that draws `count` times in all
    leaves the counter at 0.

    ```mlir
    %drawn = tkgpu.draw %counter to %n : <i32>
    ```
  }];
  let arguments = (ins TkGpu_BufferType:$counter, Index:$count);
  let results = (outs Index:$result);
  let assemblyFormat = "$counter `to` $count attr-dict `:` type($counter)";
}

def TkGpu_TellOp : TkGpu_Op<"tell", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Send the number that a tkgpu.draw took to all thread blocks of the cluster";
  let description = [{
    The number is sent when its thread next takes part in a reduction over the cluster. The atomic
    operation has that long to complete. A `tkgpu.told` follows that reduction and precedes the
    next `tkgpu.tell`.

    ```mlir
    tkgpu.tell %drawn
    ```
  }];
  let arguments = (ins Index:$number);
  let assemblyFormat = "$number attr-dict";
}

def TkGpu_ToldOp : TkGpu_Op<"told", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Wait for the number of the last tkgpu.tell, and give it to all threads";
  let description = [{
    The result is the same in all threads of the cluster. A reduction over the cluster stands
    between the `tkgpu.tell` and this operation; the emitter refuses a program without one.

    ```mlir
    %told = tkgpu.told
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

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

include "dialects/tkgpu/TkGpuReduceOps.td"
include "dialects/tkgpu/TkGpuMemoryOps.td"
include "dialects/tkgpu/TkGpuAsyncOps.td"

#endif // TK_DIALECTS_TKGPU_TKGPUOPS_TD
