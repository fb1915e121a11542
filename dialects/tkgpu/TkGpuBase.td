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

class TkGpu_Attr<string name, string attrMnemonic> : AttrDef<TkGpu_Dialect, name> {
  let mnemonic = attrMnemonic;
}

#endif // TK_DIALECTS_TKGPU_TKGPUBASE_TD
