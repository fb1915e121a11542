//===- TkScalar.cpp - loads and scalar operations -------------------------===//
#include "dialects/tk/TkDialect.h"

#include "mlir/Dialect/CommonFolders.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

//===----------------------------------------------------------------------===//
// tk.load
//===----------------------------------------------------------------------===//

static Type loadedType(Type tensor) {
  Type element = cast<RankedTensorType>(tensor).getElementType();
  if (element.isUnsignedInteger())
    return IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth());
  return element;
}

LogicalResult LoadOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands,
                                       DictionaryAttr, OpaqueProperties, RegionRange,
                                       SmallVectorImpl<Type> &types) {
  types.push_back(loadedType(operands.front().getType()));
  return success();
}

LogicalResult LoadOp::verify() {
  auto type = cast<RankedTensorType>(getTensor().getType());
  if (static_cast<int64_t>(getIndices().size()) != type.getRank())
    return emitOpError("expected ") << type.getRank() << " indices, got " << getIndices().size();
  if (getPad() && getPad().getType() != getResult().getType())
    return emitOpError("expected a padding value of type ")
           << getResult().getType() << ", got " << getPad().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// tk.floor_div, tk.floor_mod
//===----------------------------------------------------------------------===//

static APInt floorDiv(const APInt &a, const APInt &b) {
  if (b.isZero())
    return b;
  APInt quotient, remainder;
  APInt::sdivrem(a, b, quotient, remainder);
  if (!remainder.isZero() && remainder.isNegative() != b.isNegative())
    --quotient;
  return quotient;
}

OpFoldResult FloorDivOp::fold(FoldAdaptor adaptor) {
  if (matchPattern(adaptor.getRhs(), m_One()))
    return getLhs();
  return constFoldBinaryOp<IntegerAttr, APInt, void>(adaptor.getOperands(), floorDiv);
}

OpFoldResult FloorModOp::fold(FoldAdaptor adaptor) {
  if (matchPattern(adaptor.getRhs(), m_One()))
    return IntegerAttr::get(getType(), 0);
  return constFoldBinaryOp<IntegerAttr, APInt, void>(

      adaptor.getOperands(),
      [](const APInt &a, const APInt &b) { return b.isZero() ? b : a - floorDiv(a, b) * b; });
}
