//===- Regroup.cpp - the same program over other dimensions ---------------===//
//
// Dimensions that are reduced are written otherwise, which keeps what the program means:
//   1. two become one: i in 0..N, j in 0..4 are k in 0..4 * N, with k / 4 for i and k % 4 for j;
//   2. one becomes two: k in 0..4 * N is i in 0..N, j in 0..4, with i * 4 + j for k.
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/Generating.h"

#include <algorithm>
#include <array>

namespace tk::fuzz {
namespace {

class Regrouping {
public:
  Regrouping(Program &program, uint64_t seed) : program(program), random(seed ^ 0x9209) {}

  void run() {
    for (Statement &s : program.statements)
      regroup(*s.value);
  }

private:
  void regroup(Node &node) {
    for (NodePtr &kid : node.kids)
      regroup(*kid);
    static constexpr std::array names = {"sum", "prod", "max",  "min",
                                         "any", "all",  "mean", "logsumexp"};
    if (node.kind != Kind::Reduce || std::ranges::find(names, node.name) == names.end() ||
        random.percent(20))
      return;
    if (!merge(node))
      split(node);
  }

  /// An index from 0 to a multiple of one size, or a literal.
  bool isPlain(const IndexVar &index) const {
    return index.lo == 0 && index.hi.div == 1 && (index.hi.symbol < 0 || index.hi.add == 0);
  }

  bool merge(Node &node) {
    if (node.binders.size() < 2)
      return false;
    const int outer = node.binders[node.binders.size() - 2], inner = node.binders.back();
    const IndexVar first = program.indices[outer], second = program.indices[inner];
    if (!isPlain(first) || !isPlain(second) || second.hi.symbol >= 0 || second.hi.add < 2 ||
        isKept(*node.kids[0], outer) || isKept(*node.kids[0], inner))
      return false;
    const int count = second.hi.add;
    const int both =
        newIndex({first.hi.symbol, first.hi.mul * count, first.hi.add * count, /*div=*/1});
    auto part = [&](const char *operation) {
      return binary(Sort::Index, operation, indexNode(both), number(Sort::Index, count));
    };
    replace(node.kids[0], outer, *part("/"));
    replace(node.kids[0], inner, *part("%"));
    forget(outer);
    forget(inner);
    node.binders.pop_back();
    node.binders.back() = both;
    return true;
  }

  void split(Node &node) {
    const int whole = node.binders.back();
    const IndexVar index = program.indices[whole];
    const int size = index.hi.symbol >= 0 ? index.hi.mul : index.hi.add;
    if (!isPlain(index) || isKept(*node.kids[0], whole))
      return;
    for (int count : {4, 3, 2, 5, 7}) {
      if (size % count != 0 || size < count)
        continue;
      const int outer =
          newIndex({index.hi.symbol, index.hi.mul / (index.hi.symbol >= 0 ? count : 1),
                    index.hi.add / count, /*div=*/1});
      const int inner = newIndex({-1, 1, count, 1});
      replace(node.kids[0], whole,
              *binary(Sort::Index, "+",
                      binary(Sort::Index, "*", indexNode(outer), number(Sort::Index, count)),
                      indexNode(inner)));
      forget(whole);
      node.binders.back() = outer;
      node.binders.push_back(inner);
      return;
    }
  }

  int newIndex(const Extent &hi) {
    program.indices.push_back({0, hi, /*spelled=*/true});
    return static_cast<int>(program.indices.size()) - 1;
  }

  /// Nothing may be scheduled by an index that there no longer is.
  void forget(int index) {
    const std::string name = " i" + std::to_string(index) + " =";
    std::erase_if(program.schedule,
                  [&](const std::string &entry) { return entry.find(name) != std::string::npos; });
  }

  /// Whether a softmax or a scan goes along the index.
  static bool isKept(const Node &node, int index) {
    return (node.kind == Kind::Keep &&
            std::ranges::find(node.binders, index) != node.binders.end()) ||
           std::ranges::any_of(node.kids, [&](const NodePtr &kid) { return isKept(*kid, index); });
  }

  static void replace(NodePtr &node, int index, const Node &value) {
    if (node->kind == Kind::Index && node->ref == index) {
      node = value.clone();
      return;
    }
    for (NodePtr &kid : node->kids)
      replace(kid, index, value);
  }

  Program &program;
  Random random;
};

} // namespace

Program regrouped(Program program, uint64_t seed) {
  Regrouping(program, seed).run();
  return program;
}

} // namespace tk::fuzz
