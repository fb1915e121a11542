//===- Cluster.h - a cluster of blocks, run as fibers ------------*- C++ -*-===//
#ifndef TK_COMPILER_CODEGEN_EMU_CLUSTER_H
#define TK_COMPILER_CODEGEN_EMU_CLUSTER_H

#include "compiler/codegen/emu/ClusterState.h"
#include "compiler/codegen/emu/GlobalMemory.h"
#include "compiler/codegen/emu/Timing.h"

#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace tk::emu {

/// What the blocks of a launch have in common.
struct LaunchShape {
  unsigned threads = 0;            ///< a block
  unsigned blocks = 1;             ///< that share a multiprocessor's registers
  unsigned cluster[3] = {1, 1, 1}; ///< blocks
  int grid[3] = {1, 1, 1};         ///< blocks
  size_t sharedBytes = 0;          ///< a block
};

/// Runs the clusters of one launch, one after the other, and is what their kernels call. A block
/// outside clusters is one of its own.
class Cluster final : public Engine {
public:
  using Kernel = void (*)(const void *const *arguments);

  Cluster(const LaunchShape &shape, Timing timing, Order &order, Sites &sites, GlobalMemory &global,
          const std::vector<TensorBox> &maps);

  /// Runs the cluster whose first block is given; returns what it did wrong, if anything.
  std::optional<Fault> run(int x, int y, int z, Kernel kernel, const void *const *arguments);

  void *shared_memory() override;
  void read(void *to, const void *from, int bytes, int alignment, Place place) override;
  void write(void *to, const void *from, int bytes, int alignment, Place place) override;
  void add_shared(void *to, unsigned value, Place place) override;
  void barrier(Place place) override;
  void sync_warp(Place place) override;
  unsigned long long shuffle_xor(unsigned long long bits, int mask, Place place) override;
  unsigned long long broadcast(unsigned long long bits, Place place) override;
  bool elect_one(Place place) override;
  void load_matrix(void *y, const void *row, int words, bool transposed, Place place) override;
  void store_matrix(void *row, const void *x, int words, bool transposed, Place place) override;
  void multiply(Products type, void *c, const void *a, const void *b, Place place) override;
  void multiply_f64(double *c, const double *a, const double *b, Place place) override;
  void copy_async(void *to, const void *from, int bytes, bool mask, Place place) override;
  void async_commit(Place place) override;
  void async_wait(int pending, Place place) override;

  void phase_init(void *barrier, int arrivals, Place place) override;
  void phase_init_fence(Place place) override;
  void phase_arrive(void *barrier, int bytes, Place place) override;
  void phase_arrive_at(void *barrier, int rank, Place place) override;
  void phase_wait(void *barrier, int parity, Place place) override;
  void clear_notes(void *notes, Place place) override;
  void note(void *notes, Place place) override;
  bool has_notes(const void *notes, Place place) override;
  void send_to(void *to, const void *from, int bytes, void *barrier, int rank,
               Place place) override;

  void bulk_load(void *to, const void *map, int axes, const int *at, void *barrier, unsigned mask,
                 Place place) override;
  void bulk_load_windows(void *to, const void *map, int axes, const int *at, const int *by,
                         void *barrier, Place place) override;
  void bulk_store(const void *map, int axes, const int *at, const void *from, bool add,
                  Place place) override;
  void bulk_copy(void *to, const void *from, int bytes, void *barrier, Place place) override;
  void bulk_copy_out(void *to, const void *from, int bytes, bool add, Place place) override;
  void bulk_commit(Place place) override;
  void bulk_wait(int pending, bool readOnly, Place place) override;
  void fence_async_proxy(Place place) override;

  void named_barrier(int id, int threads, bool wait, Place place) override;
  bool named_barrier_all(int id, int threads, bool x, Place place) override;
  void set_registers(int count, bool more, Place place) override;

  void cluster_arrive(bool orders, Place place) override;
  void cluster_wait(Place place) override;
  void *map_shared_rank(void *address, int rank, Place place) override;
  int draw_from(void *counter, int count, Place place) override;
  int count_block(void *counter, int count, Place place) override;

