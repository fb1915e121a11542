//===- TkScalarOps.td - scalar operations that arith and math lack ------===//
//
// Included by TkOps.td.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TK_TKSCALAROPS_TD
#define TK_DIALECTS_TK_TKSCALAROPS_TD

//===----------------------------------------------------------------------===//
// Scalar operations that arith and math lack
//===----------------------------------------------------------------------===//

class Tk_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Tk_Op<mnemonic, !listconcat([Pure, SameOperandsAndResultType, Elementwise, Scalarizable,
                                   Vectorizable, Tensorizable], traits)>;

def Tk_IntegerLike : TypeConstraint<Or<[SignlessIntegerOrIndexLike.predicate]>, "integer or index">;

def Tk_FloorDivOp : Tk_ElementwiseOp<"floor_div"> {
  let summary = "Divide integers and round the quotient towards minus infinity; 0 if the "
                "divisor is 0";
  let description = [{
    Operands and result have one type: an integer, an `index`, or a tensor of either. `x / 1` folds
    to `x`, and constants fold.

    ```mlir
    %group = tk.floor_div %q, %ratio : index
    ```
  }];
  let arguments = (ins Tk_IntegerLike:$lhs, Tk_IntegerLike:$rhs);
  let results = (outs Tk_IntegerLike:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasFolder = 1;
}

def Tk_FloorModOp : Tk_ElementwiseOp<"floor_mod"> {
  let summary = "Compute the remainder of the floor division; 0 if the divisor is 0";
  let description = [{
    The result is `lhs - floor_div(lhs, rhs) * rhs`. It has the sign of the divisor. Operands and
    result have one type: an integer, an `index`, or a tensor of either. Constants fold.

    ```mlir
    %rest = tk.floor_mod %q, %page : index
    ```
  }];
  let arguments = (ins Tk_IntegerLike:$lhs, Tk_IntegerLike:$rhs);
  let results = (outs Tk_IntegerLike:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasFolder = 1;
}

def Tk_ExpDiffOp : Tk_ElementwiseOp<"exp_diff"> {
  let summary = "Compute `exp(a - b)`, and 0 if `a` is -inf";
  let description = [{
    The result is the numerator of a softmax for the score `a` and the maximum `b`. If `a` is -inf
    the result is 0 for every `b`, including NaN and -inf. Otherwise NaN in an operand gives NaN,
    and `a = b = +inf` gives NaN.

    The function separates: `exp_diff(a, c) = exp_diff(a, b) * exp_diff(b, c)` for a <= b <= c,
    also if values are -inf. Online reductions rely on this property.

    ```mlir
    %e = tk.exp_diff %w, %max : f32
    ```
  }];
  let arguments = (ins FloatLike:$a, FloatLike:$b);
  let results = (outs FloatLike:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($result)";
}

def Tk_DivOrZeroOp : Tk_ElementwiseOp<"div_or_zero"> {
  let summary = "Compute `a / b`, and `a` if `b` is 0";
  let description = [{
    The operation divides a softmax numerator by the row's sum. If the sum is 0, each numerator is
    0, and so is the result.

    The operation is linear in `a`. It therefore moves out of a sum over an index that `b` does not
    use. A numerator times NaN or an infinity is NaN for every `b`, inside and outside of the sum.

    ```mlir
    %p = tk.div_or_zero %e, %s : f32
    ```
  }];
  let arguments = (ins FloatLike:$a, FloatLike:$b);
  let results = (outs FloatLike:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($result)";
}

def Tk_RandOp : Tk_Op<"rand", [Pure, Elementwise, Scalarizable, Vectorizable, Tensorizable]> {
  let summary = "Compute a uniform f32 in [0, 1) from word `n % 4` of the Philox 4x32-10 block "
                "`n / 4`";
  let description = [{
    The key consists of the two 32-bit words of `seed`. The counter consists of the two words of `n
    / 4`, then zeros. `n` is signed; `n / 4` and `n % 4` round down. The result is the upper 24
    bits of word `n % 4` times 2^-24. Four neighbouring values of `n` share a block.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).

    ```mlir
    %u = tk.rand %seed, %n : i64, i64 -> f32
    ```
  }];
  let arguments = (ins SignlessIntegerLike:$seed, SignlessIntegerLike:$n);
  let results = (outs FloatLike:$result);
  let assemblyFormat = "$seed `,` $n attr-dict `:` type($seed) `,` type($n) `->` type($result)";
}

#endif // TK_DIALECTS_TK_TKSCALAROPS_TD
