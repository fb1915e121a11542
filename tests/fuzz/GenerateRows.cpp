//===- GenerateRows.cpp - forms of rows, scans and chains -----------------===//
//
// The forms 5 to 8 of GenerateForms.cpp.
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/Generating.h"

#include <limits>

namespace tk::fuzz {

static constexpr double infinity = std::numeric_limits<double>::infinity();

static NodePtr product(NodePtr a, NodePtr b) {
  return binary(Sort::Float, "*", std::move(a), std::move(b));
}

static NodePtr over(std::string name, Scope indices, NodePtr value) {
  const bool keeps = name == "softmax" || name.starts_with("cum");
  NodePtr node = make(keeps ? Kind::Keep : Kind::Reduce, Sort::Float, std::move(name));
  node->binders = std::move(indices);
  node->kids.push_back(std::move(value));
  return node;
}

/// Rows of one or of two axes, which may be reduced together.
void Generating::makeRowsAndColumns() {
  std::vector<Extent> outer = {{newSymbol("R", formSize(40))}};
  if (random.percent(35))
    outer.push_back({newSymbol("Q", formSize(17))});
  const Extent columns{newSymbol("C", formSize(129))};
  std::vector<Extent> all = outer;
  all.push_back(columns);
  auto rowScope = [&] {
    Scope scope;
    for (const Extent &extent : outer)
      scope.push_back(newIndex(extent));
    return scope;
  };
  auto with = [](Scope scope, int index) {
    scope.push_back(index);
    return scope;
  };
  const DType type = formType();
  const int x = formInput(type, all), dy = formInput(type, all),
            gamma = formInput(random.percent(50) ? DType::f32 : type, {columns});
  auto mean = [&](auto value) {
    const Scope rows = rowScope();
    const int c = newIndex(columns);
    return define(random.percent(20), DType::f32, rows,
                  over(random.percent(80) ? "mean" : "max", {c}, value(rows, c)));
  };
  const int mu = mean([&](const Scope &rows, int c) { return read(x, with(rows, c)); });
  auto centred = [&](const Scope &rows, int c) {
    return binary(Sort::Float, "-", read(x, with(rows, c)), read(mu, rows));
  };
  const int variance = mean([&](const Scope &rows, int c) {
    return binary(Sort::Float, "^", centred(rows, c), number(Sort::Int, 2));
  });
  auto normed = [&](const Scope &rows, int c) {
    NodePtr sum = binary(Sort::Float, "+", read(variance, rows), number(Sort::Float, 0.25));
    return product(centred(rows, c), call(Sort::Float, "rsqrt", std::move(sum)));
  };
  auto weighted = [&](const Scope &rows, int c) {
    return product(read(dy, with(rows, c)), read(gamma, {c}));
  };
  auto columnSum = [&](auto value) {
    const Scope rows = rowScope();
    const int c = newIndex(columns);
    define(true, DType::f32, {c}, over(random.percent(85) ? "sum" : "max", rows, value(rows, c)));
  };
  const Scope rows = rowScope();
  const int c = newIndex(columns);
  if (random.percent(60))
    define(true, type, with(rows, c), product(normed(rows, c), read(gamma, {c})));
  if (random.percent(70))
    columnSum(
        [&](const Scope &of, int at) { return product(read(dy, with(of, at)), normed(of, at)); });
  if (random.percent(50))
    columnSum([&](const Scope &of, int at) { return read(dy, with(of, at)); });
  if (random.percent(50)) {
    const int a =
        mean([&](const Scope &of, int at) { return product(weighted(of, at), normed(of, at)); });
    const Scope of = rowScope();
    const int at = newIndex(columns);
    define(true, type, with(of, at),
           binary(Sort::Float, "-", weighted(of, at), product(normed(of, at), read(a, of))));
  } else {
    define(true, DType::f32, with(rows, c), normed(rows, c));
  }
}

void Generating::makeScans() {
  static constexpr const char *scans[] = {"cumsum", "cumsum", "cummax", "cumprod"};
  static constexpr const char *reductions[] = {"sum", "max", "mean", "logsumexp", "min"};
  const Extent rows{newSymbol("R", formSize(33))}, length{newSymbol("L", formSize(129))};
  const int x = formInput(formType(), {rows, length});
  const std::string scan = random.of(scans);
  const int r = newIndex(rows), i = newIndex(length);
  NodePtr value = read(x, {r, i});
  if (scan == "cumprod") // stays near one
    value = binary(Sort::Float, "+", number(Sort::Float, 1),
                   product(number(Sort::Float, 0.01), call(Sort::Float, "tanh", std::move(value))));
  else if (scan == "cumsum" && random.percent(60)) // as decays are
    value = product(number(Sort::Float, -0.125), call(Sort::Float, "softplus", std::move(value)));
  const int scanned =
      define(random.percent(50), DType::f32, {r, i}, over(scan, {i}, std::move(value)));

  // What a row is reduced to, by its places or by something that is the same at all of them.
  const int row = newIndex(rows), j = newIndex(length);
  const bool repeats = random.percent(25);
  const int per = formInput(DType::f32, {rows});
  const int total = define(random.percent(40), DType::f32, {row},
                           over(random.of(reductions), {j},
                                repeats              ? read(per, {row})
                                : random.percent(50) ? read(scanned, {row, j})
                                                     : read(x, {row, j})));
  const int m = newIndex(rows), k = newIndex(length);
  define(
      true, random.percent(50) ? DType::f32 : DType::bf16, {m, k},
      binary(Sort::Float, random.percent(50) ? "-" : "*", read(scanned, {m, k}), read(total, {m})));
  if (scan != "cumsum" || random.percent(40))
    return;
  // Sums of what two places differ by, as a chunk of a state space has them.
  const Extent columns{newSymbol("P", formSize(24))};
  const int z = formInput(random.percent(60) ? DType::bf16 : DType::f32, {rows, length, columns});
  const int n = newIndex(rows), at = newIndex(length), before = newIndex(length),
            p = newIndex(columns);
  NodePtr difference = binary(Sort::Float, "-", read(scanned, {n, at}), read(scanned, {n, before}));
  NodePtr decay = make(Kind::If, Sort::Float);
  decay->kids.push_back(binary(Sort::Bool, "<=", indexNode(before), indexNode(at)));
  decay->kids.push_back(call(
      Sort::Float, "exp", call(Sort::Float, "min", std::move(difference), number(Sort::Float, 2))));
  decay->kids.push_back(number(Sort::Float, 0));
  const int decays = define(false, DType::f32, {n, at, before}, std::move(decay));
  const int own = newIndex(rows), to = newIndex(length), from = newIndex(length);
  define(true, DType::f32, {own, to, p},
         sumOfProducts(read(decays, {own, to, from}), read(z, {own, from, p}), from));
}

void Generating::makePagedChain() {
  static constexpr int sizes[] = {2, 4, 8, 16, 3};
  const int page = random.of(sizes);
  const Extent sequences{newSymbol("B", 1 + random.below(4))},
      queries{newSymbol("S", random.percent(40) ? 1 : formSize(40))},
      slots{newSymbol("J", 1 + random.below(std::max(2, 72 / page)))},
      pool{newSymbol("P", 1 + random.below(12))}, terms{newSymbol("D", formSize(64))},
      values{newSymbol("E", formSize(40))}, keys{slots.symbol, page, 0, 1}, ofPage{-1, 1, page, 1};
  static constexpr DType types[] = {DType::bf16, DType::f16, DType::bf16, DType::f32,
                                    DType::f8e4m3};
  const DType type = random.of(types);
  const bool isPaged = random.percent(70);
  const int q = formInput(type, {sequences, queries, terms}),
            table = tableOf(pool, {sequences, slots}),
            k = isPaged ? formInput(type, {pool, ofPage, terms})
                        : formInput(type, {sequences, keys, terms}),
            v = isPaged ? formInput(type, {pool, ofPage, values})
                        : formInput(type, {sequences, keys, values}),
            length = formInput(DType::i32, {sequences});
  program.tensors[length].low = random.percent(70) ? 1 : 0;
  program.tensors[length].high = program.extentOf(keys) + 1 + (random.percent(20) ? 3 : 0);
  auto cached = [&](int tensor, int b, int j, int d) {
    NodePtr node = make(Kind::Load, Sort::Float);
    node->ref = tensor;
    if (!isPaged) {
      for (int index : {b, j, d})
        node->kids.push_back(indexNode(index));
      return node;
    }
    NodePtr slot = make(Kind::Load, Sort::Int);
    slot->ref = table;
    slot->kids.push_back(indexNode(b));
    slot->kids.push_back(binary(Sort::Index, "/", indexNode(j), number(Sort::Index, page)));
    node->kids.push_back(std::move(slot));
    node->kids.push_back(binary(Sort::Index, "%", indexNode(j), number(Sort::Index, page)));
    node->kids.push_back(indexNode(d));
    return node;
  };
  const int b = newIndex(sequences), i = newIndex(queries), j = newIndex(keys), d = newIndex(terms);
  NodePtr score = sumOfProducts(read(q, {b, i, d}), cached(k, b, j, d), d);
  score = product(std::move(score), number(Sort::Float, 0.125));
  if (random.percent(25)) // a bias by distance
    score = binary(Sort::Float, "-", std::move(score),
                   product(number(Sort::Float, 0.0625), call(Sort::Float, "f32", indexNode(j))));
  const int scores = define(false, DType::f32, {b, i, j}, std::move(score));
  const int mb = newIndex(sequences), mi = newIndex(queries), mj = newIndex(keys);
  NodePtr ownLength = make(Kind::Load, Sort::Int);
  ownLength->ref = length;
  ownLength->kids.push_back(indexNode(mb));
  NodePtr seen = binary(Sort::Bool, "<", indexNode(mj), std::move(ownLength));
  if (random.percent(30))
    seen = binary(Sort::Bool, "and", std::move(seen),
                  binary(Sort::Bool, ">=", indexNode(mj), indexNode(mi)));
  NodePtr masked = make(Kind::If, Sort::Float);
  masked->kids.push_back(std::move(seen));
  masked->kids.push_back(read(scores, {mb, mi, mj}));
  masked->kids.push_back(number(Sort::Float, -infinity));
  const int weight =
      define(false, DType::f32, {mb, mi, mj}, over("softmax", {mj}, std::move(masked)));
  const int ob = newIndex(sequences), oi = newIndex(queries), oj = newIndex(keys),
            e = newIndex(values);
  NodePtr value = sumOfProducts(read(weight, {ob, oi, oj}), cached(v, ob, oj, e), oj);
  define(true, type, {ob, oi, e}, epilogue(std::move(value), {ob, oi, e}));
}

void Generating::makeReducedProduct() {
  static constexpr const char *reductions[] = {"sum", "max", "mean", "logsumexp"};
  const Extent rows{newSymbol("M", formSize(129))}, columns{newSymbol("N", formSize(129))},
      terms{newSymbol("K", formSize(72))};
  const DType type = formType();
  const int m = newIndex(rows), n = newIndex(columns), k = newIndex(terms);
  NodePtr value = sumOfProducts(factor(type, {m, k}), factor(type, {k, n}), k);
  const bool isStored = random.percent(40);
  const int first =
      define(isStored, isStored ? type : DType::f32, {m, n}, epilogue(std::move(value), {m, n}));
  auto reduce = [&](bool ofRows) {
    const int i = newIndex(rows), j = newIndex(columns);
    NodePtr element = read(first, {i, j});
    if (random.percent(40))
      element = call(Sort::Float, random.percent(50) ? "abs" : "tanh", std::move(element));
    return define(true, DType::f32, {ofRows ? i : j},
                  over(random.of(reductions), {ofRows ? j : i}, std::move(element)));
  };
  const bool ofRows = random.percent(60);
  const int reduced = reduce(ofRows);
  if (random.percent(40))
    reduce(!ofRows);
  if (random.percent(40)) { // and what follows from both, element by element
    const int i = newIndex(rows), j = newIndex(columns);
    define(true, type, {i, j},
           binary(Sort::Float, "-", read(first, {i, j}), read(reduced, {ofRows ? i : j})));
  }
}

} // namespace tk::fuzz
