//===- TkGpuDialect.td - the block-level dialect: attributes and types ----===//
#ifndef TK_DIALECTS_TKGPU_TKGPUDIALECT_TD
#define TK_DIALECTS_TKGPU_TKGPUDIALECT_TD

include "dialects/tkgpu/TkGpuBase.td"
include "dialects/tkgpu/TkGpuLayout.td"

class TkGpu_Type<string name, string typeMnemonic> : TypeDef<TkGpu_Dialect, name> {
  let mnemonic = typeMnemonic;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def TkGpu_Axis : I32EnumAttr<"GridAxis", "an axis of the grid of thread blocks", [
    I32EnumAttrCase<"X", 0, "x">, I32EnumAttrCase<"Y", 1, "y">, I32EnumAttrCase<"Z", 2, "z">]> {
  let cppNamespace = "::tk::gpu";
  let genSpecializedAttr = 0;
}
def TkGpu_AxisAttr : EnumAttr<TkGpu_Dialect, TkGpu_Axis, "axis">;

def TkGpu_TurnStep : I32EnumAttr<"TurnStep",
    "a step of the order of warpgroups (ping-pong scheduling)", [
    I32EnumAttrCase<"Begin", 0, "begin">, I32EnumAttrCase<"Take", 1, "take">,
    I32EnumAttrCase<"Pass", 2, "pass">, I32EnumAttrCase<"Lead", 3, "lead">,
    I32EnumAttrCase<"Follow", 4, "follow">]> {
  let cppNamespace = "::tk::gpu";
  let genSpecializedAttr = 0;
}
def TkGpu_TurnStepAttr : EnumAttr<TkGpu_Dialect, TkGpu_TurnStep, "turn_step">;

def TkGpu_TargetAttr : TkGpu_Attr<"Target", "target"> {
  let summary = "the machine that a module is compiled for";
  let description = [{
    A module carries the attribute under the name `tkgpu.target`. `arch` is the compute capability
    times ten. `shared` is the shared memory of a thread block in bytes. `processors` is the number
    of multiprocessors. `hopper` states that `wgmma`, TMA and clusters exist (sm_90a).

    ```mlir
    #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
    ```
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "80">:$arch,
    DefaultValuedParameter<"int64_t", "101376">:$shared,
    DefaultValuedParameter<"int64_t", "108">:$processors,
    DefaultValuedParameter<"bool", "false">:$hopper);
  let assemblyFormat = "`<` struct(params) `>`";
}

def TkGpu_ScheduleAttr : TkGpu_Attr<"Schedule", "schedule"> {
  let summary = "the tiles, blocks, warps and pipeline depth of a tk.compute";
  let description = [{
    The attribute is the parameter `tiles` of a `#tkgpu.plan`.

    | parameter | meaning |
    |---|---|
    | `tile` | the extent of a tile along each index of the compute |
    | `reduce` | the extent of a tile along each index of the body's `tk.reduce` and `tk.scan` operations, in pre-order |
    | `step` | the distance between the beginnings of neighbouring tiles along each index; absent: the tile's extent |
    | `loop` | the position of an index that each block steps through in order, or -1 |
    | `warps` | warps of a tile |
    | `per_thread` | outputs of a thread |
    | `vector` | bytes of the widest access that loads and stores aim at |
    | `stages` | stages of the multistage pipelines |
    | `group` | rows of tiles in a group of the rasterisation order; 0: all |
    | `persistent` | persistent blocks for each multiprocessor; 0: one block for each tile |
    | `cluster` | blocks of a cluster, which compute neighbouring tiles along the first tiled index |
    | `teams` | 1: all consumer warps share a tile (cooperative); more: each of so many teams of `warps` warps has tiles of its own (pingpong) |

    A tile that is longer than its step overlaps the next tile by whole warps. These last warps are
    spare: the next tile's block computes their part. More than 32 `warps` are the warps of all
    blocks of a cluster, which share a tile. With `persistent`, so many blocks are launched for
    each multiprocessor, or as many as are resident at once.

    The verifier requires:

    - powers of two in `tile` and `reduce`,
    - a `loop` of -1 or the position of an index,
    - a power of two of at most 32 x `cluster` `warps`,
    - at least one stage, `persistent` of at least 0, and a `cluster` of 1, 2, 4, 8 or 16 blocks,
    - at least one team, at most 32 x `cluster` warps in all teams, and no `step` with several
      teams,
    - a `step` for each index, if present, of which at most one is shorter than its tile. It leaves
      whole warps of the tile to the next one.

    ```mlir
    #tkgpu.schedule<tile = [128, 256], reduce = [64], warps = 8, per_thread = 128, vector = 16,
        stages = 4, group = 8, persistent = 1, cluster = 2>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$tile,
    ArrayRefParameter<"int64_t">:$reduce,
    DefaultValuedParameter<"int64_t", "-1">:$loop,
    DefaultValuedParameter<"int64_t", "4">:$warps,
    DefaultValuedParameter<"int64_t", "1">:$perThread,
    DefaultValuedParameter<"int64_t", "16">:$vector,
    DefaultValuedParameter<"int64_t", "1">:$stages,
    DefaultValuedParameter<"int64_t", "1">:$group,
    DefaultValuedParameter<"int64_t", "0">:$persistent,
    DefaultValuedParameter<"int64_t", "1">:$cluster,
    OptionalArrayRefParameter<"int64_t">:$step,
    DefaultValuedParameter<"int64_t", "1">:$teams);
  let extraClassDeclaration = [{
    /// The distance between the beginnings of neighbouring tiles along index `i` of the compute.
    int64_t getStepOf(unsigned i) { return getStep().empty() ? getTile()[i] : getStep()[i]; }
    /// The number of the last warps whose part of a tile belongs to the next tile.
    int64_t getSpareWarps();
    /// The same schedule with other extents of tiles.
    ScheduleAttr withTiles(::llvm::ArrayRef<int64_t> tile, ::llvm::ArrayRef<int64_t> reduce) {
      return get(getContext(), tile, reduce, getLoop(), getWarps(), getPerThread(), getVector(),
                 getStages(), getGroup(), getPersistent(), getCluster(), getStep(), getTeams());
    }
  }];
  let builders = [AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$tile,
    "::llvm::ArrayRef<int64_t>":$reduce, "int64_t":$loop, "int64_t":$warps, "int64_t":$perThread,
    "int64_t":$vector, "int64_t":$stages, "int64_t":$group), [{
      return $_get($_ctxt, tile, reduce, loop, warps, perThread, vector, stages, group, 0, 1,
                   ::llvm::ArrayRef<int64_t>(), 1);
    }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def TkGpu_BufferType : TkGpu_Type<"Buffer", "buffer"> {
  let summary = "a pointer to the elements of a tensor in global memory";
  let description = [{
    The type has no shape; each access carries its strides. An `ui8` element is loaded and stored
    as `i8`. An `i1` element takes one byte.

    ```mlir
    !tkgpu.buffer<bf16>
    ```
  }];
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
  let extraClassDeclaration = [{
    /// The type of a loaded element: `i8` for `ui8`.
    ::mlir::Type getValueType();
  }];
}

def TkGpu_SharedType : TkGpu_Type<"Shared", "shared"> {
  let summary = "a tile in shared memory";
  let description = [{
    | parameter | meaning |
    |---|---|
    | `order` | the axes from the contiguous one outwards; absent: the last axis is contiguous |
    | `padding` | padding elements at the end of each row. A row runs along the contiguous axis |
    | `chunk`, `per_phase`, `phases` | the swizzle: chunk `c` of row `r` lies at chunk `c ^ ((r / per_phase) % phases)`. A chunk has `chunk` elements; `r` counts along the axis that is second in `order` |
    | `panel` | elements of a panel. The contiguous axis is cut into panels, which lie one after the other. A row is then the row of one panel |
    | `interleave` | n > 1: row pair `p` is the `(p / n)`-th pair of part `p % n` |
    | `ones` | ones behind the elements of the last axis. TMA loads leave them alone. If the last axis is contiguous, they are one more panel; otherwise they are rows |
    | `pitch` | rows between the beginnings of neighbouring panels, for a part of a tile's rows |

    One panel is what TMA and `wgmma` take as one swizzled tile. A multistage buffer has the stage
    as its first axis.

    The verifier requires:

    - an `order` of all axes, or none,
    - powers of two for `chunk`, `per_phase` and `phases`, and `padding` of at least 0,
    - an `interleave` of n parts only if 2 n divides the number of rows,
    - `ones` only without `padding` and `pitch`, along the last axis, which is first in `order` or,
      without panels, second,
    - `pitch` only with two axes, panels and no `interleave`, and not below the number of rows,
    - a `panel` only with at least two axes, no `padding` and an extent that it divides.

    ```mlir
    !tkgpu.shared<[4, 64, 256], bf16 order = [2, 1, 0] chunk = 8 phases = 8 panel = 64>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    OptionalArrayRefParameter<"int64_t">:$order,
    DefaultValuedParameter<"int64_t", "0">:$padding,
    DefaultValuedParameter<"int64_t", "1">:$chunk,
    DefaultValuedParameter<"int64_t", "1">:$perPhase,
    DefaultValuedParameter<"int64_t", "1">:$phases,
    DefaultValuedParameter<"int64_t", "0">:$panel,
    DefaultValuedParameter<"int64_t", "1">:$interleave,
    DefaultValuedParameter<"int64_t", "0">:$ones,
    DefaultValuedParameter<"int64_t", "0">:$pitch);
  let builders = [TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape,
    "::mlir::Type":$elementType, "::llvm::ArrayRef<int64_t>":$order, "int64_t":$padding,
    "int64_t":$chunk, "int64_t":$perPhase, "int64_t":$phases), [{
      return $_get($_ctxt, shape, elementType, order, padding, chunk, perPhase, phases, 0, 1, 0, 0);
    }]>];
  let assemblyFormat = [{
    `<` `[` $shape `]` `,` $elementType (`order` `=` `[` $order^ `]`)?
    (`padding` `=` $padding^)? (`chunk` `=` $chunk^)? (`per_phase` `=` $perPhase^)?
    (`phases` `=` $phases^)? (`panel` `=` $panel^)? (`interleave` `=` $interleave^)?
    (`ones` `=` $ones^)? (`pitch` `=` $pitch^)? `>`
  }];
  let extraClassDeclaration = [{
    /// The axes from the contiguous one outwards.
    ::llvm::SmallVector<int64_t> getAxisOrder();
    /// The distance in elements between neighbours along each axis, padding included.
    ::llvm::SmallVector<int64_t> getStrides();
    /// Elements including padding.
    int64_t getNumElements();
    int64_t getSizeInBytes();
    /// Elements of a row without padding; of a panel if there are panels.
    int64_t getRowLength();
    /// The distance in elements between neighbouring panels.
    int64_t getPanelStride();
    /// The length in bytes of the swizzle's rows as TMA counts it: 128, 64 or 32; 0 without a
    /// swizzle. Nothing if chunks are permuted in another way than the hardware's.
    std::optional<int64_t> getHardwareSwizzle();
    /// The number of rows: the extent of the axis that is second in the order.
    int64_t getNumRows() { return getShape()[getAxisOrder()[1]]; }
    /// The same tile with its row pairs interleaved in `parts` parts.
    SharedType withInterleave(int64_t parts);
    /// True if the ones are a panel behind the other panels.
    bool hasPanelOfOnes();
    /// The same tile with `count` ones behind its last axis.
    SharedType withOnes(int64_t count);
    /// `rows` neighbouring rows of the tile, in its memory.
    SharedType withRows(int64_t rows);
    /// A buffer of `stages` such tiles along a new first axis.
    SharedType withStages(int64_t stages);
  }];
  let genVerifyDecl = 1;
}

def TkGpu_PrivateType : TkGpu_Type<"Private", "private"> {
  let summary = "Thread-private staging in shared memory for tiles";
  let description = [{
    `!tkgpu.private<3 x tensor<...>, vector = 8>` has room for 3 tiles, called stages. Each thread
    owns the memory of the registers that the tile's layout gives it. A thread accesses only its
    own part, so that no barrier is needed.

    A thread's part lies in vectors of `vector` elements. Vectors of neighbouring threads are
    neighbours in memory:

    ```
    stage s, registers r .. r + 7     | thread 0 | thread 1 | thread 2 | ...
                       r + 8 .. r + 15| thread 0 | thread 1 | thread 2 | ...
    ```

    The verifier requires at least one stage, a tile of integers or floats with a layout, and a
    `vector` that is a power of two and divides the number of a thread's registers.

    ```mlir
    !tkgpu.private<3 x tensor<512xbf16, #row>, vector = 8>
    ```
  }];
  let parameters = (ins "int64_t":$stages, "::mlir::RankedTensorType":$tile,
                        DefaultValuedParameter<"int64_t", "1">:$vector);
  let assemblyFormat = "`<` $stages `x` $tile (`,` `vector` `=` $vector^)? `>`";
  let extraClassDeclaration = [{
    /// The bytes of one thread in all stages.
    int64_t getBytesOfThread();
  }];
  let genVerifyDecl = 1;
}

def TkGpu_PhasesType : TkGpu_Type<"Phases", "phases"> {
  let summary = "an array of mbarriers in shared memory, one for each pipeline stage";
  let description = [{
    A phase of an mbarrier completes once all expected arrivals and all announced bytes have come
    in. The parity of a phase is the number of completed phases modulo 2. Unlike `tkgpu.barrier`,
    an arrival does not wait. TMA loads count their bytes on an mbarrier.

    The verifier requires at least one stage.

    ```mlir
    !tkgpu.phases<4>
    ```
  }];
  let parameters = (ins "int64_t":$stages);
  let assemblyFormat = "`<` $stages `>`";
  let genVerifyDecl = 1;
}

def TkGpu_TensorMapType : TkGpu_Type<"TensorMap", "tensor_map"> {
  let summary = "a TMA descriptor of a tensor in global memory";
  let description = [{
    `tkgpu.tensor_map` creates the descriptor in a `tk.kernel`. A `tkgpu.func` receives it as an
    argument.

    ```mlir
    !tkgpu.tensor_map
    ```
  }];
}

#endif // TK_DIALECTS_TKGPU_TKGPUDIALECT_TD
