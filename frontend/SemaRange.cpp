// The ranges of indices: explicit, or the dimension at which an index appears bare.

#include "frontend/SemaKernel.h"

#include <algorithm>
#include <functional>

namespace tk::sema {

void KernelSema::bareUses(const ast::Expr &e, const std::string &name, bool padded, Uses &uses) {
  auto walk = [&](const ast::ExprPtr &inner, bool pad = false) {
    if (inner)
      bareUses(*inner, name, padded || pad, uses);
  };
  switch (e.kind) {
  case ast::ExprKind::Unary:
    return walk(static_cast<const ast::Unary &>(e).operand);
  case ast::ExprKind::Binary:
    walk(static_cast<const ast::Binary &>(e).lhs);
    return walk(static_cast<const ast::Binary &>(e).rhs);
  case ast::ExprKind::If:
    walk(static_cast<const ast::If &>(e).condition);
    walk(static_cast<const ast::If &>(e).thenExpr);
    return walk(static_cast<const ast::If &>(e).elseExpr);
  case ast::ExprKind::Call: {
    const auto &call = static_cast<const ast::Call &>(e);
    for (const ast::ExprPtr &arg : call.args)
      walk(arg, call.name == "pad" && arg == call.args.front());
    return bareUsesOfCall(call, name, padded, uses);
  }
  case ast::ExprKind::Reduce: {
    const auto &reduce = static_cast<const ast::Reduce &>(e);
    for (const ast::IndexPtr &binder : reduce.binders) {
      walk(binder->lo);
      walk(binder->hi);
    }
    if (!ast::binds(reduce, name))
      walk(reduce.body);
    return;
  }
  case ast::ExprKind::Access: {
    const auto &access = static_cast<const ast::Access &>(e);
    auto it = scope.find(access.name);
    const Tensor *tensor = it == scope.end() ? nullptr : it->second.tensor;
    const std::size_t leading = tensor ? it->second.leading.size() : 0;
    for (std::size_t n = 0; n < access.indices.size(); ++n) {
      const auto axis = static_cast<unsigned>(n + leading);
      const auto *ref = ast::as<ast::NameRef>(access.indices[n].get());
      if (!ref || ref->name != name)
        bareUses(*access.indices[n], name, false, uses);
      else if (tensor && tensor->broken)
        uses.broken = true;
      else if (tensor && axis < tensor->extents.size())
        uses.known.push_back({&access, axis, tensor->lows.empty() ? nullptr : tensor->lows[axis],
                              tensor->extents[axis], padded, isInteger(computeType(tensor->dtype)),
                              access.indices.size() + leading != tensor->extents.size(),
                              ref->span});
    }
    return;
  }
  default:
    return;
  }
}

/// Whether a bare use is of an integer tensor that is longer than the range by a literal: of
/// offsets, where `off[g]` stands beside `off[g + 1]`. It does not set the range.
bool KernelSema::isOfOffsets(const Use &use, Node *low, Node *extent) {
  if (!use.ofIntegers || use.padded)
    return false;
  auto polyOrZero = [&](Node *n) { return n ? polyOf(n) : bounds::Poly(0); };
  std::optional<bounds::Poly> whole = polyOf(use.extent), range = polyOf(extent),
                              from = polyOrZero(use.low), start = polyOrZero(low);
  if (!whole || !range || !from || !start || !(*from == *start))
    return false;
  bounds::Poly more = *whole - *range;
  return more.isConstant() && more.constant() > 0;
}

/// The use that gives an index its range, or null.
const KernelSema::Use *KernelSema::rangeGiving(const Uses &uses) {
  const Use *first = nullptr;
  for (const Use &use : uses.known)
    if (!first || (first->wrongRank && !use.wrongRank) ||
        (first->padded && !use.padded && first->wrongRank == use.wrongRank) ||
        isOfOffsets(*first, use.low, use.extent))
      first = &use;
  return first;
}

/// "N", or "1..N" where the axis does not begin at 0.
std::string KernelSema::rangeOf(Node *low, Node *extent) {
  bool fromZero = !low || (low->kind == NodeKind::IntConst && low->intValue == 0);
  return (fromZero ? "" : textOf(low) + "..") + textOf(extent);
}

/// Whether `where` says that two extents are not equal.
static bool saysUnequal(const Node *condition, const std::function<bool(const Node *)> &isPair) {
  if (condition->kind != NodeKind::Op)
    return false;
  if (condition->op == Op::And)
    return std::ranges::any_of(condition->args,
                               [&](const Node *arg) { return saysUnequal(arg, isPair); });
  return condition->op == Op::Ne && isPair(condition);
}

/// How two extents compare that an index has.
KernelSema::Sizes KernelSema::compareExtents(const bounds::Poly &a, const bounds::Poly &b) {
  const bounds::Poly more = b - a;
  if (prover.nonNegative(more))
    return Sizes::FirstIsSmaller;
  if (prover.nonNegative(bounds::Poly(0) - more))
    return Sizes::SecondIsSmaller;
  auto isPair = [&](const Node *n) {
    std::optional<bounds::Poly> left = polyOf(n->args[0]), right = polyOf(n->args[1]);
    return left && right && (*left - *right == more || *right - *left == more);
  };
  const bool differ = std::ranges::any_of(out.assumptions, [&](const Assumption &assumption) {
    return !assumption.bounds && saysUnequal(assumption.condition, isPair);
  });
  std::set<bounds::Atom> ofA, ofB;
  symbols.collect(a, ofA);
  symbols.collect(b, ofB);
  const bool share =
      std::ranges::any_of(ofA, [&](bounds::Atom atom) { return ofB.contains(atom); });
  if (!share)
    return differ ? Sizes::Differ : Sizes::MayBeEqual;
  // Extents of one symbol, such as H and H + G of scalars, are equal in a special case at most.
  auto haveSign = [&](bool isPositive) {
    return std::ranges::all_of(more.terms(),
                               [&](const auto &term) { return (term.second > 0) == isPositive; });
  };
  return haveSign(true)    ? Sizes::FirstIsSmaller
         : haveSign(false) ? Sizes::SecondIsSmaller
                           : Sizes::Differ;
}

/// How an index with two extents is to be written: with the one that all its accesses have, or with
/// that of the result, which a statement defines as a whole.
std::string KernelSema::conflictHelp(const ast::Index &index, const Use &use, Node *extent,
                                     bool isOfResult) {
  std::optional<bounds::Poly> mine = polyOf(extent), theirs = polyOf(use.extent);
  const Sizes sizes = mine && theirs ? compareExtents(*mine, *theirs) : Sizes::Differ;
  if (sizes == Sizes::MayBeEqual)
    return "if the two are equal, say so: where " + textOf(extent) + " == " + textOf(use.extent);
  const std::string range = "give the index its range: " + index.name + " in 0..";
  if (isOfResult && sizes != Sizes::FirstIsSmaller)
    return range + textOf(extent) + ", and read '" + use.access->name + "' only where " +
           index.name + " < " + textOf(use.extent);
  switch (sizes) {
  case Sizes::FirstIsSmaller:
    return range + textOf(extent);
  case Sizes::SecondIsSmaller:
    return range + textOf(use.extent);
  default:
    return range + "hi, where hi is the smaller of the two";
  }
}

bool KernelSema::conflicting(const ast::Index &index, const Uses &uses, Node *low, Node *extent,
                             const std::string &what, Span where, bool isOfResult) {
  auto equal = [&](Node *a, Node *b) {
    if (a == b)
      return true;
    std::optional<bounds::Poly> p = a ? polyOf(a) : bounds::Poly(0);
    std::optional<bounds::Poly> q = b ? polyOf(b) : bounds::Poly(0);
    return p && q && prover.equal(*p, *q);
  };
  for (const Use &use : uses.known) {
    if (use.padded || use.wrongRank || (equal(use.extent, extent) && equal(use.low, low)) ||
        isOfOffsets(use, low, extent))
      continue;
    std::string other = rangeOf(use.low, use.extent);
    auto d = diags.error(Diag::IndexRangeConflict, index.nameSpan);
    d << "index '" << index.name << "' ranges over " << what << " and over " << other << " in '"
      << use.access->name << "' (axis " << use.axis << ")";
    d.label(where, what);
    d.label(use.span,
            other + " in '" + use.access->name + "' (axis " + std::to_string(use.axis) + ")");
    if (equal(use.low, low))
      d.help(conflictHelp(index, use, extent, isOfResult));
    else
      d.help("give the index its range: " + index.name + " in lo..hi");
    return true;
  }
  return false;
}

/// What to write where an index stands bare nowhere: the tensor that it was to walk along is named
/// without indices or with too few; or the range that the axis has in whose index it stands.
std::string KernelSema::rangeHelp(const ast::Index &index,
                                  const std::vector<const ast::Expr *> &in) {
  std::string range, whole;
  // `axis`: the extent of the axis in whose index the expression stands.
  auto walk = [&](auto &self, const ast::Expr &e, Node *axis) -> void {
    switch (e.kind) {
    case ast::ExprKind::Unary:
      return self(self, *static_cast<const ast::Unary &>(e).operand, axis);
    case ast::ExprKind::Binary: {
      const auto &binary = static_cast<const ast::Binary &>(e);
      // A multiple or a part of an index has a range of its own.
      if (binary.op != ast::BinaryOp::Add && binary.op != ast::BinaryOp::Sub)
        axis = nullptr;
      self(self, *binary.lhs, axis);
      return self(self, *binary.rhs, axis);
    }
    case ast::ExprKind::If:
      for (const ast::ExprPtr *part :
           {&static_cast<const ast::If &>(e).condition, &static_cast<const ast::If &>(e).thenExpr,
            &static_cast<const ast::If &>(e).elseExpr})
        self(self, **part, axis);
      return;
    case ast::ExprKind::Call:
      for (const ast::ExprPtr &arg : static_cast<const ast::Call &>(e).args)
        self(self, *arg, axis);
      return;
    case ast::ExprKind::Reduce:
      if (!ast::binds(static_cast<const ast::Reduce &>(e), index.name))
        self(self, *static_cast<const ast::Reduce &>(e).body, axis);
      return;
    case ast::ExprKind::NameRef: {
      const std::string &name = static_cast<const ast::NameRef &>(e).name;
      if (axis && name == index.name && range.empty())
        range = index.name + " in 0.." + textOf(axis);
      auto it = scope.find(name);
      const Tensor *tensor = it == scope.end() ? nullptr : it->second.tensor;
      if (tensor && !tensor->broken && !tensor->extents.empty() && whole.empty())
        whole = "'" + name + "' is a tensor " + shapeOf(*tensor) + ": read its elements, as in " +
                name + "[" + (tensor->extents.size() > 1 ? "…, " : "") + index.name + "]";
      return;
    }
    case ast::ExprKind::Access: {
      const auto &access = static_cast<const ast::Access &>(e);
      auto it = scope.find(access.name);
      const Tensor *tensor = it == scope.end() ? nullptr : it->second.tensor;
      bool isWhole = tensor && access.indices.size() == tensor->extents.size();
      if (tensor && !tensor->broken && !isWhole && whole.empty())
        whole = "'" + access.name + "' takes " + indicesFor(*tensor) + ", here it has " +
                std::to_string(access.indices.size());
      for (std::size_t n = 0; n < access.indices.size(); ++n)
        self(self, *access.indices[n],
             isWhole && tensor->lows.empty() && !tensor->broken ? tensor->extents[n] : nullptr);
      return;
    }
    default:
      return;
    }
  };
  for (const ast::Expr *e : in)
    walk(walk, *e, nullptr);
  if (!whole.empty())
    return whole;
  if (std::string other = binding ? unboundIn(*binding->body, *binding) : ""; !other.empty())
    return "'" + other + "' stands in the body and nothing binds it: did you mean " +
           std::string(ast::spelling(binding->reduceKind)) + "[" + other + "](…)?";
  if (current && current->kind == ast::StmtKind::Assert && !binding)
    return "an index of an assertion must be a subscript by itself; one with a range is bound: "
           "all[" +
           (range.empty() ? index.name + " in lo..hi" : range) + "](…)";
  if (!range.empty())
    return "if it goes through the whole axis, write " + range;
  return "write its range, made of dimensions and scalars: " + index.name + " in lo..hi";
}

IndexVar *KernelSema::declareIndex(const ast::Index &index,
                                   const std::vector<const ast::Expr *> &in, Node *resultExtent,
                                   const Tensor *result) {
  if (!mayReuse(index) && !checkFresh(index.name, index.nameSpan, true))
    return nullptr;
  Node *lo = nullptr, *hi = nullptr;
  Uses uses;
  for (const ast::Expr *e : in)
    bareUses(*e, index.name, false, uses);
  if (index.hasRange()) {
    lo = indexExpr(*index.lo);
    hi = indexExpr(*index.hi);
    if (!lo || !hi)
      return nullptr;
    if (binding && !(lo->kernelLevel && hi->kernelLevel))
      return declareBounded(index, uses, lo, hi);
    for (auto [node, e] : {std::pair(lo, index.lo.get()), std::pair(hi, index.hi.get())})
      if (!node->kernelLevel) {
        diags.error(Diag::BadRange, e->span)
                .help("only a reduction may range up to what is loaded or to another index")
            << "the bounds of a range are made of dimensions and scalar parameters";
        return nullptr;
      }
    if (resultExtent) {
      std::optional<bounds::Poly> from = polyOf(lo), to = polyOf(hi), all = polyOf(resultExtent);
      if (!from || !to || !all || !prover.equal(*from, 0) || !prover.equal(*to, *all)) {
        diags.error(Diag::BadRange, index.span)
                .expected("0.." + textOf(resultExtent))
                .found(textOf(lo) + ".." + textOf(hi))
            << "a statement defines the whole of its result";
        return nullptr;
      }
    }
  } else if (resultExtent) {
    lo = intConst(0, index.span);
    hi = resultExtent;
    if (conflicting(index, uses, nullptr, hi, textOf(hi) + " in '" + result->name + "'",
                    index.nameSpan, true))
      return nullptr;
  } else {
    const Use *first = rangeGiving(uses);
    if (!first && uses.broken)
      return nullptr; // that error was reported
    if (!first) {
      diags.error(Diag::NoRange, index.nameSpan).help(rangeHelp(index, in))
          << "index '" << index.name << "' has no range: no subscript is '" << index.name
          << "' alone, as in x[" << index.name << "]";
      return nullptr;
    }
    lo = first->low ? first->low : intConst(0, index.span);
    hi = first->extent;
    if (conflicting(index, uses, first->low, hi,
                    rangeOf(first->low, hi) + " in '" + first->access->name + "' (axis " +
                        std::to_string(first->axis) + ")",
                    first->span, false))
      return nullptr;
  }
  return enterIndex(index, lo, hi);
}

IndexVar *KernelSema::enterIndex(const ast::Index &index, Node *lo, Node *hi) {
  IndexVar &var = out.indices.emplace_back();
  var.name = index.name;
  var.span = index.span;
  var.path = callPath;
  var.lo = canonical(lo);
  var.hi = canonical(hi);
  std::optional<bounds::Poly> from = polyOf(var.lo), to = polyOf(var.hi);
  if (!from || !to) {
    diags.error(Diag::BadRange, index.span)
        << "the bounds of a range are made of + - * / % on dimensions and scalars";
    return nullptr;
  }
  var.atom = symbols.index(index.name, *from, *to);
  if (auto it = scope.find(index.name); it != scope.end())
    reused[&var] = it->second;
  scope[index.name] = Symbol{nullptr, nullptr, &var, index.nameSpan};
  activeIndices.push_back(&var);
  return &var;
}

void KernelSema::undeclare(const std::vector<ast::IndexPtr> &indices) {
  for (const ast::IndexPtr &index : indices) {
    auto it = scope.find(index->name);
    if (it == scope.end() || !it->second.index || !(it->second.span == index->nameSpan))
      continue;
    const IndexVar *var = it->second.index;
    std::erase(activeIndices, var);
    if (auto around = reused.find(var); around != reused.end())
      it->second = around->second;
    else
      scope.erase(it);
  }
}

} // namespace tk::sema
