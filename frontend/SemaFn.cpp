// Functions of the program and of the library, which are inlined: of scalars, and of tensors, which
// are the parameters that a function indexes.

#include "frontend/SemaKernel.h"

#include <algorithm>

namespace tk::sema {

/// Whether a function reads elements of a parameter, itself or through a function that it calls.
bool KernelSema::indexes(const ast::Fn &fn, const std::string &param,
                         std::set<std::pair<const ast::Fn *, std::string>> &seen) const {
  if (!seen.emplace(&fn, param).second)
    return false;
  auto walk = [&](auto &self, const ast::Expr &e) -> bool {
    auto any = [&](const std::vector<ast::ExprPtr> &list) {
      return std::any_of(list.begin(), list.end(),
                         [&](const ast::ExprPtr &inner) { return self(self, *inner); });
    };
    switch (e.kind) {
    case ast::ExprKind::Unary:
      return self(self, *static_cast<const ast::Unary &>(e).operand);
    case ast::ExprKind::Binary:
      return self(self, *static_cast<const ast::Binary &>(e).lhs) ||
             self(self, *static_cast<const ast::Binary &>(e).rhs);
    case ast::ExprKind::If:
      return self(self, *static_cast<const ast::If &>(e).condition) ||
             self(self, *static_cast<const ast::If &>(e).thenExpr) ||
             self(self, *static_cast<const ast::If &>(e).elseExpr);
    case ast::ExprKind::Access:
      return static_cast<const ast::Access &>(e).name == param ||
             any(static_cast<const ast::Access &>(e).indices);
    case ast::ExprKind::Reduce: {
      const auto &reduce = static_cast<const ast::Reduce &>(e);
      return self(self, *reduce.body) ||
             std::any_of(reduce.binders.begin(), reduce.binders.end(),
                         [&](const ast::IndexPtr &binder) {
                           return binder->hasRange() &&
                                  (self(self, *binder->lo) || self(self, *binder->hi));
                         });
    }
    case ast::ExprKind::Call: {
      const auto &call = static_cast<const ast::Call &>(e);
      const ast::Fn *callee = findFn(call.name, fn.ofLibrary);
      for (std::size_t i = 0; callee && i < std::min(call.args.size(), callee->params.size()); ++i)
        if (const auto *name = ast::as<ast::NameRef>(call.args[i].get());
            name && name->name == param && indexes(*callee, callee->params[i]->name, seen))
          return true;
      return any(call.args);
    }
    default:
      return false;
    }
  };
  return walk(walk, *fn.body);
}

bool KernelSema::isOfTensors(const ast::Fn &fn, const ast::FnParam &param) {
  auto [it, isNew] = tensorParams.try_emplace(&param, false);
  if (isNew) {
    std::set<std::pair<const ast::Fn *, std::string>> seen;
    it->second = indexes(fn, param.name, seen);
  }
  return it->second;
}

/// The tensor that an argument names, and how many leading indices it gives; null if none.
const KernelSema::Symbol *KernelSema::tensorNamed(const ast::Expr &arg,
                                                  std::size_t &leading) const {
  const auto *name = ast::as<ast::NameRef>(&arg);
  const auto *element = ast::as<ast::Access>(&arg);
  if (!name && !element)
    return nullptr;
  auto it = scope.find(name ? name->name : element->name);
  leading = element ? element->indices.size() : 0;
  return it != scope.end() && it->second.tensor ? &it->second : nullptr;
}

/// A tensor's name, or one with leading indices, as what a function's parameter stands for.
std::optional<KernelSema::Symbol>
KernelSema::tensorArgument(const ast::Fn &fn, const ast::FnParam &param, const ast::Expr &arg) {
  std::size_t leading = 0;
  const Symbol *named = tensorNamed(arg, leading);
  if (!named) {
    if (const auto *name = ast::as<ast::NameRef>(&arg); name && !scope.count(name->name)) {
      unknownName(name->name, arg.span);
      return std::nullopt;
    }
    diags.error(Diag::NotATensor, arg.span)
            .label(param.nameSpan, "indexed in '" + fn.name + "'")
            .expected("a tensor's name, or one with leading indices, as in x[r]")
        << "argument '" << param.name << "' of '" << fn.name << "' is not a tensor";
    return std::nullopt;
  }
  if (leading != 0 && leading >= named->rank()) {
    diags.error(Diag::RankMismatch, arg.span)
            .label(param.nameSpan, "indexed in '" + fn.name + "'")
            .help("leave out the indices that '" + fn.name + "' gives")
        << "argument '" << param.name << "' of '" << fn.name
        << "' is one element: no axis is left to index";
    return std::nullopt;
  }
  Symbol view = *named;
  view.span = param.nameSpan;
  if (const auto *element = ast::as<ast::Access>(&arg))
    for (const ast::ExprPtr &index : element->indices) {
      Node *n = indexExpr(*index);
      if (!n)
        return std::nullopt;
      view.leading.push_back(n);
    }
  return view;
}

Node *KernelSema::inlineFn(const ast::Fn &fn, const ast::Call &e) {
  if (!checkArity(e, fn.params.size(), diags))
    return nullptr;
  if (inlining.count(&fn)) {
    diags.error(Diag::Recursion, e.nameSpan).label(fn.nameSpan, "defined here")
        << "function '" << fn.name << "' calls itself";
    return nullptr;
  }
  Scope inner;
  bool ok = true;
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    const ast::FnParam &param = *fn.params[i];
    if (isOfTensors(fn, param)) {
      std::optional<Symbol> tensor = tensorArgument(fn, param, *e.args[i]);
      ok &= tensor.has_value();
      if (tensor)
        inner[param.name] = std::move(*tensor);
      continue;
    }
    Node *arg = expr(*e.args[i]);
    ok &= arg != nullptr;
    inner[param.name] = Symbol{arg, nullptr, nullptr, param.nameSpan};
  }
  if (!ok)
    return nullptr;
  const bool outerLibrary = inLibrary;
  const ast::Reduce *outerBinding = binding;
  inlining.insert(&fn);
  callPath.push_back(&e);
  inLibrary = fn.ofLibrary;
  binding = nullptr;
  std::swap(scope, inner);
  Node *result = expr(*fn.body);
  std::swap(scope, inner);
  binding = outerBinding;
  inLibrary = outerLibrary;
  callPath.pop_back();
  inlining.erase(&fn);
  return result;
}

