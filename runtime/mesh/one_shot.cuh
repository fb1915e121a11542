// The kernel of one-shot exchanges: ranks store their blocks into the windows of their peers, and
// combine those that have landed. A grid of `blocks` thread blocks; thread block b of each rank
// moves and combines the b-th part of each tensor, so it waits for the thread blocks b of the peers
// alone. Thread blocks begin in order, so those with the least number run on all ranks, and nobody
// waits for a thread block that waits for a place.
//
//   1. It tells the peers that this rank's window may be written, and waits until they say so.
//   2. It stores this rank's blocks, and then, as a release, the epoch.
//   3. It waits, as an acquire, for the epoch from each peer, and combines.
//
// The epoch counts the exchanges along an axis. The device counts them, so a CUDA graph may be
// launched again. A flag cannot skip an epoch: a peer is ready for the next one only when this rank
// has stored its blocks of this one, and its blocks of the next one arrive only when this rank is
// ready for them. So flags are compared for equality, and a count that begins again is right.
//
// A rank that does not come in time is noted in a word of the host; from then on nobody waits, and
// nothing is stored into windows that may be in use.
//
// NVRTC compiles this text for a GPU. Tests compile it for the host, where a thread block is one
// thread (TK_HOST_EXCHANGE).
#include "runtime/mesh/OneShotCall.h"

#ifdef TK_HOST_EXCHANGE
#define TK_FUNCTION static inline
#define TK_SHARED_FUNCTION static inline
#else
#define TK_FUNCTION static __device__ __forceinline__
#define TK_SHARED_FUNCTION static __device__ __noinline__
#endif

