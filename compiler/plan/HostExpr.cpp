//===- HostExpr.cpp - launch-time scalars as expressions ------------------===//
#include "compiler/plan/HostExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace tk {

HostExprBuilder::HostExprBuilder(KernelOp kernel, bool quiet) : quiet(quiet) {
  unsigned next = 0;
  for (Value dim : kernel.getDimArguments())
    known.try_emplace(dim, Expr::variable(next++));
  for (Value param : kernel.getParamArguments())
    if (!isa<RankedTensorType>(param.getType()))
      known.try_emplace(param, Expr::variable(next++));
}

HostExprBuilder HostExprBuilder::forConditions(KernelOp kernel) {
  HostExprBuilder builder(kernel);
  builder.isOfCondition = true;
  return builder;
}

/// Operations that are one step of an expression, by name.
static const llvm::StringMap<ExprOp> &steps() {
  static const llvm::StringMap<ExprOp> map = {{"arith.addi", ExprOp::add},
                                              {"arith.subi", ExprOp::sub},
                                              {"arith.muli", ExprOp::mul},
                                              {"tk.floor_div", ExprOp::floor_div},
                                              {"tk.floor_mod", ExprOp::mod},
                                              {"arith.floordivsi", ExprOp::floor_div},
                                              {"arith.ceildivsi", ExprOp::ceil_div},
                                              {"arith.minsi", ExprOp::min},
                                              {"arith.maxsi", ExprOp::max},
                                              {"arith.andi", ExprOp::logical_and},
                                              {"arith.ori", ExprOp::logical_or},
                                              {"arith.select", ExprOp::select},
                                              {"arith.addf", ExprOp::add},
                                              {"arith.subf", ExprOp::sub},
                                              {"arith.mulf", ExprOp::mul},
                                              {"arith.divf", ExprOp::div},
                                              {"arith.negf", ExprOp::neg},
                                              {"arith.maximumf", ExprOp::max},
                                              {"arith.minimumf", ExprOp::min},
                                              {"arith.sitofp", ExprOp::to_real},
                                              {"arith.uitofp", ExprOp::to_real},
                                              {"arith.fptosi", ExprOp::to_integer},
                                              {"math.sqrt", ExprOp::sqrt},
                                              {"math.rsqrt", ExprOp::rsqrt},
                                              {"math.exp", ExprOp::exp},
                                              {"math.exp2", ExprOp::exp2},
                                              {"math.log", ExprOp::log},
                                              {"math.log2", ExprOp::log2},
                                              {"math.log1p", ExprOp::log1p},
                                              {"math.expm1", ExprOp::expm1},
                                              {"math.tanh", ExprOp::tanh},
                                              {"math.sin", ExprOp::sin},
                                              {"math.cos", ExprOp::cos},
                                              {"math.erf", ExprOp::erf},
                                              {"math.floor", ExprOp::floor},
                                              {"math.ceil", ExprOp::ceil},
                                              {"math.roundeven", ExprOp::round},
                                              {"math.absf", ExprOp::abs},
                                              {"math.absi", ExprOp::abs},
                                              {"math.powf", ExprOp::pow}};
  return map;
}

static bool isBool(Value value) { return value.getType().isInteger(1); }

/// Comparisons: the runtime has eq, ne, lt and le; the others swap their operands.
static std::optional<Expr> compare(StringRef predicate, const Expr &a, const Expr &b) {
  if (predicate == "eq" || predicate == "oeq" || predicate == "ueq")
    return Expr::apply(ExprOp::eq, a, b);
  if (predicate == "ne" || predicate == "une" || predicate == "one")
    return Expr::apply(ExprOp::ne, a, b);
  if (predicate == "slt" || predicate == "olt")
    return Expr::apply(ExprOp::lt, a, b);
  if (predicate == "sle" || predicate == "ole")
    return Expr::apply(ExprOp::le, a, b);
  if (predicate == "sgt" || predicate == "ogt")
    return Expr::apply(ExprOp::lt, b, a);
  if (predicate == "sge" || predicate == "oge")
    return Expr::apply(ExprOp::le, b, a);
  return std::nullopt;
}

