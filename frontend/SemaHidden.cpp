// Parts of a statement that become tensors of their own.

#include "frontend/SemaKernel.h"

#include <algorithm>

namespace tk::sema {

/// The indices that the expressions need from outside, in the order of their declaration.
std::vector<IndexVar *> KernelSema::freeIndices(const std::vector<Node *> &roots) {
  std::set<const Node *> seen;
  std::set<const IndexVar *> used, bound;
  std::vector<const Node *> work(roots.begin(), roots.end());
  while (!work.empty()) {
    const Node *n = work.back();
    work.pop_back();
    if (!seen.insert(n).second)
      continue;
    if (n->kind == NodeKind::Index || n->kind == NodeKind::Scan)
      used.insert(n->indices.begin(), n->indices.end());
    if (n->kind == NodeKind::Reduce)
      bound.insert(n->indices.begin(), n->indices.end());
    work.insert(work.end(), n->args.begin(), n->args.end());
    if (n->pad)
      work.push_back(n->pad);
  }
  std::vector<IndexVar *> result;
  for (IndexVar &var : out.indices)
    if (used.count(&var) && !bound.count(&var))
      result.push_back(&var);
  return result;
}

bool KernelSema::isInside(const Node *load, const std::vector<bounds::Atom> &active) {
  for (unsigned axis = 0; axis < load->args.size(); ++axis) {
    const Node *lowNode = load->tensor->lows.empty() ? nullptr : load->tensor->lows[axis];
    std::optional<bounds::Poly> at = polyOf(load->args[axis]);
    std::optional<bounds::Poly> low = lowNode ? polyOf(lowNode) : bounds::Poly(0);
    std::optional<bounds::Poly> extent = polyOf(load->tensor->extents[axis]);
    if (!at || !low || !extent || !prover.nonNegative(*at - *low, active) ||
        !prover.nonNegative(*extent - 1 - *at, active))
      return false;
  }
  return true;
}

/// An access is in bounds where the statement makes it, which is nowhere if one of the ranges
/// around it is empty. What is computed over `vars` alone happens even so: there it reads 0.
void KernelSema::padOutside(Node *value, const std::vector<IndexVar *> &vars) {
  std::vector<bounds::Atom> active;
  for (const IndexVar *var : vars)
    active.push_back(var->atom);
  bool mayBeEmpty = false; // one of the ranges that are left out
  for (const IndexVar *var : activeIndices) {
    if (std::find(vars.begin(), vars.end(), var) != vars.end())
      continue;
    const bounds::AtomInfo &range = symbols[var->atom];
    if (prover.nonNegative(range.hi - range.lo - 1, active))
      active.push_back(var->atom);
    else
      mayBeEmpty = true;
  }
  std::set<const Node *> seen;
  std::vector<Node *> work{value};
  while (mayBeEmpty && !work.empty()) {
    Node *n = work.back();
    work.pop_back();
    if (!seen.insert(n).second)
      continue;
    work.insert(work.end(), n->args.begin(), n->args.end());
    if (n->pad)
      work.push_back(n->pad);
    else if (n->kind == NodeKind::Load && !n->tensor->broken && !isInside(n, active))
      n->pad = zero(n->type, n->span);
  }
}

/// A tensor of its own for a part of a statement, read at its own indices.
Node *KernelSema::hidden(const std::string &suffix, std::vector<IndexVar *> vars, Node *value,
                         Span span) {
  padOutside(value, vars);
  std::vector<Node *> extents, indices;
  for (IndexVar *var : vars) {
    extents.push_back(var->hi);
    indices.push_back(indexNode(var, span));
  }
  ast::DType dtype = value->type == Type::F64   ? ast::DType::F64
                     : value->type == Type::F32 ? ast::DType::F32
                     : value->type == Type::I32 ? ast::DType::I32
                     : value->type == Type::I16 ? ast::DType::I16
                     : value->type == Type::I8  ? ast::DType::I8
                     : value->type == Type::U8  ? ast::DType::U8
                                                : ast::DType::I64;
  std::string name = statementName + "." + suffix;
  if (unsigned count = hiddenNames[name]++)
    name += std::to_string(count + 1);
  Tensor *tensor = makeTensor(name, span, dtype, std::move(extents));
  setLows(*tensor, vars);
  tensor->fromLiterals = value->fromLiterals;
  out.statements.push_back({tensor, std::move(vars), value, span});
  return loadOf(tensor, std::move(indices), span);
}

} // namespace tk::sema
