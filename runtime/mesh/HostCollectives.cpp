// Collectives on tensors that one process holds.
#include <algorithm>
#include <cstring>

#include "runtime/mesh/Boxes.h"
#include "runtime/mesh/HostRank.h"

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

/// The bytes of a block's rows that count, by one of the tensors of counts.
size_t counted_bytes(const CollectiveCall &call, const void *counts, size_t block, size_t ranks) {
  const size_t whole = block_bytes(call, ranks);
  if (!counts)
    return whole;
  const int64_t rows = call.from_shape[0] / static_cast<int64_t>(ranks);
  const int64_t count = static_cast<const int32_t *>(counts)[block];
  if (count < 0 || count > rows)
    throw Error(ErrorCode::internal, "an exchange of " + std::to_string(count) +
                                         " rows in a block of " + std::to_string(rows));
  return rows == 0 ? 0 : whole / static_cast<size_t>(rows) * static_cast<size_t>(count);
}

} // namespace

int64_t array_bytes(const CollectiveCall &call, size_t ranks) {
  const MeshStep::Kind kind = call.step->kind;
  const bool gathers = kind == MeshStep::Kind::all_gather;
  const int64_t bytes = byte_count(call.dtype, gathers ? call.to_shape : call.from_shape).value();
  return kind == MeshStep::Kind::all_to_all ? bytes * static_cast<int64_t>(ranks) : bytes;
}

size_t block_bytes(const CollectiveCall &call, size_t ranks) {
  return static_cast<size_t>(byte_count(call.dtype, call.from_shape).value()) / ranks;
}
size_t sent_bytes(const CollectiveCall &call, size_t block, size_t ranks) {
  return counted_bytes(call, call.sent, block, ranks);
}
size_t received_bytes(const CollectiveCall &call, size_t block, size_t ranks) {
  return counted_bytes(call, call.received, block, ranks);
}

void combine_on_host(const CollectiveCall &call, std::span<const void *const> peers,
                     size_t position) {
  const MeshStep &step = *call.step;
  const unsigned rank = call.from_shape.size();
  const Extents zero = origin(rank);
  switch (step.kind) {
  case MeshStep::Kind::launch:
  case MeshStep::Kind::gather_launch: // see run_by_rows
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
  case MeshStep::Kind::exchange:
  case MeshStep::Kind::launch_exchange:
    for (size_t p = 0; p < peers.size(); ++p) {
      const size_t block = block_bytes(call, peers.size());
      std::memcpy(static_cast<std::byte *>(call.to) + p * block,
                  static_cast<const std::byte *>(peers[p]) + position * block,
                  received_bytes(call, p, peers.size()));
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

void HostRank::run(const CollectiveCall &call, Stream) {
  const std::vector<int64_t> members = peers_along(axes(), rank(), call.axis);
  combine_on_host(call, show(call, members), static_cast<size_t>(position(call.axis)));
  meet(call.axis, members);
}

void HostRank::run_by_rows(const CollectiveCall &call, Stream stream, const LaunchBlock &launch) {
  const std::vector<int64_t> members = peers_along(axes(), rank(), call.axis);
  const size_t ranks = members.size(), own = static_cast<size_t>(position(call.axis));
  if (call.step->kind == MeshStep::Kind::launch_exchange) {
    for (size_t i = 1; i <= ranks; ++i)
      launch((own + i) % ranks);
    return run(call, stream);
  }
  const std::vector<const void *> tensors = show(call, members);
  const auto block = static_cast<size_t>(byte_count(call.dtype, call.from_shape).value());
  for (size_t i = 0; i < ranks; ++i) {
    const size_t peer = (own + i) % ranks;
    std::memcpy(static_cast<std::byte *>(call.to) + peer * block, tensors[peer], block);
    launch(peer);
  }
  meet(call.axis, members);
}

} // namespace tk::detail
