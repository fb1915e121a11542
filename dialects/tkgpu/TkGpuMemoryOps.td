//===- TkGpuMemoryOps.td - accesses of a block's threads ------------------===//
//
// Included by TkGpuOps.td: loads and stores of tiles in global, shared and private memory, and the
// copies that threads begin themselves.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUMEMORYOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUMEMORYOPS_TD

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

// Addressing that all accesses to global memory share: the offset of the element at a coordinate
// is the sum over d of indices[d] * strides[d], in elements. An index (mask) is a scalar or a tile
// whose axis a is axis index_dims[d][a] (mask_dims[m][a]) of the accessed tile.

def TkGpu_LoadOp : TkGpu_Op<"load", [NoMemoryEffect, AttrSizedOperandSegments]> {
  let summary = "A tile of elements from global memory";
  let description = [{
    The element at a coordinate comes from offset `sum_d indices[d] * strides[d]`, counted in
    elements. An index is a scalar or a tile of fewer axes: its axis `a` is axis `dims[d][a]` of
    the result. Where a mask (same rule, `over`) is false the element is `other`, and memory is not
    touched. A function never writes what it reads, so loads are free of effects.
    `vector` is the number of elements that one access takes, and what its address is aligned to. A
    `run` of more than 1 is the same number where masks may end within an access, or a rotation may
    cut it: it is one access where its elements are neighbours and the last mask is true. Masks of
    neighbours are then true up to one of them.

    ```mlir
    %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%s, %c1)
           masks(%mi) over [array<i64: 0>] other(%zero) : (...) -> tensor<128x32xbf16>
    ```
  }];
  let arguments = (ins TkGpu_BufferType:$buffer, Variadic<AnyType>:$indices,
                       Variadic<Index>:$strides, Variadic<AnyType>:$masks, Optional<AnyType>:$other,
                       TkGpu_DimsAttr:$index_dims, TkGpu_DimsAttr:$mask_dims,
                       DefaultValuedAttr<I64Attr, "1">:$vector,
                       DefaultValuedAttr<I64Attr, "1">:$run);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $buffer `[` $indices `]` `dims` $index_dims `strides` `(` $strides `)`
    `masks` `(` $masks `)` `over` $mask_dims (`other` `(` $other^ `)`)? attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def TkGpu_StoreOp : TkGpu_Op<"store", [AttrSizedOperandSegments,
                                       MemoryEffects<[MemWrite]>]> {
  let summary = "Writes a tile to global memory where all masks are true";
  let description = "Addressed as tkgpu.load. Of threads that hold the same element one writes.";
  let arguments = (ins AnyType:$value, TkGpu_BufferType:$buffer, Variadic<AnyType>:$indices,
                       Variadic<Index>:$strides, Variadic<AnyType>:$masks,
                       TkGpu_DimsAttr:$index_dims, TkGpu_DimsAttr:$mask_dims,
                       DefaultValuedAttr<I64Attr, "1">:$vector,
                       DefaultValuedAttr<I64Attr, "1">:$run);
  let assemblyFormat = [{
    $value `,` $buffer `[` $indices `]` `dims` $index_dims `strides` `(` $strides `)`
    `masks` `(` $masks `)` `over` $mask_dims attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

def TkGpu_AllocSharedOp : TkGpu_Op<"alloc_shared", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Shared memory for a tile; `offset` is its first byte once that is planned";
  let arguments = (ins OptionalAttr<I64Attr>:$offset);
  let results = (outs TkGpu_SharedType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def TkGpu_StageOp : TkGpu_Op<"stage", [Pure]> {
  let summary = "One stage of a shared buffer whose first axis counts stages, or some rows of it";
  let description = [{
    With `from` the result has fewer rows than the stage (its `pitch`), from that row on: a multiple of
    those after which the permutation of chunks repeats.
  }];
  let arguments = (ins TkGpu_SharedType:$source, Index:$stage, Optional<Index>:$from);
  let results = (outs TkGpu_SharedType:$result);
  let assemblyFormat =
    "$source `[` $stage `]` (`from` $from^)? attr-dict `:` type($source) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source,
    "::mlir::Value":$stage), [{
      build($_builder, $_state, result, source, stage, ::mlir::Value());
    }]>];
  let hasVerifier = 1;
}

def TkGpu_LocalLoadOp : TkGpu_Op<"local_load", [MemoryEffects<[MemRead]>]> {
  let summary = "A tile from shared memory";
  let description = [{
    `matrix` asks for ldmatrix (with `transposed` for its transposing form), which the result's
    layout must be a fragment for; `vector` is the length in elements of a plain access. `offsets`
    select a part of the buffer, constants for each axis; absent means from the start. With `from` the
    part lies so much further on along `axis`: a multiple of `span`, a power of two in which the
    part ends.

    ```mlir
    %x = tkgpu.local_load %s from %k axis 1 span 16 {offsets = array<i64: 0, 4>}
           : !tkgpu.shared<64x32xf32> -> tensor<64x4xf32, #layout>
    ```
  }];
  let arguments = (ins TkGpu_SharedType:$source, Optional<Index>:$from,
                       OptionalAttr<I64Attr>:$axis,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$span,
                       OptionalAttr<DenseI64ArrayAttr>:$offsets, UnitAttr:$matrix,
                       UnitAttr:$transposed, DefaultValuedAttr<I64Attr, "1">:$vector);
  let results = (outs AnyRankedTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$source,
                                 "::mlir::DenseI64ArrayAttr":$offsets,
                                 "::mlir::UnitAttr":$matrix, "::mlir::UnitAttr":$transposed,
                                 "::mlir::IntegerAttr":$vector), [{
    build($_builder, $_state, type, source, /*from=*/nullptr, /*axis=*/nullptr, /*span=*/nullptr,
          offsets, matrix, transposed, vector);
  }]>];
  let assemblyFormat = [{
    $source (`from` $from^ `axis` $axis `span` $span)? attr-dict `:` type($source) `->`
    type($result)
  }];
  let hasVerifier = 1;
}

def TkGpu_LocalStoreOp : TkGpu_Op<"local_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes a tile to shared memory";
  let description = [{
    `matrix` asks for stmatrix (with `transposed` for its transposing form), which the value's
    layout must be a fragment for; `vector` is the length in elements of a plain access.
  }];
  let arguments = (ins AnyRankedTensor:$value, TkGpu_SharedType:$target, UnitAttr:$matrix,
                       UnitAttr:$transposed, DefaultValuedAttr<I64Attr, "1">:$vector);
  let assemblyFormat = "$value `,` $target attr-dict `:` type($value) `,` type($target)";
}

def TkGpu_CopyAsyncOp : TkGpu_Op<"copy_async", [AttrSizedOperandSegments,
                                                MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Begins a copy of a tile from global to shared memory";
  let description = [{
    Addressed as tkgpu.load; elements that are masked off become zero. `layout` says which thread
    copies which elements, `vector` how many at a time (4, 8 or 16 bytes). Complete only after a
    tkgpu.async_wait for its group and a barrier.
  }];
  let arguments = (ins TkGpu_SharedType:$target, TkGpu_BufferType:$buffer,
                       Variadic<AnyType>:$indices, Variadic<Index>:$strides,
                       Variadic<AnyType>:$masks, TkGpu_DimsAttr:$index_dims,
                       TkGpu_DimsAttr:$mask_dims, TkGpu_LayoutAttr:$layout,
                       DefaultValuedAttr<I64Attr, "1">:$vector);
  let assemblyFormat = [{
    $target `,` $buffer `[` $indices `]` `dims` $index_dims `strides` `(` $strides `)`
    `masks` `(` $masks `)` `over` $mask_dims `layout` $layout attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def TkGpu_AllocPrivateOp : TkGpu_Op<"alloc_private", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Shared memory of which each thread has a part; `offset` is its first byte";
  let arguments = (ins OptionalAttr<I64Attr>:$offset);
  let results = (outs TkGpu_PrivateType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def TkGpu_CopyPrivateOp : TkGpu_Op<"copy_private", [AttrSizedOperandSegments,
                                                    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Each thread begins a copy of its part of a tile from global to shared memory";
  let description = [{
    Addressed as tkgpu.load; elements that are masked off become zero. Of a vector the first
    element's mask holds for all, and vectors have 4, 8 or 16 bytes. Complete for the thread after
    a tkgpu.async_wait for its group; what it read before from that stage it has. With `offsets` the
    part of the stage's tile that begins there and has `extents`, as tkgpu.private_load has it.
  }];
  let arguments = (ins TkGpu_PrivateType:$target, Index:$stage, TkGpu_BufferType:$buffer,
                       Variadic<AnyType>:$indices, Variadic<Index>:$strides,
                       Variadic<AnyType>:$masks, TkGpu_DimsAttr:$index_dims,
                       TkGpu_DimsAttr:$mask_dims, OptionalAttr<DenseI64ArrayAttr>:$offsets,
                       OptionalAttr<DenseI64ArrayAttr>:$extents);
  let builders = [OpBuilder<(ins "::mlir::Value":$target, "::mlir::Value":$stage,
                                 "::mlir::Value":$buffer, "::mlir::ValueRange":$indices,
                                 "::mlir::ValueRange":$strides, "::mlir::ValueRange":$masks,
                                 "::mlir::ArrayAttr":$index_dims, "::mlir::ArrayAttr":$mask_dims),
                            [{build($_builder, $_state, target, stage, buffer, indices, strides, masks, index_dims,
                                    mask_dims, nullptr, nullptr);}]>];
  let extraClassDeclaration = [{
    /// What is copied: a stage's tile, or the part of one.
    ::mlir::RankedTensorType getCopiedType();
  }];
  let assemblyFormat = [{
    $target `at` $stage `,` $buffer `[` $indices `]` `dims` $index_dims `strides` `(` $strides `)`
    `masks` `(` $masks `)` `over` $mask_dims attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def TkGpu_PrivateLoadOp : TkGpu_Op<"private_load", [MemoryEffects<[MemRead]>]> {
  let summary = "The tile of a stage, each thread's part from its own shared memory";
  let description = [{
    With `offsets` the part of the tile that begins there, as tkgpu.extract has it, of whole vectors.
  }];
  let arguments = (ins TkGpu_PrivateType:$source, Index:$stage,
                       OptionalAttr<DenseI64ArrayAttr>:$offsets);
  let results = (outs AnyRankedTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$source,
                                 "::mlir::Value":$stage),
                            "build($_builder, $_state, type, source, stage, nullptr);">];
  let assemblyFormat = "$source `at` $stage attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def TkGpu_AsyncCommitOp : TkGpu_Op<"async_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Closes the group of copies begun since the last one";
  let assemblyFormat = "attr-dict";
}

def TkGpu_AsyncWaitOp : TkGpu_Op<"async_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until at most `pending` of the latest groups are incomplete";
  let arguments = (ins I64Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
}

def TkGpu_BarrierOp : TkGpu_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits for all threads of the block";
  let description = [{
    In a consumer's program the threads that run it wait for each other. `cluster` is for the
    threads of all blocks of the cluster. With `warpgroup` the threads of each four warps wait for
    each other alone.
  }];
  let arguments = (ins UnitAttr:$cluster, UnitAttr:$warpgroup);
  let assemblyFormat = "attr-dict";
  let builders = [OpBuilder<(ins CArg<"bool", "false">:$cluster), [{
    build($_builder, $_state, cluster, /*warpgroup=*/false);
  }]>];
  let hasVerifier = 1;
}

#endif // TK_DIALECTS_TKGPU_TKGPUMEMORYOPS_TD
