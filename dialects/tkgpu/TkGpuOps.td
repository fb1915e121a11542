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

include "dialects/tkgpu/TkGpuTileOps.td"
include "dialects/tkgpu/TkGpuReduceOps.td"
include "dialects/tkgpu/TkGpuMemoryOps.td"
include "dialects/tkgpu/TkGpuAsyncOps.td"
include "dialects/tkgpu/TkGpuWarpgroupOps.td"

#endif // TK_DIALECTS_TKGPU_TKGPUOPS_TD
