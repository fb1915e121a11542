// From the syntax tree to terms, with reductions taken apart.

#include "frontend/GradKernel.h"

#include <algorithm>

namespace tk::grad {

using ast::ReduceKind;

void GradKernel::refuse(Span span, const std::string &why) {
  diags.error(Diag::NotSupported, span).label(grad.nameSpan, "the gradient that is asked for")
      << "'" << primal.source->name << "' has no gradient here: " << why;
  throw Refused();
}

IndexRef GradKernel::makeIndex(std::string name, TermPtr lo, TermPtr hi) {
  indices.push_back(
      {std::move(name), std::move(lo), std::move(hi), static_cast<unsigned>(indices.size())});
  return &indices.back();
}

std::string GradKernel::fresh(const std::string &base) {
  std::string name = base;
  for (unsigned n = 2; !taken.insert(name).second; ++n)
    name = base + std::to_string(n);
  return name;
}

/// An expression of sizes as a term.
TermPtr GradKernel::sizeTerm(const sema::Node *n) {
  using sema::NodeKind;
  using sema::Op;
  switch (n->kind) {
  case NodeKind::IntConst:
    return integer(n->intValue);
  case NodeKind::Dim:
    return named(primal.dims[n->number]);
  case NodeKind::Scalar:
    return named(primal.params[n->number].scalar->name);
  case NodeKind::Convert:
    return sizeTerm(n->args[0]);
  case NodeKind::Op:
    break;
  default:
    refuse(n->span, "a range that is not made of sizes");
  }
  TermPtr a = sizeTerm(n->args[0]), b = n->args.size() > 1 ? sizeTerm(n->args[1]) : nullptr;
  switch (n->op) {
  case Op::Add:
    return add(a, b);
  case Op::Sub:
    return sub(a, b);
  case Op::Mul:
    return mul(a, b);
  case Op::FloorDiv:
    return binary(ast::BinaryOp::Div, a, b);
  case Op::Rem:
    return binary(ast::BinaryOp::Rem, a, b);
  case Op::Pow:
    return power(a, n->args[1]->intValue);
  case Op::Neg:
    return neg(a);
  case Op::Min:
    return call("min", {a, b});
  case Op::Max:
    return call("max", {a, b});
  default:
    refuse(n->span, "a range that is not made of sizes");
  }
}

void GradKernel::declare() {
  for (const std::string &dim : primal.dims)
    taken.insert(dim);
  auto axesOf = [&](const sema::Tensor &t) {
    std::vector<Axis> list;
    for (std::size_t i = 0; i < t.extents.size(); ++i)
      list.push_back({t.lows.empty() ? integer(0) : sizeTerm(t.lows[i]), sizeTerm(t.extents[i])});
    return list;
  };
  auto isWrt = [&](const std::string &name) {
    return std::any_of(grad.wrt.begin(), grad.wrt.end(),
                       [&](const ast::GradArgument &arg) { return arg.name == name; });
  };
  for (const sema::Kernel::Param &p : primal.params) {
    const std::string &name = p.source->name;
    if (p.source->inout)
      refuse(p.source->span, "'" + name + "' is overwritten (inout)");
    taken.insert(name);
    axes[name] = p.tensor ? axesOf(*p.tensor) : std::vector<Axis>();
    tensors[name] = {true, false, isWrt(name), p.source->dtype};
  }
  for (const sema::Tensor *t : primal.results) {
    taken.insert(t->name);
    axes[t->name] = axesOf(*t);
    tensors[t->name] = {false, true, false, t->dtype};
    if (sema::isFloat(t->dtype)) {
      taken.insert("d_" + t->name);
      axes["d_" + t->name] = axes[t->name];
    }
  }
  for (const ast::GradArgument &arg : grad.wrt)
    taken.insert("d_" + arg.name);
  for (const ast::StmtPtr &stmt : primal.source->statements) {
    const auto *tensor = ast::as<ast::LetTensor>(stmt.get());
    const auto *scalar = ast::as<ast::LetScalar>(stmt.get());
    if (tensor || scalar) {
      const std::string &name = tensor ? tensor->name : scalar->name;
      renamed[name] = fresh(name);
    }
  }
}

/// What analysis made of an index: the one that the functions around it declared.
const sema::IndexVar *GradKernel::varOf(const ast::Index &index) const {
  for (const sema::IndexVar &var : primal.indices)
    if (var.span == index.span && var.path == callPath)
      return &var;
  return nullptr;
}

IndexRef GradKernel::indexAt(const ast::Index &index) {
  const sema::IndexVar *found = varOf(index);
  if (!found)
    refuse(index.span, "an index without a range");
  return makeIndex(index.name, sizeTerm(found->lo), sizeTerm(found->hi));
}

TermPtr GradKernel::resolveName(const std::string &name, const Scope &scope) {
  if (auto it = scope.find(name); it != scope.end())
    return it->second;
  if (auto it = renamed.find(name); it != renamed.end())
    return access(it->second, {});
  return tensors.count(name) ? access(name, {}) : named(name);
}

TermPtr GradKernel::resolveReduce(const ast::Reduce &e, const Scope &scope, bool inFunction) {
  Scope inner = scope;
  std::vector<IndexRef> binders;
  TermPtr condition; ///< under which the indices are within bounds
  for (const ast::IndexPtr &binder : e.binders) {
    if (ast::keepsIndex(e.reduceKind)) {
      binders.push_back(scope.at(binder->name)->index);
      continue;
    }
    binders.push_back(indexAt(*binder));
    TermPtr within = withinBounds(*binder, binders.back(), inner, inFunction);
    inner[binder->name] = indexTerm(binders.back());
    if (within)
      condition = condition ? binary(ast::BinaryOp::And, condition, within) : within;
  }
  TermPtr body = resolve(*e.body, inner, inFunction);
  if (condition)
    return resolveBounded(e, std::move(binders), body, condition);
  if (e.reduceKind < ReduceKind::CumSum || binders.size() == 1)
    return reduction(e.reduceKind, std::move(binders), body, e.modifier);
  // A scan over several indices is one of scans.
  for (auto binder = binders.rbegin(); binder != binders.rend(); ++binder)
    body = reduction(e.reduceKind, {*binder}, body);
  return body;
}

TermPtr GradKernel::resolve(const ast::Expr &e, const Scope &scope, bool inFunction) {
  auto at = [&](const ast::ExprPtr &inner) { return resolve(*inner, scope, inFunction); };
  switch (e.kind) {
  case ast::ExprKind::IntLit:
    return integer(static_cast<const ast::IntLit &>(e).value);
  case ast::ExprKind::FloatLit:
    return real(static_cast<const ast::FloatLit &>(e).value);
  case ast::ExprKind::BoolLit:
    return truth(static_cast<const ast::BoolLit &>(e).value);
  case ast::ExprKind::NameRef: {
    const std::string &name = static_cast<const ast::NameRef &>(e).name;
    if (!inFunction)
      return resolveName(name, scope);
    auto it = scope.find(name);
    return it == scope.end() ? named(name) : it->second;
  }
  case ast::ExprKind::Unary: {
    const auto &unary = static_cast<const ast::Unary &>(e);
    return unary.op == ast::UnaryOp::Neg ? neg(at(unary.operand)) : negation(at(unary.operand));
  }
  case ast::ExprKind::Binary: {
    const auto &b = static_cast<const ast::Binary &>(e);
    return binary(b.op, at(b.lhs), at(b.rhs));
  }
  case ast::ExprKind::If: {
    const auto &i = static_cast<const ast::If &>(e);
    return choose(at(i.condition), at(i.thenExpr), at(i.elseExpr));
  }
  case ast::ExprKind::Call:
    return resolveCall(static_cast<const ast::Call &>(e), scope, inFunction);
  case ast::ExprKind::Access: {
    const auto &a = static_cast<const ast::Access &>(e);
    std::vector<TermPtr> args;
    // A function's tensor is what its call names, with the leading indices that it gives.
    auto argument = scope.find(a.name);
    if (argument != scope.end())
      args = argument->second->args;
    for (const ast::ExprPtr &index : a.indices)
      args.push_back(at(index));
    if (argument != scope.end())
      return access(argument->second->name, std::move(args));
    auto it = renamed.find(a.name);
    return access(it == renamed.end() ? a.name : it->second, std::move(args));
  }
  case ast::ExprKind::Reduce:
    return resolveReduce(static_cast<const ast::Reduce &>(e), scope, inFunction);
  case ast::ExprKind::Error:
    break;
  }
  refuse(e.span, "an expression in error");
}

/// Whether a value depends on what is differentiated by, otherwise than through conditions, indices
/// and integers.
bool GradKernel::isActive(const TermPtr &term) const {
  bool found = false;
  walk(term, [&](const Term &t) {
    switch (t.kind) {
    case TermKind::Access: {
      auto it = tensors.find(t.name);
      found |= it != tensors.end() && it->second.isActive;
      return false;
    }
    case TermKind::Binary:
      return !ast::isComparison(t.op) && !ast::isLogical(t.op);
    case TermKind::Not:
      return false;
    case TermKind::If:
      found |= isActive(t.args[1]) || isActive(t.args[2]);
      return false;
    case TermKind::Call: {
      if (auto type = ast::parseDType(t.name))
        return sema::isFloat(*type);
      static const std::set<std::string> none{"floor", "ceil", "round", "sign", "isnan", "isinf"};
      return !none.count(t.name);
    }
    case TermKind::Reduce:
      return t.reduce != ReduceKind::ArgMax && t.reduce != ReduceKind::ArgMin &&
             t.reduce != ReduceKind::Any && t.reduce != ReduceKind::All;
    default:
      return true;
    }
  });
  return found;
}

void GradKernel::declareAxes(const std::string &name, const std::vector<IndexRef> &list) {
  std::vector<Axis> &own = axes[name]; // also where there are none
  own.clear();
  for (IndexRef index : list)
    own.push_back({index->lo, index->hi});
}

void GradKernel::enter(Statement statement) {
  Tensor &t = tensors[statement.name];
  t.isResult = statement.isResult;
  t.isActive = statement.isActive;
  if (statement.dtype)
    t.dtype = statement.dtype;
  declareAxes(statement.name, statement.indices);
  statements.push_back(std::move(statement));
}

/// A local of the kernel's for a part of a statement, which has the indices of `over` in any case.
TermPtr GradKernel::local(const std::string &base, const TermPtr &value,
                          const std::vector<TermPtr> &conditions, const Statement &owner,
                          const std::vector<IndexRef> &over) {
  Statement s;
  s.name = fresh(base);
  s.value = value;
  s.span = owner.span;
  s.isActive = isActive(value);
  std::set<IndexRef> used = freeIndices(value);
  used.insert(over.begin(), over.end());
  for (const TermPtr &condition : conditions)
    if (isOfIndices(condition)) {
      s.conditions.push_back(condition);
      used.merge(freeIndices(condition));
    }
  s.indices.assign(used.begin(), used.end());
  std::sort(s.indices.begin(), s.indices.end(),
            [](IndexRef a, IndexRef b) { return a->order < b->order; });
  TermPtr element = elementAt(s.name, s.indices);
  enter(std::move(s));
  return element;
}

/// An element read at indices that all differ.
static bool isPlain(const TermPtr &term) {
  std::set<IndexRef> seen;
  return term->kind == TermKind::Access &&
         std::all_of(term->args.begin(), term->args.end(), [&](const TermPtr &arg) {
           return arg->kind == TermKind::Index && seen.insert(arg->index).second;
         });
}

TermPtr GradKernel::extract(const TermPtr &term, std::vector<TermPtr> &conditions,
                            const Statement &owner, bool isRoot) {
  if (term->args.empty())
    return term;
  std::vector<TermPtr> args;
  if (term->kind == TermKind::If) {
    args.push_back(extract(term->args[0], conditions, owner, false));
    for (unsigned i : {1U, 2U}) {
      conditions.push_back(i == 1 ? args[0] : negation(args[0]));
      args.push_back(extract(term->args[i], conditions, owner, false));
      conditions.pop_back();
    }
    return withArgs(term, std::move(args));
  }
  // A row that is normalised or scanned is one, whatever is read of it.
  std::vector<TermPtr> around;
  for (const TermPtr &condition : conditions)
    if (term->kind != TermKind::Reduce || !ast::keepsIndex(term->reduce) ||
        std::none_of(term->binders.begin(), term->binders.end(),
                     [&](IndexRef binder) { return mentions(condition, binder); }))
      around.push_back(condition);
  for (const TermPtr &arg : term->args)
    args.push_back(extract(arg, around, owner, false));
  if (term->kind != TermKind::Reduce)
    return withArgs(term, std::move(args));
  bool isLinear = term->reduce == ReduceKind::Sum || term->reduce == ReduceKind::Mean;
  // A normaliser's weights are of elements of a row, also where these are all the same.
  std::vector<IndexRef> over;
  if (term->reduce == ReduceKind::Softmax || term->reduce == ReduceKind::LogSoftmax ||
      term->reduce == ReduceKind::LogSumExp)
    over = term->binders;
  bool isRow = std::all_of(over.begin(), over.end(),
                           [&](IndexRef binder) { return mentions(args[0], binder); });
  if (!isLinear && (!isPlain(args[0]) || !isRow) && isActive(args[0]))
    args[0] = local(owner.name + "_term", args[0], around, owner, over);
  if (isLinear)
    args[0] = nameOperands(args[0], freeIndices(args[0]), around, owner);
  TermPtr result = withArgs(term, std::move(args));
  if (isRoot)
    return result;
  std::string kind(ast::spelling(term->reduce));
  return local(owner.name + "_" + kind, result, around, owner);
}

void GradKernel::resolveStatement(const ast::Stmt &stmt) {
  Statement s;
  s.span = stmt.span;
  const std::vector<ast::IndexPtr> *left = nullptr;
  if (const auto *let = ast::as<ast::LetTensor>(&stmt)) {
    s.name = renamed.at(let->name);
    s.dtype = let->dtype;
    left = &let->indices;
  } else if (const auto *let = ast::as<ast::LetScalar>(&stmt)) {
    s.name = renamed.at(let->name);
    s.dtype = let->dtype;
  } else if (const auto *define = ast::as<ast::Define>(&stmt)) {
    s.name = define->name;
    s.dtype = tensors.at(s.name).dtype;
    s.isResult = true;
    left = &define->indices;
  }
  Scope scope;
  if (left)
    for (const ast::IndexPtr &index : *left) {
      s.indices.push_back(indexAt(*index));
      scope[index->name] = indexTerm(s.indices.back());
    }
  s.value = resolve(*stmt.value, scope, false);
  if (s.value->size > kMaxTermSize)
    refuse(stmt.span, "a statement of too many operations");
  s.isActive = isActive(s.value) && (!s.dtype || sema::isFloat(*s.dtype));
  std::vector<TermPtr> conditions;
  if (s.isActive)
    s.value = extract(s.value, conditions, s, true);
  enter(std::move(s));
}

} // namespace tk::grad
