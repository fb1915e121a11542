// Barriers with phases in shared memory (mbarrier). A phase ends when as many arrivals as the
// barrier was made for have come and no announced byte is outstanding; then the next one begins.
// Phases are numbered by parity, 0 first.
#pragma once

namespace tk {

struct alignas(8) PhaseBarrier {
  u64 state;
};

// By one thread, before any other use; then phase_init_fence() and a barrier of all who use it.
TK_DEVICE void phase_init(PhaseBarrier *barrier, int arrivals, Place = {}) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}
// Makes the initialisation visible to the asynchronous proxy and to the cluster.
TK_DEVICE void phase_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and announces bytes that bulk copies will deliver in this phase.
TK_DEVICE void phase_expect(PhaseBarrier *barrier, int bytes, Place = {}) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
TK_DEVICE void phase_arrive(PhaseBarrier *barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
// Lane 0 arrives, and computes with `value` after that alone: the machine's result of the arrival takes
// part in it, with no bit of its own. `lane` is the thread's. The only rank along z of a cluster is 0,
// which ptxas does not know.
TK_DEVICE void phase_arrive_before(PhaseBarrier *barrier, int lane, float &value) {
  u64 state = 0;
  u32 zero;
  if (lane == 0)
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];"
                 : "=l"(state)
                 : "r"(shared_address(barrier))
                 : "memory");
  asm("mov.u32 %0, %%cluster_ctaid.z;" : "=r"(zero));
  value = __int_as_float(__float_as_int(value) ^ ((int)(u32)state & (int)zero));
}
// Arrives at the same barrier of block `rank` of the cluster. What this thread wrote to memory is not
// ordered by that for threads of the other block; that this block is done with a buffer is.
TK_DEVICE void phase_arrive_at(PhaseBarrier *barrier, int rank) {
  asm volatile("{\n\t"
               ".reg .b32 remote;\n\t"
               "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
               "mbarrier.arrive.shared::cluster.b64 _, [remote];\n\t"
               "}" ::"r"(shared_address(barrier)),
               "r"(rank)
               : "memory");
}

// `n` that a block has apart from its other shared memory, not at `place`: that begins elsewhere
// than at 0 then. Where it begins there, ptxas computes places in rings in other registers than
// uniform ones, and leaves stages later by that (a window of attention without maxima: 5 %).
// Each `id` has barriers of its own.
template <int n, int id = 0> TK_DEVICE PhaseBarrier *phases_apart(u8 *place) {
  __shared__ PhaseBarrier phases[n];
  return phases;
}
// A word beside barriers, for what any thread of the block may note, several at once. Cleared as
// barriers are initialised; what was noted before an arrival is seen by those who waited for it.
TK_DEVICE void clear_notes(PhaseBarrier *notes) { notes->state = 0; }
TK_DEVICE void note(PhaseBarrier *notes) {
  asm volatile("red.relaxed.cta.shared::cta.or.b32 [%0], 1;" ::"r"(shared_address(notes))
               : "memory");
}
TK_DEVICE bool has_notes(const PhaseBarrier *notes) {
  u32 noted;
  asm volatile("atom.relaxed.cta.shared::cta.or.b32 %0, [%1], 0;"
               : "=r"(noted)
               : "r"(shared_address(notes))
               : "memory");
  return noted != 0;
}

// Until the phase of that parity has ended. The phase before the first one, of parity 1, has.
TK_DEVICE void phase_wait(PhaseBarrier *barrier, int parity, Place = {}) {
  asm volatile("{\n\t"
               ".reg .pred ended;\n\t"
               "again:\n\t"
               "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n\t"
               "@ended bra done;\n\t"
               "bra again;\n\t"
               "done:\n\t"
               "}" ::"r"(shared_address(barrier)),
               "r"(parity)
               : "memory");
}

} // namespace tk
