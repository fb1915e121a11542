//===- ClusterState.h - what threads and blocks have under way ---*- C++ -*-===//
#ifndef TK_COMPILER_CODEGEN_EMU_CLUSTERSTATE_H
#define TK_COMPILER_CODEGEN_EMU_CLUSTERSTATE_H

#include "compiler/codegen/emu/Fiber.h"
#include "compiler/codegen/emu/Fragments.h"
#include "compiler/codegen/emu/PhaseState.h"
#include "compiler/codegen/emu/SharedMemory.h"
#include "compiler/codegen/emu/TensorBox.h"
#include "compiler/codegen/emu/WarpgroupMath.h"

#include <deque>
#include <vector>

namespace tk::emu {

inline constexpr unsigned warpgroupSize = 128;
inline constexpr unsigned numNamedBarriers = 16;

/// What a thread waits for.
enum class Waiting : uint8_t {
  nothing,
  barrier,
  warp,
  shuffle,
  broadcast,
  election,
  loadMatrix,
  storeMatrix,
  multiply,
  namedBarrier,
  cluster,
  phase,
  registers,
  product
};
/// An asynchronous copy that its thread has not waited for.
struct Copy {
  int64_t to;
  const void *from; ///< in this process; nullptr: zeros
  int bytes;
  bool applied;
  unsigned group;
  Place place;
};
/// A bulk copy out of shared memory.
struct BulkStore {
  int64_t from = 0;
  int bytes = 0;
  const TensorBox *box = nullptr; ///< where it is a run of bytes, `to` instead
  int at[TensorBox::maxAxes] = {};
  void *to = nullptr;
  bool add = false;
  bool read = false, written = false;
  std::vector<unsigned char> data; ///< once it is read
  unsigned group = 0;
  Place place{"", 0};
};
struct Thread {
  Context context;
  unsigned block = 0; ///< rank in the cluster
  unsigned index = 0; ///< in its block
  Waiting waitsFor = Waiting::nothing;
  bool exited = false;
  Place place{"", 0};
  unsigned long long result = 0;
  std::vector<Copy> copies;
  unsigned openGroup = 0; ///< that of copies to come
  std::vector<BulkStore> stores;
  unsigned openStores = 0; ///< the group of bulk stores to come
  int phaseParity = 0;     ///< waits for this one
  unsigned phaseBarrier = 0;
  int namedBarrier = 0;
  bool allAgree = false; ///< what the named barrier said that it last left
  unsigned registers = 0;
  bool registersFenced = false; ///< has executed warpgroup_fence
  unsigned openProducts = 0;    ///< the group of products to come
  bool arrivedAtCluster = false;
  unsigned clusterPhase = 0;         ///< when it arrived
  std::vector<unsigned> initialised; ///< barriers whose initialisation is not fenced yet
};
/// A collective of a warp that some of its lanes have reached.
struct Warp {
  Waiting what = Waiting::nothing;
  int detail = 0;
  Place place{"", 0};
  Agent first = 0; ///< the thread that came first
  unsigned arrived = 0;
  unsigned lanes = 0; ///< how many there are
  unsigned long long bits[warpSize];
  void *to[warpSize];
  const void *from[warpSize];
  const void *second[warpSize];
};
struct NamedBarrier {
  unsigned expected = 0, arrived = 0;
  bool all = true; ///< of what its threads ask for together
  Clock clock;
  Place place{"", 0};
  Agent first = 0;
};
/// Registers of a thread that products in flight write: what they will hold.
struct Accumulator {
  unsigned char *registers = nullptr;
  std::vector<unsigned char> value;
  unsigned pending = 0; ///< products in flight
};
struct Product {
  ProductShape shape;
  std::vector<int64_t> aChunks, bChunks; ///< what it reads
  std::vector<float> aValues;            ///< where A is in registers
  bool accumulate = false;
  bool applied = false;
  std::vector<size_t> accumulators; ///< by thread
  unsigned group = 0;
  Clock clock; ///< what all of the warps knew when it began
  uint16_t site = 0;
  Place place{"", 0};
};
/// A product that some threads of its warpgroup have reached, and those in flight.
struct Warpgroup {
  unsigned arrived = 0;
  ProductShape shape;
  unsigned long long a = 0, b = 0;
  bool accumulate = false;
  Place place{"", 0};
  Agent first = 0;
  void *acc[warpgroupSize];
  const void *aRegisters[warpgroupSize];
  std::deque<Product> products;
  std::vector<Accumulator> accumulators;
  std::vector<size_t> freeAccumulators;
  uint32_t completeStamp = 0;
};
/// Where any thread of a block may note that something is so; in what order with others' questions
/// is not followed.
struct Notes {
  int64_t offset;
  bool isNoted;
};

struct Block {
  explicit Block(const Order &order, const Sites &sites) : shared(order, sites) {}
  SharedMemory shared;
  unsigned atBarrier = 0, live = 0;
  NamedBarrier named[numNamedBarriers];
  std::vector<PhaseState> phases;
  std::vector<Notes> notes;
  std::vector<Warpgroup> warpgroups;
  unsigned freeRegisters = 0;
};
/// A bulk load whose bytes have not arrived in one of its blocks.
struct BulkLoad {
  unsigned block;
  int64_t to;
  std::vector<unsigned char> data; ///< as it will be in shared memory
  unsigned barrier;
  Place place;
};

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_CLUSTERSTATE_H
