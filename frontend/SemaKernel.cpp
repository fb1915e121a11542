// The signature of a kernel: dimensions, parameters, results, constraints.

#include "frontend/SemaKernel.h"

#include <utility>

namespace tk::sema {

using bounds::Poly;

bool KernelSema::declare(const std::string &name, Span span, Symbol symbol) {
  if (!checkFresh(name, span, false))
    return false;
  scope[name] = std::move(symbol);
  return true;
}

Tensor *KernelSema::makeTensor(std::string name, Span span, ast::DType dtype,
                               std::vector<Node *> extents) {
  Tensor &t = out.tensors.emplace_back();
  t.name = std::move(name);
  t.span = span;
  t.dtype = dtype;
  t.extents = std::move(extents);
  return &t;
}

void KernelSema::checkSize(const Tensor &tensor) {
  std::int64_t bytes = bytesOf(tensor.dtype);
  for (const Node *extent : tensor.extents)
    if (extent->kind == NodeKind::IntConst &&
        __builtin_mul_overflow(bytes, extent->intValue, &bytes)) {
      diags.error(Diag::TensorTooLarge, tensor.span)
          << "tensor size overflows 64 bits: '" << tensor.name << "' is " << shapeOf(tensor);
      return;
    }
}

/// A tensor of the signature, its extents in canonical form and known to be >= 0.
Tensor *KernelSema::tensorOf(const ast::Param &param, int position) {
  std::vector<Node *> extents;
  if (param.dims.size() > 8)
    diags.error(Diag::RankTooHigh, param.span)
        << "'" << param.name << "' has " << param.dims.size() << " axes, at most 8 are supported";
  for (const ast::ExprPtr &dim : param.dims) {
    signature = true;
    Node *n = indexExpr(*dim);
    signature = false;
    if (!n)
      return nullptr;
    std::optional<Poly> p = polyOf(n);
    if (!n->kernelLevel || !p || p->overflowed()) {
      diags.error(Diag::BadDimension, dim->span)
          << "a dimension is made of + - * / % on symbols and integers";
      return nullptr;
    }
    if (p->isConstant() && p->constant() < 0) {
      diags.error(Diag::BadDimension, dim->span).found(std::to_string(p->constant()))
          << "a dimension is at least 0";
      return nullptr;
    }
    checkDivisors(n, dim->span);
    extents.push_back(canonical(n));
    if (!prover.nonNegative(*p)) {
      Node *zero = intConst(0, dim->span);
      out.assumptions.push_back({op(Op::Ge, Type::Bool, {extents.back(), zero}, dim->span),
                                 symbols.text(*p) + " >= 0", true, dim->span});
      prover.assume(*p);
    }
  }
  Tensor *t = makeTensor(param.name, param.span, param.dtype, std::move(extents));
  t->param = position;
  t->declared = true;
  t->shards = shardingOf(param);
  checkSize(*t);
  return t;
}

void KernelSema::parameters(const ast::Kernel &kernel) {
  defineExtents(false);
  for (const ast::ParamPtr &param : kernel.params) {
    Kernel::Param &p = out.params.emplace_back();
    p.source = param.get();
    int position = static_cast<int>(out.params.size()) - 1;
    if (param->isTensor) {
      p.tensor = tensorOf(*param, position);
      Tensor *tensor = p.tensor;
      if (!tensor) { // an error was reported: say nothing of its uses
        std::vector<Node *> extents(param->dims.size(), intConst(1, param->span));
        tensor = makeTensor(param->name, param->span, param->dtype, std::move(extents));
        tensor->broken = true;
      }
      declare(param->name, param->nameSpan, {nullptr, tensor, nullptr, param->nameSpan});
      continue;
    }
    p.scalar = std::make_unique<Scalar>();
    p.scalar->name = param->name;
    p.scalar->dtype = param->dtype;
    if (param->defaultValue)
      if (Node *value = expr(*param->defaultValue)) {
        if (!value->kernelLevel)
          diags.error(Diag::BadDimension, param->defaultValue->span)
              << "a default is made of dimensions and earlier scalars";
        else
          p.scalar->defaultValue =
              forStore(value, param->dtype, param->defaultValue->span, param->name);
      }
    Node *n = make(NodeKind::Scalar, computeType(param->dtype), param->nameSpan);
    n->number = static_cast<unsigned>(position);
    n->stored = param->dtype;
    n->kernelLevel = true;
    if (isInteger(n->type)) {
      bounds::Atom atom = symbols.scalar(param->name);
      polys[n] = Poly::atom(atom);
      atomNodes[atom] = convert(n, Type::Index);
    }
    declare(param->name, param->nameSpan, {n, nullptr, nullptr, param->nameSpan});
    defineExtents(false); // some may rest on this scalar
  }
  defineExtents(true);
}

void KernelSema::results(const ast::Kernel &kernel) {
  for (const ast::ParamPtr &result : kernel.results) {
    if (!result->isTensor) {
      diags.error(Diag::NotATensor, result->span)
              .help("write " + result->name + ": " + std::string(ast::spelling(result->dtype)) +
                    "[] for a single number")
          << "a result is a tensor";
      continue;
    }
    if (!checkFresh(result->name, result->nameSpan, false))
      continue;
    for (const Tensor *other : out.results)
      if (other->name == result->name)
        diags.error(Diag::Redeclared, result->nameSpan).label(other->span, "declared here")
            << "'" << result->name << "' is declared twice";
    if (Tensor *t = tensorOf(*result, -1))
      out.results.push_back(t);
  }
  for (Kernel::Param &p : out.params)
    if (p.tensor && p.source->inout) {
      Tensor *t = makeTensor(p.tensor->name, p.tensor->span, p.tensor->dtype, p.tensor->extents);
      t->declared = true;
      t->shards = p.tensor->shards;
      out.results.push_back(t);
    }
}

/// Learns from a condition that holds: conjunctions of comparisons of integers.
void KernelSema::assumeFact(const Node *n) {
  if (n->kind != NodeKind::Op || n->args.size() != 2)
    return;
  if (n->op == Op::And) {
    assumeFact(n->args[0]);
    assumeFact(n->args[1]);
    return;
  }
  if (!isInteger(n->args[0]->type) || !isInteger(n->args[1]->type))
    return;
  std::optional<Poly> a = polyOf(n->args[0]), b = polyOf(n->args[1]);
  if (!a || !b)
    return;
  switch (n->op) {
  case Op::Eq:
    prover.assume(*a - *b);
    prover.assume(*b - *a);
    break;
  case Op::Ne:
    for (const Poly &difference : {*a - *b, *b - *a})
      if (prover.nonNegative(difference))
        prover.assume(difference - 1);
    break;
  case Op::Lt:
    prover.assume(*b - *a - 1);
    break;
  case Op::Le:
    prover.assume(*b - *a);
    break;
  case Op::Gt:
    prover.assume(*a - *b - 1);
    break;
  case Op::Ge:
    prover.assume(*a - *b);
    break;
  default:
    break;
  }
}

/// The conjuncts of a constraint that are not definitions; all of it if it has none.
std::vector<const ast::Expr *> KernelSema::conditionsOf(const ast::Expr &constraint) const {
  if (definitions.count(&constraint))
    return {};
  const auto *both = ast::as<ast::Binary>(&constraint);
  if (!both || both->op != ast::BinaryOp::And)
    return {&constraint};
  std::vector<const ast::Expr *> left = conditionsOf(*both->lhs), right = conditionsOf(*both->rhs);
  auto isWhole = [](const std::vector<const ast::Expr *> &list, const ast::ExprPtr &e) {
    return list.size() == 1 && list[0] == e.get();
  };
  if (isWhole(left, both->lhs) && isWhole(right, both->rhs))
    return {&constraint};
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

void KernelSema::constraints(const ast::Kernel &kernel) {
  std::vector<const ast::Expr *> conditions;
  for (const ast::ExprPtr &constraint : kernel.constraints)
    for (const ast::Expr *condition : conditionsOf(*constraint))
      conditions.push_back(condition);
  for (const ast::Expr *constraint : conditions) {
    indexMode = true;
    Node *n = expr(*constraint);
    indexMode = false;
    if (!n)
      continue;
    if (n->type != Type::Bool || !n->kernelLevel) {
      diags.error(Diag::BadConstraint, constraint->span)
              .expected("a comparison of dimensions and scalars")
              .found(spelling(n->type))
          << "a constraint must be a condition on dimensions and scalar parameters";
      continue;
    }
    checkDivisors(n, constraint->span);
    out.assumptions.push_back(
        {n, std::string(diags.sources().text(constraint->span)), false, constraint->span});
    assumeFact(n);
  }
}

void KernelSema::run(const ast::Kernel &kernel) {
  out.source = &kernel;
  out.meshAxes = globals.meshAxes;
  for (const ast::StmtPtr &stmt : kernel.statements) {
    if (const auto *let = ast::as<ast::LetTensor>(stmt.get()))
      kernelNames.try_emplace(let->name, let->nameSpan);
    if (const auto *let = ast::as<ast::LetScalar>(stmt.get()))
      kernelNames.try_emplace(let->name, let->nameSpan);
  }
  for (const ast::ParamPtr &result : kernel.results)
    kernelNames.try_emplace(result->name, result->nameSpan);
  dimensions(kernel);
  parameters(kernel);
  constraints(kernel); // before the results: their extents may rest on them
  results(kernel);
  for (const ast::StmtPtr &stmt : kernel.statements)
    statement(*stmt);
  for (const Tensor *t : out.results)
    if (!defined.count(t))
      diags.error(Diag::ResultNotDefined, t->span).help("add a statement " + t->name + "[…] = …")
          << "'" << t->name << "' is never defined";
}

} // namespace tk::sema
