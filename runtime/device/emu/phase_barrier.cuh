// Barriers with phases. Twin of ../phase_barrier.cuh; the engine keeps their state.
#pragma once

namespace tk {

struct alignas(8) PhaseBarrier {
  u64 state;
};

TK_DEVICE void phase_init(PhaseBarrier *barrier, int arrivals, Place place = {}) {
  tk_emu_engine->phase_init(barrier, arrivals, place);
}
TK_DEVICE void phase_init_fence(Place place = {}) { tk_emu_engine->phase_init_fence(place); }
TK_DEVICE void phase_expect(PhaseBarrier *barrier, int bytes, Place place = {}) {
  tk_emu_engine->phase_arrive(barrier, bytes, place);
}
TK_DEVICE void phase_arrive(PhaseBarrier *barrier, Place place = {}) {
  tk_emu_engine->phase_arrive(barrier, 0, place);
}
TK_DEVICE void phase_arrive_before(PhaseBarrier *barrier, int lane, float &, Place place = {}) {
  if (lane == 0)
    phase_arrive(barrier, place);
}
TK_DEVICE void phase_arrive_at(PhaseBarrier *barrier, int rank, Place place = {}) {
  tk_emu_engine->phase_arrive_at(barrier, rank, place);
}
template <int n, int id = 0> TK_DEVICE PhaseBarrier *phases_apart(u8 *place) {
  return reinterpret_cast<PhaseBarrier *>(place);
}
TK_DEVICE void clear_notes(PhaseBarrier *notes, Place place = {}) {
  tk_emu_engine->clear_notes(notes, place);
}
TK_DEVICE void note(PhaseBarrier *notes, Place place = {}) { tk_emu_engine->note(notes, place); }
TK_DEVICE bool has_notes(const PhaseBarrier *notes, Place place = {}) {
  return tk_emu_engine->has_notes(notes, place);
}
TK_DEVICE void phase_wait(PhaseBarrier *barrier, int parity, Place place = {}) {
  tk_emu_engine->phase_wait(barrier, parity, place);
}

} // namespace tk