namespace tk::one_shot {

#ifdef TK_HOST_EXCHANGE
// The host's primitives come before this text.
#else
TK_FUNCTION Word thread() { return threadIdx.x; }
TK_FUNCTION Word threads() { return blockDim.x; }
TK_FUNCTION Word block() { return blockIdx.x; }
TK_FUNCTION Word blocks() { return gridDim.x; }
TK_FUNCTION void meet() { __syncthreads(); }
TK_FUNCTION bool meet_any(bool value) { return __syncthreads_or(value) != 0; }
TK_FUNCTION void release(Address flag, Word value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
TK_FUNCTION Word acquire(Address flag) {
  Word value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}
TK_FUNCTION Word count_up(Address counter) {
  Word before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(counter)
               : "memory");
  return before;
}
TK_FUNCTION Size nanoseconds() {
  Size now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
TK_FUNCTION float widen_f16(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
TK_FUNCTION unsigned short narrow_f16(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
TK_FUNCTION float widen_bf16(unsigned short bits) {
  return __uint_as_float(static_cast<Word>(bits) << 16);
}
TK_FUNCTION unsigned short narrow_bf16(float value) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
#endif

struct alignas(16) Vector {
  Size halves[2];
};

template <typename T> TK_FUNCTION T *at(Address address) { return reinterpret_cast<T *>(address); }
template <typename T> TK_FUNCTION Address address_of(T &value) {
  return reinterpret_cast<Address>(&value);
}

/// Rows of units in memory, `pitch` bytes apart.
struct Rows {
  Address begin;
  Size pitch;
  Word units, unit; ///< of a row, and bytes of one
};

TK_FUNCTION Rows rows_of(const Move &move, Address begin, Size pitch) {
  return {begin, pitch, static_cast<Word>(move.width / move.unit), move.unit};
}

TK_FUNCTION Address place(const Rows &rows, Word number) {
  if (rows.pitch == static_cast<Size>(rows.units) * rows.unit)
    return rows.begin + static_cast<Size>(number) * rows.unit;
  return rows.begin + number / rows.units * rows.pitch +
         static_cast<Size>(number % rows.units) * rows.unit;
}

/// Where the part of thread block `number` begins, of `count` units.
TK_FUNCTION Word begin_of(Word number, Word count) {
  return static_cast<Word>(static_cast<Size>(count) * number / blocks());
}

/// Units of the block that goes to a rank.
TK_FUNCTION Word units_for(const Move &move, Word rank) {
  Size rows = move.rows;
  if (move.counts) {
    const int count = at<const int>(move.counts)[rank];
    if (count < 0 || static_cast<Size>(count) < rows)
      rows = count < 0 ? 0 : static_cast<Size>(count);
  }
  return static_cast<Word>(rows * (move.width / move.unit));
}

/// Several loads are under way before the first store.
template <typename Unit>
TK_FUNCTION void copy_units(const Rows &to, const Rows &from, Word first, Word last) {
  constexpr Word depth = 4;
  for (Word i = first + thread(); i < last; i += depth * threads()) {
    Unit units[depth];
#pragma unroll
    for (Word k = 0; k < depth; ++k)
      if (const Word number = i + k * threads(); number < last)
        units[k] = *at<const Unit>(place(from, number));
#pragma unroll
    for (Word k = 0; k < depth; ++k)
      if (const Word number = i + k * threads(); number < last)
        *at<Unit>(place(to, number)) = units[k];
  }
}

/// This thread block's part of a copy.
TK_SHARED_FUNCTION void copy_part(const Rows &to, const Rows &from, Word count) {
  const Word first = begin_of(block(), count), last = begin_of(block() + 1, count);
  switch (to.unit) {
  case 16:
    return copy_units<Vector>(to, from, first, last);
  case 8:
    return copy_units<Size>(to, from, first, last);
  case 4:
    return copy_units<Word>(to, from, first, last);
  case 2:
    return copy_units<unsigned short>(to, from, first, last);
  default:
    return copy_units<unsigned char>(to, from, first, last);
  }
}

/// Stores the blocks of a tensor into the windows of the peers, the next rank's first.
TK_FUNCTION void send_blocks(const Call &call, const Move &move) {
  for (Word i = 1; i < call.ranks; ++i) {
    const Word rank = (call.own + i) % call.ranks;
    copy_part(rows_of(move, call.windows[rank] + move.to + call.own * move.to_peer, move.to_pitch),
              rows_of(move, move.from + rank * move.from_peer, move.from_pitch),
              units_for(move, rank));
  }
}

/// Where the block of a rank is that is not combined.
TK_FUNCTION Rows block_of(const Call &call, const Move &move, Word rank) {
  if (move.result)
    return rows_of(move, move.result + rank * move.result_peer, move.result_pitch);
  return rows_of(move, call.windows[call.own] + move.to + rank * move.to_peer, move.to_pitch);
}

TK_FUNCTION void keep_own_block(const Call &call, const Move &move) {
  const Rows to = block_of(call, move, call.own);
  const Rows from = rows_of(move, move.from + call.own * move.from_peer, move.from_pitch);
  if (to.begin != from.begin)
    copy_part(to, from, units_for(move, call.own));
}

/// Copies blocks from where they have landed to where they are to be.
TK_FUNCTION void take_blocks(const Call &call, const Move &move) {
  for (Word i = 1; i < call.ranks; ++i) {
    const Word rank = (call.own + i) % call.ranks;
    copy_part(block_of(call, move, rank),
              rows_of(move, call.windows[call.own] + move.to + rank * move.to_peer, move.to_pitch),
              static_cast<Word>(move.rows * (move.width / move.unit)));
  }
}

template <typename T> struct Plain { ///< combined as it is stored
  using Stored = T;
  using Value = T;
  TK_FUNCTION Value widen(Stored value) { return value; }
  TK_FUNCTION Stored narrow(Value value) { return value; }
};
template <typename T> struct Small { ///< an integer of 8 bits
  using Stored = T;
  using Value = int;
  TK_FUNCTION Value widen(Stored value) { return value; }
  TK_FUNCTION Stored narrow(Value value) { return static_cast<Stored>(value); }
};
struct Half {
  using Stored = unsigned short;
  using Value = float;
  TK_FUNCTION Value widen(Stored value) { return widen_f16(value); }
  TK_FUNCTION Stored narrow(Value value) { return narrow_f16(value); }
};
struct Brain {
  using Stored = unsigned short;
  using Value = float;
  TK_FUNCTION Value widen(Stored value) { return widen_bf16(value); }
  TK_FUNCTION Stored narrow(Value value) { return narrow_bf16(value); }
};

template <Combine how, typename T> TK_FUNCTION T combined(T a, T b) {
  if (how == Combine::prod)
    return a * b;
  if (how == Combine::max) // NaN wins, as in the language
    return a != a || a > b ? a : b;
  if (how == Combine::min)
    return a != a || a < b ? a : b;
  return a + b;
}

template <typename T, Word count> struct alignas(count * sizeof(T)) Pack {
  T values[count];
};

/// Combines the blocks of all ranks in their order, so that all get the same bits.
template <typename Type, Combine how, Word count>
TK_FUNCTION void combine_units(const Call &call, const Move &move) {
  using Unit = Pack<typename Type::Stored, count>;
  const Rows to = rows_of(move, move.result, move.width);
  const Word units = static_cast<Word>(move.rows * (move.width / move.unit));
  const Word last = begin_of(block() + 1, units);
  for (Word i = begin_of(block(), units) + thread(); i < last; i += threads()) {
    typename Type::Value values[count];
    for (Word rank = 0; rank < call.ranks; ++rank) {
      const Rows from = rank == call.own
                            ? rows_of(move, move.from + rank * move.from_peer, move.from_pitch)
                            : rows_of(move, call.windows[call.own] + move.to + rank * move.to_peer,
                                      move.to_pitch);
      const Unit unit = *at<const Unit>(place(from, i));
#pragma unroll
      for (Word k = 0; k < count; ++k) {
        const typename Type::Value value = Type::widen(unit.values[k]);
        values[k] = rank == 0 ? value : combined<how>(values[k], value);
      }
    }
    Unit made;
#pragma unroll
    for (Word k = 0; k < count; ++k)
      made.values[k] = Type::narrow(values[k]);
    *at<Unit>(place(to, i)) = made;
  }
}

/// The unit is 16 bytes or an element.
template <typename Type, Combine how>
TK_FUNCTION void combine_blocks(const Call &call, const Move &move) {
  if (move.unit == 16)
    combine_units<Type, how, 16 / sizeof(typename Type::Stored)>(call, move);
  else
    combine_units<Type, how, 1>(call, move);
}

/// Waits for a flag of a peer; false: it does not come in time, which the host is told once.
TK_FUNCTION bool await(const Call &call, Signals &own, Address flag, Word peer, Word epoch) {
  constexpr Word turns_between_looks = 32;
  Size begin = 0;
  for (Word turn = 1; acquire(flag) != epoch; ++turn) {
    if (turn % turns_between_looks != 0)
      continue;
    if (acquire(address_of(own.failed)) != 0)
      return false;
    const Size now = nanoseconds();
    if (begin == 0)
      begin = now;
    if (acquire(address_of(own.gone[peer])) != 0 || now - begin > call.timeout) {
      release(address_of(own.failed), 1);
      release(call.failure, call.numbers[peer] + 1);
      return false;
    }
  }
  return true;
}

TK_FUNCTION Signals &signals_of(const Call &call, Word rank) {
  return *at<Signals>(call.windows[rank] + call.signals);
}

/// The threads of a thread block share the peers.
template <typename What> TK_FUNCTION void for_each_peer(const Call &call, What what) {
  for (Word peer = thread(); peer < call.ranks; peer += threads())
    if (peer != call.own)
      what(peer);
}

/// Stores this rank's blocks, and combines those of all.
template <typename Type, Combine how>
TK_FUNCTION void move_blocks(const Call &call, Signals &own, Word epoch) {
  for (Word i = 0; i < call.num_moves; ++i)
    send_blocks(call, call.moves[i]);
  meet(); // the release below is of all stores of the thread block
  for_each_peer(call, [&](Word peer) {
    release(address_of(signals_of(call, peer).arrived[block()][call.own]), epoch);
  });
  for (Word i = 0; i < call.num_moves; ++i)
    if (!call.moves[i].is_combined)
      keep_own_block(call, call.moves[i]);
  for_each_peer(call, [&](Word peer) {
    await(call, own, address_of(own.arrived[block()][peer]), peer, epoch);
  });
  meet();
  for (Word i = 0; i < call.num_moves; ++i) {
    const Move &move = call.moves[i];
    if (move.is_combined)
      combine_blocks<Type, how>(call, move);
    else if (move.result)
      take_blocks(call, move);
  }
}

/// Of tensors that are combined alike, and of such that are not combined.
template <typename Type, Combine how> TK_FUNCTION void exchange(const Call &call) {
  Signals &own = signals_of(call, call.own);
  const Word epoch = own.epoch + 1;
  for_each_peer(call, [&](Word peer) {
    release(address_of(signals_of(call, peer).ready[block()][call.own]), epoch);
  });
  bool is_lost = false;
  for_each_peer(call, [&](Word peer) {
    is_lost |= !await(call, own, address_of(own.ready[block()][peer]), peer, epoch);
  });
  if (!meet_any(is_lost))
    move_blocks<Type, how>(call, own, epoch);
  if (thread() == 0 && count_up(address_of(own.finished)) == blocks() - 1) {
    own.finished = 0;
    own.epoch = epoch;
  }
}

} // namespace tk::one_shot
