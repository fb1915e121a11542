#include "dialects/tk/TkMeshOps.h"
#include "frontend/IRGenKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

namespace tk::frontend {

using namespace mlir;
using sema::IndexVar;
using sema::isFloat;
using sema::isInteger;
using sema::Node;
using sema::NodeKind;

mlir::Value KernelGen::lookup(const Node *n) const {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (auto it = frame->values.find(n); it != frame->values.end())
      return it->second;
    if (frame->barrier)
      break;
  }
  return {};
}

mlir::Value KernelGen::indexValue(const IndexVar *var) const {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
    if (auto it = frame->indices.find(var); it != frame->indices.end())
      return it->second;
  return {};
}

mlir::Value KernelGen::offsetOf(const IndexVar *var) const {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
    if (auto it = frame->offsets.find(var); it != frame->offsets.end())
      return it->second;
  return {};
}

void KernelGen::bindIndex(const IndexVar *var, Value offset) {
  frames.back().offsets[var] = offset;
  frames.back().indices[var] =
      var->startsAtZero()
          ? offset
          : arith::AddIOp::create(builder, loc(var->span), offset, value(var->lo)).getResult();
}

mlir::Value KernelGen::lengthOf(const IndexVar *var) {
  if (var->startsAtZero())
    return value(var->hi);
  OpBuilder::InsertionGuard guard(builder);
  Value low = value(var->lo), high = value(var->hi);
  if (statementOp)
    builder.setInsertionPoint(statementOp);
  mlir::Location at = loc(var->span);
  Value length = arith::SubIOp::create(builder, at, high, low);
  return arith::MaxSIOp::create(builder, at, length, integer(0, builder.getIndexType(), at));
}

/// Whether the launch of a kernel can evaluate the operation on scalars: it has no bits, no random
/// numbers, no roundings, and no tests for NaN (a conversion to integers has one).
static bool isForLaunches(const Node *n) {
  if (n->kind == NodeKind::Round || n->roundsToOdd)
    return false;
  if (n->kind == NodeKind::Convert && sema::isFloat(n->args[0]->type) && !sema::isFloat(n->type))
    return false;
  if (n->kind != NodeKind::Op)
    return true;
  switch (n->op) {
  case sema::Op::Fma:
    return !sema::isFloat(n->type);
  case sema::Op::Rand:
  case sema::Op::BitAnd:
  case sema::Op::BitOr:
  case sema::Op::BitXor:
  case sema::Op::BitNot:
  case sema::Op::Shl:
  case sema::Op::Shr:
  case sema::Op::IsNan:
  case sema::Op::IsInf:
  case sema::Op::ExpDiff:
  case sema::Op::DivOrZero:
    return false;
  default:
    return true;
  }
}

bool KernelGen::isKernelValue(const Node *n) {
  if (!n->kernelLevel)
    return false;
  auto it = kernelValues.find(n);
  if (it != kernelValues.end())
    return it->second;
  // Outside of statements there is no other place; a statement can do what a launch cannot.
  bool is = isForLaunches(n) &&
            llvm::all_of(n->args, [&](const Node *arg) { return isKernelValue(arg); });
  kernelValues[n] = is;
  return is;
}

/// Nodes are built once in each region, values of sizes alone once in the kernel.
mlir::Value KernelGen::value(const Node *n) {
  if (n->kernelLevel && (!statementOp || isKernelValue(n))) {
    auto it = frames.front().values.find(n);
    if (it != frames.front().values.end())
      return it->second;
    OpBuilder::InsertionGuard guard(builder);
    if (statementOp)
      builder.setInsertionPoint(statementOp);
    Value v = build(n);
    frames.front().values[n] = v;
    return v;
  }
  if (n->kind == NodeKind::Index)
    return indexValue(n->indices[0]);
  if (Value known = lookup(n))
    return known;
  Value v = build(n);
  frames.back().values[n] = v;
  return v;
}

