//===- TkStructureOps.td - kernels and what stands in them ----------------===//
//
// Included by TkOps.td.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TK_TKSTRUCTUREOPS_TD
#define TK_DIALECTS_TK_TKSTRUCTUREOPS_TD

def Tk_KernelOp : Tk_Op<"kernel", [IsolatedFromAbove, Symbol, SingleBlock, Tk_NamesArguments]> {
  let summary = "A kernel: a function from dimensions, tensors and scalars to tensors";
  let description = [{
    The entry block's arguments are the dimensions followed by the parameters. A dimension is an
    `index`, in the order of `dim_names`. A parameter is a builtin ranked tensor or a scalar, in
    the order of `params`. A `u8` tensor of the language has element type `ui8`; `bool` is `i1`.

    The `tk.return` yields the results in the order of `result_names`, then the new value of each
    `inout` parameter in the order of `params`.

    `facts` holds a `#tk.fact` for each dimension. `deterministic` asks for results that are
    bitwise equal in every run on the same device and build.

    The verifier requires:

    - one block argument for each dimension and each parameter, with `index` for the dimensions,
    - `params` of `#tk.param` attributes,
    - `facts`, if present, of one `#tk.fact` for each dimension,
    - a body that ends in a `tk.return` with one value for each result and each `inout` parameter.

    ```mlir
    tk.kernel @gemm dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"]
        facts [#tk.fact<divisor = 16>, #tk.fact<upper = 4096>, #tk.fact<>] {
    ^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
      tk.bind %a[%M, %K] : tensor<?x?xbf16>
      tk.bind %b[%K, %N] : tensor<?x?xbf16>
      %zero = arith.constant 0 : index
      %c = tk.compute ["i", "j"] in (%M, %N) {
      ^bb0(%i: index, %j: index):
        %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
        ^bb0(%k: index):
          %x = tk.load %a[%i, %k] : tensor<?x?xbf16>
          %y = tk.load %b[%k, %j] : tensor<?x?xbf16>
          %xf = arith.extf %x : bf16 to f32
          %yf = arith.extf %y : bf16 to f32
          %p = arith.mulf %xf, %yf : f32
          tk.yield %p : f32
        } : f32
        %r = arith.truncf %s : f32 to bf16
        tk.yield %r : bf16
      } names ["c"] : tensor<?x?xbf16>
      tk.return %c : tensor<?x?xbf16>
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    StrArrayAttr:$dim_names,
    ArrayAttr:$params,
    StrArrayAttr:$result_names,
    OptionalAttr<ArrayAttr>:$facts,
    UnitAttr:$deterministic);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `dims` $dim_names `params` $params `results` $result_names
    (`facts` $facts^)? (`deterministic` $deterministic^)? $body attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    unsigned getNumDims() { return getDimNames().size(); }
    ::mlir::Block::BlockArgListType getDimArguments() {
      return getBody().front().getArguments().take_front(getNumDims());
    }
    ::mlir::Block::BlockArgListType getParamArguments() {
      return getBody().front().getArguments().drop_front(getNumDims());
    }
    ParamAttr getParam(unsigned i) { return ::llvm::cast<ParamAttr>(getParams()[i]); }
    /// The name of a dimension argument, or empty.
    ::llvm::StringRef getDimName(::mlir::Value value);
    /// The fact about dimension `i`; the weakest fact if none is recorded.
    FactAttr getFact(unsigned i);
    /// The `tk.bind` of a tensor parameter, or null.
    BindOp getBind(::mlir::Value tensor);
    ReturnOp getReturn();
  }];
}

def Tk_BindOp : Tk_Op<"bind"> {
  let summary = "Give the extent of each axis of a tensor parameter";
  let description = [{
    The operation has no result. It states that axis `d` of `tensor` has `extents[d]` elements. The
    verifier requires one extent for each axis. A launch plan requires a `tk.bind` for each tensor
    parameter of its kernel.

    ```mlir
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$tensor, Variadic<Index>:$extents);
  let assemblyFormat = "$tensor `[` $extents `]` attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Tk_AssumeOp : Tk_Op<"assume"> {
  let summary = "State a condition that the launch checks and the compiler relies on";
  let description = [{
    `condition` is computed from dimensions and scalar parameters. `text` is the condition as the
    launch error quotes it.

    Without `bounds` the condition comes from a `where` clause or from a specialisation key. With
    `bounds` it states that an access is inside the bounds of its tensor, and depends on sizes
    alone.

    ```mlir
    tk.assume %some, "G > 0"
    ```
  }];
  let arguments = (ins I1:$condition, StrAttr:$text, UnitAttr:$bounds);
  let assemblyFormat = "$condition `,` $text (`bounds` $bounds^)? attr-dict";
}

def Tk_DefaultOp : Tk_Op<"default", [SameTypeOperands]> {
  let summary = "Give the default value of a scalar parameter";
  let description = [{
    `value` has the type of `param` and is computed from dimensions and from earlier scalar
    parameters. The launch evaluates it if the caller passes no argument for `param`.

    ```mlir
    tk.default %eps = %value : f32
    ```
  }];
  let arguments = (ins AnyType:$param, AnyType:$value);
  let assemblyFormat = "$param `=` $value attr-dict `:` type($param)";
}

def Tk_ReturnOp : Tk_Op<"return", [Terminator, HasParent<"KernelOp">]> {
  let summary = "End a kernel and yield its results";
  let description = [{
    The values are the declared results, then the new value of each `inout` parameter. `tk.kernel`
    verifies their number.

    ```mlir
    tk.return %c : tensor<?x?xbf16>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "($results^ `:` type($results))? attr-dict";
}

def Tk_YieldOp : Tk_Op<"yield", [Terminator, Pure]> {
  let summary = "End a scalar body and yield its values";
  let description = [{
    The operation ends the regions of `tk.compute`, `tk.reduce`, `tk.scan` and `tkgpu.dot`. The
    enclosing operation verifies the number and the types of the values.

    ```mlir
    tk.yield %p : f32
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif // TK_DIALECTS_TK_TKSTRUCTUREOPS_TD
