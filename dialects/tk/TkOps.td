//===- TkOps.td - operations of the tensor-level dialect ------------------===//
#ifndef TK_DIALECTS_TK_TKOPS_TD
#define TK_DIALECTS_TK_TKOPS_TD

include "dialects/tk/TkDialect.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// Block arguments print under the names that they have in the source.
def Tk_NamesArguments : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>;

class Tk_Op<string mnemonic, list<Trait> traits = []> : Op<Tk_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Tk_KernelOp : Tk_Op<"kernel", [IsolatedFromAbove, Symbol, SingleBlock, Tk_NamesArguments]> {
  let summary = "A kernel: dimensions, parameters, statements, results";
  let description = [{
    The entry block's arguments are the dimensions (one `index` each, in the order of `dim_names`)
    followed by the parameters (one each, in the order of `params`): builtin ranked tensors or
    scalars. `u8` tensors have element type `ui8`; `bool` is `i1`.

    `tk.return` yields the declared results in the order of `result_names`, then the new value of
    each `inout` parameter in the order of `params`.

    ```mlir
    tk.kernel @gemm dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
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
    /// The fact about dimension `i`; the weakest fact where none is recorded.
    FactAttr getFact(unsigned i);
    /// The `tk.bind` of a tensor parameter, or null.
    BindOp getBind(::mlir::Value tensor);
    ReturnOp getReturn();
  }];
}

def Tk_BindOp : Tk_Op<"bind"> {
  let summary = "The extents of a tensor parameter, an `index` value for every axis";
  let arguments = (ins AnyRankedTensor:$tensor, Variadic<Index>:$extents);
  let assemblyFormat = "$tensor `[` $extents `]` attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Tk_AssumeOp : Tk_Op<"assume"> {
  let summary = "A condition on dimensions and scalars, checked at launch and assumed afterwards";
  let description = [{
    From a `where` clause, or (`bounds`) an access whose bounds depend on sizes alone. `text` is
    what the launch error quotes.
  }];
  let arguments = (ins I1:$condition, StrAttr:$text, UnitAttr:$bounds);
  let assemblyFormat = "$condition `,` $text (`bounds` $bounds^)? attr-dict";
}

def Tk_DefaultOp : Tk_Op<"default", [SameTypeOperands]> {
  let summary = "The default value of a scalar parameter, computed from dimensions and scalars";
  let arguments = (ins AnyType:$param, AnyType:$value);
  let assemblyFormat = "$param `=` $value attr-dict `:` type($param)";
}

def Tk_ReturnOp : Tk_Op<"return", [Terminator, HasParent<"KernelOp">]> {
  let summary = "The results of a kernel";
  let arguments = (ins Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "($results^ `:` type($results))? attr-dict";
}

def Tk_YieldOp : Tk_Op<"yield", [Terminator, Pure]> {
  let summary = "Ends a scalar body";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===----------------------------------------------------------------------===//
// Statements and what their bodies are made of
//===----------------------------------------------------------------------===//

def Tk_ComputeOp : Tk_Op<"compute", [Pure, SingleBlock, Tk_NamesArguments]> {
  let summary = "One statement: tensors defined element by element over named indices";
  let description = [{
    Index `n` ranges over `0 .. extents[n]`. Result `r` has one axis for each entry of
    `result_indices[r]` (all indices in order where the attribute is absent); its element is the
    `r`-th yielded value, which may depend only on those indices. All values are scalars; which of
    them are recomputed and which are shared is a matter of lowering, not of meaning.
    A compute directly inside a kernel is one launch on a GPU.
  }];
  let arguments = (ins
    StrArrayAttr:$index_names,
    Variadic<Index>:$extents,
    OptionalAttr<ArrayAttr>:$result_indices,
    StrArrayAttr:$names);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $index_names `in` `(` $extents `)` $body `names` $names
    (`over` $result_indices^)? attr-dict `:` type($results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    unsigned getNumIndices() { return getIndexNames().size(); }
    ::mlir::BlockArgument getIndex(unsigned i) { return getBody().front().getArgument(i); }
    YieldOp getYield();
    /// The positions of the indices that result `r` is over.
    ::llvm::SmallVector<unsigned> getIndicesOf(unsigned r);
    ::mlir::Block *getBlock() { return &getBody().front(); }
  }];
  let builders = [
    /// Results of the given element types over all indices or over `resultIndices[r]`; static
    /// extents become static axes. `bodyBuilder` receives the index arguments and ends the block.
    OpBuilder<(ins "::llvm::ArrayRef<::llvm::StringRef>":$indexNames, "::mlir::ValueRange":$extents,
      "::llvm::ArrayRef<::mlir::Type>":$elementTypes, "::llvm::ArrayRef<::llvm::StringRef>":$names,
      "::llvm::ArrayRef<::llvm::SmallVector<unsigned>>":$resultIndices,
      "::llvm::function_ref<void(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>":$bodyBuilder)>
  ];
}

def Tk_ReduceOp : Tk_Op<"reduce", [Pure, SameVariadicOperandSize, Tk_NamesArguments]> {
  let summary = "Scalar reductions over one or more indices, several of them possibly online";
  let description = [{
    Index `n` ranges over `lower[n] .. upper[n]` (empty if not lower < upper). With one accumulator
    it is the plain reduction of the yielded terms with `kinds[0]`; over an empty range sum is 0,
    prod 1, max -inf, min +inf, any false, all true. `argmax`/`argmin` (one index) yield the term
    and have an `i32` result: the first index at which the extremum stands.

    With n > 1 accumulators it is *online*. The body's arguments are the indices followed by the
    running values `r_0 .. r_{n-2}`, as they are after this step's update; term `k` may use only
    `r_0 .. r_{k-1}`. The `rescale` region receives `old_0 .. old_{n-2}, new_0 .. new_{n-2}` and
    yields the factors of accumulators `1 .. n-1`. A step may take in any number of index values
    at once:

        r_0 <- r_0 (+)_0 {term_0(j)}
        r_k <- (r_k * factor_k(old, new)) (+)_k {term_k(j, r_0 .. r_{k-1})}

    which equals the separate reductions computed one after the other; only sums have factors
    other than 1. Source of the scheme: Milakov and Gimelshein, "Online normalizer calculation
    for softmax" (2018); Dao et al., "FlashAttention" (2022).

    ```mlir
    %m, %z = tk.reduce [#tk.kind<max>, #tk.kind<sum>] ["j"] from (%zero) to (%N) {
    ^bb0(%j: index, %m_run: f32):
      %x = tk.load %s[%i, %j] : tensor<?x?xf32>
      %e = tk.exp_diff %x, %m_run : f32
      tk.yield %x, %e : f32, f32
    } rescale {
    ^bb0(%m_old: f32, %m_new: f32):
      %f = tk.exp_diff %m_old, %m_new : f32
      tk.yield %f : f32
    } : f32, f32
    ```
  }];
  let arguments = (ins
    Tk_ReduceKindArrayAttr:$kinds,
    StrArrayAttr:$index_names,
    Variadic<Index>:$lower,
    Variadic<Index>:$upper,
    DefaultValuedAttr<Tk_PrecisionAttr, "::tk::Precision::Default">:$precision);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body, AnyRegion:$rescale);
  let assemblyFormat = [{
    $kinds $index_names `from` `(` $lower `)` `to` `(` $upper `)` (`precision` $precision^)?
    $body (`rescale` $rescale^)? attr-dict `:` type($results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    unsigned getNumIndices() { return getIndexNames().size(); }
    unsigned getNumAccumulators() { return getKinds().size(); }
    ReduceKind getKind(unsigned k) {
      return ::llvm::cast<ReduceKindAttr>(getKinds()[k]).getValue();
    }
    bool isOnline() { return getNumAccumulators() > 1; }
    ::mlir::Block *getBlock() { return &getBody().front(); }
    ::mlir::BlockArgument getIndex(unsigned i) { return getBlock()->getArgument(i); }
    /// The running value of accumulator `k` (k < n - 1) inside the body.
    ::mlir::BlockArgument getRunning(unsigned k) {
      return getBlock()->getArgument(getNumIndices() + k);
    }
    /// Is accumulator `k` neither corrected for what others have become, nor read by them?
    bool standsAlone(unsigned k);
    YieldOp getYield();
  }];
  let builders = [
    /// A reduction with one accumulator.
    OpBuilder<(ins "::tk::ReduceKind":$kind, "::llvm::ArrayRef<::llvm::StringRef>":$indexNames,
      "::mlir::ValueRange":$lower, "::mlir::ValueRange":$upper, "::mlir::Type":$resultType,
      "::llvm::function_ref<::mlir::Value(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>":$bodyBuilder,
      CArg<"::tk::Precision", "::tk::Precision::Default">:$precision)>
  ];
}

def Tk_ScanOp : Tk_Op<"scan", [Pure, SingleBlock, Tk_NamesArguments]> {
  let summary = "The inclusive prefix reduction at one position";
  let description = [{
    The reduction with `kind` (sum, prod, max or min) of the body over `lower .. position + 1`,
    clipped to `upper`. Equal to a `tk.reduce` over that range; a separate op so that lowerings
    can compute all positions in one pass.
  }];
  let arguments = (ins
    Tk_ReduceKindAttr:$kind, StrAttr:$index_name, Index:$lower, Index:$upper, Index:$position);
  let results = (outs AnyType:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $kind $index_name `from` $lower `to` $upper `at` $position $body attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
    YieldOp getYield();
  }];
  let builders = [
    OpBuilder<(ins "::tk::ReduceKind":$kind, "::llvm::StringRef":$indexName, "::mlir::Value":$lower,
      "::mlir::Value":$upper, "::mlir::Value":$position, "::mlir::Type":$resultType,
      "::llvm::function_ref<::mlir::Value(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>":$bodyBuilder)>
  ];
}

def Tk_LoadOp : Tk_Op<"load", [Pure, AttrSizedOperandSegments,
                               DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "An element of a tensor";
  let description = [{
    Without `pad` every index is inside the bounds, proved by the frontend or assumed. With `pad`
    an access outside the bounds has that value. A `ui8` tensor yields `i8` bits.
  }];
  let arguments = (ins AnyRankedTensor:$tensor, Variadic<Index>:$indices, Optional<AnyType>:$pad);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $tensor `[` $indices `]` (`pad` $pad^ `:` type($pad))? attr-dict `:` type($tensor)
  }];
  let hasVerifier = 1;
}

def Tk_InSharesOp : Tk_Op<"in_shares", [Pure]> {
  let summary = "An index whose values are dealt out in shares";
  let description = [{
    The index itself. It says that it pays to compute the values `first[p] .. first[p + 1]` one
    after the other, for each of `shares` many `p`; together these are all values that matter.
  }];
  let arguments = (ins 1DTensorOf<[I32]>:$first, Index:$index, I64Attr:$shares);
  let results = (outs Index:$result);
  let assemblyFormat = "$first `[` $index `]` `of` $shares attr-dict `:` type($first)";
}

//===----------------------------------------------------------------------===//
// Scalar operations that arith and math lack
//===----------------------------------------------------------------------===//

class Tk_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Tk_Op<mnemonic, !listconcat([Pure, SameOperandsAndResultType, Elementwise, Scalarizable,
                                   Vectorizable, Tensorizable], traits)>;

def Tk_IntegerLike : TypeConstraint<Or<[SignlessIntegerOrIndexLike.predicate]>, "integer or index">;

def Tk_FloorDivOp : Tk_ElementwiseOp<"floor_div"> {
  let summary = "Integer quotient rounded towards minus infinity; 0 where the divisor is 0";
  let arguments = (ins Tk_IntegerLike:$lhs, Tk_IntegerLike:$rhs);
  let results = (outs Tk_IntegerLike:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasFolder = 1;
}

def Tk_FloorModOp : Tk_ElementwiseOp<"floor_mod"> {
  let summary = "Remainder of the floor division, with the divisor's sign; 0 where that is 0";
  let arguments = (ins Tk_IntegerLike:$lhs, Tk_IntegerLike:$rhs);
  let results = (outs Tk_IntegerLike:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasFolder = 1;
}

def Tk_ExpDiffOp : Tk_ElementwiseOp<"exp_diff"> {
  let summary = "exp(a - b), and 0 where a is -inf whatever b is";
  let description = [{
    The weight of a softmax term `a` under the maximum `b`. It separates:
    `exp_diff(a, c) = exp_diff(a, b) * exp_diff(b, c)` for a <= b <= c, -inf included, which is
    what makes a softmax computable online. NaN in either operand gives NaN, except that
    a = -inf gives 0; a = b = +inf gives NaN as IEEE subtraction does.
  }];
  let arguments = (ins FloatLike:$a, FloatLike:$b);
  let results = (outs FloatLike:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($result)";
}

def Tk_DivOrZeroOp : Tk_ElementwiseOp<"div_or_zero"> {
  let summary = "a / b, and a where b is 0";
  let description = [{
    A weight over the sum of all weights: where that is 0, so is each of them, and the quotient.
    Linear in `a`: it moves out of a sum over an index that `b` does not use. There a weight times
    NaN or an infinite number is NaN, and so is the sum of such terms, whatever `b` is.
  }];
  let arguments = (ins FloatLike:$a, FloatLike:$b);
  let results = (outs FloatLike:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($result)";
}

def Tk_RandOp : Tk_Op<"rand", [Pure, Elementwise, Scalarizable, Vectorizable, Tensorizable]> {
  let summary = "Uniform f32 in [0, 1): word `n % 4` of the Philox 4x32-10 block `n / 4`";
  let description = [{
    Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). The key is the two
    words of `seed`. The counter is the two words of `n / 4`, then zeros; `n` is signed, and `n / 4`
    and `n % 4` round down. The value is the upper 24 bits of word `n % 4` times 2^-24. So four
    neighbouring numbers share a block.
  }];
  let arguments = (ins SignlessIntegerLike:$seed, SignlessIntegerLike:$n);
  let results = (outs FloatLike:$result);
  let assemblyFormat = "$seed `,` $n attr-dict `:` type($seed) `,` type($n) `->` type($result)";
}

#endif // TK_DIALECTS_TK_TKOPS_TD
