//===- TkGpuAsyncOps.td - bulk copies, phases, warpgroup products, roles ---===//
//
// Included by TkGpuOps.td. What these operations begin goes on beside the threads; each says what
// tells that it is over.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUASYNCOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUASYNCOPS_TD

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

def TkGpu_LaunchReleaseOp : TkGpu_Op<"launch_release", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Lets the next launch's blocks begin once all blocks of this one have come here";
  let assemblyFormat = "attr-dict";
}

def TkGpu_LaunchWaitOp : TkGpu_Op<"launch_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until the launches before this one have ended and their results are visible";
  let description = [{
    `buffers` are those of the function's arguments that earlier launches write: they do not stay as
    they are while the function runs. A launch whose function waits may begin before the one before
    it has ended.
  }];
  let arguments = (ins Variadic<TkGpu_BufferType>:$buffers);
  let assemblyFormat = "($buffers^ `:` type($buffers))? attr-dict";
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

def TkGpu_AllocPhasesOp : TkGpu_Op<"alloc_phases", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Barriers with phases, one a stage, each of which expects `arrivals`";
  let description = [{
    Initialised before the function's first other use of shared memory. `offset` is their first
    byte once that is planned. With `notes` the last one is no barrier, but where threads note what
    tkgpu.doubted asks for.
  }];
  let arguments = (ins I64Attr:$arrivals, OptionalAttr<I64Attr>:$offset, UnitAttr:$notes);
  let results = (outs TkGpu_PhasesType:$result);
  let assemblyFormat = "`arrivals` $arrivals attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def TkGpu_PhaseExpectOp : TkGpu_Op<"phase_expect", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "One thread arrives and announces bytes that copies will bring";
  let description = "The thread is the one that begins the copies; see tkgpu.bulk_copy.";
  let arguments = (ins TkGpu_PhasesType:$phases, Index:$slot, I64Attr:$bytes);
  let assemblyFormat = "$phases `[` $slot `]` `bytes` $bytes attr-dict `:` type($phases)";
}

def TkGpu_PhaseArriveOp : TkGpu_Op<"phase_arrive", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Each warp arrives once, after what its lanes did before";
  let description = "With `cluster` it arrives in every block of the cluster.";
  let arguments = (ins TkGpu_PhasesType:$phases, Index:$slot, UnitAttr:$cluster);
  let assemblyFormat = "$phases `[` $slot `]` attr-dict `:` type($phases)";
}

def TkGpu_ArriveBeforeOp : TkGpu_Op<"arrive_before", [MemoryEffects<[MemRead, MemWrite]>,
    AllTypesMatch<["value", "result"]>]> {
  let summary = "Arrives as tkgpu.phase_arrive does; the result is `value`, and computed after that";
  let description = [{
    Nothing follows from an arrival, so that ptxas moves it behind what may come before. What computes
    with a thread's first element of the result comes after its warp's arrival.
  }];
  let arguments = (ins TkGpu_PhasesType:$phases, Index:$slot, RankedTensorOf<[F32]>:$value);
  let results = (outs RankedTensorOf<[F32]>:$result);
  let assemblyFormat =
    "$phases `[` $slot `]` `,` $value attr-dict `:` type($phases) `,` type($value)";
}

def TkGpu_PhaseWaitOp : TkGpu_Op<"phase_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until the phase of that parity has ended";
  let description = "The phase before the first one, whose parity is 1, has ended.";
  let arguments = (ins TkGpu_PhasesType:$phases, Index:$slot, Index:$parity);
  let assemblyFormat = "$phases `[` $slot `]` `parity` $parity attr-dict `:` type($phases)";
}

//===----------------------------------------------------------------------===//
// Bulk copies
//===----------------------------------------------------------------------===//

