//===- GenerateAccess.cpp - how random programs read tensors -------------===//
#include "tests/fuzz/Generating.h"

#include <algorithm>

namespace tk::fuzz {

using Range = std::optional<std::pair<int64_t, int64_t>>;

static int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

Range Generating::rangeOf(const Node &node) const {
  switch (node.kind) {
  case Kind::Number:
    return {{static_cast<int64_t>(node.number), static_cast<int64_t>(node.number)}};
  case Kind::Dim:
    return {{program.symbols[node.ref].size, program.symbols[node.ref].size}};
  case Kind::Index: {
    const IndexVar &var = program.indices[node.ref];
    return {{var.lo, std::max(var.lo, program.extentOf(var.hi) - 1)}};
  }
  case Kind::Binary: {
    Range a = rangeOf(*node.kids[0]), b = rangeOf(*node.kids[1]);
    if (!a || !b)
      return std::nullopt;
    if (node.name == "+")
      return {{a->first + b->first, a->second + b->second}};
    if (node.name == "-")
      return {{a->first - b->second, a->second - b->first}};
    if (node.name == "*") {
      int64_t all[] = {a->first * b->first, a->first * b->second, a->second * b->first,
                       a->second * b->second};
      return {{*std::min_element(all, all + 4), *std::max_element(all, all + 4)}};
    }
    if (b->first < 1)
      return std::nullopt;
    if (node.name == "/")
      return {{floorDiv(a->first, a->first < 0 ? b->first : b->second),
               floorDiv(a->second, a->second < 0 ? b->second : b->first)}};
    return {{0, b->second - 1}};
  }
  default:
    return std::nullopt;
  }
}

NodePtr indexNode(int index) {
  NodePtr node = make(Kind::Index, Sort::Index);
  node->ref = index;
  return node;
}

/// The extent as an expression.
static NodePtr extentNode(const Extent &e) {
  if (e.symbol < 0)
    return number(Sort::Index, e.add);
  NodePtr node = make(Kind::Dim, Sort::Index);
  node->ref = e.symbol;
  if (e.mul != 1)
    node = binary(Sort::Index, "*", number(Sort::Index, e.mul), std::move(node));
  if (e.add)
    node = binary(Sort::Index, "+", std::move(node), number(Sort::Index, e.add));
  if (e.div != 1)
    node = binary(Sort::Index, "/", std::move(node), number(Sort::Index, e.div));
  return node;
}

NodePtr Generating::indexValue(const Scope &scope, int depth) {
  if (scope.empty() || random.percent(12))
    return number(Sort::Index, random.below(4));
  if (random.percent(10)) {
    NodePtr node = make(Kind::Dim, Sort::Index);
    node->ref = random.below(static_cast<int>(program.symbols.size()));
    return node;
  }
  if (depth <= 0 || random.percent(40))
    return indexNode(random.of(scope));
  static constexpr const char *operators[] = {"+", "-", "*", "/", "%"};
  std::string op = random.of(operators);
  NodePtr left = indexValue(scope, depth - 1);
  bool divides = op == "/" || op == "%";
  NodePtr right = divides || op == "*" ? number(Sort::Index, 2 + random.below(5))
                                       : indexValue(scope, depth - 1);
  return binary(Sort::Index, op, std::move(left), std::move(right));
}

/// An index for an axis; `inside` tells whether it is in bounds at the chosen sizes.
NodePtr Generating::indexFor(const Extent &extent, const Scope &scope, bool &inside) {
  int64_t size = program.extentOf(extent);
  std::vector<int> same;
  for (int index : scope)
    if (program.indices[index].hi == extent)
      same.push_back(index);
  NodePtr node;
  int way = random.below(100);
  if (!same.empty() && way < 70) {
    node = indexNode(random.of(same));
  } else if (!same.empty() && way < 78) {
    NodePtr last = binary(Sort::Index, "-", extentNode(extent), number(Sort::Index, 1));
    node = binary(Sort::Index, "-", std::move(last), indexNode(random.of(same)));
  } else if (way < 84 && !scope.empty() && size > 0) {
    node = binary(Sort::Index, "%", indexNode(random.of(scope)), extentNode(extent));
  } else if (way < 90 && !scope.empty()) {
    int by = 1 + random.below(3);
    node = binary(Sort::Index, random.percent(50) ? "+" : "-", indexNode(random.of(scope)),
                  number(Sort::Index, by));
  } else {
    node = indexValue(scope, 2);
  }
  Range range = rangeOf(*node);
  inside = range && range->first >= 0 && range->second < size;
  return node;
}

/// What is read instead, where an access is outside.
static NodePtr padding(Sort sort) {
  NodePtr node = make(sort == Sort::Bool ? Kind::Truth : Kind::Number, sort);
  node->number = sort == Sort::Float ? 1 : 0;
  return node;
}

void Generating::padOutside(Node &node) {
  for (NodePtr &kid : node.kids)
    padOutside(*kid);
  if (node.kind != Kind::Load || node.padded)
    return;
  bool allInside = true;
  const std::vector<Extent> &shape = program.tensors[node.ref].shape;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (node.kids[axis]->sort != Sort::Index) // gathers are not checked
      return;
    Range range = rangeOf(*node.kids[axis]);
    allInside &= range && range->first >= 0 && range->second < program.extentOf(shape[axis]);
  }
  if (allInside)
    return;
  node.padded = true;
  node.kids.push_back(padding(node.sort));
}

