#include "frontend/IRGen.h"

#include "frontend/IRGenKernel.h"
#include "frontend/Program.h"
#include "frontend/Sema.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/CSE.h"

namespace tk::frontend {

using namespace mlir;
using namespace tk::sema;

mlir::Location KernelGen::loc(Span span) const {
  if (!span.valid())
    return builder.getUnknownLoc();
  LineColumn at = sources.lineColumn(span);
  return FileLineColLoc::get(builder.getStringAttr(sources.file(span.file).name()), at.line,
                             at.column);
}

mlir::Type KernelGen::storedType(ast::DType dtype) {
  switch (dtype) {
  case ast::DType::F64:
    return builder.getF64Type();
  case ast::DType::F32:
    return builder.getF32Type();
  case ast::DType::F16:
    return builder.getF16Type();
  case ast::DType::BF16:
    return builder.getBF16Type();
  case ast::DType::F8E4M3:
    return Float8E4M3FNType::get(builder.getContext());
  case ast::DType::F8E5M2:
    return Float8E5M2Type::get(builder.getContext());
  case ast::DType::I64:
    return builder.getI64Type();
  case ast::DType::I32:
    return builder.getI32Type();
  case ast::DType::I16:
    return builder.getI16Type();
  case ast::DType::I8:
    return builder.getI8Type();
  case ast::DType::U8:
    return builder.getIntegerType(8, /*isSigned=*/false);
  case ast::DType::Bool:
    return builder.getI1Type();
  }
  return builder.getF32Type();
}

mlir::Type KernelGen::valueType(sema::Type type) {
  switch (type) {
  case sema::Type::F64:
    return builder.getF64Type();
  case sema::Type::F32:
    return builder.getF32Type();
  case sema::Type::Index:
    return builder.getIndexType();
  default:
    return builder.getIntegerType(widthOf(type));
  }
}

void KernelGen::parameters(KernelOp op) {
  Block &block = op.getBody().front();
  for (unsigned i = 0; i < kernel.dims.size(); ++i)
    dims.push_back(block.addArgument(builder.getIndexType(), loc(kernel.dimSpans[i])));
  for (const Kernel::Param &param : kernel.params) {
    mlir::Type type;
    if (param.tensor) {
      SmallVector<int64_t> shape;
      for (const Node *extent : param.tensor->extents)
        shape.push_back(extent->kind == NodeKind::IntConst ? extent->intValue
                                                           : ShapedType::kDynamic);
      type = RankedTensorType::get(shape, storedType(param.tensor->dtype));
    } else {
      // A u8 scalar is held in i8 bits.
      type = param.scalar->dtype == ast::DType::U8 ? builder.getI8Type()
                                                   : storedType(param.scalar->dtype);
    }
    Value arg = block.addArgument(type, loc(param.source->nameSpan));
    params.push_back(arg);
    if (param.tensor)
      tensors[param.tensor] = arg;
  }
  builder.setInsertionPointToEnd(&block);
  for (auto [i, param] : llvm::enumerate(kernel.params)) {
    if (!param.tensor)
      continue;
    SmallVector<Value> extents;
    for (const Node *extent : param.tensor->extents)
      extents.push_back(value(extent));
    BindOp::create(builder, loc(param.source->nameSpan), params[i], extents);
  }
  for (auto [i, param] : llvm::enumerate(kernel.params)) {
    if (!param.scalar || !param.scalar->defaultValue)
      continue;
    mlir::Location at = loc(param.source->nameSpan);
    Value v = value(param.scalar->defaultValue);
    if (isNarrowFloat(param.scalar->dtype))
      v = narrow(v, param.scalar->dtype, at);
    DefaultOp::create(builder, at, params[i], v);
  }
}

void KernelGen::assumptions() {
  for (const Assumption &assumption : kernel.assumptions)
    AssumeOp::create(builder, loc(assumption.span), value(assumption.condition),
                     builder.getStringAttr(assumption.text), assumption.bounds);
}

void KernelGen::statement(const Statement &s) {
  mlir::Location at = loc(s.span);
  SmallVector<Value> extents;
  SmallVector<StringRef> names;
  for (const IndexVar *var : s.indices) {
    extents.push_back(value(var->hi));
    names.push_back(var->name);
  }
  ast::DType dtype = s.tensor->dtype;
  // Values of sizes alone are built in front of the statement, whose body comes first.
  auto point = builder.saveInsertionPoint();
  auto compute = ComputeOp::create(
      builder, at, ArrayRef<StringRef>(names), ValueRange(extents),
      ArrayRef<mlir::Type>{storedType(dtype)}, ArrayRef<StringRef>{s.tensor->name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &, mlir::Location, ValueRange) {});
  statementOp = compute;
  builder.setInsertionPointToEnd(compute.getBlock());
  frames.emplace_back();
  for (auto [var, arg] : llvm::zip(s.indices, compute.getBlock()->getArguments())) {
    frames.back().indices[var] = arg;
    arg.setLoc(loc(var->span));
  }
  Value v = value(s.value);
  if (isNarrowFloat(dtype))
    v = narrow(v, dtype, at);
  YieldOp::create(builder, at, ValueRange{v});
  frames.pop_back();
  statementOp = nullptr;
  builder.restoreInsertionPoint(point);
  builder.setInsertionPointAfter(compute);
  tensors[s.tensor] = compute.getResult(0);
}

mlir::Attribute KernelGen::schedules() {
  SmallVector<Attribute> list;
  for (const sema::Schedule &schedule : kernel.schedules) {
    NamedAttrList attrs;
    if (!schedule.arch.empty())
      attrs.set("arch", builder.getStringAttr(schedule.arch));
    if (!schedule.when.empty())
      attrs.set("when", builder.getStringAttr(schedule.when));
    for (const sema::ScheduleEntry &entry : schedule.entries) {
      NamedAttrList axes;
      Attribute single = builder.getUnitAttr();
      for (const sema::ScheduleValue &v : entry.values) {
        Attribute attr = v.word.empty() || v.word == "grouped"
                             ? Attribute(builder.getI64IntegerAttr(v.value))
                             : Attribute(builder.getStringAttr(v.word));
        if (v.axis.empty())
          single = attr;
        else
          axes.set(v.axis, attr);
      }
      attrs.set(entry.key, axes.empty() ? single : axes.getDictionary(builder.getContext()));
    }
    list.push_back(attrs.getDictionary(builder.getContext()));
  }
  return builder.getArrayAttr(list);
}

void KernelGen::run() {
  SmallVector<StringRef> dimNames(kernel.dims.begin(), kernel.dims.end()), resultNames;
  SmallVector<Attribute> paramAttrs;
  for (const Kernel::Param &p : kernel.params)
    paramAttrs.push_back(
        ParamAttr::get(builder.getContext(), p.source->name, p.source->strided, p.source->inout));
  for (const ast::ParamPtr &result : kernel.source->results)
    resultNames.push_back(result->name);
  auto op = KernelOp::create(builder, loc(kernel.source->nameSpan), kernel.source->name,
                             builder.getStrArrayAttr(dimNames), builder.getArrayAttr(paramAttrs),
                             builder.getStrArrayAttr(resultNames), ArrayAttr(),
                             kernel.source->deterministic);
  if (!kernel.schedules.empty())
    op->setAttr("tk.schedules", schedules());
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&op.getBody());
  frames.emplace_back();
  parameters(op);
  assumptions();
  for (const Statement &s : kernel.statements)
    statement(s);
  SmallVector<Value> results;
  for (const Tensor *t : kernel.results)
    results.push_back(tensors[t]);
  ReturnOp::create(builder, loc(kernel.source->span), results);
  frames.pop_back();
}