def TkGpu_TensorMapOp : TkGpu_Op<"tensor_map", [Pure, AttrSizedOperandSegments]> {
  let summary = "Describes a tensor, and the boxes of it that bulk copies move";
  let description = [{
    Stands in a tk.kernel and is an argument of its launches; without `tensor` it describes result
    `result` of the launch that it is an argument of. Extents and strides (in elements) are those of
    the axes from the outermost inwards, of which one of the tensor's may be two; the last stride is
    1, the others are multiples of 16 bytes.
    What lies beyond the extents reads as zero and is not written. `swizzle` is 0, 32, 64 or 128: the
    bytes of a box's row within which chunks of 16 are permuted. With `tf32` elements of f32 are
    rounded to tf32 on their way to shared memory.

    With `before` the axis before the last one is a window on rows, of which an axis further out has
    the same stride: coordinates of the two add up to `before` for row 0. A box may so end at any row:
    what lies beyond the window is zero. The map begins so many rows before the tensor. Of a box that
    is outside as a whole an H200 reads the map's base address: no such box may be copied by it.

    ```mlir
    %map = tkgpu.tensor_map %a : tensor<?x?xbf16> extents(%M, %K) strides(%K, %one)
      box [128, 64] swizzle 128
    ```
  }];
  let arguments = (ins Optional<AnyRankedTensor>:$tensor, Variadic<Index>:$extents,
                       Variadic<Index>:$strides, DenseI64ArrayAttr:$box, I64Attr:$swizzle,
                       OptionalAttr<I64Attr>:$result_number, UnitAttr:$tf32,
                       DefaultValuedAttr<I64Attr, "0">:$before);
  let results = (outs TkGpu_TensorMapType:$map);
  let assemblyFormat = [{
    ($tensor^ `:` type($tensor))? (`result` $result_number^)? `extents` `(` $extents `)`
    `strides` `(` $strides `)` `box` $box `swizzle` $swizzle (`tf32` $tf32^)? attr-dict
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$tensor, "::mlir::ValueRange":$extents,
                                 "::mlir::ValueRange":$strides, "::llvm::ArrayRef<int64_t>":$box,
                                 "int64_t":$swizzle, "::mlir::IntegerAttr":$result,
                                 "bool":$tf32, CArg<"int64_t", "0">:$before), [{
    build($_builder, $_state, TensorMapType::get($_builder.getContext()), tensor, extents, strides,
          $_builder.getDenseI64ArrayAttr(box), $_builder.getI64IntegerAttr(swizzle), result,
          tf32 ? $_builder.getUnitAttr() : nullptr, $_builder.getI64IntegerAttr(before));
  }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The tensor described: the operand, or the result of `launch`.
    ::mlir::Value getTensorFor(LaunchOp launch);
  }];
}

def TkGpu_BulkCopyOp : TkGpu_Op<"bulk_copy", [AttrSizedOperandSegments,
                                              MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Begins a copy of a box of a tensor to shared memory";
  let description = [{
    In a producer's program its thread begins it, elsewhere the block's first thread does.
    `coordinates` are those of the box's first element, one an axis of the tensor map; they may be
    outside. The contiguous axis of the target is the map's innermost one; a target of several
    panels takes a box a panel, one with interleaved pairs of rows a box a part: the map's axis before
    the innermost one then counts the rows of a group, two for each part, and the one of the rows
    counts groups. Once there is a ring of stages the copy counts for the phase of
    `phases` at `slot`, for all bytes of the target.

    With `multicast` the tile is the same in all blocks of the cluster. Each block brings its part
    of the rows, along the map's axis of that number and the axis that is second in the target's
    order, to all of them; `coordinates` are those of the whole tile.

    With `first_row` it is one of several copies that fill the tile: the box's rows lie from that
    row on, along the axis that is second in the target's order.

    With `once` nothing that it brings is worth keeping in the second-level cache, with `again` all
    of it is, before anything else.

    `map` is an argument of the function, or a choice of two maps of one tensor.
  }];
  let extraClassDeclaration = [{
    /// The argument of the function that is the map; of two, that which begins with the tensor. Null
    /// if `map` is something else.
    ::mlir::BlockArgument getMapArgument();
  }];
  let arguments = (ins TkGpu_SharedType:$target, TkGpu_TensorMapType:$map,
                       Variadic<Index>:$coordinates, Optional<TkGpu_PhasesType>:$phases,
                       Optional<Index>:$slot, OptionalAttr<I64Attr>:$multicast,
                       OptionalAttr<I64Attr>:$first_row, UnitAttr:$once, UnitAttr:$again);
  let builders = [OpBuilder<(ins "::mlir::Value":$target, "::mlir::Value":$map,
                                 "::mlir::ValueRange":$coordinates, "::mlir::Value":$phases,
                                 "::mlir::Value":$slot, "::mlir::IntegerAttr":$multicast,
                                 "::mlir::IntegerAttr":$first_row), [{
    build($_builder, $_state, target, map, coordinates, phases, slot, multicast, first_row,
          /*once=*/::mlir::UnitAttr(), /*again=*/::mlir::UnitAttr());
  }]>];
  let assemblyFormat = [{
    $target `,` $map `[` $coordinates `]` (`signals` $phases^ `[` $slot `]`)? attr-dict `:`
    type($target) (`,` type($phases)^)?
  }];
  let hasVerifier = 1;
}

