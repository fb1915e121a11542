//===- GenerateExpr.cpp - random expressions ------------------------------===//
//
// Functions get arguments from where they are well-conditioned, and nothing discontinuous is
// applied to a rounded value: what remains as a difference between two evaluations is a bug or a
// rounding.
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/Generating.h"

#include <algorithm>

namespace tk::fuzz {

NodePtr Generating::expr(Sort sort, const Scope &scope, int depth) {
  switch (sort) {
  case Sort::Float:
    return floatExpr(scope, depth);
  case Sort::Int:
    return intExpr(scope, depth);
  case Sort::Bool:
    return boolExpr(scope, depth);
  case Sort::Index:
    return indexValue(scope, depth);
  }
  return nullptr;
}

NodePtr Generating::floatFunction(const Scope &scope, int depth) {
  NodePtr x = floatExpr(scope, depth - 1);
  auto f = [&](const char *name, NodePtr of) { return call(Sort::Float, name, std::move(of)); };
  auto constant = [](double value) { return number(Sort::Float, value); };
  auto positive = [&](double by) {
    return binary(Sort::Float, "+", f("abs", std::move(x)), constant(by));
  };
  static constexpr const char *tame[] = {"tanh",      "sigmoid",  "relu", "silu", "gelu", "erf",
                                         "gelu_tanh", "softplus", "sin",  "cos",  "abs"};
  switch (random.below(22)) {
  default:
    return f(random.of(tame), std::move(x));
  case 0:
    return f("exp", call(Sort::Float, "min", std::move(x), constant(2)));
  case 1:
    return f("log", positive(0.5));
  case 2:
    return f("sqrt", positive(0.25));
  case 3:
    return f("rsqrt", positive(0.5));
  case 4:
    return f("log1p", positive(0));
  case 5:
    return f("expm1", call(Sort::Float, "clamp", std::move(x), constant(-3), constant(2)));
  case 6:
    return f("exp2", call(Sort::Float, "clamp", std::move(x), constant(-4), constant(3)));
  case 7:
    return f("log2", positive(0.5));
  case 8: {
    NodePtr power = binary(Sort::Float, "^", std::move(x), number(Sort::Int, 2 + random.below(2)));
    return power;
  }
  case 9:
    return call(Sort::Float, "pow", positive(0.5), constant(1.5));
  case 10:
    return call(Sort::Float, "fma", std::move(x), floatExpr(scope, depth - 1),
                floatExpr(scope, depth - 1));
  case 11: {
    static constexpr const char *steps[] = {"floor", "ceil", "round", "sign"};
    return f(random.of(steps), exactFloat(scope, depth - 1));
  }
  case 12: {
    static constexpr const char *casts[] = {"f32", "bf16", "f16"};
    return f(random.of(casts), std::move(x));
  }
  case 13: {
    NodePtr minus = make(Kind::Unary, Sort::Float, "-");
    minus->kids.push_back(std::move(x));
    return minus;
  }
  }
}

NodePtr Generating::floatExpr(const Scope &scope, int depth) {
  if (depth <= 0) {
    if (random.percent(8))
      return number(Sort::Float, random.below(9) * 0.5 - 2);
    if (random.percent(6) && !program.scalars.empty()) {
      NodePtr scalar = make(Kind::Scalar, Sort::Float);
      scalar->ref = random.below(static_cast<int>(program.scalars.size()));
      return scalar;
    }
    return load(Sort::Float, scope);
  }
  int way = random.below(100);
  if (way < 22)
    return load(Sort::Float, scope);
  if (way < 48) {
    static constexpr const char *operators[] = {"+", "-", "*", "*", "/"};
    std::string op = random.of(operators);
    NodePtr left = floatExpr(scope, depth - 1), right = floatExpr(scope, depth - 1);
    if (op == "/")
      right = binary(Sort::Float, "+", call(Sort::Float, "abs", std::move(right)),
                     number(Sort::Float, 1));
    return binary(Sort::Float, op, std::move(left), std::move(right));
  }
  if (way < 64)
    return floatFunction(scope, depth);
  if (way < 69)
    return call(Sort::Float, random.percent(50) ? "min" : "max", floatExpr(scope, depth - 1),
                floatExpr(scope, depth - 1));
  if (way < 76) {
    NodePtr choice = make(Kind::If, Sort::Float);
    choice->kids.push_back(boolExpr(scope, depth - 1));
    choice->kids.push_back(floatExpr(scope, depth - 1));
    bool mask = random.percent(15);
    choice->kids.push_back(mask ? number(Sort::Float, -8) : floatExpr(scope, depth - 1));
    return choice;
  }
  if (way < 80)
    return call(Sort::Float, "f32", intExpr(scope, depth - 1));
  if (way < 83)
    return call(Sort::Float, "f32", indexValue(scope, 1));
  if (way < 84) {
    NodePtr seed = call(Sort::Int, "i64", number(Sort::Int, random.below(100)));
    return call(Sort::Float, "rand", std::move(seed), call(Sort::Int, "i64", indexValue(scope, 1)));
  }
  if (way < 93)
    return random.percent(40) ? contraction(scope, depth) : reduction(Sort::Float, scope, depth);
  return scope.empty() ? load(Sort::Float, scope) : keeping(scope, depth);
}

NodePtr Generating::exactFloat(const Scope &scope, int depth) {
  if (depth > 0 && random.percent(20))
    return call(Sort::Float, random.percent(50) ? "min" : "max", exactFloat(scope, depth - 1),
                exactFloat(scope, depth - 1));
  if (depth > 0 && random.percent(15))
    return call(Sort::Float, "abs", exactFloat(scope, depth - 1));
  return load(Sort::Float, scope, /*inputsOnly=*/true);
}

NodePtr Generating::intExpr(const Scope &scope, int depth) {
  int way = random.below(100);
  if (depth <= 0 || way < 25) {
    if (random.percent(20))
      return call(Sort::Int, "i32", indexValue(scope, 1));
    return random.percent(15) ? number(Sort::Int, random.below(9) - 3) : load(Sort::Int, scope);
  }
  auto sub = [&] { return intExpr(scope, depth - 1); };
  if (way < 50) {
    static constexpr const char *operators[] = {"+", "-", "*"};
    return binary(Sort::Int, random.of(operators), sub(), sub());
  }
  if (way < 60) {
    static constexpr int divisors[] = {2, 3, 5, 7, 8};
    return binary(Sort::Int, random.percent(50) ? "/" : "%", sub(),
                  number(Sort::Int, random.of(divisors)));
  }
  if (way < 75) {
    static constexpr const char *functions[] = {"min", "max", "bitand", "bitor", "bitxor"};
    return call(Sort::Int, random.of(functions), sub(), sub());
  }
  if (way < 80) {
    static constexpr const char *functions[] = {"abs", "sign", "relu", "bitnot"};
    return call(Sort::Int, random.of(functions), sub());
  }
  if (way < 84)
    return call(Sort::Int, random.percent(50) ? "shl" : "shr", sub(),
                number(Sort::Int, random.below(4)));
  if (way < 90) {
    NodePtr choice = make(Kind::If, Sort::Int);
    choice->kids.push_back(boolExpr(scope, depth - 1));
    choice->kids.push_back(sub());
    choice->kids.push_back(sub());
    return choice;
  }
  if (way < 93) {
    NodePtr limited = call(Sort::Float, "clamp", exactFloat(scope, 1), number(Sort::Float, -50),
                           number(Sort::Float, 50));
    return call(Sort::Int, "i32", std::move(limited));
  }
  return reduction(Sort::Int, scope, depth);
}

NodePtr Generating::boolExpr(const Scope &scope, int depth) {
  static constexpr const char *comparisons[] = {"<", "<=", ">", ">=", "==", "!="};
  int way = random.below(100);
  if (way < 35 && !scope.empty())
    return binary(Sort::Bool, random.of(comparisons), indexValue(scope, 1), indexValue(scope, 1));
  if (way < 55 || depth <= 0)
    return binary(Sort::Bool, random.of(comparisons), exactFloat(scope, depth - 1),
                  random.percent(50) ? number(Sort::Float, random.below(5) * 0.5 - 1)
                                     : exactFloat(scope, depth - 1));
  if (way < 65)
    return binary(Sort::Bool, random.of(comparisons), intExpr(scope, depth - 1),
                  intExpr(scope, depth - 1));
  if (way < 75)
    return load(Sort::Bool, scope);
  if (way < 85)
    return binary(Sort::Bool, random.percent(50) ? "and" : "or", boolExpr(scope, depth - 1),
                  boolExpr(scope, depth - 1));
  if (way < 90) {
    NodePtr negation = make(Kind::Unary, Sort::Bool, "not ");
    negation->kids.push_back(boolExpr(scope, depth - 1));
    return negation;
  }
  if (way < 93)
    return call(Sort::Bool, random.percent(50) ? "isnan" : "isinf", exactFloat(scope, depth - 1));
  return reduction(Sort::Bool, scope, depth);
}

NodePtr Generating::reduction(Sort sort, const Scope &scope, int depth) {
  if (reductionsLeft-- <= 0)
    return load(sort, scope);
  if (sort == Sort::Int && random.percent(30))
    return integerContraction(scope);
  static constexpr const char *floats[] = {"sum",  "sum", "max",       "min",
                                           "mean", "max", "logsumexp", "prod"};
  static constexpr const char *integers[] = {"sum", "max", "min", "argmax", "argmin", "sum"};
  static constexpr const char *truths[] = {"any", "all"};
  std::string name = sort == Sort::Float ? random.of(floats)
                     : sort == Sort::Int ? random.of(integers)
                                         : random.of(truths);
  NodePtr node = make(Kind::Reduce, sort, name);
  bool argument = name.starts_with("arg"); // over nothing it has no value
  int count = !argument && random.percent(20) ? 2 : 1;
  Scope inner = scope;
  for (int n = 0; n < count; ++n) {
    Extent extent = name == "prod" ? Extent{-1, 1, 1 + random.below(4), 1} : anyExtent();
    int64_t lo = !argument && random.percent(10) ? 1 : 0;
    if (argument && program.extentOf(extent) == 0)
      extent = {-1, 1, 33, 1};
    node->binders.push_back(newIndex(extent, lo));
    inner.push_back(node->binders.back());
  }
  // argmax needs something to choose from that has no rounding in it.
  if (argument)
    node->kids.push_back(exactFloat(inner, depth - 1));
  else
    node->kids.push_back(expr(sort, inner, depth - 1));
  if (sort == Sort::Int && !argument) // of literals and indices alone it would be i64
    node->kids[0] = call(Sort::Int, "i32", std::move(node->kids[0]));
  return node;
}

std::pair<Scope, Scope> Generating::factorScopes(const Scope &scope, Node &reduction) {
  Scope left, right;
  for (int index : scope) { // rows of one factor, columns of the other, batches of both
    int side = random.below(5);
    if (side != 0 && side != 1)
      left.push_back(index);
    if (side != 2 && side != 3)
      right.push_back(index);
  }
  reduction.binders.push_back(newIndex(anyExtent()));
  left.push_back(reduction.binders.back());
  right.push_back(reduction.binders.back());
  return {left, right};
}

NodePtr Generating::contraction(const Scope &scope, int depth) {
  if (reductionsLeft-- <= 0)
    return load(Sort::Float, scope);
  NodePtr node = make(Kind::Reduce, Sort::Float, "sum");
  static constexpr const char *modifiers[] = {"exact", "exact", "tf32", "fast"};
  if (random.percent(15))
    node->modifier = random.of(modifiers);
  auto [left, right] = factorScopes(scope, *node);
  NodePtr a = random.percent(80) ? load(Sort::Float, left) : floatExpr(left, depth - 1);
  NodePtr b = random.percent(85) ? load(Sort::Float, right) : floatExpr(right, depth - 1);
  node->kids.push_back(binary(Sort::Float, "*", std::move(a), std::move(b)));
  return node;
}

NodePtr Generating::integerContraction(const Scope &scope) {
  NodePtr node = make(Kind::Reduce, Sort::Int, "sum");
  auto [left, right] = factorScopes(scope, *node);
  NodePtr a = load(Sort::Int, left), b = load(Sort::Int, right);
  node->kids.push_back(binary(Sort::Int, "*", std::move(a), std::move(b)));
  return node;
}

NodePtr Generating::keeping(const Scope &scope, int depth) {
  static constexpr const char *names[] = {"softmax", "softmax", "log_softmax",
                                          "cumsum",  "cummax",  "cumprod"};
  std::vector<int> whole;
  for (int index : scope)
    if (program.indices[index].lo == 0)
      whole.push_back(index);
  if (whole.empty() || reductionsLeft-- <= 0)
    return load(Sort::Float, scope);
  NodePtr node = make(Kind::Keep, Sort::Float, random.of(names));
  node->binders.push_back(random.of(whole));
  NodePtr value = floatExpr(scope, depth - 1);
  if (node->name == "cumprod") // stays near one
    value = binary(Sort::Float, "+", number(Sort::Float, 1),
                   binary(Sort::Float, "*", number(Sort::Float, 0.01),
                          call(Sort::Float, "tanh", std::move(value))));
  node->kids.push_back(std::move(value));
  return node;
}

} // namespace tk::fuzz