mlir::Value KernelGen::number(double v, mlir::Type type, mlir::Location at) {
  return arith::ConstantOp::create(builder, at, builder.getFloatAttr(type, v));
}

mlir::Value KernelGen::integer(std::int64_t v, mlir::Type type, mlir::Location at) {
  if (type.isIndex())
    return arith::ConstantOp::create(builder, at, builder.getIndexAttr(v));
  unsigned width = type.getIntOrFloatBitWidth();
  return arith::ConstantOp::create(
      builder, at,
      builder.getIntegerAttr(type, APInt(width, static_cast<std::uint64_t>(v), true, true)));
}

mlir::Value KernelGen::constant(const Node *n) {
  mlir::Type type = valueType(n->type);
  if (n->kind == NodeKind::FloatConst)
    return number(n->floatValue, type, loc(n->span));
  return integer(n->intValue, type, loc(n->span));
}

mlir::Value KernelGen::build(const Node *n) {
  switch (n->kind) {
  case NodeKind::IntConst:
  case NodeKind::FloatConst:
  case NodeKind::BoolConst:
    return constant(n);
  case NodeKind::Dim:
    return dims[n->number];
  case NodeKind::Scalar:
    return widen(params[n->number], n->stored, loc(n->span));
  case NodeKind::Index:
    return indexValue(n->indices[0]);
  case NodeKind::Load:
    return load(n);
  case NodeKind::Op:
    return operation(n);
  case NodeKind::Convert:
    return convert(n);
  case NodeKind::Round: {
    Value rounded = narrow(value(n->args[0]), n->stored, loc(n->span));
    if (n->ofFactor)
      rounded.getDefiningOp()->setAttr(roundedFactorAttr, builder.getUnitAttr());
    return widen(rounded, n->stored, loc(n->span));
  }
  case NodeKind::Reduce:
    return reduce(n);
  case NodeKind::Scan:
    return scan(n);
  }
  return {};
}

mlir::Value KernelGen::narrow(Value v, ast::DType dtype, mlir::Location at) {
  if (dtype == ast::DType::F8E4M3 || dtype == ast::DType::F8E5M2) {
    // The stored type saturates: infinities become the largest finite value, NaN stays NaN.
    double largest = dtype == ast::DType::F8E4M3 ? 448 : 57344;
    Value high = number(largest, v.getType(), at), low = number(-largest, v.getType(), at);
    v = arith::MinimumFOp::create(builder, at, v, high);
    v = arith::MaximumFOp::create(builder, at, v, low);
  }
  return arith::TruncFOp::create(builder, at, storedType(dtype), v);
}

mlir::Value KernelGen::widen(Value v, ast::DType dtype, mlir::Location at) {
  if (!sema::isNarrowFloat(dtype))
    return v;
  return arith::ExtFOp::create(builder, at, builder.getF32Type(), v);
}

mlir::Value KernelGen::load(const Node *n) {
  mlir::Location at = loc(n->span);
  SmallVector<Value> indices;
  for (auto [axis, arg] : llvm::enumerate(n->args)) {
    const Node *low = n->tensor->lows.empty() ? nullptr : n->tensor->lows[axis];
    if (!low || (low->kind == NodeKind::IntConst && low->intValue == 0))
      indices.push_back(value(arg));
    else if (arg->kind == NodeKind::Index && arg->indices[0]->lo == low &&
             offsetOf(arg->indices[0]))
      indices.push_back(offsetOf(arg->indices[0]));
    else
      indices.push_back(arith::SubIOp::create(builder, at, value(arg), value(low)));
  }
  Value pad;
  ast::DType dtype = n->tensor->dtype;
  if (n->pad) {
    if (sema::isNarrowFloat(dtype) && n->pad->kind == NodeKind::FloatConst &&
        std::abs(n->pad->floatValue) <= 448)
      pad = number(n->pad->floatValue, storedType(dtype), at);
    else if (pad = value(n->pad); sema::isNarrowFloat(dtype))
      pad = narrow(pad, dtype, at);
  }
  Value v = LoadOp::create(builder, at, tensors.lookup(n->tensor), indices, pad);
  return widen(v, dtype, at);
}

