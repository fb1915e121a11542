//===- GenerateProducts.cpp - products for tensor cores, chained ones too -===//
//
// What random expressions hardly ever make: factors of one narrow type, rows of whole 16-byte
// vectors, and as many of them as a warpgroup multiplies. A program may begin with
//   1. a product and what is done to each element of it;
//   2. two products of one left operand, of which one gates the other;
//   3. a chain: scores, a mask, weights, and the product of the weights with values.
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/Generating.h"

#include <limits>

namespace tk::fuzz {

static constexpr int rows = 0, columns = 1, terms = 2, batches = 3; // symbols
// Multiplications of one program, those of the reference's sums of weights included: what the
// emulator and the interpreter take for them is most of a trial's time.
static constexpr double productsMaxCost = 2e5;

void Generating::makeProductSymbols(bool isChain) {
  // With fewer than 17 rows warpgroups are not used; other tensor cores are.
  static constexpr int64_t someRows[] = {8, 24, 40, 64, 64, 72, 96, 128, 136};
  static constexpr int64_t whole[] = {8, 16, 16, 24, 32, 40, 64, 64, 72, 128};
  static constexpr int64_t odd[] = {1, 7, 17, 33, 63, 65, 100};
  static constexpr const char *names[] = {"M", "N", "K", "B"};
  double cost = 0;
  do {
    program.symbols.clear();
    for (int s = rows; s <= terms; ++s)
      program.symbols.push_back({names[s], random.percent(s == rows ? 25 : 8) ? random.of(odd)
                                           : s == rows                        ? random.of(someRows)
                                                                              : random.of(whole)});
    if (random.percent(30))
      program.symbols.push_back({names[batches], 1 + random.below(3)});
    cost = isChain
               ? static_cast<double>(program.symbols[terms].size + program.symbols[columns].size) /
                     static_cast<double>(program.symbols[terms].size)
               : 1;
    for (const Symbol &symbol : program.symbols)
      cost *= static_cast<double>(symbol.size);
  } while (cost > productsMaxCost);
}

/// A read of a new input over these indices, in this order or with the last two exchanged.
NodePtr Generating::factor(DType type, Scope indices) {
  if (indices.size() >= 2 && random.percent(30))
    std::swap(indices[indices.size() - 1], indices[indices.size() - 2]);
  Tensor tensor;
  tensor.name = "x" + std::to_string(program.tensors.size());
  tensor.dtype = type;
  tensor.strided = random.percent(8);
  static constexpr int gaps[] = {0, 4, 8, 16};
  if (tensor.strided)
    tensor.gap = random.of(gaps);
  if (random.percent(12)) {
    tensor.low = -3;
    tensor.high = 4;
  }
  NodePtr node = make(Kind::Load, Sort::Float);
  node->ref = static_cast<int>(program.tensors.size());
  for (int index : indices) {
    tensor.shape.push_back(program.indices[index].hi);
    node->kids.push_back(indexNode(index));
  }
  program.tensors.push_back(tensor);
  return node;
}

NodePtr Generating::sumOfProducts(NodePtr a, NodePtr b, int over) {
  NodePtr node = make(Kind::Reduce, Sort::Float, "sum");
  static constexpr const char *modifiers[] = {"exact", "tf32", "fast", "fast"};
  if (random.percent(20))
    node->modifier = random.of(modifiers);
  node->binders.push_back(over);
  node->kids.push_back(binary(Sort::Float, "*", std::move(a), std::move(b)));
  return node;
}

/// The tensor at these indices.
NodePtr Generating::read(int tensor, const Scope &indices) {
  NodePtr node = make(Kind::Load, Sort::Float);
  node->ref = tensor;
  for (int index : indices)
    node->kids.push_back(indexNode(index));
  return node;
}

/// Element by element: a function, something added, a factor, or nothing.
NodePtr Generating::epilogue(NodePtr value, const Scope &scope) {
  static constexpr const char *functions[] = {"relu", "gelu", "silu", "tanh", "sigmoid"};
  switch (random.below(5)) {
  case 0:
    return call(Sort::Float, random.of(functions), std::move(value));
  case 1:
    return binary(Sort::Float, "+", std::move(value), load(Sort::Float, scope));
  case 2:
    return binary(Sort::Float, "*", std::move(value), number(Sort::Float, 0.125));
  case 3:
    return binary(Sort::Float, "+", std::move(value), load(Sort::Float, {scope.back()}));
  default:
    return value;
  }
}

void Generating::makeProduct(DType type, DType result, bool isGated) {
  Scope batch, left, right, scope;
  if (program.symbols.size() > batches)
    batch.push_back(newIndex({batches}));
  const int m = newIndex({rows}), n = newIndex({columns}), k = newIndex({terms});
  left = right = scope = batch;
  left.insert(left.end(), {m, k});
  right.insert(right.end(), {k, n});
  scope.insert(scope.end(), {m, n});
  if (!batch.empty() && random.percent(30)) // one right factor for all
    right.erase(right.begin());
  NodePtr a = factor(type, left);
  NodePtr value = sumOfProducts(a->clone(), factor(type, right), k);
  if (isGated) {
    const int other = newIndex({terms});
    right[right.size() - 2] = other;
    for (NodePtr &kid : a->kids)
      if (kid->ref == k)
        kid->ref = other;
    value = binary(Sort::Float, "*", call(Sort::Float, "silu", std::move(value)),
                   sumOfProducts(std::move(a), factor(type, right), other));
  }
  define(true, result, scope, epilogue(std::move(value), scope));
}

/// Weights of scores: zero, or little, where the mask does not hold.
NodePtr Generating::weights(NodePtr score, int row, int key) {
  static constexpr const char *kinds[] = {"softmax", "softmax", "softmax",
                                          "sigmoid", "relu",    "exp"};
  const std::string kind = random.of(kinds);
  if (random.percent(60)) {
    NodePtr choice = make(Kind::If, Sort::Float);
    NodePtr causal = binary(Sort::Bool, "<=", indexNode(key), indexNode(row));
    const bool isCausal = random.percent(60); // then no row is all masked
    choice->kids.push_back(isCausal ? std::move(causal) : boolExpr({row, key}, 1));
    choice->kids.push_back(std::move(score));
    choice->kids.push_back(
        number(Sort::Float, isCausal ? -std::numeric_limits<double>::infinity() : -8));
    score = std::move(choice);
  }
  if (kind == "softmax") {
    NodePtr node = make(Kind::Keep, Sort::Float, kind);
    node->binders.push_back(key);
    node->kids.push_back(std::move(score));
    return node;
  }
  if (kind == "exp")
    score = call(Sort::Float, "min", std::move(score), number(Sort::Float, 2));
  return call(Sort::Float, kind, std::move(score));
}

void Generating::makeChain(DType type, DType result) {
  static constexpr int widths[] = {8, 16, 24, 32, 64};
  Scope batch;
  if (program.symbols.size() > batches)
    batch.push_back(newIndex({batches}));
  auto with = [&](std::initializer_list<int> more) {
    Scope scope = batch;
    scope.insert(scope.end(), more);
    return scope;
  };
  const int m = newIndex({rows}), key = newIndex({columns}), k = newIndex({terms});
  NodePtr score = sumOfProducts(factor(type, with({m, k})), factor(type, with({key, k})), k);
  score = binary(Sort::Float, "*", std::move(score), number(Sort::Float, 0.125));
  const Scope scores = with({m, key});
  const int stored = define(false, DType::f32, scores, std::move(score));
  const int weight = define(false, DType::f32, scores, weights(read(stored, scores), m, key));
  const int e = newIndex({-1, 1, random.of(widths), 1});
  NodePtr value = sumOfProducts(read(weight, scores), factor(type, with({key, e})), key);
  const Scope outputs = with({m, e});
  define(true, result, outputs, epilogue(std::move(value), outputs));
  if (random.percent(25)) {
    NodePtr most = make(Kind::Reduce, Sort::Float, random.percent(50) ? "logsumexp" : "max");
    most->binders.push_back(key);
    most->kids.push_back(read(stored, scores));
    define(true, DType::f32, with({m}), std::move(most));
  }
}

/// Sizes, and the statements that begin the program.
void Generating::makeProducts() {
  static constexpr DType types[] = {DType::bf16, DType::bf16,   DType::bf16,   DType::f16,
                                    DType::f16,  DType::f8e4m3, DType::f8e5m2, DType::f32};
  static constexpr DType results[] = {DType::bf16, DType::f16, DType::f32, DType::f32};
  reductionsLeft = 1;
  const bool isChain = random.percent(40);
  makeProductSymbols(isChain);
  const DType type = random.of(types), result = random.percent(60) ? type : random.of(results);
  if (isChain)
    makeChain(type, result);
  else
    makeProduct(type, result, /*isGated=*/random.percent(30));
}

} // namespace tk::fuzz
