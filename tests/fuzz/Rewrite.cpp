//===- Rewrite.cpp - the same program, written otherwise ------------------===//
//
// Rewrites that keep the meaning and give the passes other shapes to match:
//   1. the operands of a commutative operation trade places;
//   2. a value stands under a condition that always holds;
//   3. a value is negated twice, or multiplied by one;
//   4. a reduction over a literal range becomes two over its halves.
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/Generating.h"

#include <algorithm>

namespace tk::fuzz {

static void rename(Node &node, int from, int to) {
  if (node.kind == Kind::Index && node.ref == from)
    node.ref = to;
  std::replace(node.binders.begin(), node.binders.end(), from, to);
  for (NodePtr &kid : node.kids)
    rename(*kid, from, to);
}

static bool isCommutative(const Node &node) {
  if (node.kind == Kind::Binary)
    return node.sort != Sort::Index && (node.name == "+" || node.name == "*");
  return node.kind == Kind::Call && (node.name == "min" || node.name == "max");
}

/// What joins the halves of a reduction of this name, or nothing.
static NodePtr join(const std::string &name, NodePtr a, NodePtr b) {
  Sort sort = a->sort;
  if (name == "sum")
    return binary(sort, "+", std::move(a), std::move(b));
  if (name == "max" || name == "min")
    return call(sort, name, std::move(a), std::move(b));
  if (name == "any" || name == "all")
    return binary(sort, name == "any" ? "or" : "and", std::move(a), std::move(b));
  return nullptr;
}

NodePtr Generating::splitRange(const Node &node) {
  const IndexVar whole = program.indices[node.binders[0]];
  int middle = whole.hi.add / 2;
  if (node.binders.size() != 1 || whole.hi.symbol >= 0 || whole.lo != 0 || middle < 1)
    return nullptr;
  NodePtr halves[2];
  for (int half : {0, 1}) {
    Extent end = {-1, 1, half ? whole.hi.add : middle, 1};
    int index = newIndex(end, half ? middle : 0);
    program.indices[index].spelled = true;
    halves[half] = node.clone();
    rename(*halves[half], node.binders[0], index);
  }
  return join(node.name, std::move(halves[0]), std::move(halves[1]));
}

void Generating::rewrite(NodePtr &node) {
  for (NodePtr &kid : node->kids)
    rewrite(kid);
  if (isCommutative(*node) && random.percent(30))
    std::swap(node->kids[0], node->kids[1]);
  if (node->kind == Kind::Reduce && random.percent(50))
    if (NodePtr split = splitRange(*node))
      node = std::move(split);
  if (node->sort == Sort::Float && random.percent(4)) {
    NodePtr holds = binary(Sort::Bool, ">=", make(Kind::Dim, Sort::Index), number(Sort::Index, 0));
    NodePtr choice = make(Kind::If, Sort::Float);
    choice->kids.push_back(std::move(holds));
    choice->kids.push_back(std::move(node));
    choice->kids.push_back(number(Sort::Float, 7));
    node = std::move(choice);
  } else if (node->sort == Sort::Float && random.percent(4)) {
    for (int times = 0; times < 2; ++times) {
      NodePtr minus = make(Kind::Unary, Sort::Float, "-");
      minus->kids.push_back(std::move(node));
      node = std::move(minus);
    }
  } else if (node->sort == Sort::Float && random.percent(3)) {
    node = binary(Sort::Float, "*", std::move(node), number(Sort::Float, 1));
  }
}

} // namespace tk::fuzz
