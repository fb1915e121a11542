//===- GenerateForms.cpp - forms that kernels of models have --------------===//
//
// What random expressions hardly ever make, and kernels of models are made of. With
// GeneratorOptions::forms a program begins with one of
//   1. a product whose rows, or whose matrix, a table names;
//   2. a product over a window, with neighbours that end with the tensor, or the largest of one;
//   3. a product of numbers that have one scale a group;
//   4. rows in groups, each divided by what it is reduced to;
//   5. rows that are normed, and what columns of them are summed to;
//   6. scans of rows beside what rows are reduced to, and sums of what two places of a scan differ
//   by;
//   7. a chain through a table of pages, of sequences that have lengths of their own;
//   8. a product, and what its rows and columns are reduced to.
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/Generating.h"

#include <limits>

namespace tk::fuzz {

static constexpr double infinity = std::numeric_limits<double>::infinity();
/// Multiplications of one program: most of a trial's time.
static constexpr double formsMaxCost = 1.5e5;

/// `load`, or `other` outside of the tensor.
static NodePtr padded(NodePtr load, double other) {
  load->padded = true;
  load->kids.push_back(number(load->sort, other));
  return load;
}

static NodePtr offset(NodePtr index, int by) {
  if (by == 0)
    return index;
  return binary(Sort::Index, by > 0 ? "+" : "-", std::move(index),
                number(Sort::Index, by > 0 ? by : -by));
}
static NodePtr times(int index, int by) {
  return by == 1 ? indexNode(index)
                 : binary(Sort::Index, "*", indexNode(index), number(Sort::Index, by));
}
static NodePtr quotient(int index, int by) {
  return binary(Sort::Index, "/", indexNode(index), number(Sort::Index, by));
}
static NodePtr remainder(int index, int by) {
  return binary(Sort::Index, "%", indexNode(index), number(Sort::Index, by));
}

static NodePtr product(NodePtr a, NodePtr b) {
  return binary(Sort::Float, "*", std::move(a), std::move(b));
}

static NodePtr reduced(std::string name, Scope over, NodePtr value) {
  NodePtr node = make(Kind::Reduce, value->sort, std::move(name));
  node->binders = std::move(over);
  node->kids.push_back(std::move(value));
  return node;
}

int64_t Generating::formSize(int64_t most) {
  static constexpr int64_t whole[] = {8, 16, 16, 24, 32, 40, 64, 72, 128};
  static constexpr int64_t odd[] = {1, 2, 3, 5, 7, 17, 31, 33, 63, 65, 100, 129};
  for (;;)
    if (int64_t size = random.percent(60) ? random.of(whole) : random.of(odd); size <= most)
      return size;
}

int Generating::newSymbol(const char *name, int64_t size) {
  program.symbols.push_back({name, size});
  return static_cast<int>(program.symbols.size()) - 1;
}

int Generating::formInput(DType type, std::vector<Extent> shape) {
  Tensor tensor;
  tensor.name = "x" + std::to_string(program.tensors.size());
  tensor.dtype = type;
  tensor.shape = std::move(shape);
  tensor.strided = random.percent(6);
  static constexpr int gaps[] = {0, 4, 8, 16, 3};
  if (tensor.strided)
    tensor.gap = random.of(gaps);
  if (!is_float(type) || random.percent(8)) {
    tensor.low = type == DType::u8 ? 0 : -4;
    tensor.high = 5;
  }
  program.tensors.push_back(tensor);
  return static_cast<int>(program.tensors.size()) - 1;
}

int Generating::tableOf(const Extent &of, std::vector<Extent> shape) {
  const int table = formInput(DType::i32, std::move(shape));
  const bool leaves = random.percent(25); // what is read outside is 0
  program.tensors[table].low = leaves ? -1 : 0;
  program.tensors[table].high = std::max<int64_t>(1, program.extentOf(of) + (leaves ? 1 : 0));
  return table;
}

NodePtr Generating::access(int tensor, std::vector<NodePtr> places) {
  NodePtr node = make(Kind::Load, program.tensors[tensor].sort());
  node->ref = tensor;
  node->kids = std::move(places);
  return node;
}

/// The same as a float.
static NodePtr asFloat(NodePtr value) {
  return value->sort == Sort::Float ? std::move(value) : call(Sort::Float, "f32", std::move(value));
}

template <typename... Nodes> static std::vector<NodePtr> list(Nodes... nodes) {
  std::vector<NodePtr> all;
  (all.push_back(std::move(nodes)), ...);
  return all;
}

DType Generating::formType() {
  static constexpr DType types[] = {DType::bf16, DType::bf16, DType::bf16,   DType::f16,
                                    DType::f16,  DType::f32,  DType::f8e4m3, DType::f32};
  return random.of(types);
}

void Generating::makeGatheredProduct() {
  const Extent sources{newSymbol("N", formSize(40))}, rows{newSymbol("T", formSize(72))},
      experts{newSymbol("E", 1 + random.below(4))}, columns{newSymbol("F", formSize(72))},
      terms{newSymbol("D", formSize(72))}, blocks{newSymbol("B", 1 + random.below(3))};
  const DType type = formType();
  const int b = newIndex(blocks), t = newIndex(rows), f = newIndex(columns), d = newIndex(terms);
  const bool gathersRows = random.percent(75), turned = random.percent(40);
  NodePtr left;
  if (gathersRows) {
    const int token = tableOf(sources, {blocks, rows});
    left = access(formInput(type, {sources, terms}),
                  list(access(token, list(indexNode(b), indexNode(t))), indexNode(d)));
  } else {
    left = access(formInput(type, {blocks, rows, terms}),
                  list(indexNode(b), indexNode(t), indexNode(d)));
  }
  NodePtr row = indexNode(turned ? d : f), last = indexNode(turned ? f : d), right;
  const Extent first = turned ? terms : columns, second = turned ? columns : terms;
  if (!gathersRows || random.percent(70)) {
    const bool ofEachRow = random.percent(25);
    const int expert = ofEachRow ? tableOf(experts, {blocks, rows}) : tableOf(experts, {blocks});
    NodePtr which = ofEachRow ? access(expert, list(indexNode(b), indexNode(t)))
                              : access(expert, list(indexNode(b)));
    right = access(formInput(type, {experts, first, second}),
                   list(std::move(which), std::move(row), std::move(last)));
  } else {
    right = access(formInput(type, {first, second}), list(std::move(row), std::move(last)));
  }
  const Scope scope = {b, t, f};
  NodePtr value = sumOfProducts(std::move(left), std::move(right), d);
  if (random.percent(30)) // weights of rows
    value = product(std::move(value), access(formInput(DType::f32, {blocks, rows}),
                                             list(indexNode(b), indexNode(t))));
  define(true, type, scope, epilogue(std::move(value), scope));
}

void Generating::makeWindowProduct() {
  const bool isPlane = random.percent(50), isDepthwise = random.percent(30),
             isPool = !isDepthwise && random.percent(15),
             takesLargest = isPool && random.percent(60);
  const int width = 2 + random.below(3), stride = random.percent(20) ? 2 : 1,
            before = random.below(width);
  const bool ends = stride == 1 && random.percent(25); // every neighbour is inside
  const Extent images{newSymbol("N", 1 + random.below(3))},
      length{newSymbol("S", std::max<int64_t>(width, formSize(isPlane ? 17 : 40)))},
      side{newSymbol("W", std::max<int64_t>(width, formSize(17)))},
      channels{newSymbol("C", formSize(72))}, outputs{newSymbol("O", formSize(40))};
  const DType type = formType();
  const int n = newIndex(images), c = newIndex(channels), o = newIndex(outputs);
  auto out = [&](const Extent &extent) {
    return ends ? Extent{extent.symbol, 1, 1 - width, 1} : Extent{extent.symbol, 1, 0, stride};
  };
  const int p = newIndex(out(length)), q = newIndex(out(side));
  const int r = newIndex({-1, 1, width, 1}), s = newIndex({-1, 1, width, 1});
  auto place = [&](int of, int neighbour) {
    return offset(binary(Sort::Index, "+", times(of, stride), indexNode(neighbour)),
                  ends ? 0 : -before);
  };
  const int x = isPlane ? formInput(type, {images, length, side, channels})
                        : formInput(type, {images, length, channels});
  NodePtr left = isPlane ? access(x, list(indexNode(n), place(p, r), place(q, s), indexNode(c)))
                         : access(x, list(indexNode(n), place(p, r), indexNode(c)));
  if (!ends)
    left = padded(std::move(left), takesLargest ? -infinity : 0);
  Scope scope = {n, p}, window = {r};
  if (isPlane) {
    scope.push_back(q);
    window.push_back(s);
  }
  scope.push_back(isDepthwise || isPool ? c : o);
  if (isPool) {
    define(true, type, scope, reduced(takesLargest ? "max" : "sum", window, std::move(left)));
    return;
  }
  std::vector<Extent> shape;
  std::vector<NodePtr> at;
  auto add = [&](int index) {
    shape.push_back(program.indices[index].hi);
    at.push_back(indexNode(index));
  };
  const bool channelsLast = random.percent(60);
  if (!isDepthwise)
    add(channelsLast ? o : c);
  else if (!channelsLast)
    add(c);
  for (int index : window)
    add(index);
  if (!isDepthwise)
    add(channelsLast ? c : o);
  else if (channelsLast)
    add(c);
  if (!isDepthwise)
    window.push_back(c);
  const int filter = formInput(type, shape);
  NodePtr value = reduced("sum", window, product(std::move(left), access(filter, std::move(at))));
  define(true, type, scope, epilogue(std::move(value), scope));
}

void Generating::makeScaledProduct() {
  static constexpr int sizes[] = {2, 4, 8, 16, 32, 64};
  static constexpr DType narrow[] = {DType::i8,   DType::i8,     DType::f8e4m3, DType::f8e5m2,
                                     DType::bf16, DType::f8e4m3, DType::f16,    DType::f32};
  const int group = random.of(sizes);
  const DType weights = random.of(narrow), type = random.percent(50)  ? DType::bf16
                                                  : is_float(weights) ? weights
                                                                      : DType::f16;
  const bool isNested = random.percent(40);
  const Extent rows{newSymbol("M", formSize(72))}, columns{newSymbol("N", formSize(72))};
  const int64_t size = isNested ? 1 + random.below(std::max(1, 160 / group)) : formSize(129);
  const int symbol = newSymbol("K", size);
  const Extent terms = isNested ? Extent{symbol, group, 0, 1} : Extent{symbol},
               groups = isNested ? Extent{symbol} : Extent{symbol, 1, group - 1, group};
  const int m = newIndex(rows), n = newIndex(columns);
  const bool turned = random.percent(30), ofRows = random.percent(35);
  const int x = formInput(type, {rows, terms}),
            w = formInput(weights,
                          turned ? std::vector{terms, columns} : std::vector{columns, terms}),
            sn = formInput(random.percent(60) ? DType::f32 : type, {columns, groups}),
            sm = formInput(DType::f32, {rows, groups});
  auto ofWeights = [&](NodePtr k) {
    return asFloat(turned ? access(w, list(std::move(k), indexNode(n)))
                          : access(w, list(indexNode(n), std::move(k))));
  };
  NodePtr value;
  if (isNested) {
    const int g = newIndex(groups), j = newIndex({-1, 1, group, 1});
    auto k = [&] { return binary(Sort::Index, "+", times(g, group), indexNode(j)); };
    value = sumOfProducts(access(x, list(indexNode(m), k())), ofWeights(k()), j);
    value = product(std::move(value), access(sn, list(indexNode(n), indexNode(g))));
    if (ofRows)
      value = product(std::move(value), access(sm, list(indexNode(m), indexNode(g))));
    value = reduced("sum", {g}, std::move(value));
  } else {
    const int k = newIndex(terms);
    NodePtr left = access(x, list(indexNode(m), indexNode(k)));
    if (ofRows)
      left = product(std::move(left), access(sm, list(indexNode(m), quotient(k, group))));
    NodePtr right =
        product(ofWeights(indexNode(k)), access(sn, list(indexNode(n), quotient(k, group))));
    value = sumOfProducts(std::move(left), std::move(right), k);
  }
  const Scope scope = {m, n};
  define(true, random.percent(60) ? DType::bf16 : DType::f32, scope,
         epilogue(std::move(value), scope));
}

void Generating::makeGroups() {
  static constexpr int sizes[] = {2, 4, 8, 16, 32, 3};
  static constexpr DType narrow[] = {DType::f8e4m3, DType::f8e5m2, DType::bf16, DType::f32};
  const int group = random.of(sizes);
  const bool isWhole = random.percent(60);
  const Extent rows{newSymbol("R", formSize(40))};
  const int symbol = newSymbol("C", isWhole ? 1 + random.below(140 / group) : formSize(129));
  const Extent length = isWhole ? Extent{symbol, group, 0, 1} : Extent{symbol},
               groups = isWhole ? Extent{symbol} : Extent{symbol, 1, group - 1, group};
  const DType type = formType();
  const int r = newIndex(rows), c = newIndex(length), b = newIndex(groups),
            j = newIndex({-1, 1, group, 1});
  int source = formInput(type, {rows, length});
  if (random.percent(50)) {
    const int at = newIndex(length), row = newIndex(rows);
    source = define(random.percent(30), DType::f32, {row, at},
                    call(Sort::Float, random.percent(50) ? "silu" : "tanh",
                         access(source, list(indexNode(row), indexNode(at)))));
  }
  NodePtr element =
      access(source, list(indexNode(r), binary(Sort::Index, "+", times(b, group), indexNode(j))));
  if (!isWhole)
    element = padded(std::move(element), 0);
  NodePtr most = random.percent(70)
                     ? reduced("max", {j}, call(Sort::Float, "abs", std::move(element)))
                     : reduced("sum", {j}, product(element->clone(), std::move(element)));
  const bool isResult = random.percent(60);
  const int scale = define(isResult, DType::f32, {r, b},
                           binary(Sort::Float, "+", std::move(most), number(Sort::Float, 0.25)));
  const int row = newIndex(rows);
  NodePtr divided = binary(Sort::Float, "/", access(source, list(indexNode(row), indexNode(c))),
                           access(scale, list(indexNode(row), quotient(c, group))));
  if (random.percent(25)) // its place in the group
    divided = product(std::move(divided), access(formInput(DType::f32, {{-1, 1, group, 1}}),
                                                 list(remainder(c, group))));
  const int stored = define(true, random.of(narrow), {row, c}, std::move(divided));
  if (!random.percent(35))
    return;
  const int again = newIndex(rows), k = newIndex(length);
  const Extent columns{newSymbol("N", formSize(33))};
  const int n = newIndex(columns);
  const int w = formInput(program.tensors[stored].dtype, {length, columns});
  define(true, DType::f32, {again, n},
         sumOfProducts(access(stored, list(indexNode(again), indexNode(k))),
                       access(w, list(indexNode(k), indexNode(n))), k));
}

void Generating::makeForms() {
  reductionsLeft = 1;
  using Form = void (Generating::*)();
  static constexpr Form forms[] = {
      &Generating::makeGatheredProduct, &Generating::makeWindowProduct,
      &Generating::makeWindowProduct,   &Generating::makeScaledProduct,
      &Generating::makeScaledProduct,   &Generating::makeGroups,
      &Generating::makeGroups,          &Generating::makeRowsAndColumns,
      &Generating::makeRowsAndColumns,  &Generating::makeScans,
      &Generating::makeScans,           &Generating::makePagedChain,
      &Generating::makeReducedProduct};
  (this->*random.of(forms))();
  for (Tensor &tensor : program.tensors)
    tensor.declared = tensor.role != Role::Local || random.percent(50);
  const double most = options.maxCost;
  options.maxCost = formsMaxCost;
  limitCost();
  options.maxCost = most + program.cost();
}

} // namespace tk::fuzz
