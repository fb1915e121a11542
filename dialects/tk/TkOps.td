//===- TkOps.td - operations of the tensor-level dialect ------------------===//
#ifndef TK_DIALECTS_TK_TKOPS_TD
#define TK_DIALECTS_TK_TKOPS_TD

include "dialects/tk/TkDialect.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// Block arguments print under their names in the source.
def Tk_NamesArguments : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>;

class Tk_Op<string mnemonic, list<Trait> traits = []> : Op<Tk_Dialect, mnemonic, traits>;

include "dialects/tk/TkStructureOps.td"

//===----------------------------------------------------------------------===//
// Compute ops and the operations of their bodies
//===----------------------------------------------------------------------===//

def Tk_ComputeOp : Tk_Op<"compute", [Pure, SingleBlock, Tk_NamesArguments]> {
  let summary = "Define tensors element by element over named indices";
  let description = [{
    Index `n` ranges over `0 .. extents[n]`, the end excluded. The body computes the element of
    each result at one combination of indices, and yields one value for each result.

    Result `r` has an axis for each entry of `result_indices[r]`, which is a list of positions of
    indices. Without `result_indices` every result has an axis for every index, in order. An
    element depends only on the indices of its result.

    All values in a body are scalars. A value that does not depend on an index is the same for all
    values of that index; a lowering may compute it once or many times. After fusion each compute
    of a kernel becomes one launch on a GPU.

    The verifier requires:

    - an extent and a block argument of type `index` for each index,
    - a name for each result,
    - `result_indices`, if present, of one `array<i64>` for each result, with positions of indices,
    - a `tk.yield` of one value for each result, of the result's element type. A `ui8` element is
      yielded as `i8`.

    ```mlir
    %y, %m = tk.compute ["r", "c"] in (%R, %C) {
    ^bb0(%r: index, %c: index):
      %s = tk.load %sum[%r] : tensor<?xf32>
      %v = tk.load %x[%r, %c] : tensor<?x?xf32>
      %d = arith.subf %v, %s : f32
      tk.yield %d, %s : f32, f32
    } names ["y", "m"] over [array<i64: 0, 1>, array<i64: 0>] : tensor<?x?xf32>, tensor<?xf32>
    ```
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
    /// Builds results of the given element types over all indices, or over `resultIndices[r]`.
    /// Static extents become static axes. `bodyBuilder` receives the index arguments and ends the
    /// block.
    OpBuilder<(ins "::llvm::ArrayRef<::llvm::StringRef>":$indexNames, "::mlir::ValueRange":$extents,
      "::llvm::ArrayRef<::mlir::Type>":$elementTypes, "::llvm::ArrayRef<::llvm::StringRef>":$names,
      "::llvm::ArrayRef<::llvm::SmallVector<unsigned>>":$resultIndices,
      "::llvm::function_ref<void(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>":$bodyBuilder)>
  ];
}

def Tk_ReduceOp : Tk_Op<"reduce", [Pure, SameVariadicOperandSize, Tk_NamesArguments]> {
  let summary = "Reduce scalars over one or more indices, with one or several accumulators";
  let description = [{
    Index `n` ranges over `lower[n] .. upper[n]`, the end excluded. The range is empty unless
    `lower[n] < upper[n]`.

    **One accumulator.** The operation reduces the yielded elements with `kinds[0]`. Over an empty
    range `sum` is 0, `prod` 1, `max` -inf, `min` +inf, `any` false and `all` true. `argmax` and
    `argmin` take one index and yield the element that is compared. Their result is the first index
    at which the extremum stands, as `i32` or `i64`. The first NaN, if there is one, counts as the
    extremum. Their range is not empty; the launch checks that.

    **Several accumulators.** With n > 1 accumulators the reduction is *online*: accumulator `k`
    may depend on accumulators `0 .. k-1`. The body's arguments are the indices, then the running
    values `r_0 .. r_{n-2}` after the update of this iteration. Element `k` may use only `r_0 ..
    r_{k-1}`. The `rescale` region receives `old_0 .. old_{n-2}, new_0 .. new_{n-2}` and yields the
    factors of accumulators `1 .. n-1`. An iteration may take any number of index values at once:

        r_0 <- r_0 (+)_0 {element_0(j)}
        r_k <- (r_k * factor_k(old, new)) (+)_k {element_k(j, r_0 .. r_{k-1})}

    The result equals that of separate reductions, computed one after the other. Only sums have
    factors other than 1. Sources: Milakov and Gimelshein, "Online normalizer calculation for
    softmax" (2018); Dao et al., "FlashAttention" (2022).

    `precision` says which arithmetic a contraction may use.

    The verifier requires:

    - at least one accumulator and one index,
    - a lower and an upper bound for each index, and a result for each accumulator,
    - a body with an argument for each index and each of the first n - 1 running values,
    - a yielded element of the result's type for each accumulator, except for `argmax` and
      `argmin`,
    - one index and an `i32` or `i64` result for `argmax` and `argmin`,
    - a `rescale` region if and only if n > 1, with 2 (n - 1) arguments and n - 1 factors. A factor
      has the type of its accumulator.

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
    /// True if accumulator `k` is independent: it has no rescaling factor, and no other accumulator
    /// reads it.
    bool standsAlone(unsigned k);
    YieldOp getYield();
  }];
  let builders = [
    /// Builds a reduction with one accumulator.
    OpBuilder<(ins "::tk::ReduceKind":$kind, "::llvm::ArrayRef<::llvm::StringRef>":$indexNames,
      "::mlir::ValueRange":$lower, "::mlir::ValueRange":$upper, "::mlir::Type":$resultType,
      "::llvm::function_ref<::mlir::Value(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>":$bodyBuilder,
      CArg<"::tk::Precision", "::tk::Precision::Default">:$precision)>
  ];
}

def Tk_ScanOp : Tk_Op<"scan", [Pure, SingleBlock, Tk_NamesArguments]> {
  let summary = "Reduce the elements up to and including one position";
  let description = [{
    The operation reduces the body over `lower .. min(position + 1, upper)`, the end excluded, as a
    `tk.reduce`. A lowering can compute all positions in one pass. A sum whose body yields a second
    value is a recurrence: each term is added to the sum before it times that value, the decay.

    The verifier requires kind `sum`, `prod`, `max` or `min`, one body argument of type `index`,
    and a `tk.yield` of one value of the result's type, or of two in a sum of floats.

    ```mlir
    %s = tk.scan <sum> "k" from %first to %C at %c {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    ```
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
  let summary = "Read one element of a tensor";
  let description = [{
    Without `pad` every index is inside the bounds of its axis. The frontend proves that, or a
    `tk.assume` with `bounds` states it. With `pad` an element outside the bounds has the value
    `pad`.

    The result has the tensor's element type; an element of a `ui8` tensor is read as `i8`. The
    verifier requires one index for each axis and a `pad` of the result's type.

    ```mlir
    %w = tk.load %x[%r, %q] pad %padding : f32 : tensor<?x?xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$tensor, Variadic<Index>:$indices, Optional<AnyType>:$pad);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $tensor `[` $indices `]` (`pad` $pad^ `:` type($pad))? attr-dict `:` type($tensor)
  }];
  let hasVerifier = 1;
}

def Tk_InSharesOp : Tk_Op<"in_shares", [Pure]> {
  let summary = "Mark an index whose values a work-centric decomposition groups into work units";
  let description = [{
    The result equals `index`. The operation states that a block should compute the values
    `first[p] .. first[p + 1]` of the index one after the other, for each `p` in `0 .. shares`. The
    work units together contain all values of the index that matter.

    `first` is a tensor of `i32` with one axis. Its element type is verified. `tk-share-parts`
    creates the operation, and `tk-persist-blocks` gives each block a work unit.

    ```mlir
    %s = tk.in_shares %first[%i] of 132 : tensor<?xi32>
    ```
  }];
  let arguments = (ins 1DTensorOf<[I32]>:$first, Index:$index, I64Attr:$shares);
  let results = (outs Index:$result);
  let assemblyFormat = "$first `[` $index `]` `of` $shares attr-dict `:` type($first)";
}

include "dialects/tk/TkScalarOps.td"

#endif // TK_DIALECTS_TK_TKOPS_TD
