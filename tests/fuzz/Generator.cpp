//===- Generator.cpp - statements of random programs ---------------------===//
#include "tests/fuzz/Generating.h"

#include <algorithm>
#include <cmath>

namespace tk::fuzz {

NodePtr make(Kind kind, Sort sort, std::string name) {
  auto node = std::make_unique<Node>(kind, sort);
  node->name = std::move(name);
  return node;
}

NodePtr number(Sort sort, double value) {
  NodePtr node = make(Kind::Number, sort);
  node->number = value;
  return node;
}

NodePtr call(Sort sort, std::string name, NodePtr a, NodePtr b, NodePtr c) {
  NodePtr node = make(Kind::Call, sort, std::move(name));
  for (NodePtr *kid : {&a, &b, &c})
    if (*kid)
      node->kids.push_back(std::move(*kid));
  return node;
}

NodePtr binary(Sort sort, std::string name, NodePtr a, NodePtr b) {
  NodePtr node = make(Kind::Binary, sort, std::move(name));
  node->kids.push_back(std::move(a));
  node->kids.push_back(std::move(b));
  return node;
}

void Generating::makeSymbols() {
  static constexpr int64_t small[] = {1, 2, 3, 4, 5, 7, 8};
  static constexpr int64_t large[] = {16, 17, 31, 32, 33, 63, 64, 65, 100, 129};
  static constexpr const char *names[] = {"M", "N", "K", "B"};
  int count = 1 + random.below(4);
  for (int s = 0; s < count; ++s) {
    int64_t size = random.percent(50) ? random.of(small) : random.of(large);
    if (random.percent(4))
      size = 0;
    if (random.percent(4))
      size = 257 + random.below(900);
    program.symbols.push_back({names[s], size});
  }
}

Extent Generating::anyExtent() {
  if (random.percent(12)) {
    static constexpr int sizes[] = {1, 2, 3, 8, 16, 32, 33, 64};
    return {-1, 1, random.of(sizes), 1};
  }
  Extent extent{random.below(static_cast<int>(program.symbols.size()))};
  if (random.percent(15)) {
    static constexpr Extent forms[] = {{0, 2, 0, 1}, {0, 1, 3, 1}, {0, 1, 1, 2}, {0, 1, 1, 1}};
    int symbol = extent.symbol;
    extent = random.of(forms);
    extent.symbol = symbol;
  }
  return extent;
}

int Generating::newIndex(const Extent &hi, int64_t lo) {
  program.indices.push_back({lo, hi, random.percent(30)});
  return static_cast<int>(program.indices.size()) - 1;
}

Scope Generating::makeScope() {
  static constexpr int ranks[] = {0, 1, 1, 2, 2, 2, 2, 3, 3, 4};
  Scope scope;
  int64_t count = 1;
  for (int rank = random.of(ranks); rank > 0; --rank) {
    Extent extent = anyExtent();
    int64_t size = program.extentOf(extent);
    if (count * std::max<int64_t>(size, 1) > options.maxElements)
      continue;
    count *= std::max<int64_t>(size, 1);
    scope.push_back(newIndex(extent));
  }
  return scope;
}

NodePtr Generating::root(Sort sort, const Scope &scope) {
  int depth = 2 + random.below(4);
  reductionsLeft = 3;
  if (sort == Sort::Float && random.percent(25))
    return contraction(scope, depth);
  if (sort == Sort::Float && random.percent(20) && !scope.empty())
    return keeping(scope, depth);
  if (random.percent(25))
    return reduction(sort, scope, depth);
  return expr(sort, scope, depth);
}

int Generating::define(bool isResult, DType type, const Scope &scope, NodePtr value) {
  const int number = static_cast<int>(program.tensors.size());
  Tensor tensor;
  tensor.name = (isResult ? "y" : "t") + std::to_string(number);
  tensor.role = isResult ? Role::Result : Role::Local;
  tensor.dtype = type;
  for (int index : scope)
    tensor.shape.push_back(program.indices[index].hi);
  program.tensors.push_back(tensor);
  program.statements.push_back({number, scope, std::move(value)});
  return number;
}

void Generating::makeStatement(bool isResult) {
  static constexpr DType floats[] = {DType::f32,  DType::f32,   DType::f32, DType::bf16,
                                     DType::bf16, DType::f16,   DType::f32, DType::f8e4m3,
                                     DType::f16,  DType::f8e5m2};
  Scope scope = makeScope();
  Sort sort = random.percent(78) ? Sort::Float : random.percent(65) ? Sort::Int : Sort::Bool;
  DType type = sort == Sort::Bool  ? DType::boolean
               : sort == Sort::Int ? DType::i32
                                   : random.of(floats);
  const bool declared = isResult || (sort == Sort::Float && random.percent(25));
  if (!declared && sort == Sort::Float)
    type = DType::f32;
  NodePtr value = root(sort, scope);
  if (sort == Sort::Int) // an expression of literals and indices alone is i64
    value = call(Sort::Int, "i32", std::move(value));
  // `let n = …` without indices is a scalar of sizes and parameters, not a tensor.
  if (!isResult && scope.empty())
    return;
  const int number = define(isResult, type, scope, std::move(value));
  program.tensors[number].declared = declared;
}

/// Halves the largest size until a naive evaluation is affordable.
void Generating::limitCost() {
  for (int round = 0; round < 40 && program.cost() > options.maxCost; ++round) {
    auto largest =
        std::max_element(program.symbols.begin(), program.symbols.end(),
                         [](const Symbol &a, const Symbol &b) { return a.size < b.size; });
    if (largest->size < 2)
      return;
    largest->size = largest->size / 2 + 1 - (largest->size == 2);
  }
}

/// Locals that nothing reads would be dropped by any compiler: make the last ones results.
static void exposeUnread(Program &program) {
  std::vector<bool> read(program.tensors.size());
  auto visit = [&](auto &self, const Node &node) -> void {
    if (node.kind == Kind::Load)
      read[node.ref] = true;
    for (const NodePtr &kid : node.kids)
      self(self, *kid);
  };
  for (const Statement &s : program.statements)
    visit(visit, *s.value);
  for (const Statement &s : program.statements)
    if (Tensor &tensor = program.tensors[s.tensor];
        !read[s.tensor] && tensor.role != Role::Updated) {
      tensor.role = Role::Result;
      tensor.declared = true;
    }
}

/// Entries that the language allows; a tile that does not fit must be refused, not miscompiled.
void Generating::makeSchedule() {
  std::vector<int> indices;
  auto visit = [&](auto &self, const Node &node) -> void {
    if (node.kind == Kind::Reduce)
      indices.insert(indices.end(), node.binders.begin(), node.binders.end());
    for (const NodePtr &kid : node.kids)
      self(self, *kid);
  };
  for (const Statement &s : program.statements) {
    indices.insert(indices.end(), s.indices.begin(), s.indices.end());
    visit(visit, *s.value);
  }
  static constexpr const char *keys[] = {"tile", "tile", "coarsen", "split", "cluster"};
  for (int entries = 1 + random.below(3); entries > 0 && !indices.empty(); --entries) {
    std::string key = random.of(keys), values;
    for (int count = 1 + random.below(3); count > 0; --count)
      values += (values.empty() ? " i" : ", i") + std::to_string(random.of(indices)) + " = " +
                std::to_string(1 << random.below(key == "cluster" ? 3 : 8 - 2 * (key != "tile")));
    program.schedule.push_back(key + values);
  }
  if (random.percent(50))
    program.schedule.push_back("vector = " + std::to_string(1 << random.below(5)));
  if (random.percent(50))
    program.schedule.push_back("stages = " + std::to_string(1 + random.below(5)));
  if (random.percent(20))
    program.schedule.push_back("consumers = " + std::to_string(1 + random.below(4)));
  if (random.percent(20))
    program.schedule.push_back(random.percent(50) ? "persistent" : "persistent = false");
  if (random.percent(20))
    program.schedule.push_back("raster = grouped(" + std::to_string(1 + random.below(8)) + ")");
  if (random.percent(20))
    program.schedule.push_back("teams = " + std::to_string(1 + random.below(3)));
}

void Generating::makeConstraints() {
  for (size_t a = 0; a < program.symbols.size(); ++a)
    for (size_t b = 0; b < program.symbols.size(); ++b)
      if (a != b && program.symbols[a].size >= program.symbols[b].size && random.percent(30))
        program.constraints.emplace_back(a, b);
}

/// Does the value, through what it reads, hold a mask that makes something 0 or -inf?
static bool holdsMask(const Program &program, const Node &node) {
  auto isNeutral = [](const Node &value) {
    return value.kind == Kind::Number && (value.number == 0 || std::isinf(value.number));
  };
  if (node.kind == Kind::If && (isNeutral(*node.kids[1]) || isNeutral(*node.kids[2])))
    return true;
  if (node.kind == Kind::Load) {
    if (node.padded && isNeutral(*node.kids.back()))
      return true;
    for (const Statement &statement : program.statements)
      if (statement.tensor == node.ref && holdsMask(program, *statement.value))
        return true;
  }
  return std::any_of(node.kids.begin(), node.kids.end(),
                     [&](const NodePtr &kid) { return holdsMask(program, *kid); });
}

/// Is there a product with a factor that a mask may make 0? Such a term may be left out, and with
/// it a NaN in another factor: which of the two it is is not said (docs/reference/numerics.md).
static bool multipliesMasked(const Program &program, const Node &node) {
  return (node.kind == Kind::Binary && node.sort == Sort::Float && node.name == "*" &&
          holdsMask(program, node)) ||
         std::any_of(node.kids.begin(), node.kids.end(),
                     [&](const NodePtr &kid) { return multipliesMasked(program, *kid); });
}

void Generating::makeVariables() {
  const bool isAll = random.percent(60);
  for (Tensor &tensor : program.tensors) {
    tensor.hasNaN = false;
    tensor.isVariable =
        tensor.role == Role::Input && is_float(tensor.dtype) && (isAll || random.percent(50));
  }
  for (size_t s = 0; s < program.scalars.size(); ++s)
    if (random.percent(50))
      program.variableScalars.push_back(static_cast<int>(s));
}

Program Generating::run() {
  program.seed = random.below(1000);
  int statements = 1 + random.below(5);
  const bool hasProducts = !options.forms && !options.named && random.percent(10);
  if (options.named) {
    makeNamed();
    statements = 0;
  } else if (options.forms) {
    makeForms();
    statements = random.percent(70) ? 0 : 1;
  } else if (hasProducts) {
    makeProducts();
    options.maxCost += program.cost();
    statements = random.below(2);
  } else {
    makeSymbols();
  }
  if (random.percent(30))
    program.scalars.push_back(random.below(9) * 0.25 - 1);
  for (int s = 0; s < statements; ++s) {
    if (random.percent(6) && !options.gradients) // which has none
      makeUpdate();
    makeStatement(/*isResult=*/s + 1 == statements || random.percent(20));
  }
  exposeUnread(program);
  narrowIntegers();
  if (random.percent(30))
    for (Statement &s : program.statements)
      rewrite(s.value);
  limitCost();
  // Where a range is empty an access may be outside of everything.
  if (std::all_of(program.indices.begin(), program.indices.end(),
                  [&](const IndexVar &index) { return index.lo < program.extentOf(index.hi); }))
    for (Statement &s : program.statements)
      padOutside(*s.value);
  if (random.percent(15))
    makeConstraints();
  if (random.percent(hasProducts ? 40 : 20) && !options.gradients)
    makeSchedule();
  static constexpr const char *passes[] = {
      "fusion",      "coarsening", "tiling", "coalescing", "vectorization",
      "persistence", "warpgroups", "roles",  "splitting",  "turns"};
  if (random.percent(20))
    program.disabledPasses = random.of(passes);
  if (std::any_of(program.statements.begin(), program.statements.end(),
                  [&](const Statement &s) { return multipliesMasked(program, *s.value); }))
    for (Tensor &tensor : program.tensors)
      tensor.hasNaN = false;
  if (options.gradients)
    makeVariables();
  return std::move(program);
}

Program generate(uint64_t seed, const GeneratorOptions &options) {
  for (uint64_t attempt = 0;; ++attempt) {
    Program program = Generating(seed * 1000003 + attempt, options).run();
    if (program.statements.empty() || (options.gradients && !program.hasGradient()))
      continue;
    program.name += std::to_string(seed); // distinct: programs are compiled together
    return program;
  }
}

} // namespace tk::fuzz
