// Collectives between GPUs by a kernel of one-shot exchanges, instead of NCCL.
#include <algorithm>
#include <bit>

#include "runtime/mesh/NcclRank.h"

namespace tk::detail {

using one_shot::Move;
using one_shot::Size;
using one_shot::Word;
using Kind = MeshStep::Kind;

namespace {

bool is_combined(const CollectiveCall &call) {
  return call.step->kind == Kind::all_reduce || call.step->kind == Kind::reduce_scatter;
}

/// Elements of the dimensions from `first` to `last`, which is not one of them.
Size count(const Extents &shape, size_t first, size_t last) {
  Size elements = 1;
  for (size_t d = first; d < last; ++d)
    elements *= static_cast<Size>(shape[d]);
  return elements;
}

/// The blocks of an all-to-all, if the dimensions before both are 1.
bool set_all_to_all(const CollectiveCall &call, Size ranks, Move &move) {
  const uint32_t whole = call.step->dim, shared = call.step->to_dim; // behind it
  const uint32_t outer = std::min(whole, shared), inner = std::max(whole, shared);
  if (count(call.from_shape, 0, outer) != 1)
    return false;
  const Extents &small = whole == inner ? call.from_shape : call.to_shape; // along `inner`
  move.width = count(small, inner, small.size()) * size_of(call.dtype);
  const Extents &few = whole == inner ? call.to_shape : call.from_shape; // along `outer`
  move.rows = count(few, outer, inner);
  const Size block = move.width * move.rows;
  if (whole == inner) {
    move.from_peer = block, move.from_pitch = move.width;
    move.to_peer = move.width, move.to_pitch = ranks * move.width;
  } else {
    move.from_peer = move.width, move.from_pitch = ranks * move.width;
    move.to_peer = block, move.to_pitch = move.width;
  }
  return true;
}

/// Where the blocks of a tensor begin; false for what no exchange does.
bool set_blocks(const CollectiveCall &call, Size ranks, Move &move) {
  const uint32_t dim = call.step->dim;
  const Size element = size_of(call.dtype);
  switch (call.step->kind) {
  case Kind::all_gather:
    move.rows = count(call.from_shape, 0, dim);
    move.width = count(call.from_shape, dim, call.from_shape.size()) * element;
    move.from_pitch = move.to_peer = move.width;
    move.to_pitch = ranks * move.width;
    return true;
  case Kind::reduce_scatter:
    move.rows = count(call.to_shape, 0, dim);
    move.width = count(call.to_shape, dim, call.to_shape.size()) * element;
    move.from_peer = move.to_pitch = move.width;
    move.from_pitch = ranks * move.width;
    move.to_peer = move.rows * move.width;
    return true;
  case Kind::all_reduce:
    move.width = count(call.from_shape, 0, call.from_shape.size()) * element;
    move.from_pitch = move.to_pitch = move.to_peer = move.width;
    return true;
  case Kind::exchange:
    move.rows = static_cast<Size>(call.from_shape[0]) / ranks;
    move.width = count(call.from_shape, 1, call.from_shape.size()) * element;
    move.from_pitch = move.to_pitch = move.width;
    move.from_peer = move.to_peer = move.rows * move.width;
    return true;
  case Kind::all_to_all:
    return set_all_to_all(call, ranks, move);
  default:
    return false;
  }
}

/// The greatest access by which all of a move can be divided.
Word unit_of(const Move &move, Size landing, Size element) {
  const Size all = move.from | move.from_peer | move.from_pitch | landing | move.to_peer |
                   move.to_pitch | move.width | move.result | move.result_peer | move.result_pitch;
  constexpr Size most = 16;
  const Size unit = all == 0 ? most : std::min(most, Size{1} << std::countr_zero(all));
  return static_cast<Word>(move.is_combined && unit < most ? element : unit);
}

/// Bytes in which the blocks of all ranks lie.
Size landing_size(const Move &move, Size ranks) {
  return move.is_combined ? ranks * move.to_peer : ranks * move.rows * move.width;
}

} // namespace

/// What landing memory an exchange needs: blocks that are combined lie beside each other, and so do
/// others that do not arrive where they are to be.
int64_t NcclRank::landing_bytes(const CollectiveCall &call, bool is_in_window) const {
  const auto ranks = static_cast<size_t>(m_axes[call.axis].size);
  Move move;
  if (ranks < 2 || ranks > one_shot::most_ranks || (is_in_window && !is_combined(call)) ||
      array_bytes(call, ranks) > call.bounds.one_shot_up_to || !set_blocks(call, ranks, move))
    return 0;
  move.is_combined = is_combined(call);
  return static_cast<int64_t>(landing_size(move, ranks));
}

/// How an exchange does a collective; nothing if another way is faster, or it cannot.
std::optional<Move> NcclRank::move_for(const CollectiveCall &call) const {
  const auto ranks = static_cast<size_t>(m_axes[call.axis].size);
  Move move;
  if (!m_memory.has_one_shot(call.axis) || !set_blocks(call, ranks, move) ||
      (is_combined(call) && !OneShot::combines(call.dtype)))
    return std::nullopt;
  // Counts on the device are worth more than a faster transfer, as nothing waits for the host.
  const bool is_counted = call.sent && call.step->kind == Kind::exchange;
  if (!is_counted && array_bytes(call, ranks) > call.bounds.one_shot_up_to)
    return std::nullopt;
  move.is_combined = is_combined(call);
  move.from = address_of(call.from);
  CUdeviceptr landing = address_of(call.to);
  if (move.is_combined || !m_memory.reaches(call.axis, landing)) {
    if (is_counted || !call.landing || !m_memory.reaches(call.axis, address_of(call.landing)))
      return std::nullopt;
    move.result = landing;
    landing = address_of(call.landing);
    if (!move.is_combined) { // blocks lie one behind the other until they are taken
      move.result_peer = move.to_peer, move.result_pitch = move.to_pitch;
      move.to_peer = move.rows * move.width, move.to_pitch = move.width;
    }
  }
  move.to = m_memory.offset_of(landing);
  move.counts = is_counted ? address_of(call.sent) : 0;
  move.unit = unit_of(move, landing, size_of(call.dtype));
  constexpr Size most_units = Size{1} << 30; // numbered in 32 bits
  if (move.rows * (move.width / move.unit) > most_units)
    return std::nullopt;
  return move;
}

/// Tensors of a call that are combined have one type and one operation.
void NcclRank::run_at_once(std::span<const CollectiveCall> calls, Stream stream) {
  one_shot::Call exchange = m_memory.call_along(calls[0].axis);
  OneShotKind kind{DType::f32, MeshCombine::sum};
  auto flush = [&] {
    if (exchange.num_moves > 0)
      m_memory.exchange_at_once(exchange, kind, stream.handle);
    exchange.num_moves = 0;
  };
  bool has_kind = false;
  for (const CollectiveCall &call : calls) {
    const Move move = *move_for(call);
    const OneShotKind own{call.dtype, call.step->combine};
    if (exchange.num_moves == one_shot::most_moves || (move.is_combined && has_kind && own != kind))
      flush(), has_kind = false;
    if (move.is_combined)
      kind = own, has_kind = true;
    exchange.moves[exchange.num_moves++] = move;
  }
  flush();
}

} // namespace tk::detail
