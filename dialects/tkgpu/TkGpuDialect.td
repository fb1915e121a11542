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

def TkGpu_Axis : I32EnumAttr<"GridAxis", "an axis of the launch grid", [
    I32EnumAttrCase<"X", 0, "x">, I32EnumAttrCase<"Y", 1, "y">, I32EnumAttrCase<"Z", 2, "z">]> {
  let cppNamespace = "::tk::gpu";
  let genSpecializedAttr = 0;
}
def TkGpu_AxisAttr : EnumAttr<TkGpu_Dialect, TkGpu_Axis, "axis">;

def TkGpu_TurnStep : I32EnumAttr<"TurnStep", "what a warpgroup does with a turn", [
    I32EnumAttrCase<"Begin", 0, "begin">, I32EnumAttrCase<"Take", 1, "take">,
    I32EnumAttrCase<"Pass", 2, "pass">, I32EnumAttrCase<"Lead", 3, "lead">,
    I32EnumAttrCase<"Follow", 4, "follow">]> {
  let cppNamespace = "::tk::gpu";
  let genSpecializedAttr = 0;
}
def TkGpu_TurnStepAttr : EnumAttr<TkGpu_Dialect, TkGpu_TurnStep, "turn_step">;

def TkGpu_TargetAttr : TkGpu_Attr<"Target", "target"> {
  let summary = "The machine that a module is compiled for: `#tkgpu.target<arch = 90>`";
  let description = [{
    On the module as `tkgpu.target`. `arch` is the compute capability times ten; `shared` the
    bytes of shared memory a block may use; `processors` the number of multiprocessors; `hopper`
    says that warpgroup products, bulk tensor copies and clusters exist (sm_90a).
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "80">:$arch,
    DefaultValuedParameter<"int64_t", "101376">:$shared,
    DefaultValuedParameter<"int64_t", "108">:$processors,
    DefaultValuedParameter<"bool", "false">:$hopper);
  let assemblyFormat = "`<` struct(params) `>`";
}

def TkGpu_ScheduleAttr : TkGpu_Attr<"Schedule", "schedule"> {
  let summary = "How a tk.compute is cut into blocks and tiles";
  let description = [{
    On a tk.compute as `tkgpu.schedule`. `tile` holds a power of two for each index of the
    compute, `reduce` one for each index of the tk.reduce and tk.scan operations in its body, in
    the order in which a pre-order walk meets them. Tiles begin `step` apart, by default their
    size; what a tile has beyond its step is the next one's, and as much as some of the last warps have. `loop` (the position of an index, or -1) is an
    index that each block steps through in order. `perThread` is how many outputs a thread has,
    `vector` the widest access in bytes that loads and stores should aim at, `stages` the depth of
    software pipelines, `group` the number of row tiles (0: all) walked together for the sake of the
    cache.
    With `persistent` n > 0 a block takes one tile after the other, and there are n blocks for each
    multiprocessor, or as many as run at once; `cluster` blocks run together with neighbouring tiles of the first tiled
    index. More than 32 `warps` are those of all blocks of the cluster, which share a tile. A persistent block
    has `teams` times as many warps, of which each team computes tiles of its own, in turns.
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
    /// How far apart the tiles of the compute's index `i` begin.
    int64_t getStepOf(unsigned i) { return getStep().empty() ? getTile()[i] : getStep()[i]; }
    /// How many of the last warps hold parts of a tile that the next one begins with.
    int64_t getSpareWarps();
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
  let summary = "A pointer to a tensor's elements in global memory";
  let description = [{
    Accesses carry the strides. `ui8` elements are loaded and stored as `i8` bits, `i1` elements
    take a byte each.
  }];
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
  let extraClassDeclaration = [{
    /// The type of a loaded element: `i8` for `ui8`.
    ::mlir::Type getValueType();
  }];
}

def TkGpu_SharedType : TkGpu_Type<"Shared", "shared"> {
  let summary = "A tile in shared memory: `!tkgpu.shared<[64, 32], bf16 order = [1, 0]>`";
  let description = [{
    `order` lists the axes from the contiguous one outwards (empty: last axis first). Rows along
    the contiguous axis are `padding` elements longer than the tile. With `phases` > 1 the chunks
    (`chunk` elements long) of a row are permuted: chunk c of row r is stored at chunk
    `c ^ ((r / per_phase) % phases)`, where r counts along the axis that is second in `order`.
    With `panel` > 0 the contiguous axis is cut into panels of that many elements, one after the
    other: a row is then a row of a panel, and what the tensor memory accelerator and the warpgroup
    products take as one swizzled tile is a panel. A buffer of several stages has the stage as its
    first axis.
    With `interleave` n > 1 the rows stand in another order: their pairs are dealt out to n parts of
    the tile in turn, so that pair p is the (p / n)-th of part p % n.
    With `ones` > 0 the last axis is so much longer: what is behind the tile's are ones, which copies
    leave alone. Along rows they are a panel of their own, which is as long as the others; across
    them they are rows.
    With `pitch` > 0 the tile is some rows of a tile with so many, whose panels are that far apart.
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
    /// Elements of a row without padding: of a panel if there are panels.
    int64_t getRowLength();
    /// The distance in elements between neighbouring panels.
    int64_t getPanelStride();
    /// Bytes after which the permutation of chunks repeats along a row, as the tensor memory
    /// accelerator counts them: 128, 64 or 32; 0 if chunks are not permuted, and nothing if they
    /// are in another way than the hardware does.
    std::optional<int64_t> getHardwareSwizzle();
    /// Rows, each of one panel: how many there are of the axis that is second in the order.
    int64_t getNumRows() { return getShape()[getAxisOrder()[1]]; }
    /// The same tile with its pairs of rows dealt out to `parts` parts.
    SharedType withInterleave(int64_t parts);
    /// Are ones a panel behind the others?
    bool hasPanelOfOnes();
    /// The same tiles, each with so many ones behind its last axis.
    SharedType withOnes(int64_t count);
    /// So many neighbouring rows of the tile, where they are.
    SharedType withRows(int64_t rows);
    /// The same tile with `stages` of them along a new first axis.
    SharedType withStages(int64_t stages);
  }];
  let genVerifyDecl = 1;
}

def TkGpu_PrivateType : TkGpu_Type<"Private", "private"> {
  let summary = "Tiles in shared memory, of which each thread reaches its own registers alone";
  let description = [{
    `!tkgpu.private<3 x tensor<...>, vector = 8>` has room for `stages` tiles as their layout
    distributes them over the threads, which need no barrier to read what they brought themselves.
    Each keeps `vector` of its elements together, and neighbouring threads' are neighbours:

    ```
    stage s, registers r .. r + 7     | thread 0 | thread 1 | thread 2 | ...
                       r + 8 .. r + 15| thread 0 | thread 1 | thread 2 | ...
    ```
  }];
  let parameters = (ins "int64_t":$stages, "::mlir::RankedTensorType":$tile,
                        DefaultValuedParameter<"int64_t", "1">:$vector);
  let assemblyFormat = "`<` $stages `x` $tile (`,` `vector` `=` $vector^)? `>`";
  let extraClassDeclaration = [{
    /// Of one thread, in all stages.
    int64_t getBytesOfThread();
  }];
  let genVerifyDecl = 1;
}

def TkGpu_PhasesType : TkGpu_Type<"Phases", "phases"> {
  let summary = "Barriers with phases in shared memory, one a stage: `!tkgpu.phases<4>`";
  let description = [{
    A phase ends when the arrivals that it expects, and the bytes that were announced for it, have
    come in; its parity is the number of phases that have ended modulo 2. Unlike tkgpu.barrier an
    arrival does not wait, and data that bulk copies bring counts as arrivals do.
  }];
  let parameters = (ins "int64_t":$stages);
  let assemblyFormat = "`<` $stages `>`";
  let genVerifyDecl = 1;
}

def TkGpu_TensorMapType : TkGpu_Type<"TensorMap", "tensor_map"> {
  let summary = "What bulk copies need to know of a tensor in global memory";
}

#endif // TK_DIALECTS_TKGPU_TKGPUDIALECT_TD
