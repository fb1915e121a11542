// Assertions: conditions that a checked kernel tests for all values of their indices.
//
// 1. Analysis takes assertions last, each with the names that stood at its place. The statements
//    and launch checks that it needs go to lists of their own. The kernel is therefore the same
//    with and without its assertions.
// 2. A name is an index if it stands in an index of an access, and for nothing else. Its range is
//    inferred as for an index of a left side.
// 3. The kernel that checks computes the position of the first element at which the condition does
//    not hold, how many there are, and the values of the condition's parts at the first.

#include "frontend/SemaKernel.h"

#include <algorithm>
#include <functional>

namespace tk::sema {

namespace {

/// Names that a condition uses as indices, in the order of the text.
class IndexNames {
public:
  explicit IndexNames(const std::function<bool(const std::string &)> &isTaken,
                      const std::function<bool(const std::string &)> &isFn)
      : isTaken(isTaken), isFn(isFn) {}

  void walk(const ast::Expr &e, bool inIndex) {
    switch (e.kind) {
    case ast::ExprKind::NameRef:
      return inIndex ? add(static_cast<const ast::NameRef &>(e).name, e.span) : void();
    case ast::ExprKind::Unary:
      return walk(*static_cast<const ast::Unary &>(e).operand, inIndex);
    case ast::ExprKind::Binary:
      walk(*static_cast<const ast::Binary &>(e).lhs, inIndex);
      return walk(*static_cast<const ast::Binary &>(e).rhs, inIndex);
    case ast::ExprKind::If:
      walk(*static_cast<const ast::If &>(e).condition, inIndex);
      walk(*static_cast<const ast::If &>(e).thenExpr, inIndex);
      return walk(*static_cast<const ast::If &>(e).elseExpr, inIndex);
    case ast::ExprKind::Call: {
      const auto &call = static_cast<const ast::Call &>(e);
      for (const ast::ExprPtr &arg : call.args) // a function may index with its argument
        walk(*arg, inIndex || (isFn(call.name) && arg->kind == ast::ExprKind::NameRef));
      return;
    }
    case ast::ExprKind::Access:
      for (const ast::ExprPtr &index : static_cast<const ast::Access &>(e).indices)
        walk(*index, true);
      return;
    case ast::ExprKind::Reduce:
      return walkReduce(static_cast<const ast::Reduce &>(e), inIndex);
    default:
      return;
    }
  }

  std::vector<ast::IndexPtr> found;

private:
  void walkReduce(const ast::Reduce &reduce, bool inIndex) {
    const bool keeps = ast::keepsIndex(reduce.reduceKind);
    for (const ast::IndexPtr &binder : reduce.binders) {
      if (binder->lo)
        walk(*binder->lo, true);
      if (binder->hi)
        walk(*binder->hi, true);
      if (keeps)
        add(binder->name, binder->nameSpan);
      else
        bound.push_back(binder->name);
    }
    walk(*reduce.body, inIndex);
    if (!keeps)
      bound.resize(bound.size() - reduce.binders.size());
  }

  void add(const std::string &name, Span span) {
    auto isSame = [&](const ast::IndexPtr &index) { return index->name == name; };
    if (!isTaken(name) && std::ranges::find(bound, name) == bound.end() &&
        std::ranges::none_of(found, isSame))
      found.push_back(std::make_unique<ast::Index>(name, span));
  }

  const std::function<bool(const std::string &)> &isTaken, &isFn;
  std::vector<std::string> bound;
};

} // namespace

std::vector<ast::IndexPtr> KernelSema::indicesOf(const ast::Expr &condition) const {
  const std::function<bool(const std::string &)> isTaken = [&](const std::string &name) {
    return scope.contains(name) || kernelNames.contains(name) || globals.consts.contains(name) ||
           name == "inf" || name == "nan" || name == "pi";
  };
  const std::function<bool(const std::string &)> isFn = [&](const std::string &name) {
    return findFn(name, false) != nullptr;
  };
  IndexNames names(isTaken, isFn);
  names.walk(condition, false);
  return std::move(names.found);
}

void KernelSema::checks() {
  const std::size_t numStatements = out.statements.size(), numAssumed = out.assumptions.size();
  std::vector<Statement> asserted;
  std::swap(asserted, out.gatherChecks);
  for (Assertion &each : assertions) {
    std::swap(scope, each.scope);
    declaring = each.source->span;
    current = each.source;
    assertion(*each.source);
    std::swap(scope, each.scope);
  }
  current = nullptr;
  std::swap(asserted, out.gatherChecks);
  auto move = [](auto &from, std::size_t first, auto &to) {
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first);
    to.assign(begin, from.end());
    from.erase(begin, from.end());
  };
  move(out.statements, numStatements, out.assertedStatements);
  move(out.assumptions, numAssumed, out.assertedAssumptions);
  checkGathers();
  out.gatherChecks.insert(out.gatherChecks.end(), asserted.begin(), asserted.end());
}

