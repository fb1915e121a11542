// Accesses whose indices come from integer tensors: what a checked kernel tests of them.

#include "frontend/SemaKernel.h"

namespace tk::sema {

/// Notes the axes of an access that no proof covers. Where it stands in branches of conditionals,
/// only the elements that are chosen count.
void KernelSema::addGathers(const ast::Access &e, const Tensor &tensor,
                            const std::vector<Node *> &indices) {
  std::string whole(diags.sources().text(e.span));
  for (unsigned axis = 0; axis < indices.size(); ++axis) {
    Node *low = tensor.lows.empty() ? intConst(0, e.span) : tensor.lows[axis];
    Node *high = tensor.extents[axis];
    std::optional<bounds::Poly> at = polyOf(indices[axis]), from = polyOf(low), to = polyOf(high);
    if (at && from && to && !at->overflowed() && prover.nonNegative(*at - *from, activeAtoms()) &&
        prover.nonNegative(*to - 1 - *at, activeAtoms()))
      continue;
    const std::size_t leading = indices.size() - e.indices.size();
    const Span span = axis < leading ? indices[axis]->span : e.indices[axis - leading]->span;
    std::string index(diags.sources().text(span));
    out.gathers.push_back(
        {indices[axis], low, high, guards,
         "index '" + index + "' of " + whole + " (axis " + std::to_string(axis) + ")", span});
  }
}

/// For each gather four statements, which a kernel of their own computes: the lowest and the
/// highest value of the index, and the bounds of its axis.
void KernelSema::checkGathers() {
  for (const Gather &gather : out.gathers) {
    Span span = gather.span;
    std::vector<Node *> roots{gather.index};
    for (auto &[condition, holds] : gather.guards)
      roots.push_back(condition);
    std::vector<IndexVar *> vars = freeIndices(roots);
    auto add = [&](const std::string &name, Node *value) {
      out.gatherChecks.push_back({makeTensor(name, span, ast::DType::I64, {}), {}, value, span});
    };
    auto extreme = [&](ast::ReduceKind kind, std::int64_t neutral) {
      Node *value = convert(gather.index, Type::I64);
      Node *none = intConst(neutral, span, Type::I64);
      for (auto &[condition, holds] : gather.guards)
        value = op(Op::Select, Type::I64, {condition, holds ? value : none, holds ? none : value},
                   span);
      return vars.empty() ? value : reduceNode(kind, Type::I64, vars, value, span);
    };
    add(gather.text, extreme(ast::ReduceKind::Min, maxOf(Type::I64)));
    add(gather.text, extreme(ast::ReduceKind::Max, minOf(Type::I64)));
    add("low", convert(gather.low, Type::I64));
    add("high", convert(gather.high, Type::I64));
  }
}

} // namespace tk::sema