static std::optional<ReduceKind> kindOf(ast::ReduceKind kind) {
  switch (kind) {
  case ast::ReduceKind::Sum:
  case ast::ReduceKind::CumSum:
    return ReduceKind::Sum;
  case ast::ReduceKind::Prod:
  case ast::ReduceKind::CumProd:
    return ReduceKind::Prod;
  case ast::ReduceKind::Max:
  case ast::ReduceKind::CumMax:
    return ReduceKind::Max;
  case ast::ReduceKind::Min:
    return ReduceKind::Min;
  case ast::ReduceKind::Any:
    return ReduceKind::Any;
  case ast::ReduceKind::All:
    return ReduceKind::All;
  case ast::ReduceKind::ArgMax:
    return ReduceKind::ArgMax;
  case ast::ReduceKind::ArgMin:
    return ReduceKind::ArgMin;
  default:
    return std::nullopt; // analysed away
  }
}

mlir::Value KernelGen::reduce(const Node *n) {
  SmallVector<StringRef> names;
  SmallVector<Value> lower, upper;
  for (const IndexVar *var : n->indices) {
    names.push_back(var->name);
    lower.push_back(value(var->lo));
    upper.push_back(value(var->hi));
  }
  Precision precision = Precision::Default;
  if (n->modifier == ast::ReduceModifier::Exact)
    precision = Precision::Exact;
  if (n->modifier == ast::ReduceModifier::Tf32)
    precision = Precision::TF32;
  if (n->modifier == ast::ReduceModifier::Fast)
    precision = Precision::Fast;
  auto reduce = ReduceOp::create(
      builder, loc(n->span), *kindOf(n->reduce), names, lower, upper, valueType(n->type),
      [&](OpBuilder &, mlir::Location, ValueRange args) {
        frames.emplace_back();
        for (auto [var, arg] : llvm::zip(n->indices, args)) {
          frames.back().indices[var] = arg;
          frames.back().offsets[var] = var->startsAtZero() ? Value(arg) : Value();
        }
        Value term = value(n->args[0]);
        frames.pop_back();
        return term;
      },
      precision);
  if (n->wire)
    reduce->setAttr(wireAttr, TypeAttr::get(storedType(*n->wire)));
  return reduce.getResult(0);
}

mlir::Value KernelGen::scan(const Node *n) {
  const IndexVar *var = n->indices[0];
  Value position = offsetOf(var), lower = integer(0, builder.getIndexType(), loc(n->span));
  Value upper = lengthOf(var);
  return ScanOp::create(builder, loc(n->span), *kindOf(n->reduce), var->name, lower, upper,
                        position, valueType(n->type),
                        [&](OpBuilder &, mlir::Location, ValueRange args) {
                          frames.emplace_back();
                          frames.back().barrier = true;
                          bindIndex(var, args[0]);
                          Value term = value(n->args[0]);
                          frames.pop_back();
                          return term;
                        });
}

/// An i64 that an f64 holds, and that every type of fewer than 52 significant bits rounds as `v`:
/// of one that needs more than 53 bits the last eleven become one that says whether they were 0.
mlir::Value KernelGen::roundToOdd(Value v, mlir::Location at) {
  mlir::Type type = v.getType();
  auto c = [&](std::int64_t value) { return integer(value, type, at); };
  constexpr std::int64_t exact = std::int64_t{1} << 53, lost = (std::int64_t{1} << 11) - 1;
  Value shifted = arith::AddIOp::create(builder, at, v, c(exact));
  Value isLarge =
      arith::CmpIOp::create(builder, at, arith::CmpIPredicate::ugt, shifted, c(2 * exact));
  Value rest = arith::AndIOp::create(builder, at, v, c(lost));
  Value isInexact = arith::CmpIOp::create(builder, at, arith::CmpIPredicate::ne, rest, c(0));
  Value odd = arith::SelectOp::create(builder, at, isInexact, c((lost + 1) / 2), c(0));
  Value kept = arith::AndIOp::create(builder, at, v, c(~lost));
  Value rounded = arith::OrIOp::create(builder, at, kept, odd);
  return arith::SelectOp::create(builder, at, isLarge, rounded, v);
}