def TkGpu_BulkStoreOp : TkGpu_Op<"bulk_store", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Begins to write a tile in shared memory to a box of a tensor";
  let description = [{
    The first of the threads that run the program begins it, for what all of them wrote before a
    tkgpu.async_fence and a barrier. Each is a group of its own; see tkgpu.bulk_store_wait. What lies
    outside the tensor is not written.

    With `warpgroup_axis` each warpgroup's first thread writes the warpgroup's rows of the tile, in
    order equal parts along the map's axis of that number and the axis that is second in the
    source's order; the barrier then is one of the warpgroup. `coordinates` are those of the whole
    tile.

    A store's box may end beyond the tensor, but not begin before it: an H200 raises an illegal
    instruction for coordinates below 0, which it takes for copies. With `before_axis`, what is
    written at once may lie before the tensor along the map's axis of that number as a whole, and
    then is not.
  }];
  let arguments = (ins TkGpu_SharedType:$source, TkGpu_TensorMapType:$map,
                       Variadic<Index>:$coordinates, OptionalAttr<I64Attr>:$warpgroup_axis,
                       OptionalAttr<I64Attr>:$before_axis);
  let assemblyFormat = "$source `,` $map `[` $coordinates `]` attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def TkGpu_BulkStoreWaitOp : TkGpu_Op<"bulk_store_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until at most `pending` of the latest stores still read shared memory";
  let description = [{
    It is the thread that began them who waits; a barrier tells the others. With `warpgroup` that is
    the first thread of each warpgroup.
  }];
  let arguments = (ins I64Attr:$pending, UnitAttr:$warpgroup);
  let assemblyFormat = "$pending attr-dict";
}

def TkGpu_AsyncFenceOp : TkGpu_Op<"async_fence", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Lets bulk copies and warpgroup products see what the thread has written";
  let description = "To shared memory, and for those that begin after a barrier.";
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Products of warpgroups
//===----------------------------------------------------------------------===//

