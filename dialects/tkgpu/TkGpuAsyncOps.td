//===- TkGpuAsyncOps.td - dependent launches, mbarriers and TMA -----------===//
//
// Included by TkGpuOps.td. These operations begin work that is asynchronous to the threads, or wait
// for its completion.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUASYNCOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUASYNCOPS_TD

//===----------------------------------------------------------------------===//
// Programmatic dependent launch
//===----------------------------------------------------------------------===//

def TkGpu_LaunchReleaseOp : TkGpu_Op<"launch_release", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Let the next launch of the stream begin once all blocks of this launch have "
                "executed the operation";
  let description = [{
    The operation is the trigger of a programmatic dependent launch
    (`griddepcontrol.launch_dependents`).

    ```mlir
    tkgpu.launch_release
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def TkGpu_LaunchWaitOp : TkGpu_Op<"launch_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Wait until all earlier launches have ended and their results are visible";
  let description = [{
    The operation is the wait of a programmatic dependent launch (`griddepcontrol.wait`). A launch
    whose function has it may begin before the previous launch has ended.

    `buffers` are the arguments of the function that earlier launches write. Their contents change
    while the function runs, so that the emitter does not declare them `__restrict__`.

    ```mlir
    tkgpu.launch_wait %p : !tkgpu.buffer<f32>
    ```
  }];
  let arguments = (ins Variadic<TkGpu_BufferType>:$buffers);
  let assemblyFormat = "($buffers^ `:` type($buffers))? attr-dict";
}

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

def TkGpu_AllocPhasesOp : TkGpu_Op<"alloc_phases", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Allocate and initialise mbarriers, one for each pipeline stage";
  let description = [{
    A phase of each mbarrier expects `arrivals` arrivals. The mbarriers are initialised before the
    function's first other use of shared memory. `offset` is the byte at which they begin, once a
    pass has planned it.

    With `notes` the last element is no mbarrier. It holds the overflow flag of `tkgpu.doubt` and
    `tkgpu.doubted`, or the flag of `tkgpu.keep_finite`.

    The verifier requires at least one arrival. `notes` requires at least two elements.

    ```mlir
    %full = tkgpu.alloc_phases arrivals 1 : <4>
    ```
  }];
  let arguments = (ins I64Attr:$arrivals, OptionalAttr<I64Attr>:$offset, UnitAttr:$notes);
  let results = (outs TkGpu_PhasesType:$result);
  let assemblyFormat = "`arrivals` $arrivals attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def TkGpu_PhaseExpectOp : TkGpu_Op<"phase_expect", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Arrive at an mbarrier and announce the bytes of TMA loads";
  let description = [{
    One thread arrives, and the phase then also expects `bytes` bytes. The thread is the one that
    issues the TMA loads; see `tkgpu.bulk_copy`. `slot` is the position of the mbarrier in
    `phases`.

    ```mlir
    tkgpu.phase_expect %full[%slot] bytes 49152 : <4>
    ```
  }];
  let arguments = (ins TkGpu_PhasesType:$phases, Index:$slot, I64Attr:$bytes);
  let assemblyFormat = "$phases `[` $slot `]` `bytes` $bytes attr-dict `:` type($phases)";
}

def TkGpu_PhaseArriveOp : TkGpu_Op<"phase_arrive", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Arrive at an mbarrier, once for each warp";
  let description = [{
    The arrival is ordered after all earlier operations of the warp's lanes. A consumer thus
    releases a stage of a circular buffer. With `cluster` each warp arrives at the mbarriers of all
    blocks of the cluster.

    ```mlir
    tkgpu.phase_arrive %empty[%slot] : <4>
    ```
  }];
  let arguments = (ins TkGpu_PhasesType:$phases, Index:$slot, UnitAttr:$cluster);
  let assemblyFormat = "$phases `[` $slot `]` attr-dict `:` type($phases)";
}

def TkGpu_ArriveBeforeOp : TkGpu_Op<"arrive_before", [MemoryEffects<[MemRead, MemWrite]>,
    AllTypesMatch<["value", "result"]>]> {
  let summary = "Arrive at an mbarrier before a value is used";
  let description = [{
    The operation arrives as `tkgpu.phase_arrive` does. The result equals `value`, a tile of f32.

    Nothing depends on a `tkgpu.phase_arrive`, so that the assembler may delay it behind later
    arithmetic. In contrast, the first element of each thread's result depends on the warp's
    arrival. Arithmetic with that element therefore follows the arrival.

    ```mlir
    %g = tkgpu.arrive_before %empty[%slot], %f : <4>, tensor<128xf32>
    ```
  }];
  let arguments = (ins TkGpu_PhasesType:$phases, Index:$slot, RankedTensorOf<[F32]>:$value);
  let results = (outs RankedTensorOf<[F32]>:$result);
  let assemblyFormat =
    "$phases `[` $slot `]` `,` $value attr-dict `:` type($phases) `,` type($value)";
}

def TkGpu_PhaseWaitOp : TkGpu_Op<"phase_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Wait until the phase of an mbarrier with the given parity has completed";
  let description = [{
    The first phase has parity 0. The phase before it has parity 1 and counts as completed.

    ```mlir
    tkgpu.phase_wait %full[%slot] parity %parity : <4>
    ```
  }];
  let arguments = (ins TkGpu_PhasesType:$phases, Index:$slot, Index:$parity);
  let assemblyFormat = "$phases `[` $slot `]` `parity` $parity attr-dict `:` type($phases)";
}

//===----------------------------------------------------------------------===//
// TMA
//===----------------------------------------------------------------------===//

def TkGpu_TensorMapOp : TkGpu_Op<"tensor_map", [Pure, AttrSizedOperandSegments]> {
  let summary = "Create the TMA descriptor of a tensor and of the boxes that TMA moves";
  let description = [{
    The operation stands in a `tk.kernel`. It describes `tensor`, or result `result` of the launch
    whose argument the descriptor is. Extents and strides are those of the descriptor's axes from
    the outermost inwards. Strides count elements; the last stride is 1, and the others are
    multiples of 16 bytes. One axis of the tensor may be two axes of the descriptor. `box` has the
    extents of a box in elements. Neighbouring
    axes of the tensor may be one axis of the descriptor.

    An element outside of the extents is loaded as zero and not stored. `swizzle` is the length in
    bytes of the swizzle's rows, within which chunks of 16 bytes are permuted; 0 means no swizzle.
    With `tf32`, f32 elements are rounded to tf32 on their way to shared memory.

    With `before`, the axis before the last one is a window of rows, and another axis further out
    has the same stride. Coordinates of these two axes that add up to `before` name row 0. The
    descriptor begins `before` rows ahead of the tensor. A box may then end at any row: elements
    outside of the window are zero. An H200 reads the descriptor's base address for a box that lies
    outside as a whole, so that no such box may be loaded.

    The verifier requires:

    - either `tensor` or `result`,
    - 1 to 5 axes, as many as the tensor has or one more,
    - an extent, a stride and a side of the box for each axis, and sides from 1 to 256,
    - a `swizzle` of 0, 32, 64 or 128,
    - a `before` of 0, or of the box's rows with at least 3 axes,
    - f32 elements for `tf32`.

    With `places` rows of the box are places of windows. Along each axis but the first and the last
    one there are so many places, `steps` apart, of which the first one is at `lower`. They are
    counted through, along the innermost of these axes first, and the first axis goes on one by one.
    The box's rows stand at its axis before the last one.

    ```mlir
    %map = tkgpu.tensor_map %a : tensor<?x?xbf16> extents(%M, %K) strides(%K, %one) box [128, 64]
        swizzle 128
    ```
  }];
  let arguments = (ins Optional<AnyRankedTensor>:$tensor, Variadic<Index>:$extents,
                       Variadic<Index>:$strides, DenseI64ArrayAttr:$box, I64Attr:$swizzle,
                       OptionalAttr<I64Attr>:$result_number, UnitAttr:$tf32,
                       DefaultValuedAttr<I64Attr, "0">:$before, Variadic<Index>:$places,
                       OptionalAttr<DenseI64ArrayAttr>:$lower,
                       OptionalAttr<DenseI64ArrayAttr>:$steps);
  let results = (outs TkGpu_TensorMapType:$map);
  let assemblyFormat = [{
    ($tensor^ `:` type($tensor))? (`result` $result_number^)? `extents` `(` $extents `)`
    `strides` `(` $strides `)` `box` $box `swizzle` $swizzle (`tf32` $tf32^)?
    (`places` `(` $places^ `)` `from` $lower `by` $steps)? attr-dict
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$tensor, "::mlir::ValueRange":$extents,
                                 "::mlir::ValueRange":$strides, "::llvm::ArrayRef<int64_t>":$box,
                                 "int64_t":$swizzle, "::mlir::IntegerAttr":$result,
                                 "bool":$tf32, CArg<"int64_t", "0">:$before), [{
    build($_builder, $_state, TensorMapType::get($_builder.getContext()), tensor, extents, strides,
          $_builder.getDenseI64ArrayAttr(box), $_builder.getI64IntegerAttr(swizzle), result,
          tf32 ? $_builder.getUnitAttr() : nullptr, $_builder.getI64IntegerAttr(before),
          /*places=*/::mlir::ValueRange(), /*lower=*/nullptr, /*steps=*/nullptr);
  }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The tensor described: the operand, or the result of `launch`.
    ::mlir::Value getTensorFor(LaunchOp launch);
  }];
}

def TkGpu_BulkCopyOp : TkGpu_Op<"bulk_copy", [AttrSizedOperandSegments,
                                              MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Begin a TMA load of a box of a tensor to shared memory";
  let description = [{
    In the producer region of a `tkgpu.warp_roles` its thread issues the load, elsewhere the first
    thread of the block. The load completes asynchronously: its bytes count on the mbarrier of
    `phases` at `slot`. `coordinates` name the first element of the box, one for each axis of the
    descriptor. They may lie outside of the tensor. The contiguous axis of the target is the
    innermost axis of the descriptor.

    A target of several panels takes one box for each panel. A target with interleaved row pairs
    takes one box for each part. The axis before the innermost one then counts the rows of a group,
    two for each part, and the axis before that counts the groups.

    With `distances` the rows are windows of a map with `places`. `coordinates` are those of the
    first row's place. Each row is read so far from its place along each axis but the first and the
    last one. Distances are not negative.

    | attribute | meaning |
    |---|---|
    | `multicast` | the tile is the same in all blocks of the cluster. Each block loads its part of the rows, along this axis of the descriptor, into all blocks. `coordinates` are those of the whole tile |
    | `first_row` | the load is one of several that fill the tile. Its box begins at this row of the tile |
    | `once` | L2 evict-first hint: keeping these bytes in the L2 cache does not pay |
    | `again` | L2 evict-last hint: the L2 cache keeps these bytes before all others |

    `map` is an argument of the function, or an `arith.select` of two descriptors of one tensor.

    The verifier requires:

    - 1 to 5 coordinates, and `phases` and `slot` together or neither,
    - a target with a swizzle of the hardware, or without one,
    - a `multicast` axis of the descriptor,
    - at least 3 coordinates and no `multicast` for interleaved rows,
    - a `first_row` of the tile, without `multicast` and interleaved rows.

    ```mlir
    tkgpu.bulk_copy %a, %map[%row, %k] signals %full[%slot]
        : <[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, !tkgpu.phases<4>
    ```
  }];
  let extraClassDeclaration = [{
    /// The argument of the function that is the descriptor; if `map` selects one of two, the
    /// descriptor that begins with the tensor. Null if `map` is another value.
    ::mlir::BlockArgument getMapArgument();
  }];
  let arguments = (ins TkGpu_SharedType:$target, TkGpu_TensorMapType:$map,
                       Variadic<Index>:$coordinates, Variadic<Index>:$distances,
                       Optional<TkGpu_PhasesType>:$phases, Optional<Index>:$slot,
                       OptionalAttr<I64Attr>:$multicast,
                       OptionalAttr<I64Attr>:$first_row, UnitAttr:$once, UnitAttr:$again);
  let builders = [OpBuilder<(ins "::mlir::Value":$target, "::mlir::Value":$map,
                                 "::mlir::ValueRange":$coordinates, "::mlir::Value":$phases,
                                 "::mlir::Value":$slot, "::mlir::IntegerAttr":$multicast,
                                 "::mlir::IntegerAttr":$first_row,
                                 CArg<"::mlir::ValueRange", "{}">:$distances), [{
    build($_builder, $_state, target, map, coordinates, distances, phases, slot, multicast, first_row,
          /*once=*/::mlir::UnitAttr(), /*again=*/::mlir::UnitAttr());
  }]>];
  let assemblyFormat = [{
    $target `,` $map `[` $coordinates `]` (`at` `distances` `(` $distances^ `)`)? (`signals` $phases^ `[` $slot `]`)? attr-dict `:`
    type($target) (`,` type($phases)^)?
  }];
  let hasVerifier = 1;
}

def TkGpu_BulkStoreOp : TkGpu_Op<"bulk_store", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Begin a TMA store of a tile in shared memory to a box of a tensor";
  let description = [{
    The first of the threads that run the program issues the store. A `tkgpu.async_fence` and a
    barrier order it after the writes of the other threads. Each store is a group for
    `tkgpu.bulk_store_wait`. Elements outside of the tensor are not written.

    With `warpgroup_axis` the first thread of each warpgroup stores the warpgroup's rows of the
    tile. The rows are divided in order and equally along this axis of the descriptor. A barrier of
    the warpgroup then suffices. `coordinates` are those of the whole tile.

    A box may end beyond the tensor, but coordinates below 0 raise an illegal instruction on an
    H200. With `before_axis` a store whose coordinate on that axis is below 0 is skipped.

    The verifier requires 1 to 5 coordinates, a source with a swizzle of the hardware or without
    one, and axes of the descriptor. With `warpgroup_axis` each warpgroup has a multiple of 8 rows.
    The emitter requires a source of one panel.

    ```mlir
    tkgpu.bulk_store %s, %map[%row, %column] {warpgroup_axis = 0 : i64}
        : <[64, 64], bf16 chunk = 8 phases = 8>
    ```
  }];
  let arguments = (ins TkGpu_SharedType:$source, TkGpu_TensorMapType:$map,
                       Variadic<Index>:$coordinates, OptionalAttr<I64Attr>:$warpgroup_axis,
                       OptionalAttr<I64Attr>:$before_axis);
  let assemblyFormat = "$source `,` $map `[` $coordinates `]` attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def TkGpu_BulkStoreWaitOp : TkGpu_Op<"bulk_store_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Wait until at most `pending` of the latest TMA stores still read shared memory";
  let description = [{
    Only the thread that issued the stores waits, and a barrier informs the other threads. With
    `warpgroup` the first thread of each warpgroup waits.

    ```mlir
    tkgpu.bulk_store_wait 0 {warpgroup}
    ```
  }];
  let arguments = (ins I64Attr:$pending, UnitAttr:$warpgroup);
  let assemblyFormat = "$pending attr-dict";
}

def TkGpu_AsyncFenceOp : TkGpu_Op<"async_fence", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Make the thread's writes to shared memory visible to TMA and to wgmma";
  let description = [{
    The operation is `fence.proxy.async`. It holds for TMA stores and warpgroup contractions that
    begin after a following barrier.

    ```mlir
    tkgpu.async_fence
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif // TK_DIALECTS_TKGPU_TKGPUASYNCOPS_TD
