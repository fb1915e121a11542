//===- TkGpuBase.td - the block-level dialect itself ----------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUBASE_TD
#define TK_DIALECTS_TKGPU_TKGPUBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

def TkGpu_Dialect : Dialect {
  let name = "tkgpu";
  let cppNamespace = "::tk::gpu";
  let summary = "Programs of one thread block, over tiles";
  let description = [{
    A `tkgpu.func` is the program of one thread block. Its values are tiles and scalars. A tile is
    a builtin tensor of static power-of-two shape, distributed over the block's threads. Its
    encoding is a `#tkgpu.layout` once a pass has chosen one. A scalar has the same value in every
    thread of the block; `tkgpu.of_warpgroup` is the exception.

    Operations of `arith` and `math` and the elementwise operations of `tk` apply to tiles and to
    scalars. Control flow is `scf` with uniform conditions.

    The CUDA emitter prints this dialect and takes no decisions. README.md in `dialects/tkgpu`
    gives the reasons for this design.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::tk::TkDialect", "::mlir::arith::ArithDialect"];
  let hasConstantMaterializer = 1;
}

class TkGpu_Attr<string name, string attrMnemonic> : AttrDef<TkGpu_Dialect, name> {
  let mnemonic = attrMnemonic;
}

#endif // TK_DIALECTS_TKGPU_TKGPUBASE_TD
