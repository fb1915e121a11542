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
  let summary = "Runs a function on a grid of blocks; the results are the tensors it writes";
  let description = [{
    Stands in a tk.kernel. `args` (tensors, sizes and other scalars, tensor maps) become the
    function's leading arguments, a tensor as a `!tkgpu.buffer`; the results become its trailing
    buffers, in order, with the extents in `shapes` (all results' axes one after the other). A
    grid with an extent of 0 launches nothing. With `resident` blocks go through what there is to do,
    and `grid_x` is cut to those that run at once.

    ```mlir
    %c = tkgpu.launch @gemm_c grid(%tiles, %one, %one) args(%a, %b, %M, %N, %K : ...)
      shapes(%M, %N) : tensor<?x?xbf16>
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
  let summary = "The stride in elements of a `strided` tensor along one of the caller's axes";
  let description = [{
    Tensors are numbered through: the kernel's tensor parameters in order, then its results.
  }];
  let arguments = (ins I64Attr:$tensor, I64Attr:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$tensor `axis` $axis attr-dict";
}

def TkGpu_CounterOp : TkGpu_Op<"counter", [MemoryEffects<[MemAlloc]>]> {
  let summary = "A number in memory that is 0 whenever no launch uses it";
  let description = [{
    Stands in a tk.kernel and is an argument of one of its launches, which leaves it as it was. It is
    set to 0 once, when its memory is allocated; launches that may overlap have one each.
  }];
  let results = (outs 0DTensorOf<[I32]>:$counter);
  let assemblyFormat = "attr-dict `:` type($counter)";
}

def TkGpu_FuncOp : TkGpu_Op<"func", [IsolatedFromAbove, Symbol, SingleBlock]> {
  let summary = "The program of one block";
  let description = [{
    The entry block's arguments are buffers, `index` sizes and scalars, named by `arg_names`;
    `arg_facts` holds a `#tk.fact` for each (of weight only for index arguments). `index_bits` is
    32 only where every offset of every buffer is known to be below 2^31. A block has `num_warps`
    warps, and `producer_warps` after them that only a tkgpu.warp_roles employs. The last
    `spare_warps` of the former do not run: they are there for layouts, which have powers of two, and what
    they would compute another block does. Their rows need not be in shared memory. There are `teams` teams of `num_warps` warps, each of which
    runs the consumer's program of a tkgpu.warp_roles by itself. `cluster` blocks in
    a row run together and reach each other's shared memory; more than 32 warps are those of all of
    these blocks, which then run the program as one. `shared_bytes` is known once shared
    memory has been laid out. `min_blocks` is how many blocks a multiprocessor should hold at least,
    which limits their registers.
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
    /// The fact about argument `i`; the weakest fact where none is recorded.
    ::tk::FactAttr getArgFact(unsigned i);
    /// Is this the program of all blocks of a cluster together?
    bool isSpread() { return getNumWarps() > 32; }
    /// Those of one team of a block that run.
    int64_t getTeamWarps() {
      return (isSpread() ? getNumWarps() / getCluster() : getNumWarps()) - getSpareWarps();
    }
    /// Of `rows` that are shared out to all warps those of warps that run.
    int64_t getRowsThatRun(int64_t rows) { return rows - rows * getSpareWarps() / getNumWarps(); }
    /// Those of one block that run.
    int64_t getBlockWarps() { return getTeamWarps() * getTeams(); }
  }];
}

def TkGpu_ReturnOp : TkGpu_Op<"return", [Terminator, HasParent<"FuncOp">]> {
  let summary = "Ends a function";
  let assemblyFormat = "attr-dict";
}