/// Bare uses of an index inside of a function that it is an argument of.
void KernelSema::bareUsesOfCall(const ast::Call &e, const std::string &name, bool padded,
                                Uses &uses) {
  const ast::Fn *fn = findFn(e.name, inLibrary);
  if (!fn || fn->params.size() != e.args.size() || inlining.count(fn))
    return;
  Scope inner;
  std::vector<const Tensor *> tensors;
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    std::size_t leading = 0;
    const Symbol *named = tensorNamed(*e.args[i], leading);
    if (!named || leading > named->rank())
      continue;
    Symbol view = *named;
    view.leading.resize(view.leading.size() + leading);
    tensors.push_back(view.tensor);
    inner[fn->params[i]->name] = std::move(view);
  }
  for (std::size_t i = 0; i < e.args.size() && !tensors.empty(); ++i) {
    const auto *arg = ast::as<ast::NameRef>(e.args[i].get());
    const ast::FnParam &param = *fn->params[i];
    if (!arg || arg->name != name || !uses.calls.emplace(&param, tensors).second)
      continue;
    const bool outerLibrary = inLibrary;
    inlining.insert(fn);
    inLibrary = fn->ofLibrary;
    std::swap(scope, inner);
    bareUses(*fn->body, param.name, padded, uses);
    std::swap(scope, inner);
    inLibrary = outerLibrary;
    inlining.erase(fn);
  }
}

} // namespace tk::sema
