// Collectives on tensors that one process holds.
#include <algorithm>
#include <cstring>

#include "runtime/mesh/Boxes.h"
#include "runtime/mesh/Communicator.h"

namespace tk::detail {
namespace {

/// The integer in an element of an integer type.
int64_t load_integer(DType dtype, const void *element) {
  if (dtype == DType::i64) {
    int64_t value;
    std::memcpy(&value, element, sizeof value);
    return value;
  }
  return static_cast<int64_t>(load_as_f64(dtype, element));
}

void store_integer(DType dtype, void *element, int64_t value) {
  const size_t size = dtype == DType::boolean ? 1 : size_of(dtype);
  std::memcpy(element, &value, size); // little endian: wraps
}

int64_t combine(MeshCombine how, int64_t a, int64_t b) {
  const auto left = static_cast<uint64_t>(a), right = static_cast<uint64_t>(b);
  switch (how) {
  case MeshCombine::sum:
    return static_cast<int64_t>(left + right);
  case MeshCombine::prod:
    return static_cast<int64_t>(left * right);
  case MeshCombine::max:
    return std::max(a, b);
  case MeshCombine::min:
    return std::min(a, b);
  case MeshCombine::any:
    return a != 0 || b != 0;
  case MeshCombine::all:
    return a != 0 && b != 0;
  }
  return a;
}

template <typename Float> Float combine(MeshCombine how, Float a, Float b) {
  switch (how) {
  case MeshCombine::prod:
    return a * b;
  case MeshCombine::max: // NaN wins, as in the language
    return a != a || a > b ? a : b;
  case MeshCombine::min:
    return a != a || a < b ? a : b;
  default:
    return a + b;
  }
}

/// Adds up rows of all peers, from `begins` on.
void combine_row(const CollectiveCall &call, std::span<const void *const> peers, int64_t source,
                 int64_t target, int64_t count) {
  const size_t size = size_of(call.dtype);
  const MeshCombine how = call.step->combine;
  for (int64_t i = 0; i < count; ++i) {
    auto element = [&](size_t peer) {
      return static_cast<const std::byte *>(peers[peer]) + static_cast<size_t>(source + i) * size;
    };
    std::byte *result = static_cast<std::byte *>(call.to) + static_cast<size_t>(target + i) * size;
    if (is_integer(call.dtype)) {
      int64_t value = load_integer(call.dtype, element(0));
      for (size_t p = 1; p < peers.size(); ++p)
        value = combine(how, value, load_integer(call.dtype, element(p)));
      store_integer(call.dtype, result, value);
    } else if (call.dtype == DType::f64) {
      double value = load_as_f64(call.dtype, element(0));
      for (size_t p = 1; p < peers.size(); ++p)
        value = combine(how, value, load_as_f64(call.dtype, element(p)));
      store_from_f64(call.dtype, result, value);
    } else {
      auto value = static_cast<float>(load_as_f64(call.dtype, element(0)));
      for (size_t p = 1; p < peers.size(); ++p)
        value = combine(how, value, static_cast<float>(load_as_f64(call.dtype, element(p))));
      store_from_f64(call.dtype, result, value);
    }
  }
}

} // namespace

void combine_on_host(const CollectiveCall &call, std::span<const void *const> peers,
                     size_t position) {
  const MeshStep &step = *call.step;
  const unsigned rank = call.from_shape.size();
  const Extents zero = origin(rank);
  switch (step.kind) {
  case MeshStep::Kind::launch:
    return;
  case MeshStep::Kind::copy:
    copy_box(call.dtype, call.from_shape, call.from, {call.from_shape, zero}, call.to,
             {call.from_shape, zero});
    return;
  case MeshStep::Kind::all_gather:
    for (size_t p = 0; p < peers.size(); ++p) {
      Extents offset = zero;
      offset[step.dim] = static_cast<int64_t>(p) * call.from_shape[step.dim];
      copy_box(call.dtype, call.from_shape, peers[p], {call.from_shape, zero}, call.to,
               {call.to_shape, offset});
    }
    return;
  case MeshStep::Kind::all_to_all:
    for (size_t p = 0; p < peers.size(); ++p) {
      Extents box = call.from_shape, source = zero, target = zero;
      box[step.to_dim] = call.to_shape[step.to_dim];
      source[step.to_dim] = static_cast<int64_t>(position) * box[step.to_dim];
      target[step.dim] = static_cast<int64_t>(p) * call.from_shape[step.dim];
      copy_box(call.dtype, box, peers[p], {call.from_shape, source}, call.to,
               {call.to_shape, target});
    }
    return;
  case MeshStep::Kind::all_reduce:
  case MeshStep::Kind::reduce_scatter: {
    Extents offset = zero;
    if (step.kind == MeshStep::Kind::reduce_scatter)
      offset[step.dim] = static_cast<int64_t>(position) * call.to_shape[step.dim];
    for_each_row(call.to_shape, {call.from_shape, offset}, {call.to_shape, zero},
                 [&](int64_t source, int64_t target, int64_t count) {
                   combine_row(call, peers, source, target, count);
                 });
    return;
  }
  }
}

} // namespace tk::detail
