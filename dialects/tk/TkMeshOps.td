//===- TkMeshOps.td - collectives over the axes of a mesh ------------------===//
#ifndef TK_DIALECTS_TK_TKMESHOPS_TD
#define TK_DIALECTS_TK_TKMESHOPS_TD

include "dialects/tk/TkDialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// Operations of a kernel that is placed on a mesh. Every rank of the mesh runs the kernel on its
// shares of the tensors. The ranks that differ in their position along `axis` alone take part in a
// collective together.
class Tk_Collective<string mnemonic, list<Trait> traits = []>
    : Op<Tk_Dialect, mnemonic, !listconcat([Pure], traits)> {
  let hasVerifier = 1;
}

def Tk_RankOp : Tk_Collective<"rank"> {
  let summary = "The position of this rank along an axis of the mesh, from 0";
  let description = [{
    ```mlir
    %r = tk.rank "tp"
    ```
  }];
  let arguments = (ins StrAttr:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tk_AllGatherOp : Tk_Collective<"all_gather"> {
  let summary = "Concatenate the shares of all ranks along a dimension";
  let description = [{
    The result is the same on all ranks of `axis`: the tensors of the ranks in their order, concatenated
    along `dim`.

    ```mlir
    %whole = tk.all_gather %x over "tp" dim 0 : tensor<?x?xbf16> -> tensor<?x?xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$tensor, StrAttr:$axis, I64Attr:$dim);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$tensor `over` $axis `dim` $dim attr-dict `:` type($tensor) `->` type($result)";
}

def Tk_AllReduceOp : Tk_Collective<"all_reduce", [SameOperandsAndResultType]> {
  let summary = "Combine the partial results of all ranks element by element";
  let description = [{
    `kind` is `sum`, `prod`, `max`, `min`, `any` or `all`. The result is the same on all ranks.

    ```mlir
    %sum = tk.all_reduce <sum> %partial over "tp" : tensor<?x?xf32>
    ```
  }];
  let arguments = (ins Tk_ReduceKindAttr:$kind, AnyRankedTensor:$tensor, StrAttr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $tensor `over` $axis attr-dict `:` type($tensor)";
}

def Tk_ReduceScatterOp : Tk_Collective<"reduce_scatter"> {
  let summary = "Combine the partial results of all ranks, and keep one share of each";
  let description = [{
    Rank `r` has share `r` along `dim` of what `tk.all_reduce` gives.

    ```mlir
    %share = tk.reduce_scatter <sum> %partial over "tp" dim 0
        : tensor<?x?xf32> -> tensor<?x?xf32>
    ```
  }];
  let arguments = (ins Tk_ReduceKindAttr:$kind, AnyRankedTensor:$tensor, StrAttr:$axis, I64Attr:$dim);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $kind $tensor `over` $axis `dim` $dim attr-dict `:` type($tensor) `->` type($result)
  }];
}

def Tk_AllToAllOp : Tk_Collective<"all_to_all"> {
  let summary = "Make the sharded dimension of a tensor whole, and shard another one";
  let description = [{
    Dimension `from` of the operand is sharded and that of the result is whole. Dimension `to` of
    the operand is whole and that of the result is sharded.

    ```mlir
    %y = tk.all_to_all %x over "tp" from 0 to 1 : tensor<?x?xf32> -> tensor<?x?xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$tensor, StrAttr:$axis, I64Attr:$from, I64Attr:$to);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $tensor `over` $axis `from` $from `to` $to attr-dict `:` type($tensor) `->` type($result)
  }];
}

def Tk_ExchangeOp : Tk_Collective<"exchange", [AttrSizedOperandSegments]> {
  let summary = "Send each rank a block of rows, and receive one from each";
  let description = [{
    The rows are those of dimension 0, in as many blocks of equal size as `axis` has ranks. Block `r`
    goes to rank `r`, where it becomes the block of the sender's number. `counts` are two tensors of
    one i32 for each rank: how many rows of each block are sent, and how many are received. The rows
    behind these are not defined in the result.

    ```mlir
    %y = tk.exchange %x over "ep" counts(%sent, %received : tensor<2xi32>, tensor<2xi32>)
        : tensor<?x?xf32> -> tensor<?x?xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$tensor, Optional<AnyRankedTensor>:$sent,
                       Optional<AnyRankedTensor>:$received, StrAttr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $tensor `over` $axis (`counts` `(` $sent^ `,` $received `:` type($sent) `,` type($received) `)`)?
    attr-dict `:` type($tensor) `->` type($result)
  }];
}

def Tk_LaunchOp : Op<Tk_Dialect, "launch", [Pure, AttrSizedOperandSegments]> {
  let summary = "Run a local kernel on a rank's tensors";
  let description = [{
    `callee` is a `tk.kernel` of the module. The operands are its parameters in order. An integer
    parameter of the callee that is a size or a rank is an `i64` operand here. `extents` holds the
    extents of all results, one result after the other.

    `by_rows` names an axis: the launch is done for as many blocks of rows as the axis has ranks, one
    after the other, because a collective over that axis delivers or takes one block at a time.
    `slicedOperands` and `slicedResults` are the numbers of the tensors that a block has a part of.

    ```mlir
    %h = tk.launch @up_1(%whole, %w) extents(%M, %F_tp)
        : (tensor<?x?xbf16>, tensor<?x?xbf16>) -> tensor<?x?xbf16>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyType>:$operands_, Variadic<Index>:$extents,
                       OptionalAttr<StrAttr>:$by_rows,
                       DefaultValuedOptionalAttr<DenseI64ArrayAttr, "{}">:$slicedOperands,
                       DefaultValuedOptionalAttr<DenseI64ArrayAttr, "{}">:$slicedResults);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $callee `(` $operands_ `)` `extents` `(` $extents `)` (`by_rows` $by_rows^)? attr-dict
    `:` `(` type($operands_) `)` `->` type($results)
  }];
}

#endif // TK_DIALECTS_TK_TKMESHOPS_TD
