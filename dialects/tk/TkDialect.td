//===- TkDialect.td - the tensor-level dialect ----------------------------===//
#ifndef TK_DIALECTS_TK_TKDIALECT_TD
#define TK_DIALECTS_TK_TKDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"

def Tk_Dialect : Dialect {
  let name = "tk";
  let cppNamespace = "::tk";
  let summary = "Kernels in index notation, on whole tensors, independent of a machine";
  let description = [{
    A `tk.compute` defines a tensor element by element. Its body is a scalar program over named
    indices: it loads elements, computes, and reduces over further indices.

    Every extent is an SSA value of type `index`. The language's dimensions are block arguments of
    the `tk.kernel`. Passes therefore analyse and rewrite sizes such as `h / (H / G)` or `j <= i +
    (T - S)` as ordinary arithmetic.

    The dialect has no layouts, tiles, threads or memory spaces; `tkgpu` has them. README.md in
    `dialects/tk` gives the reasons for this design.
  }];
  let useDefaultAttributePrinterParser = 1;
}

class Tk_Attr<string name, string attrMnemonic> : AttrDef<Tk_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Tk_ReduceKind : I32EnumAttr<"ReduceKind",
    "the operation that combines the elements of a reduction", [
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

def Tk_Precision : I32EnumAttr<"Precision", "the arithmetic that a contraction may use", [
    I32EnumAttrCase<"Default", 0, "default">, I32EnumAttrCase<"Exact", 1, "exact">,
    I32EnumAttrCase<"TF32", 2, "tf32">, I32EnumAttrCase<"Fast", 3, "fast">,
    // Partial sums over slices of k, which threads add in f32. The language has no such modifier.
    I32EnumAttrCase<"Blocked", 4, "blocked">]> {
  let cppNamespace = "::tk";
  let genSpecializedAttr = 0;
}
def Tk_PrecisionAttr : EnumAttr<Tk_Dialect, Tk_Precision, "precision"> {
  let assemblyFormat = "`<` $value `>`";
}

def Tk_ParamAttr : Tk_Attr<"Param", "param"> {
  let summary = "the name and the modifiers of a kernel parameter";
  let description = [{
    `name` is the parameter's name in the source. `strided` marks a tensor that may have any
    strides; other tensors are dense and row-major. `inout` marks a tensor that the kernel reads
    and then overwrites. Both flags are false unless they are printed.

    ```mlir
    #tk.param<"q", strided = true>
    ```
  }];
  let parameters = (ins
    StringRefParameter<"name in the source">:$name,
    DefaultValuedParameter<"bool", "false">:$strided,
    DefaultValuedParameter<"bool", "false">:$inout);
  let assemblyFormat = "`<` custom<Param>($name, $strided, $inout) `>`";
}

def Tk_FactAttr : Tk_Attr<"Fact", "fact"> {
  let summary = "a divisor and an upper bound of an integer, known when a kernel is specialised";
  let description = [{
    The attribute is part of a specialisation key. It describes one dimension of a `tk.kernel` or
    one `index` argument of a `tkgpu.func`.

    - `divisor` is a power of two that divides the value. 1 states nothing.
    - `upper` is an inclusive upper bound, which is a power of two. -1 states nothing. `upper` is 0
      only if the value is 0.

    A value that is a multiple of its own bound is known exactly: with `divisor >= upper > 0` it
    equals `upper`. The first example below describes a multiple of 16, the second the number 4096.

    ```mlir
    #tk.fact<divisor = 16>
    #tk.fact<divisor = 4096, upper = 4096>
    ```
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "1">:$divisor,
    DefaultValuedParameter<"int64_t", "-1">:$upper);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // TK_DIALECTS_TK_TKDIALECT_TD