def TkGpu_WarpgroupDotOp : TkGpu_Op<"warpgroup_dot", [
    AllTypesMatch<["acc", "result"]>, MemoryEffects<[MemRead]>]> {
  let summary = "Begins acc + a * b, for a of MxK, b of KxN and acc of MxN";
  let description = [{
    Four warps together compute 64 rows at a time. `b`, and `a` unless it is a tile, lie in shared
    memory as panels that the hardware permutes. The result may be used by further products as
    their accumulator, and by nothing else before a tkgpu.warpgroup_wait: the product reads its
    operands and writes its result until then. Where `accumulate` is given and false, acc counts as
    zero, whatever it holds.

    The hardware's sums of products of 8-bit floats keep fewer bits than f32 has. Unless `precision`
    is `fast` threads add them up, once for the whole k of the operands.
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
  let summary = "Begins acc + the sums of the rows of a, in the product of a and b in front of it";
  let description = [{
    Columns of ones behind those of `b` (`ones` of its type) make the same instructions sum the rows
    of `a`: each column of `acc` is another copy. The product in front has the same operands; the
    result may be used as that of a tkgpu.warpgroup_dot.
  }];
  let arguments = (ins AnyRankedTensor:$a, TkGpu_SharedType:$b, AnyRankedTensor:$acc);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "$a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let hasVerifier = 1;
}

def TkGpu_ClearOp : TkGpu_Op<"clear", [Pure, SameOperandsAndResultType]> {
  let summary = "A tile of zeros, in the registers of the source";
  let description = [{
    As tkgpu.hold the compiler of the emitted text does not know what is in them: registers that it
    would set behind a loop's end are not those that products in flight need.
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
}

def TkGpu_UndefinedOp : TkGpu_Op<"undefined", [Pure]> {
  let summary = "A tile that is not read before it has been written";
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def TkGpu_WarpgroupWaitOp : TkGpu_Op<"warpgroup_wait", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until at most `pending` of the latest products are incomplete";
  let description = [{
    The results are the sources, in the same registers, with the products that are complete then;
    with `pending` 0 they are finished tiles.
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
    /// The result that stands for the source in that position.
    ::mlir::Value getResultFor(::mlir::OpOperand &source) {
      return getResult(source.getOperandNumber());
    }
  }];
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

def TkGpu_WarpRolesOp : TkGpu_Op<"warp_roles", [
    HasParent<"FuncOp">, NoRegionArguments, SingleBlockImplicitTerminator<"RoleEndOp">]> {
  let summary = "Two programs that run side by side: one brings data, the other computes";
  let description = [{
    `producer` is run by one thread of the function's producer warps, which come after the others;
    `consumer` by its `num_warps` warps. They meet at phases alone. Registers a thread, multiples
    of 8, move from the one to the other where both are given.
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$producer_registers,
                       OptionalAttr<I64Attr>:$consumer_registers);
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumer);
  let assemblyFormat = "`producer` $producer `consumer` $consumer attr-dict";
  let hasVerifier = 1;
}

def TkGpu_RoleEndOp : TkGpu_Op<"role_end", [Pure, Terminator, HasParent<"WarpRolesOp">]> {
  let summary = "Ends the program of a role";
  let assemblyFormat = "attr-dict";
}

def TkGpu_OfWarpgroupOp : TkGpu_Op<"of_warpgroup", [Pure]> {
  let summary = "A scalar that each warpgroup of a consumer's program has its own of";
  let description = [{
    Operand `w` for warpgroup `w`. What follows from it may differ between warpgroups, but is the same in
    all threads of one: where one of them is alone it meets others at phases, turns and barriers of
    the warpgroup only.
  }];
  let arguments = (ins Variadic<Index>:$values);
  let results = (outs Index:$result);
  let assemblyFormat = "$values attr-dict";
}

def TkGpu_TurnOp : TkGpu_Op<"turn", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The warpgroups of a consumer's program take turns";
  let description = [{
    The turn goes around: `take` waits until the warpgroup has it, `pass` hands it to the next one
    and goes on. It is the first warpgroup's after `begin`, which comes before all others. Each
    warpgroup takes and passes it equally often.
    `lead` and `follow` take no turns: a warpgroup waits at `follow` until the one before it, if there is
    one, has come to its `lead` as often, which in turn waits for nobody. Each comes to both equally often.
  }];
  let arguments = (ins TkGpu_TurnStepAttr:$step);
  let assemblyFormat = "$step attr-dict";
}

def TkGpu_NoneNegativeOp : TkGpu_Op<"none_negative", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Is every element that a warpgroup's threads have at least 0?";
  let description = [{
    In a consumer's program. NaN is not; the threads of each warpgroup wait for each other, and have one
    answer.
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs I1:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def TkGpu_DoubtOp : TkGpu_Op<"doubt", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Notes, if it is `asked`, that a thread has an element that is not from `least` to `most`";
  let description = "In a consumer's program. NaN is not.";
  let arguments = (ins TkGpu_PhasesType:$phases, I1:$asked, AnyRankedTensor:$source, F32Attr:$least,
                       F32Attr:$most);
  let assemblyFormat = [{
    $phases `if` $asked `:` type($phases) `,` $source `from` $least `to` $most attr-dict `:` type($source)
  }];
  let hasVerifier = 1;
}

def TkGpu_DoubtedOp : TkGpu_Op<"doubted", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Has a thread of the block noted a tkgpu.doubt?";
  let description = [{
    Once a launch, in each program of a tkgpu.warp_roles. The consumer's warps, each of which arrives
    at the first barrier, wait for each other, and for the stores that they have begun; the
    producer's thread waits for them.
  }];
  let arguments = (ins TkGpu_PhasesType:$phases);
  let results = (outs I1:$result);
  let assemblyFormat = "$phases attr-dict `:` type($phases)";
  let hasVerifier = 1;
}

#endif // TK_DIALECTS_TKGPU_TKGPUASYNCOPS_TD