/// `value` modulo 2^width: as an unsigned number, or in -2^(width - 1) .. 2^(width - 1) - 1.
static Expr wrap(const Expr &value, unsigned width, bool isSigned) {
  const Expr count(int64_t{1} << width), half(int64_t{1} << (width - 1));
  if (!isSigned)
    return Expr::apply(ExprOp::mod, value, count);
  Expr shifted = Expr::apply(ExprOp::mod, Expr::apply(ExprOp::add, value, half), count);
  return Expr::apply(ExprOp::sub, shifted, half);
}

/// A conversion to or from an integer of 8 or 16 bits that a launch can see: one that wraps, or
/// that takes the bits of a signed number for those of an unsigned one.
static std::optional<Expr> convertNarrow(Operation *op, ArrayRef<Expr> operands) {
  auto narrowWidth = [](Type type) {
    const unsigned width = type.isInteger() ? type.getIntOrFloatBitWidth() : 64;
    return width > 1 && width < 32 ? width : 0;
  };
  if (isa<arith::TruncIOp>(op))
    if (unsigned width = narrowWidth(op->getResult(0).getType()))
      return wrap(operands[0], width, /*isSigned=*/true);
  if (isa<arith::ExtUIOp, arith::UIToFPOp, arith::IndexCastUIOp>(op))
    if (unsigned width = narrowWidth(op->getOperand(0).getType())) {
      Expr whole = wrap(operands[0], width, /*isSigned=*/false);
      return isa<arith::UIToFPOp>(op) ? Expr::apply(ExprOp::to_real, whole) : whole;
    }
  return std::nullopt;
}

std::optional<Expr> HostExprBuilder::buildOp(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto number = dyn_cast<FloatAttr>(constant.getValue()))
      return Expr::real(number.getValueAsDouble());
    if (auto boolean = dyn_cast<BoolAttr>(constant.getValue()))
      return Expr(int64_t{boolean.getValue()});
    if (auto integer = dyn_cast<IntegerAttr>(constant.getValue()))
      return Expr(integer.getValue().getSExtValue());
    return std::nullopt;
  }
  SmallVector<Expr> operands;
  for (Value operand : op->getOperands()) {
    std::optional<Expr> expr = build(operand);
    if (!expr)
      return std::nullopt;
    operands.push_back(std::move(*expr));
  }
  if (std::optional<Expr> narrow = convertNarrow(op, operands))
    return narrow;
  // Conversions between other widths change nothing that a launch could see: its integers are 64
  // bits wide and checked, its floats f64.
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp,
          arith::ExtFOp, arith::TruncFOp>(op))
    return operands[0];
  if (auto cmp = dyn_cast<arith::CmpIOp>(op))
    return compare(arith::stringifyCmpIPredicate(cmp.getPredicate()), operands[0], operands[1]);
  if (auto cmp = dyn_cast<arith::CmpFOp>(op))
    return compare(arith::stringifyCmpFPredicate(cmp.getPredicate()), operands[0], operands[1]);
  if (isa<arith::XOrIOp>(op) && isBool(op->getResult(0)))
    return Expr::apply(ExprOp::ne, operands[0], operands[1]);
  if (isa<arith::AndIOp, arith::OrIOp>(op) && !isBool(op->getResult(0)))
    return std::nullopt;
  if (isa<FloorModOp>(op) && isOfCondition && !operands[1].is_constant())
    return Expr::apply(ExprOp::select, Expr::apply(ExprOp::eq, operands[1], Expr(0)), operands[0],
                       Expr::mod(operands[0], operands[1]));
  auto it = steps().find(op->getName().getStringRef());
  if (it == steps().end() || arity(it->second) != operands.size())
    return std::nullopt;
  switch (operands.size()) {
  case 1:
    return Expr::apply(it->second, operands[0]);
  case 2:
    return Expr::apply(it->second, operands[0], operands[1]);
  default:
    return Expr::apply(it->second, operands[0], operands[1], operands[2]);
  }
}

std::optional<Expr> HostExprBuilder::build(Value value) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  Operation *op = value.getDefiningOp();
  std::optional<Expr> expr = op ? buildOp(op) : std::nullopt;
  if (!expr) {
    if (op && !quiet)
      op->emitError("expected a scalar that a launch can evaluate from dimensions and scalar "
                    "parameters, got '")
          << op->getName() << "'";
    return std::nullopt;
  }
  known.try_emplace(value, *expr);
  return expr;
}

} // namespace tk
