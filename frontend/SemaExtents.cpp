// The symbols of a kernel's sizes: dimensions, which shapes bind, and named extents, which `where`
// defines.

#include "frontend/SemaKernel.h"

#include <algorithm>

namespace tk::sema {

using bounds::Poly;

static bool hasParameter(const ast::Kernel &kernel, const std::string &name) {
  return std::any_of(kernel.params.begin(), kernel.params.end(),
                     [&](const ast::ParamPtr &param) { return param->name == name; });
}

/// The symbol in `n * P` of a positive literal n, or in `P + n` and `P - n`, as a table of offsets
/// has; null for any other extent. Both operands of `*` and `+` may come first.
static const ast::NameRef *symbolOfExtent(const ast::Expr &dim) {
  const auto *term = ast::as<ast::Binary>(&dim);
  const bool isProduct = term && term->op == ast::BinaryOp::Mul;
  const bool isSum = term && term->op == ast::BinaryOp::Add;
  if (!isProduct && !isSum && !(term && term->op == ast::BinaryOp::Sub))
    return nullptr;
  for (bool isSwapped : {false, true}) {
    const auto *literal = ast::as<ast::IntLit>(isSwapped ? term->rhs.get() : term->lhs.get());
    const auto *symbol = ast::as<ast::NameRef>(isSwapped ? term->lhs.get() : term->rhs.get());
    if (literal && symbol && (isProduct ? literal->value > 0 : isSum || isSwapped))
      return symbol;
  }
  return nullptr;
}

void KernelSema::declareDimension(const ast::NameRef &ref) {
  Node *n = make(NodeKind::Dim, Type::Index, ref.span);
  n->number = static_cast<unsigned>(out.dims.size());
  n->kernelLevel = true;
  if (!declare(ref.name, ref.span, {n, nullptr, nullptr, ref.span}))
    return;
  out.dims.push_back(ref.name);
  out.dimSpans.push_back(ref.span);
  bounds::Atom atom = symbols.dim(ref.name);
  atomNodes[atom] = n;
  polys[n] = Poly::atom(atom);
  canonicalNodes[Poly::atom(atom)] = n;
}

/// A symbol is bound by a parameter that has it alone, else defined by `where`, else bound by the
/// first extent that is a multiple of it, or differs from it by a literal.
void KernelSema::dimensions(const ast::Kernel &kernel) {
  auto isUnbound = [&](const ast::NameRef *ref) {
    // A parameter of that name is reported as a redeclaration.
    return ref && !globals.consts.count(ref->name) && !scope.count(ref->name) &&
           !hasParameter(kernel, ref->name);
  };
  for (const ast::ParamPtr &param : kernel.params)
    for (const ast::ExprPtr &dim : param->dims)
      if (const auto *ref = ast::as<ast::NameRef>(dim.get()); isUnbound(ref))
        declareDimension(*ref);
  for (const ast::ExprPtr &constraint : kernel.constraints)
    collectDefinitions(kernel, *constraint);
  for (const ast::ParamPtr &param : kernel.params)
    for (const ast::ExprPtr &dim : param->dims)
      if (const ast::NameRef *ref = symbolOfExtent(*dim);
          isUnbound(ref) && !namedExtents.count(ref->name))
        declareDimension(*ref);
}

/// Notes `P == e` among the conjuncts of a constraint, where nothing else binds P.
void KernelSema::collectDefinitions(const ast::Kernel &kernel, const ast::Expr &condition) {
  const auto *e = ast::as<ast::Binary>(&condition);
  if (e && e->op == ast::BinaryOp::And) {
    collectDefinitions(kernel, *e->lhs);
    collectDefinitions(kernel, *e->rhs);
    return;
  }
  const auto *name =
      e && e->op == ast::BinaryOp::Eq ? ast::as<ast::NameRef>(e->lhs.get()) : nullptr;
  if (!name || scope.count(name->name) || globals.consts.count(name->name) ||
      hasParameter(kernel, name->name))
    return;
  auto [it, isNew] = namedExtents.try_emplace(name->name);
  if (!isNew)
    return; // a check of the first one
  it->second.value = e->rhs.get();
  it->second.span = name->span;
  definitions.insert(&condition);
}

/// Whether all symbols of an expression are known.
bool KernelSema::isResolvable(const ast::Expr &e) const {
  switch (e.kind) {
  case ast::ExprKind::NameRef: {
    const std::string &name = static_cast<const ast::NameRef &>(e).name;
    return scope.count(name) || globals.consts.count(name);
  }
  case ast::ExprKind::Unary:
    return isResolvable(*static_cast<const ast::Unary &>(e).operand);
  case ast::ExprKind::Binary:
    return isResolvable(*static_cast<const ast::Binary &>(e).lhs) &&
           isResolvable(*static_cast<const ast::Binary &>(e).rhs);
  case ast::ExprKind::If: {
    const auto &choice = static_cast<const ast::If &>(e);
    return isResolvable(*choice.condition) && isResolvable(*choice.thenExpr) &&
           isResolvable(*choice.elseExpr);
  }
  case ast::ExprKind::Call: {
    const auto &args = static_cast<const ast::Call &>(e).args;
    return std::all_of(args.begin(), args.end(),
                       [&](const ast::ExprPtr &arg) { return isResolvable(*arg); });
  }
  default:
    return true;
  }
}

/// Defines the named extents whose symbols are known; with `all` also the others, which is an
/// error.
void KernelSema::defineExtents(bool all) {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto &[name, extent] : namedExtents)
      if (!extent.isDone && isResolvable(*extent.value)) {
        defineExtent(name, extent);
        changed = true;
      }
  }
  if (all)
    for (auto &[name, extent] : namedExtents)
      if (!extent.isDone)
        defineExtent(name, extent);
}

void KernelSema::defineExtent(const std::string &name, NamedExtent &extent) {
  extent.isDone = true;
  signature = true;
  Node *n = indexExpr(*extent.value);
  signature = false;
  std::optional<Poly> p = n ? polyOf(n) : std::nullopt;
  bool isExtent = n && n->kernelLevel && p && !p->overflowed();
  bool isNegative = isExtent && p->isConstant() && p->constant() < 0;
  if (n && !isExtent)
    diags.error(Diag::BadDimension, extent.value->span)
        << "an extent is made of + - * / % on symbols and integers";
  if (isNegative)
    diags.error(Diag::BadDimension, extent.value->span).found(std::to_string(p->constant()))
        << "an extent is at least 0";
  if (!isExtent || isNegative) {
    extent.node = intConst(1, extent.span); // an error was reported: a plausible value
    declare(name, extent.span, {extent.node, nullptr, nullptr, extent.span});
    return;
  }
  checkDivisors(n, extent.value->span);
  extent.node = canonical(n);
  extent.node->quotient = false; // an extent is an integer by intention
  if (!prover.nonNegative(*p)) {
    Node *zero = intConst(0, extent.span);
    std::string text(diags.sources().text(extent.value->span));
    out.assumptions.push_back({op(Op::Ge, Type::Bool, {extent.node, zero}, extent.span),
                               name + " = " + text + " >= 0", false, extent.span});
    prover.assume(*p);
  }
  declare(name, extent.span, {extent.node, nullptr, nullptr, extent.span});
}

void KernelSema::warnOfUnused() {
  for (auto &[name, extent] : namedExtents)
    if (!extent.isUsed && !out.source->derived)
      diags.warning(Diag::NamedExtentUnused, extent.span)
              .help("to let a shape bind '" + name + "', write " + name +
                    " alone as the extent of a parameter")
          << "'" << name << "' is defined here and never used";
}

} // namespace tk::sema