def TkGpu_ProgramIdOp : TkGpu_Op<"program_id", [Pure]> {
  let summary = "The block's position in the grid";
  let arguments = (ins TkGpu_AxisAttr:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$axis attr-dict";
}

def TkGpu_ClusterRankOp : TkGpu_Op<"cluster_rank", [Pure]> {
  let summary = "The block's position in its cluster";
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def TkGpu_NumProgramsOp : TkGpu_Op<"num_programs", [Pure]> {
  let summary = "The number of blocks along an axis of the grid";
  let arguments = (ins TkGpu_AxisAttr:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$axis attr-dict";
}

//===----------------------------------------------------------------------===//
// Numbers that clusters draw
//===----------------------------------------------------------------------===//

def TkGpu_DrawOp : TkGpu_Op<"draw", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Draws the next of the numbers 0 to `count` - 1 for the blocks of a cluster";
  let description = [{
    After the last number the counter begins again: a launch that draws `count` times in all leaves
    it as it was. One thread of the cluster draws and does not wait for the number, which it alone
    knows until it tells the others; the result is of no use elsewhere.
  }];
  let arguments = (ins TkGpu_BufferType:$counter, Index:$count);
  let results = (outs Index:$result);
  let assemblyFormat = "$counter `to` $count attr-dict `:` type($counter)";
}

def TkGpu_TellOp : TkGpu_Op<"tell", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Sends a number of the thread that draws to all blocks of the cluster";
  let description = [{
    It goes when that thread has its part of what the cluster joins next, which gives the number time
    to come. A tkgpu.told follows that, before the next tkgpu.tell.
  }];
  let arguments = (ins Index:$number);
  let assemblyFormat = "$number attr-dict";
}

def TkGpu_ToldOp : TkGpu_Op<"told", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits for the number that was sent last, which all threads then know";
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def TkGpu_IotaOp : TkGpu_Op<"iota", [Pure]> {
  let summary = "The numbers 0, 1, ... along a tile of one axis";
  let description = [{
    Elements from `end` on are beyond all that any tile is read, reduced or stored for along it.
  }];
  let arguments = (ins OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$end);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "(`to` $end^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def TkGpu_MisalignmentOp : TkGpu_Op<"misalignment", [Pure, SameVariadicOperandSize]> {
  let summary = "How far an element is behind a multiple of `alignment` elements in memory";
  let description = [{
    `(sum_d indices[d] * strides[d]) mod alignment`, a power of two: of a tensor whose buffer is aligned
    to that, the element at the indices, those along the row left out being 0.
  }];
  let arguments = (ins Variadic<Index>:$indices, Variadic<Index>:$strides,
                       ConfinedAttr<I64Attr, [IntPositive]>:$alignment);
  let results = (outs Index:$result);
  let assemblyFormat = "`[` $indices `]` `strides` `(` $strides `)` `of` $alignment attr-dict";
  let hasVerifier = 1;
}

def TkGpu_RotatedIotaOp : TkGpu_Op<"rotated_iota", [Pure]> {
  let summary = "The numbers 0, 1, ... along a tile of one axis, beginning at element `shift`";
  let description = [{
    Element `t` of n is `(t - shift) mod n`. Where `shift` is the misalignment of a row, vectors of the
    tile are vectors of aligned addresses, but for the one that the rotation cuts:

    ```
    row, shift 3       . . . 0 1 2 3 4 | 5 6 7 8 9 . . .     aligned groups of 8 elements in memory
    tile of n = 16     d e f 0 1 2 3 4 | 5 6 7 8 9 a b c     the numbers that its elements are
    ```

    With `around` it is element `t` before that which is `(t - shift) mod around`. Those from there on are
    `t`, and beyond all that any tile is read, reduced or stored for, as those of an iota are from its end on.
  }];
  let arguments = (ins Index:$shift, OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$around);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$shift (`around` $around^)? attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// How many elements the first ones go around.
    int64_t getLengthAround() {
      int64_t length = ::llvm::cast<::mlir::RankedTensorType>(getResult().getType()).getDimSize(0);
      return getAround().value_or(length);
    }
  }];
  let hasVerifier = 1;
}

