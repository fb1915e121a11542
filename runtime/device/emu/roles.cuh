// Warps of a block that do different things. Twin of ../roles.cuh.
#pragma once

namespace tk {

TK_DEVICE bool elect_one(Place place = {}) { return tk_emu_engine->elect_one(place); }

TK_DEVICE void named_barrier_sync(int id, int threads, Place place = {}) {
  tk_emu_engine->named_barrier(id, threads, true, place);
}
TK_DEVICE void named_barrier_arrive(int id, int threads, Place place = {}) {
  tk_emu_engine->named_barrier(id, threads, false, place);
}

template <int id, int threads, bool is_free = false> struct FirstThreads {
  static constexpr bool is_scratch_free = is_free;
  TK_DEVICE static void meet(Place place) { named_barrier_sync(id, threads, place); }
};

TK_DEVICE bool named_barrier_all(int id, int threads, bool x, Place place = {}) {
  return tk_emu_engine->named_barrier_all(id, threads, x, place);
}

template <int registers> TK_DEVICE void set_registers_more(Place place = {}) {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0,
                "a multiple of 8 from 24 to 256");
  tk_emu_engine->set_registers(registers, true, place);
}
template <int registers> TK_DEVICE void set_registers_less(Place place = {}) {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0,
                "a multiple of 8 from 24 to 256");
  tk_emu_engine->set_registers(registers, false, place);
}

} // namespace tk
