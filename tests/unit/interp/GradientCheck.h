//===- GradientCheck.h - a derived gradient beside finite differences -----===//
//
// A program is evaluated in f64. The gradient of sum(d_y * y) by each input is compared with
// central differences of that sum, element by element.
//
//===----------------------------------------------------------------------===//
#ifndef TK_TESTS_UNIT_INTERP_GRADIENTCHECK_H
#define TK_TESTS_UNIT_INTERP_GRADIENTCHECK_H

#include "compiler/CompiledSource.h"
#include "compiler/interp/Interpreter.h"
#include "tests/unit/catch.h"

#include <cmath>
#include <map>

namespace tk::test {

struct Array {
  DType dtype = DType::f64;
  Extents shape;
  std::vector<double> floats;
  std::vector<int32_t> ints;
  TensorView view() {
    return dtype == DType::f64 ? TensorView(floats.data(), dtype, shape)
                               : TensorView(ints.data(), dtype, shape);
  }
};

class Gradient {
public:
  Gradient(const std::string &text, std::map<std::string, int64_t> sizes, unsigned seed = 1)
      : sizes(std::move(sizes)), state(seed * 2654435761U + 1) {
    CompileOptions options;
    options.file_name = "test.tk";
    options.target = "cpu";
    source = CompiledSource::create(text, options).value();
    REQUIRE(source->signatures().size() == 2);
  }

  /// Sets an input by hand; others are random.
  Gradient &with(const std::string &name, std::vector<double> values) {
    given[name] = std::move(values);
    return *this;
  }

  /// Compares all gradients that the second kernel has.
  void check(double tolerance = 1e-6) {
    const Signature &primal = source->signatures()[0], &derived = source->signatures()[1];
    INFO(derived.str());
    for (const Parameter &p : primal.params)
      inputs[p.name] = make(p, primal);
    std::vector<std::vector<double>> results = run(0, inputs);
    std::map<std::string, Array> all = inputs;
    std::vector<std::vector<double>> cotangents(results.size());
    for (size_t r = 0; r < results.size(); ++r) {
      const Parameter &p = primal.results[r];
      Array y = make(p, primal), d = make(p, primal);
      y.floats = results[r];
      if (y.dtype != DType::f64)
        y.ints.assign(results[r].begin(), results[r].end());
      all[p.name] = y;
      if (p.dtype != DType::f64)
        continue;
      all["d_" + p.name] = d;
      cotangents[r] = d.floats;
    }
    auto objective = [&](const std::map<std::string, Array> &at) {
      double sum = 0;
      std::vector<std::vector<double>> y = run(0, at);
      for (size_t r = 0; r < y.size(); ++r)
        for (size_t i = 0; i < cotangents[r].size(); ++i)
          sum += cotangents[r][i] * y[r][i];
      return sum;
    };
    std::vector<std::vector<double>> gradients = run(1, all);
    for (size_t g = 0; g < gradients.size(); ++g) {
      const std::string by = derived.results[g].name.substr(2);
      double largest = 0;
      for (size_t i = 0; i < gradients[g].size(); ++i) {
        std::map<std::string, Array> up = inputs, down = inputs;
        const double step = 1e-5;
        up[by].floats[i] += step;
        down[by].floats[i] -= step;
        const double expected = (objective(up) - objective(down)) / (2 * step);
        INFO("by " << by << " at " << i << ": " << gradients[g][i] << " for " << expected);
        CHECK(std::abs(gradients[g][i] - expected) <= tolerance * (1 + std::abs(expected)));
        largest = std::max(largest, std::abs(expected));
      }
      INFO("by " << by);
      CHECK((largest > 1e-3 || gradients[g].empty())); // else this shows nothing
    }
  }

  /// The gradient by the first parameter that is differentiated by, for given cotangents of 1.
  std::vector<double> ofOnes() {
    const Signature &primal = source->signatures()[0];
    for (const Parameter &p : primal.params)
      inputs[p.name] = make(p, primal);
    std::vector<std::vector<double>> results = run(0, inputs);
    std::map<std::string, Array> all = inputs;
    for (size_t r = 0; r < results.size(); ++r) {
      Array y = make(primal.results[r], primal), d = y;
      y.floats = results[r];
      d.floats.assign(d.floats.size(), 1.0);
      all[primal.results[r].name] = y;
      all["d_" + primal.results[r].name] = d;
    }
    return run(1, all)[0];
  }

private:
  double random() { // in -1 .. 1
    state = state * 1664525U + 1013904223U;
    return static_cast<double>(state >> 8) / (1U << 23) - 1;
  }

  std::vector<int64_t> dims(const Signature &s) const {
    std::vector<int64_t> list;
    for (const std::string &dim : s.dims)
      list.push_back(sizes.at(dim));
    return list;
  }

  Array make(const Parameter &p, const Signature &s) {
    Array a;
    a.dtype = p.dtype;
    int64_t count = 1;
    for (const tk::Extent &extent : p.shape) {
      const int64_t size = extent.expr.evaluate_integer(std::span<const int64_t>(dims(s))).value();
      a.shape.push_back(size);
      count *= size;
    }
    const std::vector<double> *values = given.count(p.name) ? &given.at(p.name) : nullptr;
    for (int64_t i = 0; i < count; ++i) {
      const double value = values ? values->at(static_cast<size_t>(i)) : random();
      a.floats.push_back(value);
      a.ints.push_back(static_cast<int32_t>(value));
    }
    return a;
  }

  std::vector<std::vector<double>> run(size_t kernel, const std::map<std::string, Array> &values) {
    const Signature &s = source->signatures()[kernel];
    interp::Reference made =
        interp::Reference::create(source->kernelOp(kernel), interp::Mode::F64).value();
    std::vector<Array> arrays;
    std::vector<Scalar> scalars;
    for (const Parameter &p : s.params)
      arrays.push_back(values.at(p.name));
    std::vector<TensorView> views;
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (s.params[i].is_tensor)
        views.push_back(arrays[i].view());
      else
        scalars.emplace_back(arrays[i].floats[0]);
    }
    REQUIRE(made.bind(dims(s), views, scalars));
    std::vector<std::vector<double>> out(s.results.size());
    for (unsigned r = 0; r < out.size(); ++r) {
      int64_t count = 1;
      for (int64_t extent : made.resultShape(r))
        count *= extent;
      for (int64_t i = 0; i < count; ++i) {
        const interp::Cell cell = made.element(r, i);
        out[r].push_back(made.resultIsFloat(r) ? cell.f : static_cast<double>(cell.i));
      }
    }
    return out;
  }

  std::map<std::string, int64_t> sizes;
  std::map<std::string, std::vector<double>> given;
  std::map<std::string, Array> inputs;
  std::shared_ptr<CompiledSource> source;
  uint32_t state;
};

} // namespace tk::test

#endif // TK_TESTS_UNIT_INTERP_GRADIENTCHECK_H