NodePtr Generating::loadOf(int tensor, const Scope &scope) {
  const Sort sort = program.tensors[tensor].sort();
  const std::vector<Extent> shape = program.tensors[tensor].shape;
  NodePtr node = make(Kind::Load, sort);
  node->ref = tensor;
  bool allInside = true, gathers = false;
  for (const Extent &extent : shape) {
    bool inside = true;
    if (random.percent(5) && !gathers) { // through an integer tensor, sometimes out of bounds
      int ids = newInput(Sort::Int, scope);
      program.tensors[ids].dtype = random.percent(70) ? DType::i32 : DType::i64;
      program.tensors[ids].low = random.percent(30) ? -2 : 0;
      program.tensors[ids].high =
          std::max<int64_t>(1, program.extentOf(extent) + (random.percent(30) ? 2 : 0));
      node->kids.push_back(loadOf(ids, scope));
      if (node->kids.back()->padded) // the padding is an index too
        node->kids.back()->kids.back() = number(Sort::Int, 0);
      gathers = true;
      continue;
    }
    node->kids.push_back(indexFor(extent, scope, inside));
    allInside &= inside;
  }
  if (allInside && !(gathers && random.percent(20)))
    return node;
  node->padded = true;
  if (sort == Sort::Bool) {
    node->kids.push_back(make(Kind::Truth, Sort::Bool));
    node->kids.back()->number = random.below(2);
  } else {
    node->kids.push_back(
        number(sort, sort == Sort::Float ? random.below(5) * 0.5 - 1 : random.below(3)));
  }
  return node;
}

int Generating::newInput(Sort sort, const Scope &scope) {
  static constexpr DType floats[] = {DType::f32,  DType::f32,   DType::f32,  DType::f32,
                                     DType::bf16, DType::f16,   DType::bf16, DType::f8e4m3,
                                     DType::f16,  DType::f8e5m2};
  static constexpr DType integers[] = {DType::i32, DType::i32, DType::i32, DType::i64,
                                       DType::i8,  DType::u8,  DType::i16};
  Tensor tensor;
  static constexpr const char *letters[] = {"x", "n", "b"};
  tensor.name = letters[static_cast<int>(sort)] + std::to_string(program.tensors.size());
  tensor.dtype = sort == Sort::Bool  ? DType::boolean
                 : sort == Sort::Int ? random.of(integers)
                                     : random.of(floats);
  if (sort == Sort::Float && !options.gpuOnly && random.percent(3))
    tensor.dtype = DType::f64;
  if (sort == Sort::Int) {
    tensor.low = tensor.dtype == DType::u8 ? 0 : -5;
    tensor.high = tensor.dtype == DType::u8 && random.percent(30) ? 256 : 6;
  } else if (sort == Sort::Bool || random.percent(12)) {
    tensor.low = sort == Sort::Bool ? 0 : -3; // floats with many ties
    tensor.high = sort == Sort::Bool ? 2 : 4;
  }
  tensor.hasNaN = sort == Sort::Float && tensor.low == tensor.high && random.percent(4);
  tensor.strided = random.percent(8);
  static constexpr int gaps[] = {0, 1, 3, 4, 8, 13, 16};
  if (tensor.strided)
    tensor.gap = random.of(gaps);
  int64_t count = 1;
  Scope left = scope;
  while (!left.empty() && tensor.shape.size() < 4) {
    int at = random.below(static_cast<int>(left.size()));
    Extent extent = program.indices[left[at]].hi;
    left.erase(left.begin() + at);
    if (random.percent(20)) // broadcasts along this index
      continue;
    if (random.percent(6))
      extent = anyExtent();
    count *= std::max<int64_t>(1, program.extentOf(extent));
    if (count <= options.maxElements)
      tensor.shape.push_back(extent);
  }
  program.tensors.push_back(tensor);
  return static_cast<int>(program.tensors.size()) - 1;
}

NodePtr Generating::load(Sort sort, const Scope &scope, bool inputsOnly) {
  std::vector<int> known;
  for (size_t t = 0; t < program.tensors.size(); ++t) {
    const Tensor &tensor = program.tensors[t];
    bool local = tensor.role != Role::Input;
    if (tensor.sort() != sort || (local && inputsOnly) || program.updateOf(static_cast<int>(t)))
      continue;
    int weight = local ? 4 : 1; // chains are what fusion is about
    for (int n = 0; n < weight; ++n)
      known.push_back(static_cast<int>(t));
  }
  int tensor = !known.empty() && random.percent(60) ? random.of(known) : newInput(sort, scope);
  NodePtr node = loadOf(tensor, scope);
  DType dtype = program.tensors[tensor].dtype;
  if (sort == Sort::Int && dtype != DType::i32)
    return call(Sort::Int, "i32", std::move(node));
  if (dtype == DType::f64) // the rest of a program is f32
    return call(Sort::Float, "f32", std::move(node));
  return node;
}

} // namespace tk::fuzz
