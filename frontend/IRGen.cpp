#include "frontend/IRGen.h"
#include "dialects/tk/TkInvariance.h"
#include "dialects/tk/TkMeshOps.h"
#include "dialects/tk/TkScheduleOps.h"

#include "frontend/Gradient.h"
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
  return FileLineColLoc::get(builder.getStringAttr(sources.file(span.file).label()), at.line,
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
    assume(assumption);
}

void KernelGen::assume(const Assumption &assumption) {
  AssumeOp::create(builder, loc(assumption.span), value(assumption.condition),
                   builder.getStringAttr(assumption.text), assumption.bounds);
}

void KernelGen::scheduleConditions() {
  for (auto [number, schedule] : llvm::enumerate(kernel.schedules))
    if (schedule.when)
      ScheduleConditionOp::create(builder, loc(schedule.whenSpan), value(schedule.when),
                                  schedule.whenText, number);
}

/// A literal, or the text of the program.
std::string KernelGen::textOf(const Node *n) const {
  if (n->kind == NodeKind::IntConst)
    return std::to_string(n->intValue);
  const std::string_view text = sources.file(n->span.file).text();
  return std::string(text.substr(n->span.begin, n->span.end - n->span.begin));
}

void KernelGen::statement(const Statement &s) {
  mlir::Location at = loc(s.span);
  SmallVector<Value> extents;
  SmallVector<StringRef> names;
  for (const IndexVar *var : s.indices) {
    extents.push_back(lengthOf(var));
    names.push_back(var->name);
  }
  ast::DType dtype = s.tensor->dtype;
  // Values of sizes alone are built in front of the statement, whose body comes first.
  auto point = builder.saveInsertionPoint();
  auto compute = ComputeOp::create(
      builder, at, ArrayRef<StringRef>(names), ValueRange(extents),
      ArrayRef<mlir::Type>{storedType(dtype)}, ArrayRef<StringRef>{s.tensor->name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &, mlir::Location, ValueRange) {});
  if (!llvm::all_of(s.indices, [](const IndexVar *var) { return var->startsAtZero(); })) {
    auto begins = llvm::map_to_vector(s.indices, [&](const IndexVar *var) -> Attribute {
      return builder.getStringAttr(textOf(var->lo));
    });
    compute->setAttr(beginsAttrName, builder.getArrayAttr(begins));
  }
  statementOp = compute;
  builder.setInsertionPointToEnd(compute.getBlock());
  frames.emplace_back();
  for (auto [var, arg] : llvm::zip(s.indices, compute.getBlock()->getArguments())) {
    arg.setLoc(loc(var->span));
    bindIndex(var, arg);
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
    NamedAttrList attrs, places;
    attrs.set("at", LocationAttr(loc(schedule.span)));
    if (!schedule.arch.empty())
      attrs.set("arch", builder.getStringAttr(schedule.arch));
    if (schedule.when)
      attrs.set("when", builder.getStringAttr(schedule.whenText));
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
      places.set(entry.key, LocationAttr(loc(entry.keySpan)));
    }
    attrs.set("places", places.getDictionary(builder.getContext()));
    list.push_back(attrs.getDictionary(builder.getContext()));
  }
  return builder.getArrayAttr(list);
}

KernelOp KernelGen::createKernel(ArrayRef<Attribute> params, ArrayRef<StringRef> results) {
  SmallVector<StringRef> dimNames(kernel.dims.begin(), kernel.dims.end());
  auto op =
      KernelOp::create(builder, loc(kernel.source->nameSpan), kernel.source->name,
                       builder.getStrArrayAttr(dimNames), builder.getArrayAttr(params),
                       builder.getStrArrayAttr(results), ArrayAttr(), kernel.source->deterministic);
  if (kernel.source->batchInvariant)
    op->setAttr(batchInvariantAttrName, builder.getUnitAttr());
  builder.createBlock(&op.getBody());
  frames.emplace_back();
  parameters(op);
  return op;
}

void KernelGen::finishKernel(ArrayRef<const Tensor *> results) {
  SmallVector<Value> values;
  for (const Tensor *t : results)
    values.push_back(tensors[t]);
  ReturnOp::create(builder, loc(kernel.source->span), values);
  frames.pop_back();
}

/// The attributes of a kernel with `@` in its signature.
void KernelGen::addShardings(KernelOp op) {
  SmallVector<Attribute> lists;
  bool isSharded = false;
  auto add = [&](const Tensor *tensor) {
    SmallVector<StringRef> axes;
    if (tensor)
      axes.assign(tensor->shards.begin(), tensor->shards.end());
    isSharded |= llvm::any_of(axes, [](StringRef axis) { return !axis.empty(); });
    lists.push_back(builder.getStrArrayAttr(axes));
  };
  for (const Kernel::Param &param : kernel.params)
    add(param.tensor);
  for (size_t i = 0; i < kernel.source->results.size(); ++i)
    add(kernel.results[i]);
  if (!isSharded)
    return;
  SmallVector<StringRef> mesh(kernel.meshAxes.begin(), kernel.meshAxes.end());
  op->setAttr(meshAttr, builder.getStrArrayAttr(mesh));
  op->setAttr(shardingsAttr, builder.getArrayAttr(lists));
}