def TkGpu_FunnelOp : TkGpu_Op<"funnel", [Pure, AllTypesMatch<["before", "here", "result"]>]> {
  let summary = "Vectors of a tile, moved by a part of their length";
  let description = [{
    In each group of `vector` elements, element `j` is element `j - shift` of the group of `here` if that
    is not negative, else element `j - shift + vector` of the group of `before`; `0 <= shift < vector`.
    What is aligned in memory meets what is not without an exchange between threads.
  }];
  let arguments = (ins AnyRankedTensor:$before, AnyRankedTensor:$here, Index:$shift,
                       ConfinedAttr<I64Attr, [IntPositive]>:$vector);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$before `,` $here `by` $shift `in` $vector attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def TkGpu_RowsBoundOp : TkGpu_Op<"rows_bound", [Pure]> {
  let summary = "A bound for all rows of a tile, and what it is for parts of them";
  let description = [{
    `whole` holds for all rows of the tiles that it is a bound for, those along their first axis; each
    of `parts` for as many of them, in order, as one of equally many warpgroups has. Whoever has a part alone
    may go by it. The result is `whole`.
  }];
  let arguments = (ins Index:$whole, Variadic<Index>:$parts);
  let results = (outs Index:$result);
  let assemblyFormat = "$whole `parts` `(` $parts `)` attr-dict";
}

def TkGpu_BroadcastOp : TkGpu_Op<"broadcast", [Pure]> {
  let summary = "Repeats a scalar or a tile along new axes";
  let description = "Axis `a` of the source is axis `dims[a]` of the result.";
  let arguments = (ins AnyType:$source, DenseI64ArrayAttr:$dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `dims` $dims attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TkGpu_TransposeOp : TkGpu_Op<"transpose", [Pure]> {
  let summary = "Result axis `a` is source axis `permutation[a]`";
  let arguments = (ins AnyRankedTensor:$source, DenseI64ArrayAttr:$permutation);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "$source `by` $permutation attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def TkGpu_ExtractOp : TkGpu_Op<"extract", [Pure]> {
  let summary = "The part of a tile that begins at constant offsets";
  let description = [{
    Offsets are multiples of the result's extents. With layouts no element moves: each thread
    keeps those of its registers that lie in the part.
  }];
  let arguments = (ins AnyRankedTensor:$source, DenseI64ArrayAttr:$offsets);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "$source `at` $offsets attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def TkGpu_JoinOp : TkGpu_Op<"join", [Pure]> {
  let summary = "Equal parts of a tile, one behind the other along `axis`: what tkgpu.extract has parts of";
  let arguments = (ins Variadic<AnyRankedTensor>:$parts, DefaultValuedAttr<I64Attr, "0">:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$parts (`axis` $axis^)? attr-dict `:` type($parts) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::ValueRange":$parts), [{
    build($_builder, $_state, result, parts, /*axis=*/0);
  }]>];
  let hasVerifier = 1;
}

def TkGpu_HoldOp : TkGpu_Op<"hold", [Pure, SameOperandsAndResultType]> {
  let summary = "The same tile, from here on kept as it is";
  let description = [{
    What was derived from the source before is not derived from the result, as far as the compiler of
    the emitted text can tell: it computes such values again rather than keep them in registers, and
    the result is there before what follows begins. The elements are of 8, 16 or 32 bits and fill
    words in each thread.
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def TkGpu_SelectAtOp : TkGpu_Op<"select_at", [Pure, AllTypesMatch<["at", "otherwise", "result"]>]> {
  let summary = "A tile of one axis, of which one element comes from another tile";
  let description = [{
    The element at `index` is that of `at`, if the axis has such an element; all others are those of
    `otherwise`. Only the threads that have it look at `at`.
  }];
  let arguments = (ins Index:$index, AnyRankedTensor:$at, AnyRankedTensor:$otherwise);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$at `at` $index `else` $otherwise attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def TkGpu_ScaledExpDiffOp : TkGpu_Op<"scaled_exp_diff", [Pure, SameOperandsAndResultType, Elementwise,
                                                         Scalarizable, Vectorizable, Tensorizable]> {
  let summary = "exp((a - b) * scale) * 2^power for a <= b and a positive scale; 0 where a is -inf";
  let description = [{
    The weight of a softmax whose scores are `a * scale`, under the maximum `b * scale`, to within
    2^-19: it is 2^(a c - round(b c - power)) with c = round(scale * log2(e)).
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
  let summary = "The binary logarithm of tkgpu.scaled_exp_diff: a c - round(b c - power)";
  let arguments = (ins FloatLike:$a, FloatLike:$b, FloatLike:$scale,
                       DefaultValuedAttr<I64Attr, "0">:$power);
  let results = (outs FloatLike:$result);
  let assemblyFormat = "$a `,` $b `by` $scale (`power` $power^)? attr-dict `:` type($result)";
}

def TkGpu_ConvertLayoutOp : TkGpu_Op<"convert_layout", [Pure]> {
  let summary = "The same tile, otherwise distributed";
  let description = [{
    Where elements change warps it goes through shared memory: `offset` is then the byte at which
    its scratch begins, and `vector` the length in elements of the scratch accesses.
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