mlir::Value KernelGen::convert(const Node *n) {
  mlir::Location at = loc(n->span);
  Value v = value(n->args[0]);
  sema::Type from = n->args[0]->type, to = n->type;
  mlir::Type type = valueType(to);
  bool isUnsigned = from == sema::Type::U8 || from == sema::Type::Bool;
  if (isFloat(from) && isFloat(to)) {
    if (to == sema::Type::F64)
      return arith::ExtFOp::create(builder, at, type, v);
    return arith::TruncFOp::create(builder, at, type, v);
  }
  if (isFloat(to)) {
    if (from == sema::Type::Index)
      v = arith::IndexCastOp::create(builder, at, builder.getI64Type(), v);
    if (n->roundsToOdd)
      v = roundToOdd(v, at);
    if (isUnsigned)
      return arith::UIToFPOp::create(builder, at, type, v);
    return arith::SIToFPOp::create(builder, at, type, v);
  }
  if (isFloat(from)) {
    // Towards zero; what does not fit becomes the nearest value of the type, NaN becomes 0.
    mlir::Type wide = to == sema::Type::Index || to == sema::Type::I64
                          ? builder.getI64Type()
                          : mlir::Type(builder.getIntegerType(sema::widthOf(to)));
    sema::Type target = to == sema::Type::Index ? sema::Type::I64 : to;
    double low = static_cast<double>(sema::minOf(target));
    double past = target == sema::Type::U8 ? 256.0 : -low;
    Value zero = number(0, v.getType(), at);
    Value lowest = number(low, v.getType(), at), limit = number(past, v.getType(), at);
    Value tooLow = arith::CmpFOp::create(builder, at, arith::CmpFPredicate::OLE, v, lowest);
    Value tooHigh = arith::CmpFOp::create(builder, at, arith::CmpFPredicate::OGE, v, limit);
    Value isNan = arith::CmpFOp::create(builder, at, arith::CmpFPredicate::UNO, v, v);
    Value outside = arith::OrIOp::create(builder, at, tooLow, tooHigh);
    outside = arith::OrIOp::create(builder, at, outside, isNan);
    Value safe = arith::SelectOp::create(builder, at, outside, zero, v);
    Value whole = target == sema::Type::U8
                      ? Value(arith::FPToUIOp::create(builder, at, wide, safe))
                      : Value(arith::FPToSIOp::create(builder, at, wide, safe));
    whole =
        arith::SelectOp::create(builder, at, tooLow, integer(sema::minOf(target), wide, at), whole);
    whole = arith::SelectOp::create(builder, at, tooHigh, integer(sema::maxOf(target), wide, at),
                                    whole);
    if (to == sema::Type::Index)
      return arith::IndexCastOp::create(builder, at, type, whole);
    return whole;
  }
  // Integers and bools.
  if (to == sema::Type::Index) {
    if (isUnsigned)
      return arith::IndexCastUIOp::create(builder, at, type, v);
    return arith::IndexCastOp::create(builder, at, type, v);
  }
  if (from == sema::Type::Index)
    return arith::IndexCastOp::create(builder, at, type, v);
  unsigned a = sema::widthOf(from), b = sema::widthOf(to);
  if (a == b)
    return v;
  if (a > b)
    return arith::TruncIOp::create(builder, at, type, v);
  if (isUnsigned)
    return arith::ExtUIOp::create(builder, at, type, v);
  return arith::ExtSIOp::create(builder, at, type, v);
}

} // namespace tk::frontend
