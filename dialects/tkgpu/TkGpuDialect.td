//===- TkGpuDialect.td - the block-level dialect: attributes and types ----===//
#ifndef TK_DIALECTS_TKGPU_TKGPUDIALECT_TD
#define TK_DIALECTS_TKGPU_TKGPUDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

def TkGpu_Dialect : Dialect {
  let name = "tkgpu";
  let cppNamespace = "::tk::gpu";
  let summary = "Programs of one thread block over tiles";
  let description = [{
    A function is what one block of threads does. Its values are tiles, builtin tensors of static
    power-of-two shape distributed over the threads (`#tkgpu.layout` as the encoding, once one is
    chosen), and scalars that are the same in every thread. Operations of `arith`, `math` and the
    elementwise ones of `tk` apply to both; control flow is `scf` with uniform conditions. This is
    the exit dialect for CUDA: emission prints it and decides nothing. See README.md.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::tk::TkDialect", "::mlir::arith::ArithDialect"];
  let hasConstantMaterializer = 1;
}

include "dialects/tkgpu/TkGpuLayout.td"

class TkGpu_Attr<string name, string attrMnemonic> : AttrDef<TkGpu_Dialect, name> {
  let mnemonic = attrMnemonic;
}
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

def TkGpu_TargetAttr : TkGpu_Attr<"Target", "target"> {
  let summary = "The machine that a module is compiled for: `#tkgpu.target<arch = 90>`";
  let description = [{
    On the module as `tkgpu.target`. `arch` is the compute capability times ten; `shared` the
    bytes of shared memory a block may use; `processors` the number of multiprocessors.
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "80">:$arch,
    DefaultValuedParameter<"int64_t", "101376">:$shared,
    DefaultValuedParameter<"int64_t", "108">:$processors);
  let assemblyFormat = "`<` struct(params) `>`";
}

def TkGpu_ScheduleAttr : TkGpu_Attr<"Schedule", "schedule"> {
  let summary = "How a tk.compute is cut into blocks and tiles";
  let description = [{
    On a tk.compute as `tkgpu.schedule`. `tile` holds a power of two for each index of the
    compute, `reduce` one for each index of the tk.reduce and tk.scan operations in its body, in
    the order in which a pre-order walk meets them. `loop` (the position of an index, or -1) is an
    index that each block steps through in order. `perThread` is how many outputs a thread has,
    `vector` the widest access in bytes that loads and stores should aim at, `stages` the depth of
    software pipelines, `group` the number of row tiles walked together for the sake of the cache.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$tile,
    ArrayRefParameter<"int64_t">:$reduce,
    DefaultValuedParameter<"int64_t", "-1">:$loop,
    DefaultValuedParameter<"int64_t", "4">:$warps,
    DefaultValuedParameter<"int64_t", "1">:$perThread,
    DefaultValuedParameter<"int64_t", "16">:$vector,
    DefaultValuedParameter<"int64_t", "1">:$stages,
    DefaultValuedParameter<"int64_t", "1">:$group);
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
    A buffer of several stages has the stage as its first axis.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    OptionalArrayRefParameter<"int64_t">:$order,
    DefaultValuedParameter<"int64_t", "0">:$padding,
    DefaultValuedParameter<"int64_t", "1">:$chunk,
    DefaultValuedParameter<"int64_t", "1">:$perPhase,
    DefaultValuedParameter<"int64_t", "1">:$phases);
  let assemblyFormat = [{
    `<` `[` $shape `]` `,` $elementType (`order` `=` `[` $order^ `]`)?
    (`padding` `=` $padding^)? (`chunk` `=` $chunk^)? (`per_phase` `=` $perPhase^)?
    (`phases` `=` $phases^)? `>`
  }];
  let extraClassDeclaration = [{
    /// The axes from the contiguous one outwards.
    ::llvm::SmallVector<int64_t> getAxisOrder();
    /// The distance in elements between neighbours along each axis, padding included.
    ::llvm::SmallVector<int64_t> getStrides();
    /// Elements including padding.
    int64_t getNumElements();
    int64_t getSizeInBytes();
  }];
  let genVerifyDecl = 1;
}

#endif // TK_DIALECTS_TKGPU_TKGPUDIALECT_TD