void KernelSema::assertion(const ast::Assert &stmt) {
  statementName = "assert";
  const std::vector<ast::IndexPtr> indices = indicesOf(*stmt.value);
  if (indices.size() > 8)
    diags.error(Diag::RankTooHigh, stmt.span)
        << "the condition has " << indices.size() << " indices, at most 8 are supported";
  std::vector<IndexVar *> vars;
  Node *condition = nullptr;
  if (indices.size() <= 8 && declareLeft(indices, *stmt.value, nullptr, vars))
    condition = expr(*stmt.value);
  undeclare(indices);
  if (!condition)
    return;
  if (condition->type != Type::Bool) {
    diags.error(Diag::TypeMismatch, stmt.value->span)
            .expected("bool")
            .found(spelling(condition->type))
            .help("compare the value, as in assert " +
                  std::string(diags.sources().text(stmt.value->span)) + " >= 0")
        << "an assertion is a condition";
    return;
  }
  addAssertion(condition, vars, stmt);
}

/// The parts of a condition that its values show: the sides of comparisons, the elements that these
/// read outside of reductions, and conditions that are no comparisons.
std::vector<Node *> KernelSema::assertedValues(Node *condition) const {
  constexpr std::size_t most = 6;
  std::vector<Node *> found;
  std::set<const Node *> seen;
  std::set<std::string_view> texts;
  auto add = [&](Node *n) {
    if (found.size() < most && n->kind != NodeKind::Index && n->kind != NodeKind::IntConst &&
        n->kind != NodeKind::FloatConst && n->kind != NodeKind::BoolConst && !n->literal &&
        texts.insert(diags.sources().text(n->span)).second)
      found.push_back(n);
  };
  auto isJunction = [](const Node *n) {
    return n->kind == NodeKind::Op && (n->op == Op::And || n->op == Op::Or || n->op == Op::Not ||
                                       (n->op == Op::Select && n->type == Type::Bool));
  };
  auto isComparison = [](const Node *n) {
    return n->kind == NodeKind::Op && n->op >= Op::Eq && n->op <= Op::Ge;
  };
  auto walk = [&](auto &self, Node *n) -> void {
    if (!seen.insert(n).second)
      return;
    if (!isJunction(n))
      for (Node *side : isComparison(n) ? n->args : std::vector<Node *>{n})
        add(side);
    if (n->kind == NodeKind::Load)
      add(n);
    if (n->kind == NodeKind::Op || n->kind == NodeKind::Convert || n->kind == NodeKind::Round)
      for (Node *arg : n->args)
        isJunction(n) || isComparison(n) || arg->kind != NodeKind::Op ? self(self, arg) : void();
  };
  walk(walk, condition);
  return found;
}

/// Adds the results that runtime/GatherChecks.cpp reads.
void KernelSema::addAssertion(Node *condition, const std::vector<IndexVar *> &vars,
                              const ast::Assert &stmt) {
  const Span span = stmt.span;
  auto add = [&](const std::string &name, ast::DType dtype, Node *value) {
    Tensor *tensor = makeTensor(name, span, dtype, {});
    out.gatherChecks.push_back({tensor, {}, value, span});
    return tensor;
  };
  auto number = [&](std::int64_t n) { return intConst(n, span, Type::I64); };
  auto over = [&](ast::ReduceKind kind, Node *value) {
    return vars.empty() ? value : reduceNode(kind, value->type, vars, value, span);
  };
  auto i64 = [&](Op kind, Node *a, Node *b) { return op(kind, Type::I64, {a, b}, span); };
  Node *position = number(0);
  for (IndexVar *var : vars) {
    Node *lo = convert(var->lo, Type::I64);
    Node *length = i64(Op::Sub, convert(var->hi, Type::I64), lo);
    Node *offset = i64(Op::Sub, convert(indexNode(var, span), Type::I64), lo);
    position = i64(Op::Add, i64(Op::Mul, position, length), offset);
  }
  auto fails = [&](std::int64_t holds, Node *value) {
    return op(Op::Select, Type::I64, {condition, number(holds), value}, span);
  };
  Tensor *first =
      add("assert:" + std::string(diags.sources().text(stmt.value->span)), ast::DType::I64,
          over(ast::ReduceKind::Min, fails(maxOf(Type::I64), position)));
  add("failures", ast::DType::I64, over(ast::ReduceKind::Sum, fails(0, number(1))));
  for (IndexVar *var : vars) {
    add("index:" + var->name, ast::DType::I64, convert(var->lo, Type::I64));
    add("end", ast::DType::I64, convert(var->hi, Type::I64));
  }
  Node *isFirst = op(Op::Eq, Type::Bool, {position, loadOf(first, {}, span)}, span);
  for (Node *value : assertedValues(condition)) {
    const Type type = value->type == Type::Bool || isFloat(value->type) ? value->type : Type::I64;
    Node *shown = convert(value, type);
    if (!shown)
      continue;
    if (!vars.empty() && !value->kernelLevel) {
      const auto kind = type == Type::Bool ? ast::ReduceKind::Any : ast::ReduceKind::Sum;
      shown = over(kind, op(Op::Select, type, {isFirst, shown, zero(type, span)}, span));
    }
    const ast::DType dtype = type == Type::Bool  ? ast::DType::Bool
                             : type == Type::I64 ? ast::DType::I64
                                                 : ast::DType::F64;
    add("value:" + std::string(diags.sources().text(value->span)), dtype,
        type == Type::F32 ? convert(shown, Type::F64) : shown);
  }
}

} // namespace tk::sema
