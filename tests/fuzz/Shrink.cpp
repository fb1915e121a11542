//===- Shrink.cpp - the smallest program that still fails -----------------===//
#include "tests/fuzz/Shrink.h"

#include <algorithm>

namespace tk::fuzz {
namespace {

using Cut = std::function<void(Program &)>;

bool reads(const Node &node, int tensor) {
  if (node.kind == Kind::Load && node.ref == tensor)
    return true;
  return std::any_of(node.kids.begin(), node.kids.end(),
                     [&](const NodePtr &kid) { return reads(*kid, tensor); });
}

bool isRead(const Program &program, int tensor) {
  return std::any_of(program.statements.begin(), program.statements.end(),
                     [&](const Statement &s) { return reads(*s.value, tensor); });
}

void forEachNode(NodePtr &node, const std::function<void(NodePtr &)> &visit) {
  visit(node);
  for (NodePtr &kid : node->kids)
    forEachNode(kid, visit);
}

/// The n-th node of the program in a fixed order.
NodePtr *nodeAt(Program &program, size_t n) {
  NodePtr *found = nullptr;
  size_t count = 0;
  for (Statement &s : program.statements)
    forEachNode(s.value, [&](NodePtr &node) {
      if (count++ == n)
        found = &node;
    });
  return found;
}

bool binds(const Node &node, int index) {
  return std::find(node.binders.begin(), node.binders.end(), index) != node.binders.end();
}

bool uses(const Node &node, int index) {
  if ((node.kind == Kind::Index && node.ref == index) || binds(node, index))
    return true;
  return std::any_of(node.kids.begin(), node.kids.end(),
                     [&](const NodePtr &kid) { return uses(*kid, index); });
}

/// Whether a kid can stand in its parent's place: same sort, and no index of the parent's in it.
bool canReplace(const Node &parent, const Node &kid) {
  if (parent.sort != kid.sort)
    return false;
  if (parent.kind == Kind::Keep)
    return true;
  return std::none_of(parent.binders.begin(), parent.binders.end(),
                      [&](int index) { return uses(kid, index); });
}

NodePtr literal(Sort sort, double value) {
  auto node = std::make_unique<Node>(sort == Sort::Bool ? Kind::Truth : Kind::Number, sort);
  node->number = value;
  return node;
}

void addStatementCuts(const Program &program, std::vector<Cut> &cuts) {
  for (size_t n = 0; n < program.statements.size(); ++n) {
    int tensor = program.statements[n].tensor;
    bool result = program.tensors[tensor].role == Role::Result;
    bool update = program.tensors[tensor].role == Role::Updated;
    size_t results = std::count_if(
        program.statements.begin(), program.statements.end(),
        [&](const Statement &s) { return program.tensors[s.tensor].role == Role::Result; });
    if (!isRead(program, tensor) && (!result || results > 1))
      cuts.push_back([n](Program &p) {
        p.tensors[p.statements[n].tensor].role = Role::Local;
        p.statements.erase(p.statements.begin() + static_cast<long>(n));
      });
    else if (result && results > 1 && !program.statements[n].indices.empty())
      cuts.push_back([tensor](Program &p) {
        p.tensors[tensor].role = Role::Local;
        p.tensors[tensor].declared = p.tensors[tensor].sort() == Sort::Float;
      });
    // Expose an intermediate and drop what comes after it.
    if (!result && !update)
      cuts.push_back([n](Program &p) {
        p.tensors[p.statements[n].tensor].role = Role::Result;
        p.tensors[p.statements[n].tensor].declared = true;
        p.statements.erase(p.statements.begin() + static_cast<long>(n) + 1, p.statements.end());
      });
  }
}

/// Drops an index that neither the statement's value nor any reader needs.
void addRankCuts(const Program &program, std::vector<Cut> &cuts) {
  for (size_t n = 0; n < program.statements.size(); ++n) {
    const Statement &s = program.statements[n];
    for (size_t axis = 0; axis < s.indices.size(); ++axis)
      if (!uses(*s.value, s.indices[axis]) && !isRead(program, s.tensor) &&
          program.tensors[s.tensor].updates < 0)
        cuts.push_back([n, axis](Program &p) {
          Statement &statement = p.statements[n];
          Tensor &tensor = p.tensors[statement.tensor];
          statement.indices.erase(statement.indices.begin() + static_cast<long>(axis));
          tensor.shape.erase(tensor.shape.begin() + static_cast<long>(axis));
        });
  }
}

void addSizeCuts(const Program &program, std::vector<Cut> &cuts) {
  for (size_t s = 0; s < program.symbols.size(); ++s)
    for (int64_t size : {int64_t{1}, int64_t{2}, int64_t{3}, program.symbols[s].size / 2,
                         program.symbols[s].size - 1})
      if (size >= 1 && size < program.symbols[s].size)
        cuts.push_back([s, size](Program &p) { p.symbols[s].size = size; });
  for (size_t n = 0; n < program.schedule.size(); ++n)
    cuts.push_back(
        [n](Program &p) { p.schedule.erase(p.schedule.begin() + static_cast<long>(n)); });
  for (size_t t = 0; t < program.tensors.size(); ++t)
    if (program.tensors[t].sort() == Sort::Float && program.tensors[t].dtype != DType::f32)
      cuts.push_back([t](Program &p) {
        for (size_t other = 0; other < p.tensors.size(); ++other)
          if (p.tensors[other].name == p.tensors[t].name)
            p.tensors[other].dtype = DType::f32;
      });
  if (program.variables().size() > 1)
    for (size_t t = 0; t < program.tensors.size(); ++t)
      if (program.tensors[t].isVariable)
        cuts.push_back([t](Program &p) { p.tensors[t].isVariable = false; });
  if (program.variables().size() > 1 && !program.variableScalars.empty())
    cuts.push_back([](Program &p) { p.variableScalars.clear(); });
  for (size_t t = 0; t < program.tensors.size(); ++t)
    if (program.tensors[t].strided)
      cuts.push_back([t](Program &p) {
        p.tensors[t].strided = false;
        p.tensors[t].gap = 0;
      });
}

void addNodeCuts(const Program &original, std::vector<Cut> &cuts) {
  Program program = original.clone();
  NodePtr *node = nullptr;
  for (size_t n = 0; (node = nodeAt(program, n)); ++n) {
    const Node &at = **node;
    for (size_t kid = 0; kid < at.kids.size(); ++kid)
      if (canReplace(at, *at.kids[kid]))
        cuts.push_back([n, kid](Program &p) {
          NodePtr &place = *nodeAt(p, n);
          NodePtr taken = std::move(place->kids[kid]);
          place = std::move(taken);
        });
    if (at.kind == Kind::Number || at.kind == Kind::Truth)
      continue;
    for (double value : {0.0, 1.0})
      cuts.push_back(
          [n, value, sort = at.sort](Program &p) { *nodeAt(p, n) = literal(sort, value); });
    if (at.binders.size() > 1 && !uses(*at.kids[0], at.binders[1]))
      cuts.push_back([n](Program &p) { (*nodeAt(p, n))->binders.pop_back(); });
  }
}

} // namespace

Program shrink(const Program &program, const std::function<bool(const Program &)> &fails,
               int attempts) {
  Program best = program.clone();
  if (!best.disabledPasses.empty()) {
    Program whole = best.clone();
    whole.disabledPasses.clear();
    if (--attempts >= 0 && fails(whole))
      best = std::move(whole);
  }
  if (!best.schedule.empty() || !best.constraints.empty()) {
    Program plain = best.clone();
    plain.schedule.clear();
    plain.constraints.clear();
    if (--attempts >= 0 && fails(plain))
      best = std::move(plain);
  }
  size_t from = 0; // where the last success was: cuts before it were just tried
  for (bool progress = true; progress && attempts > 0;) {
    progress = false;
    std::vector<Cut> cuts;
    addStatementCuts(best, cuts);
    addRankCuts(best, cuts);
    addNodeCuts(best, cuts);
    addSizeCuts(best, cuts);
    for (size_t n = 0; n < cuts.size() && attempts > 0; ++n) {
      size_t chosen = (from + n) % cuts.size();
      Program candidate = best.clone();
      cuts[chosen](candidate);
      --attempts;
      if (!fails(candidate))
        continue;
      best = std::move(candidate);
      from = chosen;
      progress = true;
      break;
    }
  }
  return best;
}

} // namespace tk::fuzz
