//===- TkDialect.td - the tensor-level dialect ----------------------------===//
#ifndef TK_DIALECTS_TK_TKDIALECT_TD
#define TK_DIALECTS_TK_TKDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"

def Tk_Dialect : Dialect {
  let name = "tk";
  let cppNamespace = "::tk";
  let summary = "Tensor kernels in index notation, nothing about machines";
  let description = [{
    One `tk.compute` a statement: named indices with symbolic extents and a scalar body that loads
    elements, computes, and reduces over further indices. Dimensions are SSA values of type
    `index`, so every fact about a size (`h / (H / G)`, `j <= i + (T - S)`) is ordinary SSA that
    passes can analyse and rewrite. See README.md in this folder for the rationale.
  }];
  let useDefaultAttributePrinterParser = 1;
}

class Tk_Attr<string name, string attrMnemonic> : AttrDef<Tk_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Tk_ReduceKind : I32EnumAttr<"ReduceKind", "what a reduction combines its terms with", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Prod", 1, "prod">,
    I32EnumAttrCase<"Max", 2, "max">, I32EnumAttrCase<"Min", 3, "min">,
    I32EnumAttrCase<"Any", 4, "any">, I32EnumAttrCase<"All", 5, "all">,
    I32EnumAttrCase<"ArgMax", 6, "argmax">, I32EnumAttrCase<"ArgMin", 7, "argmin">]> {
  let cppNamespace = "::tk";
  let genSpecializedAttr = 0;
}
def Tk_ReduceKindAttr : EnumAttr<Tk_Dialect, Tk_ReduceKind, "kind"> {
  let assemblyFormat = "`<` $value `>`";
}
def Tk_ReduceKindArrayAttr : TypedArrayAttrBase<Tk_ReduceKindAttr, "array of reduction kinds">;

def Tk_Precision : I32EnumAttr<"Precision", "how a contraction may use the hardware", [
    I32EnumAttrCase<"Default", 0, "default">, I32EnumAttrCase<"Exact", 1, "exact">,
    I32EnumAttrCase<"TF32", 2, "tf32">, I32EnumAttrCase<"Fast", 3, "fast">,
    // Sums of slices, added up in f32 by threads: no modifier of the language.
    I32EnumAttrCase<"Blocked", 4, "blocked">]> {
  let cppNamespace = "::tk";
  let genSpecializedAttr = 0;
}
def Tk_PrecisionAttr : EnumAttr<Tk_Dialect, Tk_Precision, "precision"> {
  let assemblyFormat = "`<` $value `>`";
}

def Tk_ParamAttr : Tk_Attr<"Param", "param"> {
  let summary = "How a kernel parameter was declared: `#tk.param<\"q\", strided = true>`";
  let parameters = (ins
    StringRefParameter<"name in the source">:$name,
    DefaultValuedParameter<"bool", "false">:$strided,
    DefaultValuedParameter<"bool", "false">:$inout);
  let assemblyFormat = "`<` custom<Param>($name, $strided, $inout) `>`";
}

def Tk_FactAttr : Tk_Attr<"Fact", "fact"> {
  let summary = "What is known of a dimension when a kernel is specialised";
  let description = [{
    `divisor` is a power of two that divides the extent; `upper` is an inclusive upper bound that
    is a power of two, -1 when unknown. It is 0 for an extent of 0 and for no other, so that an
    extent that is a multiple of its own bound (`divisor >= upper > 0`) is `upper` exactly.
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "1">:$divisor,
    DefaultValuedParameter<"int64_t", "-1">:$upper);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // TK_DIALECTS_TK_TKDIALECT_TD
