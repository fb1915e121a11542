//===- Block.h - a block of threads, run as fibers ---------------*- C++ -*-===//
#ifndef TK_COMPILER_TARGET_EMU_BLOCK_H
#define TK_COMPILER_TARGET_EMU_BLOCK_H

#include "compiler/target/emu/Fiber.h"
#include "compiler/target/emu/Fragments.h"
#include "compiler/target/emu/GlobalMemory.h"
#include "compiler/target/emu/SharedMemory.h"
#include "compiler/target/emu/Timing.h"

#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace tk::emu {

/// Runs the blocks of one launch, one after the other, and is what their kernels call.
class Block final : public Engine {
public:
  using Kernel = void (*)(const void *const *arguments);

  Block(unsigned threads, size_t sharedBytes, Timing timing, Order &order, Sites &sites,
        GlobalMemory &global);

  /// Runs one block; returns what it did wrong, if anything.
  std::optional<Fault> run(int x, int y, int z, Kernel kernel, const void *const *arguments);

  void *shared_memory() override;
  void read(void *to, const void *from, int bytes, int alignment, Place place) override;
  void write(void *to, const void *from, int bytes, int alignment, Place place) override;
  void barrier(Place place) override;
  unsigned long long shuffle_xor(unsigned long long bits, int mask, Place place) override;
  void load_matrix(void *y, const void *row, int words, bool transposed, Place place) override;
  void multiply(Products type, void *c, const void *a, const void *b, Place place) override;
  void copy_async(void *to, const void *from, int bytes, bool mask, Place place) override;
  void async_commit(Place place) override;
  void async_wait(int pending, Place place) override;

private:
  /// What the lanes of a warp, or the threads of a block, do together.
  enum class Together : uint8_t { nothing, barrier, shuffle, loadMatrix, multiply };
  static const char *name(Together what);

  /// An asynchronous copy that its thread has not waited for.
  struct Copy {
    void *to;
    const void *from; ///< in this process; nullptr: zeros
    int bytes;
    bool applied;
    unsigned group;
    Place place;
  };
  struct Thread {
    Context context;
    Together waitsFor = Together::nothing;
    bool exited = false;
    Place place{"", 0};
    unsigned long long result = 0;
    std::vector<Copy> copies;
    unsigned openGroup = 0; ///< that of copies to come
  };
  /// A collective of a warp that some of its lanes have reached.
  struct Warp {
    Together what = Together::nothing;
    int detail = 0;
    Place place{"", 0};
    unsigned first = 0; ///< the thread that came first
    unsigned arrived = 0;
    unsigned lanes = 0; ///< how many there are
    unsigned long long bits[warpSize];
    void *to[warpSize];
    const void *from[warpSize];
    const void *second[warpSize];
  };

  static void enter(void *block);
  void makeReady(unsigned index);
  /// Suspends the running thread until another makes it ready.
  void wait(Together what, Place place);
  /// Resumes some ready thread, or the scheduler if there is none.
  void resumeNext(Context &from);
  [[noreturn]] void fail(Place place, const std::string &text);
  [[noreturn]] void leave();
  std::string deadlockText() const;
  std::string threadsText(const std::vector<unsigned> &indices) const;

  /// Returns the warp once all lanes are here: to the last one, which is to do the work; nullptr
  /// to the others, after it is done.
  Warp *meet(Together what, int detail, Place place);
  void finish(Warp &warp);
  Access access(Place place) {
    return order.access(static_cast<unsigned>(thread), sites.number(place));
  }

  unsigned numThreads;
  size_t sharedBytes;
  Timing timing;
  std::mt19937_64 random;
  Order &order;
  Sites &sites;
  GlobalMemory &global;
  SharedMemory shared;
  Stacks stacks;

  Kernel kernel = nullptr;
  const void *const *arguments = nullptr;
  Context scheduler;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<unsigned> ready; ///< a queue, from `readyBegin` on
  size_t readyBegin = 0;
  unsigned atBarrier = 0, live = 0;
  std::optional<Fault> fault;
};

} // namespace tk::emu

#endif // TK_COMPILER_TARGET_EMU_BLOCK_H
