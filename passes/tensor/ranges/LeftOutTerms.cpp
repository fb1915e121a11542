//===- LeftOutTerms.cpp - NaN in elements that a mask leaves out ----------===//
#include "passes/tensor/ranges/LeftOutTerms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

/// True if the reduction has a term.
Value LeftOutTerms::isNotEmpty() {
  Value some;
  for (auto [lower, upper] : llvm::zip_equal(reduce.getLower(), reduce.getUpper())) {
    Value along =
        arith::CmpIOp::create(builder, reduce.getLoc(), arith::CmpIPredicate::slt, lower, upper);
    some = some ? arith::AndIOp::create(builder, reduce.getLoc(), some, along).getResult() : along;
  }
  return some;
}

void LeftOutTerms::beginChange(const TermCondition &term, unsigned index) {
  if (!notEmpty && (term.from || term.divisor))
    notEmpty = isNotEmpty();
  lower = reduce.getLower()[index];
  upper = reduce.getUpper()[index];
}

void LeftOutTerms::endChange(const TermCondition &term, unsigned index) {
  for (auto [cause, causes] :
       {std::pair(term.from, &distances), std::pair(term.divisor, &quotients)}) {
    if (!cause)
      continue;
    Value &some = (*causes)[cause];
    for (auto [old, now, predicate] :
         {std::tuple(lower, reduce.getLower()[index], arith::CmpIPredicate::slt),
          std::tuple(upper, reduce.getUpper()[index], arith::CmpIPredicate::sgt)}) {
      if (old == now)
        continue;
      Value differ = arith::CmpIOp::create(builder, reduce.getLoc(), predicate, old, now);
      some =
          some ? arith::OrIOp::create(builder, reduce.getLoc(), some, differ).getResult() : differ;
    }
  }
}

/// The result is NaN if `isNaN` and `leftOut` hold, and if there were terms.
void LeftOutTerms::keepNaN(Value isNaN, Value leftOut) {
  Location loc = reduce.getLoc();
  Value sum = reduce.getResult(0);
  for (Value some : {leftOut, notEmpty})
    isNaN = arith::AndIOp::create(builder, loc, isNaN, some);
  Value nan = arith::ConstantOp::create(
      builder, loc,
      builder.getFloatAttr(sum.getType(),
                           APFloat::getNaN(cast<FloatType>(sum.getType()).getFloatSemantics())));
  auto kept = arith::SelectOp::create(builder, loc, isNaN, nan, sum);
  sum.replaceAllUsesExcept(kept, kept);
}

void LeftOutTerms::keepNaN() {
  Location loc = reduce.getLoc();
  for (auto [causes, kind, predicate] :
       {std::tuple(&distances, ReduceKind::Max, arith::CmpFPredicate::ULE),
        std::tuple(&quotients, ReduceKind::Sum, arith::CmpFPredicate::UEQ)})
    for (auto [cause, leftOut] : *causes) {
      if (!leftOut)
        continue;
      builder.setInsertionPointAfter(reduce);
      IRMapping mapping;
      Value value = cloneSlice(builder, cause, reduce.getBlock(), mapping);
      Value limit = createIdentity(builder, loc, kind, value.getType());
      keepNaN(arith::CmpFOp::create(builder, loc, predicate, value, limit), leftOut);
    }
}
