// From the syntax tree to terms: calls of functions, which are inlined, and reductions whose bounds
// are loaded or are indices, of which a condition chooses the terms.

#include "frontend/GradKernel.h"

#include <limits>

namespace tk::grad {

using ast::ReduceKind;

/// The condition under which an index is within bounds that are loaded or indices; null if they are
/// not.
TermPtr GradKernel::withinBounds(const ast::Index &index, IndexRef symbol, const Scope &scope,
                                 bool inFunction) {
  const sema::IndexVar *var = varOf(index);
  if (!var || !var->boundLo)
    return nullptr;
  TermPtr lo = resolve(*index.lo, scope, inFunction), hi = resolve(*index.hi, scope, inFunction);
  TermPtr at = indexTerm(symbol);
  TermPtr above = binary(ast::BinaryOp::Le, lo, at), below = binary(ast::BinaryOp::Lt, at, hi);
  bool hasLower = !equal(lo, symbol->lo), hasUpper = !equal(hi, symbol->hi);
  if (hasLower && hasUpper)
    return binary(ast::BinaryOp::And, above, below);
  return hasLower ? above : hasUpper ? below : nullptr;
}

/// A reduction of the terms under a condition; a mean is a sum over their number.
TermPtr GradKernel::resolveBounded(const ast::Reduce &e, std::vector<IndexRef> binders,
                                   const TermPtr &body, const TermPtr &condition) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  TermPtr none = integer(0);
  ReduceKind kind = e.reduceKind;
  switch (kind) {
  case ReduceKind::Prod:
    none = integer(1);
    break;
  case ReduceKind::Max:
  case ReduceKind::LogSumExp:
    none = real(-infinity);
    break;
  case ReduceKind::Min:
    none = real(infinity);
    break;
  case ReduceKind::Any:
  case ReduceKind::All:
    none = truth(kind == ReduceKind::All);
    break;
  default:
    break;
  }
  if (kind != ReduceKind::Mean)
    return reduction(kind, std::move(binders), choose(condition, body, none), e.modifier);
  TermPtr sum = reduction(ReduceKind::Sum, binders, choose(condition, body, none), e.modifier);
  std::vector<IndexRef> counted = copies(binders);
  Substitution by;
  for (std::size_t i = 0; i < binders.size(); ++i)
    by[binders[i]] = indexTerm(counted[i]);
  TermPtr number = reduction(ReduceKind::Sum, counted,
                             choose(substitute(condition, by), integer(1), integer(0)));
  return div(sum, call("f32", {number}));
}

static const ast::Fn *find(const Fns::Map &map, const std::string &name) {
  auto it = map.find(name);
  return it == map.end() ? nullptr : it->second;
}

TermPtr GradKernel::resolveCall(const ast::Call &e, const Scope &scope, bool inFunction) {
  std::vector<TermPtr> args;
  for (const ast::ExprPtr &arg : e.args)
    args.push_back(resolve(*arg, scope, inFunction));
  const ast::Fn *fn = inLibrary ? nullptr : find(fns.program, e.name);
  if (!fn)
    fn = find(fns.library, e.name);
  if (!fn)
    return call(e.name, std::move(args));
  Scope inner;
  for (std::size_t i = 0; i < args.size(); ++i)
    inner[fn->params[i]->name] = args[i];
  const bool outerLibrary = inLibrary;
  inLibrary = fn->ofLibrary;
  callPath.push_back(&e);
  TermPtr result = resolve(*fn->body, inner, true);
  callPath.pop_back();
  inLibrary = outerLibrary;
  if (result->size > kMaxTermSize)
    refuse(e.span, "a function of too many operations");
  return result;
}

} // namespace tk::grad
