// Facts, and the checks and text of launch plans.
#include "tk/plan.h"

#include "runtime/PlanText.h"

#include <algorithm>
#include <bit>

namespace tk {
namespace {

constexpr uint32_t max_divisor = 128;          ///< of addresses and strides
constexpr uint32_t max_size_divisor = 1 << 20; ///< of dimensions

uint32_t power_of_two_divisor(uint64_t value, uint32_t most) {
  if (value == 0)
    return most;
  return static_cast<uint32_t>(std::min<uint64_t>(value & -value, most));
}

const char *swizzle_text(uint8_t swizzle) {
  constexpr const char *names[] = {"none", "32B", "64B", "128B"};
  return swizzle < 4 ? names[swizzle] : "?";
}

std::string arg_text(const Arg &arg, const LaunchPlan &plan, const Signature &signature,
                     std::span<const std::string> names) {
  switch (arg.kind) {
  case ArgKind::tensor:
    return signature.tensor(arg.index).name;
  case ArgKind::scratch:
    return "scratch" + std::to_string(arg.index);
  case ArgKind::integer:
    return arg.value.str(names);
  case ArgKind::stride:
    return "stride(" + signature.tensor(arg.index).name + ", " + std::to_string(arg.axis) + ")";
  case ArgKind::scalar:
    return signature.scalar(arg.index).name;
  case ArgKind::tensor_map: {
    const TensorMap &map = plan.tensor_maps[arg.index];
    std::string box;
    for (uint32_t extent : map.box)
      box += (box.empty() ? "" : "x") + std::to_string(extent);
    return "map(" +
           (map.of_scratch ? "scratch" + std::to_string(map.index)
                           : signature.tensor(map.index).name) +
           ", box " + box + ", swizzle " + swizzle_text(map.swizzle) + ")";
  }
  }
  return "?";
}

std::string triple(const uint32_t (&values)[3]) {
  return std::to_string(values[0]) + ", " + std::to_string(values[1]) + ", " +
         std::to_string(values[2]);
}

/// "map0: of q, bf16, extents (D, S), strides (D), box 64x128, swizzle 128B".
std::string map_text(const TensorMap &map, size_t number, const Signature &signature,
                     std::span<const std::string> names) {
  std::string extents, strides, box;
  for (const DimExpr &extent : map.extents)
    extents += (extents.empty() ? "" : ", ") + extent.str(names);
  for (size_t i = 0; i < map.strides.size(); ++i) {
    const bool given = i < map.stride_axes.size() && map.stride_axes[i] >= 0;
    strides += (i ? ", " : "") + (given ? "stride(" + std::to_string(map.stride_axes[i]) + ")"
                                        : map.strides[i].str(names));
  }
  for (uint32_t side : map.box)
    box += (box.empty() ? "" : "x") + std::to_string(side);
  std::string places;
  for (const WindowPlaces &along : map.places)
    places += (places.empty() ? "" : ", ") + along.count.str(names) + " from " +
              std::to_string(along.lower) + " by " + std::to_string(along.step);
  return "map" + std::to_string(number) + ": of " +
         (map.of_scratch ? "scratch" + std::to_string(map.index)
                         : signature.tensor(map.index).name) +
         ", " + std::string(name(map.dtype)) + ", extents (" + extents + "), strides (" + strides +
         "), box " + box + ", swizzle " + swizzle_text(map.swizzle) +
         (map.fill_nan ? ", fills NaN" : "") + (map.rounds_to_tf32 ? ", rounds to tf32" : "") +
         (map.before ? ", begins " + std::to_string(map.before) + " before" : "") +
         (map.places.empty() ? "" : ", places (" + places + ")") + "\n";
}

struct Limits {
  unsigned variables, tensors, scalars;
};

bool arg_well_formed(const Arg &arg, const LaunchPlan &plan, const Signature &signature,
                     const Limits &limits) {
  switch (arg.kind) {
  case ArgKind::tensor:
    return arg.index < limits.tensors;
  case ArgKind::scratch:
    return arg.index < plan.scratch.size();
  case ArgKind::integer:
    return arg.value.well_formed(limits.variables);
  case ArgKind::stride:
    return arg.index < limits.tensors && arg.axis < signature.tensor(arg.index).shape.size() &&
           (arg.dtype == DType::i64 || arg.dtype == DType::i32);
  case ArgKind::scalar:
    return arg.index < limits.scalars;
  case ArgKind::tensor_map:
    return arg.index < plan.tensor_maps.size();
  }
  return false;
}

bool map_well_formed(const TensorMap &map, const LaunchPlan &plan, const Signature &signature,
                     const Limits &limits) {
  size_t rank = map.extents.size();
  if (rank == 0 || rank > 5 || map.box.size() != rank || map.strides.size() + 1 != rank ||
      (!map.stride_axes.empty() && map.stride_axes.size() + 1 != rank) || map.swizzle > 3)
    return false;
  if (map.of_scratch ? map.index >= plan.scratch.size() : map.index >= limits.tensors)
    return false;
  // A row of a box is moved in units of 16 bytes and fits into the span of a swizzle.
  const uint64_t row = map.box[0] * uint64_t{size_of(map.dtype)};
  if (row % 16 != 0 || (map.swizzle != 0 && row > 16u << map.swizzle))
    return false;
  for (uint32_t side : map.box)
    if (side == 0 || side > 256)
      return false;
  if (map.before > 0 && (rank < 2 || map.before != map.box[1]))
    return false;
  for (int32_t axis : map.stride_axes)
    if (axis >= 0 &&
        (map.of_scratch || static_cast<size_t>(axis) >= signature.tensor(map.index).shape.size()))
      return false;
  auto fine = [&](const Expr &expr) { return expr.well_formed(limits.variables); };
  if (!map.places.empty() && (rank < 3 || map.places.size() + 2 != rank || map.before > 0))
    return false;
  for (const WindowPlaces &along : map.places)
    if (!fine(along.count) || along.step < 1 || along.step > 8)
      return false;
  return std::all_of(map.extents.begin(), map.extents.end(), fine) &&
         std::all_of(map.strides.begin(), map.strides.end(), fine);
}

} // namespace

/// Bounds are multiples of this, or powers of two.
static constexpr uint64_t least_bound_unit = 128;

/// Sizes up to this are told exactly: those of windows.
static constexpr int64_t largest_exact_size = 16;

DimFact fact_for(int64_t size) {
  DimFact fact;
  auto value = static_cast<uint64_t>(std::max<int64_t>(size, 0));
  fact.divisor = power_of_two_divisor(value, max_size_divisor);
  if (value == 0) {
    fact.upper = 0;
  } else if (value > (uint64_t{1} << 62)) {
    fact.upper = -1;
  } else {
    const uint64_t power = std::bit_ceil(value), unit = std::max(power / 16, least_bound_unit);
    fact.upper = static_cast<int64_t>(std::min((value + unit - 1) / unit * unit, power));
  }
  if (size > 0 && size <= largest_exact_size)
    fact.exact = size;
  return fact;
}

Facts facts_for(std::span<const int64_t> dims) {
  Facts facts;
  for (int64_t dim : dims)
    facts.dims.push_back(fact_for(dim));
  return facts;
}

Facts facts_for(std::span<const int64_t> dims, std::span<const TensorView> tensors) {
  Facts facts = facts_for(dims);
  for (const TensorView &view : tensors) {
    TensorFact fact;
    fact.alignment = power_of_two_divisor(reinterpret_cast<uintptr_t>(view.data), max_divisor);
    fact.stride_divisor = max_divisor;
    for (unsigned axis = 0; axis + 1 < view.rank(); ++axis)
      fact.stride_divisor =
          std::min(fact.stride_divisor,
                   power_of_two_divisor(static_cast<uint64_t>(view.strides[axis]), max_divisor));
    facts.tensors.push_back(fact);
  }
  return facts;
}

namespace {

/// The dimension that an extent is; nullopt for a scalar parameter or another expression.
std::optional<size_t> bare_dim(const Extent &extent, size_t num_dims) {
  int variable = extent.expr.bare_variable();
  if (variable < 0 || static_cast<size_t>(variable) >= num_dims)
    return std::nullopt;
  return static_cast<size_t>(variable);
}

/// Can this tensor be small? Sizes that are not known count as 1.
bool may_be_small(const Parameter &tensor, std::span<const std::optional<int64_t>> known) {
  int64_t count = 1;
  for (const Extent &extent : tensor.shape) {
    std::optional<size_t> dim = bare_dim(extent, known.size());
    int64_t size = dim && known[*dim] ? std::max<int64_t>(*known[*dim], 1) : 1;
    if (__builtin_mul_overflow(count, size, &count) || count >= small_tensor_limit)
      return false;
  }
  return true;
}

} // namespace

Facts usual_facts(const Signature &signature, std::span<const std::optional<int64_t>> known) {
  constexpr uint32_t vector_bytes = 16;
  Facts facts;
  facts.small_tensors = true;
  for (const std::optional<int64_t> &size : known) {
    facts.small_tensors &= !size || *size < small_tensor_limit;
    facts.dims.push_back(size ? fact_for(*size) : DimFact{1, -1, {}});
  }
  for (unsigned t = 0; t < signature.num_tensors(); ++t) {
    const Parameter &tensor = signature.tensor(t);
    facts.small_tensors &= may_be_small(tensor, known);
    if (tensor.shape.empty())
      continue;
    std::optional<size_t> last = bare_dim(tensor.shape.back(), known.size());
    if (!last || known[*last])
      continue;
    uint32_t &divisor = facts.dims[*last].divisor;
    divisor = std::max(divisor, vector_bytes / static_cast<uint32_t>(size_of(tensor.dtype)));
  }
  return facts;
}

std::string TensorFact::key() const {
  std::string text = std::to_string(alignment) + "/" + std::to_string(stride_divisor);
  if (unit_axis != last_axis)
    text += "/unit " + (unit_axis == no_axis ? "none" : std::to_string(unit_axis));
  return text + (dense ? "/dense" : "");
}

std::string Facts::key() const {
  std::string text;
  for (const DimFact &fact : dims) {
    text += text.empty() ? "" : ";";
    if (fact.exact) {
      text += "=" + std::to_string(*fact.exact);
      continue;
    }
    text += std::to_string(fact.divisor);
    if (fact.upper >= 0)
      text += ",<=" + std::to_string(fact.upper) + (fact.serves_shorter ? " and less" : "");
    text += fact.own_key ? " only" : "";
  }
  if (small_tensors)
    text += "|small";
  for (size_t i = 0; i < tensors.size(); ++i)
    text += (i ? ";" : "|") + tensors[i].key();
  for (size_t i = 0; i < schedules.size(); ++i)
    if (schedules[i])
      text += "|schedule " + std::to_string(i);
  for (size_t i = 0; i < cases.size(); ++i)
    if (cases[i])
      text += "|case " + std::to_string(i);
  return text;
}

std::string detail::describe(const Arg &arg, const LaunchPlan &plan, const Signature &signature) {
  return arg_text(arg, plan, signature, signature.variable_names());
}

std::string LaunchPlan::str(const Signature &signature) const {
  if (!well_formed(*this, signature))
    return "<malformed plan>\n";
  std::vector<std::string> names = signature.variable_names();
  std::string text;
  for (size_t i = 0; i < scratch.size(); ++i)
    text += "scratch" + std::to_string(i) + ": " + scratch[i].bytes.str(names) + " bytes" +
            (scratch[i].zeroed ? ", zeroed" : "") + (scratch[i].restored ? ", restored" : "") +
            (scratch[i].purpose.empty() ? "" : ", " + scratch[i].purpose) + "\n";
  for (size_t i = 0; i < tensor_maps.size(); ++i)
    text += map_text(tensor_maps[i], i, signature, names);
  for (const Launch &launch : launches) {
    text += "launch " + launch.symbol + " grid (" + launch.grid[0].str(names) + ", " +
            launch.grid[1].str(names) + ", " + launch.grid[2].str(names) + ") block (" +
            triple(launch.block) + ")";
    if (launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > 1)
      text += " cluster (" + triple(launch.cluster) + ")";
    if (launch.resident)
      text += " resident";
    if (launch.overlapped)
      text += " overlapped";
    text += " shared " + launch.shared_bytes.str(names) + " args (";
    for (size_t i = 0; i < launch.args.size(); ++i)
      text += (i ? ", " : "") + arg_text(launch.args[i], *this, signature, names);
    text += ")\n";
  }
  return text;
}

bool well_formed(const LaunchPlan &plan, const Signature &signature) {
  Limits limits{static_cast<unsigned>(signature.dims.size()) + signature.num_scalars(),
                signature.num_tensors(), signature.num_scalars()};
  for (const Scratch &scratch : plan.scratch)
    if (!scratch.bytes.well_formed(limits.variables))
      return false;
  for (const TensorMap &map : plan.tensor_maps)
    if (!map_well_formed(map, plan, signature, limits))
      return false;
  for (const Launch &launch : plan.launches) {
    for (const DimExpr &extent : launch.grid)
      if (!extent.well_formed(limits.variables))
        return false;
    if (!launch.shared_bytes.well_formed(limits.variables))
      return false;
    for (const Arg &arg : launch.args)
      if (!arg_well_formed(arg, plan, signature, limits))
        return false;
  }
  return true;
}

} // namespace tk