OwningOpRef<ModuleOp> generate(MLIRContext &context, const sema::Module &module,
                               const SourceManager &sources) {
  context.loadDialect<TkDialect, arith::ArithDialect, math::MathDialect>();
  OpBuilder builder(&context);
  OwningOpRef<ModuleOp> result(ModuleOp::create(builder, builder.getUnknownLoc()));
  builder.setInsertionPointToEnd(result->getBody());
  for (const std::unique_ptr<Kernel> &kernel : module.kernels)
    KernelGen(builder, *kernel, sources).run();
  if (failed(verify(*result)))
    return nullptr;
  // One value for each expression of sizes, wherever in the program it was written.
  IRRewriter rewriter(&context);
  DominanceInfo dominance(*result);
  for (Operation &op : *result->getBody())
    eliminateCommonSubExpressions(rewriter, dominance, &op);
  return result;
}

OwningOpRef<ModuleOp> compileToTk(MLIRContext &context, SourceManager &sources, FileId file,
                                  Diagnostics &diags) {
  std::unique_ptr<ast::Program> program = parseProgram(sources, file, diags);
  if (diags.hasErrors())
    return nullptr;
  std::unique_ptr<sema::Module> module = analyze(*program, diags);
  if (!module)
    return nullptr;
  return generate(context, *module, sources);
}

} // namespace tk::frontend