  void warpgroup_fence(Place place) override;
  void warpgroup_mma(Products type, int n, bool transposeA, bool transposeB, void *acc,
                     const void *aRegisters, unsigned long long a, unsigned long long b,
                     bool accumulate, Place place) override;
  void warpgroup_commit(Place place) override;
  void warpgroup_wait(int pending, Place place) override;

private:
  static const char *name(Waiting what);

  static void enter(void *cluster);
  void beginBlocks();
  Thread &me() { return threads[current]; }
  Block &myBlock() { return *blocks[me().block]; }
  Access access(Place place) { return order.access(current, sites.number(place)); }
  Viewer viewer() { return order.viewer(current); }
  bool byChance() {
    return timing.kind == Timing::Kind::early ||
           (timing.kind == Timing::Kind::random && (random() & 1));
  }

  void makeReady(Agent thread);
  /// Suspends the running thread until another makes it ready.
  void wait(Waiting what, Place place);
  /// Some ready thread; where there is none lets asynchronous effects happen; or the scheduler.
  const Context &chooseNext();
  /// Suspends the running thread and resumes what is next.
  void resumeNext(Context &from);
  void setCurrent(Agent thread);
  [[noreturn]] void fail(Place place, const std::string &text);
  void checkExit();
  std::string waitText(const Thread &thread) const;
  std::string deadlockText() const;
  std::string threadsText(const std::vector<Agent> &threads) const;

  Warp &myWarp() { return warps[me().block * warpsPerBlock + me().index / warpSize]; }
  Agent firstOfWarp() const {
    return static_cast<Agent>(current - threads[current].index % warpSize);
  }
  /// Returns the warp once all lanes are here: to the last one, which is to do the work; nullptr
  /// to the others, after it is done.
  Warp *meet(Waiting what, int detail, Place place);
  void finish(Warp &warp);
  void requireFullWarp(const Warp &warp, const char *what, Place place);

  /// The block and offset of an address in shared memory; fails where it is not in this cluster.
  Block &sharedAt(const void *address, int64_t &offset, Place place);
  /// An offset in the running thread's own block; fails where the address is elsewhere.
  int64_t ownOffset(const void *address, const char *what, Place place);

  unsigned phaseAt(Block &block, int64_t offset, Place place);
  Notes &notesAt(const void *address, Place place);
  void arrive(unsigned block, unsigned barrier, int bytes, Place place);
  void endPhaseIfDone(unsigned block, unsigned barrier);

  const TensorBox &boxOf(const void *map, int axes, const int *at, Place place);
  void loadBox(const TensorBox &box, void *to, const int *at, const int *by, void *barrier,
               unsigned mask, Place place);
  void beginLoad(unsigned block, int64_t to, std::vector<unsigned char> data, unsigned barrier,
                 int alignment, uint8_t swizzle, Place place);
  bool completeOneLoad();
  void completeLoad(size_t index);
  void beginStore(BulkStore store, Place place);
  void readStore(Thread &thread, BulkStore &store);
  void writeStore(BulkStore &store, Access mine, const Viewer &viewer);

  Warpgroup &myWarpgroup() { return myBlock().warpgroups[me().index / warpgroupSize]; }
  void beginProduct(Warpgroup &group, Place place);
  size_t takeAccumulator(Warpgroup &group, void *registers, size_t bytes);
  void computeProduct(Warpgroup &group, Product &product);
  void completeProduct(Warpgroup &group, Product &product);

  LaunchShape shape;
  unsigned numBlocks, warpsPerBlock;
  Timing timing;
  std::mt19937_64 random;
  Order &order;
  Sites &sites;
  GlobalMemory &global;
  const std::vector<TensorBox> &maps;
  Stacks stacks;

  Kernel kernel = nullptr;
  const void *const *arguments = nullptr;
  int firstBlock[3] = {0, 0, 0};
  Context scheduler;
  Agent current = 0;
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<Agent> ready; ///< a queue, from `readyBegin` on
  size_t readyBegin = 0;
  std::vector<BulkLoad> loads; ///< in flight
  unsigned atCluster = 0,
           clusterPhase = 0; ///< arrivals at the cluster's barrier, how often it ended
  bool clusterOrders = true; ///< none of these arrivals was relaxed
  unsigned electedLane = 0;
  unsigned live = 0;
  std::optional<Fault> fault;
};

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_CLUSTER_H
