//===- KernelSignature.cpp - a kernel as its caller sees it ---------------===//
#include "compiler/plan/KernelSignature.h"
#include "dialects/tk/TkScheduleOps.h"
#include "passes/analysis/ScalarCases.h"
#include "passes/analysis/StrideAxes.h"

#include "compiler/plan/HostExpr.h"

using namespace mlir;

namespace tk {

std::optional<DType> dtypeOf(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    type = tensor.getElementType();
  if (type.isF64())
    return DType::f64;
  if (type.isF32())
    return DType::f32;
  if (type.isF16())
    return DType::f16;
  if (type.isBF16())
    return DType::bf16;
  if (isa<Float8E4M3FNType>(type))
    return DType::f8e4m3;
  if (isa<Float8E5M2Type>(type))
    return DType::f8e5m2;
  if (type.isInteger(64) || type.isIndex())
    return DType::i64;
  if (type.isInteger(32))
    return DType::i32;
  if (type.isInteger(16))
    return DType::i16;
  if (type.isInteger(8))
    return type.isUnsignedInteger() ? DType::u8 : DType::i8;
  if (type.isInteger(1))
    return DType::boolean;
  return std::nullopt;
}

SourceSpan sourceSpanOf(Location loc) {
  SourceSpan span;
  if (auto file = loc->findInstanceOf<FileLineColRange>()) {
    span.file = file.getFilename().str();
    span.line = file.getStartLine();
    span.column = file.getStartColumn();
    span.end_line = file.getEndLine();
    span.end_column = file.getEndColumn();
  }
  return span;
}

ArrayAttr factsAttr(MLIRContext *context, const Facts &facts) {
  SmallVector<Attribute> list;
  for (const DimFact &fact : facts.dims)
    list.push_back(FactAttr::get(context, fact.divisor, fact.upper));
  return ArrayAttr::get(context, list);
}

namespace {

class SignatureBuilder {
public:
  explicit SignatureBuilder(KernelOp kernel)
      : kernel(kernel), exprs(kernel), conditions(HostExprBuilder::forConditions(kernel)) {}

  std::optional<Signature> run() {
    signature.name = kernel.getSymName().str();
    signature.span = sourceSpanOf(kernel.getLoc());
    for (Attribute name : kernel.getDimNames())
      signature.dims.push_back(cast<StringAttr>(name).getValue().str());
    for (auto [i, argument] : llvm::enumerate(kernel.getParamArguments()))
      addParameter(kernel.getParam(i), argument);
    for (Operation &op : kernel.getBody().front()) {
      if (auto check = dyn_cast<AssumeOp>(op))
        addCheck(check);
      else if (auto condition = dyn_cast<ScheduleConditionOp>(op))
        addScheduleCondition(condition);
      else if (auto scalars = dyn_cast<ScalarCaseOp>(op))
        addScalarCase(scalars);
      else if (auto value = dyn_cast<DefaultOp>(op))
        addDefault(value);
    }
    addResults();
    if (failed)
      return std::nullopt;
    return std::move(signature);
  }

private:
  Expr exprOf(Value value) { return build(exprs, value); }
  Expr conditionOf(Value value) { return build(conditions, value); }

  Expr build(HostExprBuilder &builder, Value value) {
    std::optional<Expr> expr = builder.build(value);
    failed |= !expr;
    return expr.value_or(Expr());
  }

  Extent extentOf(Value value) {
    Expr expr = exprOf(value);
    return {expr, expr.str(names())};
  }

  std::vector<std::string> names() const {
    std::vector<std::string> list = signature.dims;
    for (const Parameter &param : signature.params)
      if (!param.is_tensor)
        list.push_back(param.name);
    return list;
  }

  void addParameter(ParamAttr attr, BlockArgument argument) {
    Parameter param;
    param.name = attr.getName().str();
    param.strided = attr.getStrided();
    param.in_out = attr.getInout();
    param.is_tensor = isa<RankedTensorType>(argument.getType());
    param.span = sourceSpanOf(argument.getLoc());
    std::optional<DType> dtype = dtypeOf(argument.getType());
    if (!dtype) {
      kernel.emitError("expected parameter ")
          << attr.getName() << " of a type of the language, got " << argument.getType();
      failed = true;
      return;
    }
    param.dtype = *dtype;
    if (param.is_tensor) {
      BindOp bind = kernel.getBind(argument);
      if (!bind) {
        kernel.emitError("expected a tk.bind for parameter ") << attr.getName();
        failed = true;
        return;
      }
      for (Value extent : bind.getExtents())
        param.shape.push_back(extentOf(extent));
    }
    signature.params.push_back(std::move(param));
  }

  void addCheck(AssumeOp op) {
    Check check;
    check.kind = op.getBounds() ? Check::Kind::bounds : Check::Kind::constraint;
    check.condition = op.getBounds() ? exprOf(op.getCondition()) : conditionOf(op.getCondition());
    check.text = op.getText().str();
    check.span = sourceSpanOf(op.getLoc());
    signature.checks.push_back(std::move(check));
  }

  void addScheduleCondition(ScheduleConditionOp op) {
    signature.schedules.push_back({Check::Kind::schedule, conditionOf(op.getCondition()),
                                   op.getText().str(), sourceSpanOf(op.getLoc())});
  }

  void addScalarCase(ScalarCaseOp op) {
    Expr all(int64_t{1});
    for (Value condition : op.getConditions())
      all = Expr::apply(ExprOp::logical_and, all, exprOf(condition));
    const auto kind = isOfSize(op) ? Check::Kind::extent : Check::Kind::scalar;
    signature.cases.push_back({kind, all, op.getText().str(), sourceSpanOf(op.getLoc())});
  }

  void addDefault(DefaultOp op) {
    auto argument = cast<BlockArgument>(op.getParam());
    Parameter &param = signature.params[argument.getArgNumber() - kernel.getNumDims()];
    param.has_default = true;
    param.default_value = exprOf(op.getValue());
    param.default_text = param.default_value.str(names());
  }

  void addResults() {
    ReturnOp ret = kernel.getReturn();
    for (auto [i, name] : llvm::enumerate(kernel.getResultNames())) {
      Value value = ret.getResults()[i];
      Parameter result;
      result.name = cast<StringAttr>(name).getValue().str();
      result.span = sourceSpanOf(value.getLoc());
      std::optional<DType> dtype = dtypeOf(value.getType());
      auto compute = value.getDefiningOp<ComputeOp>();
      if (!dtype || !compute) {
        kernel.emitError("expected result ") << result.name << " to come from a tk.compute";
        failed = true;
        return;
      }
      result.dtype = *dtype;
      result.strided = isStridedResult(kernel, i);
      unsigned number = cast<OpResult>(value).getResultNumber();
      for (unsigned index : compute.getIndicesOf(number))
        result.shape.push_back(extentOf(compute.getExtents()[index]));
      signature.results.push_back(std::move(result));
    }
  }

  KernelOp kernel;
  HostExprBuilder exprs, conditions;
  Signature signature;
  bool failed = false;
};

} // namespace

std::optional<Signature> signatureOf(KernelOp kernel) { return SignatureBuilder(kernel).run(); }

} // namespace tk
