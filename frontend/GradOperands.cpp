// Operands of contractions that are expressions become locals.
//
// Example: of sum[n]((a[n, d] - m[d]) * s[d] * b[n, e]) the factors that have indices among n and d
// are one operand. As a local t[n, d] it has one adjoint, sum[e](d_c[d, e] * b[n, e]), from which
// those of a, m and s follow without another contraction.
//
// 1. The body's sums are taken apart down to products, the products down to factors.
// 2. A factor whose indices are among those of another one joins it. The groups are operands of a
//    contraction if each lacks an index of the body.
// 3. A group becomes a local where its adjoint is asked for more than once or over fewer indices:
//    where it reads several active elements, or one that lacks an index of the group.

#include "frontend/GradKernel.h"

#include <algorithm>
#include <tuple>

namespace tk::grad {

using ast::BinaryOp;

static bool contains(const std::set<IndexRef> &all, const std::set<IndexRef> &some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

/// Whether the adjoint of `operand` serves several contributions. False for elements at places of
/// several indices, such as those of windows: a local would hold each of them once for each window.
bool GradKernel::sharesAdjoint(const TermPtr &operand) const {
  const std::set<IndexRef> all = freeIndices(operand);
  unsigned reads = 0;
  bool isReduced = false, isWindow = false;
  walk(operand, [&](const Term &t) {
    if (t.kind != TermKind::Access)
      return t.kind != TermKind::Reduce;
    auto tensor = tensors.find(t.name);
    const bool isRead = tensor != tensors.end() && tensor->second.isActive;
    std::set<IndexRef> used;
    for (const TermPtr &arg : t.args) {
      const std::set<IndexRef> own = freeIndices(arg);
      isWindow |= isRead && own.size() > 1;
      used.insert(own.begin(), own.end());
    }
    reads += isRead;
    isReduced |= isRead && used.size() < all.size();
    return true;
  });
  return !isWindow && (reads > 1 || isReduced);
}

/// The groups of a product's factors; those without indices go to `rest`.
std::vector<GradKernel::Operand> GradKernel::group(const Product &product, Product &rest) const {
  struct Factor {
    TermPtr term;
    std::set<IndexRef> indices;
    bool isAbove, isActive;
    std::size_t place;
  };
  std::vector<Factor> factors;
  for (const auto &[list, isAbove] : {std::pair(&product.above, true), {&product.below, false}})
    for (const TermPtr &term : *list)
      factors.push_back({term, freeIndices(term), isAbove, isActive(term), factors.size()});
  // Factors with more indices come first, so that the others find them.
  std::sort(factors.begin(), factors.end(), [](const Factor &a, const Factor &b) {
    return std::make_tuple(b.indices.size(), b.isActive, a.place) <
           std::make_tuple(a.indices.size(), a.isActive, b.place);
  });
  std::vector<Operand> operands;
  for (const Factor &factor : factors) {
    if (factor.indices.empty()) {
      (factor.isAbove ? rest.above : rest.below).push_back(factor.term);
      continue;
    }
    auto hostOf = [&](bool mustBeActive) {
      return std::find_if(operands.begin(), operands.end(), [&](const Operand &operand) {
        return contains(operand.indices, factor.indices) && operand.isActive >= mustBeActive;
      });
    };
    // An operand whose adjoint is computed in any case.
    auto host = hostOf(factor.isActive);
    if (host == operands.end())
      host = hostOf(false);
    if (host == operands.end())
      host = operands.insert(host, Operand{{}, factor.indices, false});
    host->isActive |= factor.isActive;
    (factor.isAbove ? host->factors.above : host->factors.below).push_back(factor.term);
  }
  return operands;
}

/// The indices in the order in which an element lies in memory that has them all.
static std::vector<IndexRef> inMemory(const TermPtr &operand) {
  const std::set<IndexRef> all = freeIndices(operand);
  std::vector<IndexRef> found(all.begin(), all.end());
  std::sort(found.begin(), found.end(), [](IndexRef a, IndexRef b) { return a->order < b->order; });
  bool isFound = false;
  walk(operand, [&](const Term &t) {
    std::vector<IndexRef> list;
    if (t.kind == TermKind::Access)
      for (const TermPtr &arg : t.args)
        if (arg->kind == TermKind::Index && all.count(arg->index))
          list.push_back(arg->index);
    const bool isWhole = list.size() == all.size() && std::set(list.begin(), list.end()) == all;
    if (isWhole && !isFound)
      found = list;
    isFound |= isWhole;
    return !isFound;
  });
  return found;
}

/// The operand as a local, where the conditions hold.
TermPtr GradKernel::nameOperand(const TermPtr &operand, const std::vector<TermPtr> &conditions,
                                const Statement &owner) {
  Statement s;
  s.name = fresh(owner.name + "_operand");
  s.value = operand;
  s.span = owner.span;
  s.isActive = true;
  s.indices = inMemory(operand);
  for (const TermPtr &condition : conditions)
    if (isOfIndices(condition))
      s.conditions.push_back(condition);
  TermPtr element = elementAt(s.name, s.indices);
  enter(std::move(s));
  return element;
}

TermPtr GradKernel::nameOperands(const TermPtr &body, const std::set<IndexRef> &all,
                                 const std::vector<TermPtr> &conditions, const Statement &owner) {
  if (!isActive(body))
    return body;
  if (body->is(BinaryOp::Add) || body->is(BinaryOp::Sub)) {
    std::vector<TermPtr> terms;
    for (const TermPtr &term : body->args)
      terms.push_back(nameOperands(term, all, conditions, owner));
    return terms == body->args ? body : withArgs(body, terms);
  }
  Product product;
  product.take(body);
  Product rest;
  std::vector<Operand> operands = group(product, rest);
  if (operands.size() < 2 || std::any_of(operands.begin(), operands.end(), [&](const Operand &o) {
        return contains(o.indices, all);
      }))
    return body;
  bool isChanged = false;
  for (const Operand &operand : operands) {
    TermPtr value = productOf(operand.factors.above, operand.factors.below);
    const bool isReadable =
        std::all_of(conditions.begin(), conditions.end(), [&](const TermPtr &condition) {
          return contains(operand.indices, freeIndices(condition));
        });
    if (operand.isActive && isReadable && value->kind != TermKind::Access && sharesAdjoint(value)) {
      value = nameOperand(value, conditions, owner);
      isChanged = true;
    }
    rest.above.push_back(value);
  }
  if (!isChanged)
    return body;
  TermPtr named = productOf(rest.above, rest.below);
  return product.isNegative ? neg(named) : named;
}

} // namespace tk::grad
