// Which sizes of a range share a variant.
#include "tk/prepare.h"

#include "runtime/Bind.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tk {
namespace {

/// The bounds of classes lie this factor apart.
constexpr int64_t bound_ratio = 8;
/// No class has a lower bound than this: the smallest tile of a matrix product.
constexpr int64_t least_bound = 16;
/// Sizes below 2^61 leave room for the power of two above them.
constexpr int64_t largest_size = int64_t{1} << 61;
/// Of a class; see DimFact::divisor.
constexpr int64_t largest_divisor = 1 << 20;

} // namespace

DimFact SizeClass::fact() const {
  DimFact fact;
  fact.divisor = divisor;
  fact.upper = upper;
  fact.serves_shorter = true;
  return fact;
}

Expected<std::vector<SizeClass>> size_classes(const SizeRange &range) {
  auto text = [&] { return std::to_string(range.first) + ".." + std::to_string(range.last); };
  if (range.step < 1 || range.step > largest_size)
    return Error(ErrorCode::invalid_argument, "the step of the sizes " + text() +
                                                  " must be at least 1, got " +
                                                  std::to_string(range.step));
  if (range.first < 0 || range.last < range.first || range.last > largest_size)
    return Error(ErrorCode::invalid_argument,
                 "expected sizes from 0 on in ascending order, got " + text());
  std::vector<SizeClass> classes;
  if ((range.last - range.first) / range.step < max_size_classes)
    return classes;
  const int64_t common = std::gcd(range.first, range.step);
  const int64_t divisor = std::min(common & -common, largest_divisor);
  const int64_t least = range.first == 0 ? range.step : range.first;
  std::vector<int64_t> bounds;
  for (auto bound = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(range.last)));
       bounds.size() < max_size_classes; bound /= bound_ratio) {
    bounds.push_back(bound);
    if (bound / bound_ratio < std::max({least_bound, divisor, least}))
      break;
  }
  int64_t first = least;
  for (auto bound = bounds.rbegin(); bound != bounds.rend(); ++bound) {
    classes.push_back(
        {first, std::min(*bound, range.last), static_cast<uint32_t>(divisor), *bound});
    first = *bound + 1;
  }
  return classes;
}

namespace detail {

void plan_for(Facts &facts, const Signature &signature, const CheckedArguments &checked,
              const std::map<std::string, int64_t> &plan) {
  if (plan.empty())
    return;
  std::vector<Scalar> variables(checked.variables.begin(), checked.variables.end());
  for (size_t d = 0; d < facts.dims.size(); ++d) {
    auto it = plan.find(signature.dims[d]);
    // Code for a size of 0 serves no other, and code for other sizes may count on an element.
    if (it == plan.end() || checked.dims[d] == 0)
      continue;
    const DimFact planned = fact_for(it->second);
    DimFact &fact = facts.dims[d];
    fact.divisor = std::min(fact.divisor, planned.divisor); // both are powers of two
    fact.upper = fact.upper < 0 || planned.upper < 0 ? -1 : std::max(fact.upper, planned.upper);
    if (fact.exact != planned.exact)
      fact.exact.reset();
    variables[d] = Scalar(std::max(checked.dims[d], it->second));
  }
  for (unsigned t = 0; t < signature.num_tensors(); ++t) {
    Expected<Extents> shape = shape_of(signature.tensor(t), variables);
    Expected<int64_t> count = shape ? element_count(*shape) : Expected<int64_t>(shape.error());
    facts.small_tensors = facts.small_tensors && count && *count < small_tensor_limit;
  }
}

} // namespace detail

} // namespace tk
