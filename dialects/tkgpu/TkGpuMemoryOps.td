//===- TkGpuMemoryOps.td - accesses of a block's threads ------------------===//
//
// Included by TkGpuOps.td: loads and stores of tiles in global memory, shared memory and
// thread-private staging, and cp.async copies.
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
  let summary = "Load a tile, or a scalar, from global memory";
  let description = [{
    The element at a coordinate comes from offset `sum_d indices[d] * strides[d]` of the buffer, in
    elements. An index is a scalar or a tile of fewer axes: its axis `a` is axis `dims[d][a]` of
    the result. A mask is placed in the same way by `over`. If a mask is false, the element is
    `other`, and memory is not accessed.

    `vector` is the number of elements of one access. The address of an access is aligned to it. A
    `run` of more than 1 has the same meaning where masks may end within an access or a
    misalignment shift may cut it. The access then reads a vector if its elements are neighbours
    and its last mask is true. The masks of neighbours are true up to one of them.

    A function never writes what it reads. A load therefore has no side effect.

    The verifier requires:

    - a stride and an axis list for each index, and an axis list for each mask,
    - indices of type `index` and masks of type `i1`, with the extents of the result on their axes,
    - the buffer's element type, with `i8` for `ui8`,
    - `other`, of the element's or the result's type, if there are masks.

    ```mlir
    %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over
        [array<i64: 0>] other(%zero) {vector = 8 : i64}
        : (!tkgpu.buffer<bf16>, index, tensor<1024xindex>, index, index, tensor<1024xi1>, bf16) ->
        tensor<1024xbf16>
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
  let summary = "Store a tile, or a scalar, to global memory where all masks are true";
  let description = [{
    The addresses, `vector` and `run` are those of `tkgpu.load`. If several threads hold an
    element, one of them writes it. The verifier requires what `tkgpu.load` requires, except for
    `other`.

    ```mlir
    tkgpu.store %v, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over
        [array<i64: 0>] {vector = 8 : i64}
        : (tensor<1024xbf16>, !tkgpu.buffer<bf16>, index, tensor<1024xindex>, index, index,
        tensor<1024xi1>) -> ()
    ```
  }];
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
  let summary = "Allocate a tile in shared memory";
  let description = [{
    `offset` is the first byte of the tile, once `tk-plan-shared-memory` has planned it.

    ```mlir
    %a = tkgpu.alloc_shared : <[4, 128, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8>
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset);
  let results = (outs TkGpu_SharedType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def TkGpu_StageOp : TkGpu_Op<"stage", [Pure]> {
  let summary = "Select one stage of a multistage buffer, or some of its rows";
  let description = [{
    The first axis of the source counts stages. With `from` the result has the rows from `from` on,
    as many as its type has. `from` is a multiple of the number of rows after which the swizzle
    repeats.

    The verifier requires a result of a stage's shape, or of its transpose with two axes, and of
    the source's element type. `from` is given if and only if the result has a `pitch`. The pitch
    is then the number of rows of the stage.

    ```mlir
    %stage = tkgpu.stage %a[%slot] : !tkgpu.shared<[4, 128, 64], bf16 order = [2, 1, 0] chunk = 8
        phases = 8> -> !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
    ```
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
  let summary = "Load a tile, or a part of one, from shared memory";
  let description = [{
    `offsets` is the coordinate at which the part begins, 0 on each axis by default. With `from`
    the part lies `from` elements further along `axis`. `from` is a multiple of `span`, a power of
    two within which the part lies.

    `matrix` asks for `ldmatrix`, with `transposed` for its transposing form. The layout of the
    result must be a fragment of that instruction. Otherwise an access reads `vector` elements.

    The verifier requires `from`, `axis` and `span` together or none of them, an axis of the
    result, and a `span` that is a power of two and at least the end of the part.

    ```mlir
    %x = tkgpu.local_load %s from %k axis 1 span 16 {offsets = array<i64: 0, 4>}
        : !tkgpu.shared<[64, 32], f32> -> tensor<64x4xf32>
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
  let summary = "Store a tile to shared memory";
  let description = [{
    `matrix` asks for `stmatrix`, with `transposed` for its transposing form. The layout of the
    value must be a fragment of that instruction. Otherwise an access writes `vector` elements. If
    several threads hold an element, one of them writes it.

    ```mlir
    tkgpu.local_store %v, %s {matrix} : tensor<128x64xbf16, #rows>,
        !tkgpu.shared<[128, 64], bf16 chunk = 8 phases = 8>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$value, TkGpu_SharedType:$target, UnitAttr:$matrix,
                       UnitAttr:$transposed, DefaultValuedAttr<I64Attr, "1">:$vector);
  let assemblyFormat = "$value `,` $target attr-dict `:` type($value) `,` type($target)";
}

def TkGpu_CopyAsyncOp : TkGpu_Op<"copy_async", [AttrSizedOperandSegments,
                                                MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Begin a `cp.async` copy of a tile from global to shared memory";
  let description = [{
    The addresses are those of `tkgpu.load`. Masked-off elements become zero. `layout` says which
    thread copies which elements. An access copies `vector` elements, of 4, 8 or 16 bytes together;
    a narrower access is a load and a store. The copy is complete after a `tkgpu.async_wait` for
    its group and a barrier.

    The verifier requires equal element types of target and buffer, and of indices and masks what
    `tkgpu.load` requires.

    ```mlir
    tkgpu.copy_async %s, %x[%r, %c] dims [array<i64: 0>, array<i64: 1>] strides(%c32, %c1) masks()
        over [] layout #tile {vector = 4 : i64}
        : (!tkgpu.shared<[64, 32], f32>, !tkgpu.buffer<f32>, tensor<64xindex>, tensor<32xindex>,
        index, index) -> ()
    ```
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
  let summary = "Allocate shared memory for thread-private staging";
  let description = [{
    `offset` is the first byte, once `tk-plan-shared-memory` has planned it.

    ```mlir
    %rows = tkgpu.alloc_private : <3 x tensor<512xbf16, #row>, vector = 8>
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset);
  let results = (outs TkGpu_PrivateType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def TkGpu_CopyPrivateOp : TkGpu_Op<"copy_private", [AttrSizedOperandSegments,
                                                    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Begin a `cp.async` copy of each thread's part of a tile to its thread-private "
                "staging";
  let description = [{
    The addresses are those of `tkgpu.load`. Masked-off elements become zero. The mask of a
    vector's first element holds for the whole vector. The copy is complete for its thread after a
    `tkgpu.async_wait` for its group, without a barrier. Values that the thread has read from the
    stage before stay valid.

    With `offsets` and `extents` the operation copies the part of the tile that begins at
    `offsets`, as `tkgpu.private_load` reads it.

    The verifier requires vectors of 4, 8 or 16 bytes, and `offsets` and `extents` together or
    neither. A part consists of whole vectors of each thread. Indices and masks obey the rules of
    `tkgpu.load`.

    ```mlir
    tkgpu.copy_private %rows at %c0, %x[%j] dims [array<i64: 0>] strides(%c1) masks() over []
        : (!tkgpu.private<3 x tensor<512xbf16, #row>, vector = 8>, index, !tkgpu.buffer<bf16>,
        tensor<512xindex, #row>, index) -> ()
    ```
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
    /// The type of the copied tile: a stage's tile, or a part of one.
    ::mlir::RankedTensorType getCopiedType();
  }];
  let assemblyFormat = [{
    $target `at` $stage `,` $buffer `[` $indices `]` `dims` $index_dims `strides` `(` $strides `)`
    `masks` `(` $masks `)` `over` $mask_dims attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def TkGpu_PrivateLoadOp : TkGpu_Op<"private_load", [MemoryEffects<[MemRead]>]> {
  let summary = "Load a tile from thread-private staging";
  let description = [{
    Each thread reads its own part of stage `stage`. With `offsets` the result is the part of the
    tile that begins there, as for `tkgpu.extract`.

    The verifier requires a result of the staged type, or of a part that consists of whole vectors
    of each thread.

    ```mlir
    %v = tkgpu.private_load %rows at %c0 : <3 x tensor<512xbf16, #row>, vector = 8> ->
        tensor<512xbf16, #row>
    ```
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
  let summary = "Close the group of `cp.async` copies that began since the last group";
  let description = [{
    ```mlir
    tkgpu.async_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def TkGpu_AsyncWaitOp : TkGpu_Op<"async_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Wait until at most `pending` of the latest groups of `cp.async` copies are "
                "incomplete";
  let description = [{
    Each thread waits for its own copies. A barrier follows before other threads read the copied
    elements.

    ```mlir
    tkgpu.async_wait 0
    ```
  }];
  let arguments = (ins I64Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
}

def TkGpu_BarrierOp : TkGpu_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Wait for all threads of the block";
  let description = [{
    In the consumer region of a `tkgpu.warp_roles` the operation waits for the threads that run the
    region. With `cluster` it waits for all threads of the cluster. With `warpgroup` it waits for
    the threads of the warpgroup. The verifier refuses both attributes together.

    ```mlir
    tkgpu.barrier {warpgroup}
    ```
  }];
  let arguments = (ins UnitAttr:$cluster, UnitAttr:$warpgroup);
  let assemblyFormat = "attr-dict";
  let builders = [OpBuilder<(ins CArg<"bool", "false">:$cluster), [{
    build($_builder, $_state, cluster, /*warpgroup=*/false);
  }]>];
  let hasVerifier = 1;
}

#endif // TK_DIALECTS_TKGPU_TKGPUMEMORYOPS_TD