void KernelGen::run() {
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<StringRef> resultNames;
  SmallVector<Attribute> params;
  for (const Kernel::Param &p : kernel.params)
    params.push_back(
        ParamAttr::get(builder.getContext(), p.source->name, p.source->strided, p.source->inout));
  for (const ast::ParamPtr &result : kernel.source->results)
    resultNames.push_back(result->name);
  KernelOp op = createKernel(params, resultNames);
  SmallVector<std::int64_t> stridedResults;
  for (auto [i, result] : llvm::enumerate(kernel.source->results))
    if (result->strided)
      stridedResults.push_back(static_cast<std::int64_t>(i));
  if (!stridedResults.empty())
    op->setAttr("tk.strided_results", builder.getDenseI64ArrayAttr(stridedResults));
  addShardings(op);
  if (!kernel.schedules.empty())
    op->setAttr("tk.schedules", schedules());
  assumptions();
  scheduleConditions();
  for (const Statement &s : kernel.statements)
    statement(s);
  finishKernel(SmallVector<const Tensor *>(kernel.results.begin(), kernel.results.end()));
}

/// The tensors that statements of a kernel compute and that `roots` rest on.
static llvm::DenseSet<const Tensor *> neededTensors(const Kernel &kernel,
                                                    const std::vector<Statement> &roots) {
  llvm::DenseMap<const Tensor *, const Statement *> definitions;
  for (const Statement &s : kernel.statements)
    definitions[s.tensor] = &s;
  for (const Statement &s : kernel.assertedStatements)
    definitions[s.tensor] = &s;
  llvm::DenseSet<const Tensor *> needed;
  llvm::DenseSet<const Node *> seen;
  SmallVector<const Node *> work;
  for (const Statement &s : roots)
    work.push_back(s.value);
  while (!work.empty()) {
    const Node *n = work.pop_back_val();
    if (!seen.insert(n).second)
      continue;
    llvm::append_range(work, n->args);
    if (n->pad)
      work.push_back(n->pad);
    if (n->tensor && definitions.contains(n->tensor) && needed.insert(n->tensor).second)
      work.push_back(definitions[n->tensor]->value);
  }
  return needed;
}

void KernelGen::runGatherChecks() {
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<StringRef> resultNames;
  SmallVector<Attribute> params;
  SmallVector<const Tensor *> results;
  for (const Kernel::Param &p : kernel.params)
    params.push_back(ParamAttr::get(builder.getContext(), p.source->name, p.source->strided,
                                    /*inout=*/false));
  for (const Statement &s : kernel.gatherChecks) {
    resultNames.push_back(s.tensor->name);
    results.push_back(s.tensor);
  }
  createKernel(params, resultNames);
  for (const Assumption &assumption : kernel.assertedAssumptions)
    assume(assumption);
  llvm::DenseSet<const Tensor *> needed = neededTensors(kernel, kernel.gatherChecks);
  for (const Statement &s : kernel.statements)
    if (needed.contains(s.tensor))
      statement(s);
  for (const Statement &s : kernel.assertedStatements)
    if (needed.contains(s.tensor))
      statement(s);
  for (const Statement &s : kernel.gatherChecks)
    statement(s);
  finishKernel(results);
}

OwningOpRef<ModuleOp> generate(MLIRContext &context, const sema::Module &module,
                               const SourceManager &sources, Kernels which) {
  context.loadDialect<TkDialect, arith::ArithDialect, math::MathDialect>();
  OpBuilder builder(&context);
  OwningOpRef<ModuleOp> result(ModuleOp::create(builder, builder.getUnknownLoc()));
  builder.setInsertionPointToEnd(result->getBody());
  for (const std::unique_ptr<Kernel> &kernel : module.kernels) {
    KernelGen generator(builder, *kernel, sources);
    which == Kernels::GatherChecks ? generator.runGatherChecks() : generator.run();
  }
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
                                  Diagnostics &diags, const TranslateOptions &translate) {
  ParseOptions options;
  options.schedules = translate.schedules;
  std::unique_ptr<ast::Program> program = parseProgram(sources, file, diags, options);
  if (diags.hasErrors())
    return nullptr;
  deriveGradients(sources, *program, diags);
  std::unique_ptr<sema::Module> module = analyze(*program, diags);
  if (!module)
    return nullptr;
  return generate(context, *module, sources, translate.kernels);
}

} // namespace tk::frontend
