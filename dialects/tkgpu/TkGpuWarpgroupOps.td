//===- TkGpuWarpgroupOps.td - wgmma and warp specialization -------------===//
//
// Included by TkGpuOps.td: products of warpgroups, and roles of warps.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUWARPGROUPOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUWARPGROUPOPS_TD

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
    from `least` to `most`. NaN is in no range. The result says whether this thread has set it. Deferred rescaling uses the flag: `tkgpu.doubted`
    tests it, and the block recomputes its tiles if it is set. The operation stands in the consumer
    region of a `tkgpu.warp_roles`.

    The verifier requires a source of f32 with a layout, `least` of at most `most`, and mbarriers
    that were allocated with `notes`.

    ```mlir
    %is = tkgpu.doubt %flags if %asked : <2>, %sum from 0.5 to 2.0 : tensor<32xf32, #one>
    ```
  }];
  let arguments = (ins TkGpu_PhasesType:$phases, I1:$asked, AnyRankedTensor:$source, F32Attr:$least,
                       F32Attr:$most);
  let results = (outs I1:$result);
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

#endif // TK_DIALECTS_TKGPU_TKGPUWARPGROUPOPS_TD
