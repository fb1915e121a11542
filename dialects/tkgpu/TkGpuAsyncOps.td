//===- TkGpuAsyncOps.td - TMA, mbarriers, wgmma, warp specialization ------===//
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
    `tkgpu.doubted`.

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

//===----------------------------------------------------------------------===//
// wgmma
//===----------------------------------------------------------------------===//

def TkGpu_WarpgroupDotOp : TkGpu_Op<"warpgroup_dot", [
    AllTypesMatch<["acc", "result"]>, MemoryEffects<[MemRead]>]> {
  let summary = "Begin the contraction `acc + a * b` of an MxK and a KxN tile by `wgmma`";
  let description = [{
    Four warps together compute 64 rows at a time. `b` lies in shared memory, and so does `a`
    unless it is a tile in registers. The contraction is in flight until a `tkgpu.warpgroup_wait`:
    it reads its operands and writes its result until then. Before that wait the result may only be
    the accumulator of further contractions. If `accumulate` is given and false, `acc` counts as
    zero.

    The matrix unit accumulates contractions of 8-bit floats with fewer bits than f32. Unless
    `precision` is `fast`, the threads therefore add the contraction over the operands' k to `acc`
    in f32. With `precision` `blocked` they do so for all types.

    The verifier requires:

    - operands of two axes with fitting extents,
    - a multiple of 64 rows,
    - operands in shared memory with a swizzle of the hardware, or without one,
    - no `accumulate` where the threads add,
    - interleaved rows only in `b`, and only if they are the columns of the contraction: axis 1 is
      second in the `order` of `b`.

    ```mlir
    %d = tkgpu.warpgroup_dot %a, %b, %zero
        : !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>,
        <[64, 256], bf16 order = [1, 0] chunk = 8 phases = 8 panel = 64> -> tensor<128x256xf32>
    ```
  }];
  let arguments = (ins AnyType:$a, TkGpu_SharedType:$b, AnyRankedTensor:$acc,
                       Optional<I1>:$accumulate,
                       DefaultValuedAttr<Tk_PrecisionAttr, "::tk::Precision::Default">:$precision);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $acc (`if` $accumulate^)? (`precision` $precision^)? attr-dict `:` type($a) `,` type($b) `->`
    type($result)
  }];
  let hasVerifier = 1;
}

