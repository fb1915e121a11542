//===- GenerateNamed.cpp - names that are compared with themselves --------===//
//
// A name has one value (docs/reference/language.md). With GeneratorOptions::named a program names
// sums, and compares, subtracts and branches on them and on what follows from them. Its results
// hold exactly, on any finite input and in any order of the sums (Promise): each row has an element
// that is at least the row's maximum, a value less itself is 0, weights are at most 1, the element
// that argmax finds is the maximum. No tolerance is needed.
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/Generating.h"

#include <algorithm>
#include <limits>

namespace tk::fuzz {

static constexpr double infinity = std::numeric_limits<double>::infinity();

static NodePtr reduced(std::string name, int over, NodePtr value, Sort sort = Sort::Float) {
  NodePtr node = make(Kind::Reduce, sort, std::move(name));
  node->binders.push_back(over);
  node->kids.push_back(std::move(value));
  return node;
}

static NodePtr choice(NodePtr condition, NodePtr a, NodePtr b) {
  NodePtr node = make(Kind::If, Sort::Float);
  node->kids.push_back(std::move(condition));
  node->kids.push_back(std::move(a));
  node->kids.push_back(std::move(b));
  return node;
}

/// 1 where `a` and `b` compare so, else 0.
static NodePtr indicator(const char *comparison, NodePtr a, NodePtr b) {
  return choice(binary(Sort::Bool, comparison, std::move(a), std::move(b)), number(Sort::Float, 1),
                number(Sort::Float, 0));
}

static NodePtr difference(NodePtr a, NodePtr b) {
  return binary(Sort::Float, "-", std::move(a), std::move(b));
}

/// The elements of rows: a sum of products, of functions of pairs, of what is loaded, of few terms;
/// or the like of such a sum.
int Generating::makeNamedElements(const Extent &rows, const Extent &columns) {
  static constexpr int64_t lengths[] = {1, 2, 3, 4, 8, 9, 16, 17, 40, 64, 65, 100, 128, 257};
  const Extent terms{newSymbol("K", random.of(lengths))};
  const int m = newIndex(rows), j = newIndex(columns), k = newIndex(terms);
  static constexpr DType types[] = {DType::f32, DType::f32, DType::bf16, DType::f16};
  const DType type = random.of(types);
  NodePtr value;
  switch (random.below(6)) {
  case 0:
  case 1: {
    NodePtr left = factor(type, {m, k});
    NodePtr right = random.percent(50) ? factor(type, {j, k}) : factor(type, {k, j});
    value = sumOfProducts(std::move(left), std::move(right), k);
    break;
  }
  case 2:
    value = reduced(random.percent(80) ? "sum" : "mean", k, factor(type, {m, j, k}));
    break;
  case 3: // over the first axis
    value = reduced("sum", k, factor(type, {k, m, j}));
    break;
  default:
    value = reduced(
        "sum", k, call(Sort::Float, "abs", difference(factor(type, {m, k}), factor(type, {j, k}))));
  }
  if (random.percent(25))
    value = binary(Sort::Float, "*", std::move(value),
                   number(Sort::Float, random.percent(50) ? 0.125 : 300));
  if (random.percent(25))
    value = binary(Sort::Float, "+", std::move(value), factor(DType::f32, {j}));
  static constexpr DType declared[] = {DType::f32, DType::f32, DType::bf16};
  const bool isResult = random.percent(20);
  const int named = define(isResult, random.percent(75) ? DType::f32 : random.of(declared), {m, j},
                           std::move(value));
  program.tensors[named].declared = isResult || random.percent(40);
  if (random.percent(20)) { // and what is computed of it element by element
    const int a = newIndex(rows), b = newIndex(columns);
    const int next = define(false, DType::f32, {a, b},
                            binary(Sort::Float, random.percent(50) ? "*" : "+", read(named, {a, b}),
                                   factor(DType::f32, {b})));
    return next;
  }
  return named;
}

/// What rows (or columns) of `of` are reduced to.
int Generating::makeNamedExtremum(const char *name, int of, bool ofRows) {
  const Tensor &tensor = program.tensors[of];
  const Extent rows = tensor.shape[0], columns = tensor.shape[1];
  const int m = newIndex(rows), j = newIndex(columns);
  const bool isResult = random.percent(30);
  const int made = define(isResult, DType::f32, {ofRows ? m : j},
                          reduced(name, ofRows ? j : m, read(of, {m, j})));
  program.tensors[made].declared = true;
  return made;
}

/// A result over rows and columns that keeps a promise. `value` gets the element, the row's number
/// and the column's.
void Generating::promise(
    Promised kind, int count, DType type, int of,
    const std::function<NodePtr(NodePtr element, int row, int column)> &value) {
  const Tensor &tensor = program.tensors[of];
  const Extent rows = tensor.shape[0], columns = tensor.shape[1];
  const int m = newIndex(rows), j = newIndex(columns);
  NodePtr element = read(of, {m, j});
  const int made = define(true, type, {m, j}, value(std::move(element), m, j));
  program.tensors[made].declared = true;
  program.promises.push_back({made, kind, count});
}

/// Promises of rows, whose elements are compared in a reduction.
void Generating::makeRowPromise(int of) {
  const bool isLeast = random.percent(25);
  const int top = makeNamedExtremum(isLeast ? "min" : "max", of, true);
  const int m = newIndex(program.tensors[of].shape[0]), j = newIndex(program.tensors[of].shape[1]);
  NodePtr element = read(of, {m, j}), extremum = read(top, {m});
  Promised kind = Promised::Zero;
  int count = 0;
  const char *reduction = isLeast ? "min" : "max";
  NodePtr value;
  switch (random.below(4)) {
  case 0: // how many are the extremum
    kind = Promised::AtLeast;
    count = 1;
    reduction = "sum";
    value = indicator(isLeast ? "<=" : ">=", std::move(element), std::move(extremum));
    break;
  case 1: // how many are beyond it
    reduction = "sum";
    value = indicator(isLeast ? "<" : ">", std::move(element), std::move(extremum));
    break;
  case 2: // the nearest
    value = difference(std::move(element), std::move(extremum));
    break;
  default: { // what limits change
    reduction = "sum";
    NodePtr limited =
        call(Sort::Float, isLeast ? "max" : "min", element->clone(), std::move(extremum));
    value = call(Sort::Float, "abs", difference(std::move(limited), std::move(element)));
  }
  }
  const int made = define(true, DType::f32, {m}, reduced(reduction, j, std::move(value)));
  program.tensors[made].declared = true;
  program.promises.push_back({made, kind, count});
}

void Generating::makePromise(int of) {
  const auto columns = static_cast<int>(program.extentOf(program.tensors[of].shape[1]));
  const int form = random.below(13);
  if (form > 9)
    return makeRowPromise(of);
  if (form == 9) { // two sides of one value, in statements of their own
    const int row = makeNamedExtremum(random.percent(50) ? "sum" : "mean", of, true);
    auto side = [&](const char *comparison) {
      const int m = newIndex(program.tensors[row].shape[0]);
      const int made = define(random.percent(50), DType::f32, {m},
                              indicator(comparison, read(row, {m}), number(Sort::Float, 0)));
      program.tensors[made].declared = true;
      return made;
    };
    const int above = side(">="), below = side("<");
    promise(Promised::One, 0, DType::f32, of, [&](NodePtr, int m, int) {
      return binary(Sort::Float, "+", read(above, {m}), read(below, {m}));
    });
    return;
  }
  const bool isLeast = random.percent(25);
  const int top = makeNamedExtremum(isLeast ? "min" : "max", of, true);
  auto topOf = [&](int m) { return read(top, {m}); };
  switch (form) {
  case 0:
  case 1: // some element is the extremum
    promise(Promised::SomeInRow, 1, DType::f32, of, [&](NodePtr e, int m, int) {
      return indicator(isLeast ? "<=" : ">=", std::move(e), topOf(m));
    });
    return;
  case 2: // none is beyond it
    promise(Promised::Zero, 0, DType::f32, of, [&](NodePtr e, int m, int) {
      return indicator(isLeast ? "<" : ">", std::move(e), topOf(m));
    });
    return;
  case 3: // nor does a limit change any
    promise(Promised::Zero, 0, DType::f32, of, [&](NodePtr e, int m, int) {
      NodePtr limited = call(Sort::Float, isLeast ? "max" : "min", e->clone(), topOf(m));
      return difference(std::move(limited), std::move(e));
    });
    return;
  case 4: // weights under a maximum
    promise(Promised::AtMostOne, 0, formType(), of, [&](NodePtr e, int m, int) {
      NodePtr exponent =
          isLeast ? difference(topOf(m), std::move(e)) : difference(std::move(e), topOf(m));
      return call(Sort::Float, "exp", std::move(exponent));
    });
    return;
  case 5: { // the nearest is at distance 0
    promise(Promised::SomeInRow, 1, DType::f32, of, [&](NodePtr e, int m, int) {
      return indicator("==", difference(std::move(e), topOf(m)), number(Sort::Float, 0));
    });
    return;
  }
  case 6: // softmax
    promise(Promised::AtMostOne, 0, formType(), of, [&](NodePtr e, int, int j) {
      NodePtr node = make(Kind::Keep, Sort::Float, "softmax");
      node->binders.push_back(j);
      node->kids.push_back(std::move(e));
      return node;
    });
    return;
  case 7: { // where argmax finds it
    const int m = newIndex(program.tensors[of].shape[0]),
              j = newIndex(program.tensors[of].shape[1]);
    const int place =
        define(random.percent(50), DType::i32, {m},
               reduced(isLeast ? "argmin" : "argmax", j, read(of, {m, j}), Sort::Int));
    program.tensors[place].declared = program.tensors[place].role == Role::Result;
    promise(Promised::Zero, 0, DType::f32, of, [&](NodePtr e, int row, int column) {
      NodePtr there = access(place, {});
      there->kids.push_back(indexNode(row));
      NodePtr isThere = binary(Sort::Bool, "==", indexNode(column), std::move(there));
      return choice(std::move(isThere), difference(std::move(e), topOf(row)),
                    number(Sort::Float, 0));
    });
    return;
  }
  default: { // two experts of a router
    const int m = newIndex(program.tensors[of].shape[0]),
              j = newIndex(program.tensors[of].shape[1]);
    NodePtr rest = choice(binary(Sort::Bool, isLeast ? ">" : "<", read(of, {m, j}), topOf(m)),
                          read(of, {m, j}), number(Sort::Float, isLeast ? infinity : -infinity));
    const int second = define(random.percent(30), DType::f32, {m},
                              reduced(isLeast ? "min" : "max", j, std::move(rest)));
    program.tensors[second].declared = true;
    promise(Promised::SomeInRow, std::min(2, columns), DType::f32, of,
            [&](NodePtr e, int row, int) {
              return indicator(isLeast ? "<=" : ">=", std::move(e), read(second, {row}));
            });
  }
  }
}

void Generating::makeNamed() {
  static constexpr int64_t counts[] = {1, 2, 3, 4, 5, 7, 8, 8, 9, 16, 17, 32, 33, 64, 100, 129};
  const Extent rows{newSymbol("M", random.of(counts))}, columns{newSymbol("N", random.of(counts))};
  reductionsLeft = 0;
  const int named = makeNamedElements(rows, columns);
  for (int count = 1 + random.below(3); count > 0; --count)
    makePromise(named);
  for (Tensor &tensor : program.tensors)
    tensor.hasNaN = false;
}

} // namespace tk::fuzz