def TkGpu_WarpgroupSumsOp : TkGpu_Op<"warpgroup_sums", [
    AllTypesMatch<["acc", "result"]>, MemoryEffects<[MemRead]>]> {
  let summary = "Begin `acc` + the row sums of `a`, as extra columns of the preceding contraction";
  let description = [{
    `b` has extra columns that hold 1, `ones` of its type. With them the instructions of the
    preceding `tkgpu.warpgroup_dot` also sum the rows of `a`. Each column of the result is a copy
    of these row sums. The result is in flight as that of a `tkgpu.warpgroup_dot`.

    The verifier requires a `tkgpu.warpgroup_dot` of the same `a` and `b` directly in front,
    without `accumulate` and without an addition by threads. `acc` has the rows of `a` and a column
    for each of the `ones` of `b`.

    ```mlir
    %s = tkgpu.warpgroup_sums %p, %v, %sums : tensor<64x128xf8E4M3FN>,
        <[128, 64], f8E4M3FN order = [0, 1] chunk = 16 phases = 8 ones = 8> -> tensor<64x8xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$a, TkGpu_SharedType:$b, AnyRankedTensor:$acc);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "$a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let hasVerifier = 1;
}

def TkGpu_ClearOp : TkGpu_Op<"clear", [Pure, SameOperandsAndResultType]> {
  let summary = "Create a tile of zeros in the registers of the source";
  let description = [{
    The CUDA compiler cannot tell that the registers hold zeros, as for `tkgpu.hold`. It therefore
    does not set them behind the end of a loop, where contractions in flight use them.

    ```mlir
    %z = tkgpu.clear %x : tensor<64x8xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
}

def TkGpu_UndefinedOp : TkGpu_Op<"undefined", [Pure]> {
  let summary = "Create a tile that is written before it is read";
  let description = [{
    ```mlir
    %u = tkgpu.undefined : tensor<64x64xf32>
    ```
  }];
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def TkGpu_WarpgroupWaitOp : TkGpu_Op<"warpgroup_wait", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Wait until at most `pending` of the latest warpgroup contractions are in flight";
  let description = [{
    Each result is its source in the same registers. The results of completed contractions may be
    used. With `pending` 0 all contractions are complete. The verifier requires results of the
    sources' types.

    ```mlir
    %w = tkgpu.warpgroup_wait %d pending 0 : tensor<128x256xf32> -> tensor<128x256xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$sources, I64Attr:$pending);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat =
    "$sources `pending` $pending attr-dict `:` type($sources) `->` type($results)";
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$sources, "int64_t":$pending), [{
    build($_builder, $_state, sources.getTypes(), sources, pending);
  }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The result at the position of the source.
    ::mlir::Value getResultFor(::mlir::OpOperand &source) {
      return getResult(source.getOperandNumber());
    }
  }];
}

//===----------------------------------------------------------------------===//
// Warp specialization
//===----------------------------------------------------------------------===//

def TkGpu_WarpRolesOp : TkGpu_Op<"warp_roles", [
    HasParent<"FuncOp">, NoRegionArguments, SingleBlockImplicitTerminator<"RoleEndOp">]> {
  let summary = "Run a producer warp and consumer warps side by side (warp specialization)";
  let description = [{
    One thread of the function's `producer_warps` runs the `producer` region and issues the TMA
    loads. The `num_warps` warps of each team run the `consumer` region. The two synchronise only
    by mbarriers.

    `producer_registers` and `consumer_registers` are the registers of a thread of either kind,
    from which `setmaxnreg` moves registers between them.

    The verifier requires a function with producer warps, and register numbers for both regions or
    for neither. They are multiples of 8 from 24 to 256.

    ```mlir
    tkgpu.warp_roles producer {
      tkgpu.phase_expect %full[%slot] bytes 49152 : <4>
    } consumer {
      tkgpu.phase_wait %full[%slot] parity %parity : <4>
    } {producer_registers = 24, consumer_registers = 240}
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$producer_registers,
                       OptionalAttr<I64Attr>:$consumer_registers);
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumer);
  let assemblyFormat = "`producer` $producer `consumer` $consumer attr-dict";
  let hasVerifier = 1;
}

def TkGpu_RoleEndOp : TkGpu_Op<"role_end", [Pure, Terminator, HasParent<"WarpRolesOp">]> {
  let summary = "End a region of a tkgpu.warp_roles";
  let description = [{
    The parser and the printer of `tkgpu.warp_roles` add and omit the operation.

    ```mlir
    tkgpu.role_end
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def TkGpu_OfWarpgroupOp : TkGpu_Op<"of_warpgroup", [Pure]> {
  let summary = "Choose a scalar for each warpgroup of the consumer";
  let description = [{
    Warpgroup `w` gets operand `w`. Values that depend on the result may differ between warpgroups
    and are equal within one. Control flow that depends on it may contain only mbarriers,
    `tkgpu.turn` and barriers of the warpgroup.

    ```mlir
    %own = tkgpu.of_warpgroup %first, %second
    ```
  }];
  let arguments = (ins Variadic<Index>:$values);
  let results = (outs Index:$result);
  let assemblyFormat = "$values attr-dict";
}

def TkGpu_TurnOp : TkGpu_Op<"turn", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Order the warpgroups of the consumer (ping-pong scheduling)";
  let description = [{
    `begin`, `take` and `pass` order the warpgroups in a circle. `begin` comes before all other
    steps, and the first warpgroup is then first. At `take` a warpgroup waits until it is its turn.
    At `pass` it gives the turn to the next warpgroup and continues. Each warpgroup executes `take`
    and `pass` equally often.

    `lead` and `follow` stagger the warpgroups in a line. At its n-th `follow` a warpgroup waits
    until the previous warpgroup, if there is one, has executed its n-th `lead`. `lead` does not
    wait. Each warpgroup executes both equally often.

    ```mlir
    tkgpu.turn take
    ```
  }];
  let arguments = (ins TkGpu_TurnStepAttr:$step);
  let assemblyFormat = "$step attr-dict";
}

def TkGpu_NoneNegativeOp : TkGpu_Op<"none_negative", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Test whether all elements in the warpgroup's threads are at least 0";
  let description = [{
    The operation stands in the consumer region of a `tkgpu.warp_roles`. It synchronises the
    threads of a warpgroup, which all get the same result. NaN gives false.

    The verifier requires a source of f32 with a layout.

    ```mlir
    %all = tkgpu.none_negative %m : tensor<32xf32, #one>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs I1:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def TkGpu_DoubtOp : TkGpu_Op<"doubt", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Set the overflow flag of the thread block if an element is outside of a range";
  let description = [{
    A thread sets the flag if `asked` is true and one of its elements is not in the closed range
    from `least` to `most`. NaN is in no range. Deferred rescaling uses the flag: `tkgpu.doubted`
    tests it, and the block recomputes its tiles if it is set. The operation stands in the consumer
    region of a `tkgpu.warp_roles`.

    The verifier requires a source of f32 with a layout, `least` of at most `most`, and mbarriers
    that were allocated with `notes`.

    ```mlir
    tkgpu.doubt %flags if %asked : <2>, %sum from 0.5 to 2.0 : tensor<32xf32, #one>
    ```
  }];
  let arguments = (ins TkGpu_PhasesType:$phases, I1:$asked, AnyRankedTensor:$source, F32Attr:$least,
                       F32Attr:$most);
  let assemblyFormat = [{
    $phases `if` $asked `:` type($phases) `,` $source `from` $least `to` $most attr-dict `:` type($source)
  }];
  let hasVerifier = 1;
}

def TkGpu_DoubtedOp : TkGpu_Op<"doubted", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Test whether a thread of the block has set the overflow flag";
  let description = [{
    The operation is executed once in a launch, in both regions of a `tkgpu.warp_roles`. Each warp
    of the consumer arrives at the first mbarrier of `phases`. All of them wait for that phase and
    for the TMA stores that they have begun. The producer's thread waits for the phase.

    The verifier requires mbarriers that were allocated with `notes`.

    ```mlir
    %again = tkgpu.doubted %flags : <2>
    ```
  }];
  let arguments = (ins TkGpu_PhasesType:$phases);
  let results = (outs I1:$result);
  let assemblyFormat = "$phases attr-dict `:` type($phases)";
  let hasVerifier = 1;
}

#endif // TK_DIALECTS_TKGPU_TKGPUASYNCOPS_TD
