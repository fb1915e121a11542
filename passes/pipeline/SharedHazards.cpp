//===- SharedHazards.cpp - where barriers are needed ----------------------===//
//
// Walks the function in the order of execution and keeps, for what happened since the last
// barrier, the bytes that were read, the bytes that were written, and the bytes that copies in
// flight will write.
// 1. A load conflicts with written bytes; a store or copy with read and written bytes. A conflict
//    gets a barrier.
//    Stores to different stages, where both are constants, do not meet.
// 2. A copy in flight counts as written once it has been waited for: only then may it be read, and
//    only after a barrier, as each thread waits for its own copies. Which stage of a buffer is in
//    flight and which is read is the pipeline's business.
// 3. Bulk copies and what waits for their phases order themselves; a consumer's products and loads
//    read the stages all the same, so that other buffers may take their place only after a barrier.
//    A producer's program touches nothing else.
// 4. Where a parameter is overwritten in place, replicas of a tile read the elements that one
//    thread is about to write: a barrier stands between. So it does where a buffer is loaded twice:
//    of a row's two tiles the layouts may differ, and another thread may read what one writes.
// 5. A barrier of each warpgroup orders what happens to buffers of which each has its own part.
// 6. A loop's body follows what came before the loop and what the body itself left behind: walked
//    until that is stable.
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/SharedHazards.h"

#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuFiniteOps.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/pipeline/Rings.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

AllocSharedOp tk::sharedBufferOf(Value shared) {
  while (auto stage = shared.getDefiningOp<StageOp>())
    shared = stage.getSource();
  return shared.getDefiningOp<AllocSharedOp>();
}

namespace {

/// Is `shared` a buffer, or what a team has of one?
bool isOwnBuffer(Value shared) {
  auto part = shared.getDefiningOp<StageOp>();
  bool isOfTeam = part && part.getStage().getDefiningOp<OfWarpgroupOp>();
  bool isInStage = part && isBuffer(sharedBufferOf(shared), BufferUse::InStages);
  return (isOfTeam || isInStage ? part.getSource() : shared).getDefiningOp<AllocSharedOp>() !=
         nullptr;
}

/// Which stages of its buffer a value is, as bits: all where that is not one constant.
uint64_t slotsOf(Value shared) {
  auto stage = shared.getDefiningOp<StageOp>();
  APInt slot;
  if (!stage || !isOwnBuffer(stage.getSource()) ||
      !matchPattern(stage.getStage(), m_ConstantInt(&slot)) || slot.uge(64))
    return ~uint64_t(0);
  return uint64_t(1) << slot.getZExtValue();
}

/// Do several threads hold each element of a value?
bool isReplicated(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile)
    return true;
  auto layout = cast<LayoutAttr>(tile.getEncoding());
  return layout.getReplicatedLaneMask() != 0 || layout.getReplicatedWarpMask() != 0;
}

/// Sets of buffers, by number.
struct State {
  llvm::SmallBitVector reads, writes, inFlight;
  SmallVector<uint64_t> slots; ///< by buffer: its stages among the writes, as bits
  bool readsReplaced = false;  ///< of what may be the parameter that is overwritten

  explicit State(unsigned buffers)
      : reads(buffers), writes(buffers), inFlight(buffers), slots(buffers, 0) {}
  void merge(const State &other) {
    reads |= other.reads;
    writes |= other.writes;
    inFlight |= other.inFlight;
    for (auto [mine, others] : llvm::zip_equal(slots, other.slots))
      mine |= others;
    readsReplaced |= other.readsReplaced;
  }
  /// What happened before a barrier to `buffers` conflicts with nothing after it.
  void meet(const llvm::SmallBitVector &buffers) {
    reads.reset(buffers);
    writes.reset(buffers);
    for (unsigned buffer : buffers.set_bits())
      if (!inFlight[buffer])
        slots[buffer] = 0;
  }
  bool operator==(const State &) const = default;
};

class BarrierInsertion {
public:
  explicit BarrierInsertion(FuncOp function);
  unsigned run();

private:
  void visit(Block &block, State &state);
  void visit(Operation *op, State &state);
  void visitLoop(scf::ForOp loop, State &state);
  unsigned numberOf(Value shared) { return numbers.lookup(sharedBufferOf(shared)); }
  bool overlaps(unsigned buffer, const llvm::SmallBitVector &others) const {
    return others.anyCommon(overlap[buffer]);
  }
  void barrier(Operation *before, State &state);
  static void meet(State &state) {
    state.meet(llvm::SmallBitVector(state.reads.size(), true));
    state.readsReplaced = false;
  }

  FuncOp function;
  DenseMap<Operation *, unsigned> numbers;
  SmallVector<llvm::SmallBitVector> overlap; ///< buffers that share bytes with each buffer
  /// Buffers of which each warpgroup has a part that the others do not touch.
  llvm::SmallBitVector apart;
  unsigned numBarriers = 0;
  bool loadsTwice = false; ///< in place: two tiles of one buffer
};

} // namespace

BarrierInsertion::BarrierInsertion(FuncOp function) : function(function) {
  SmallVector<std::pair<int64_t, int64_t>> ranges;
  function.walk([&](AllocSharedOp alloc) {
    numbers[alloc] = ranges.size();
    int64_t begin = alloc.getOffset().value_or(0);
    ranges.push_back({begin, begin + alloc.getType().getSizeInBytes()});
  });
  apart.resize(ranges.size());
  llvm::SmallBitVector together(ranges.size());
  function.walk([&](BulkStoreOp store) {
    (store.getWarpgroupAxis() ? apart : together).set(numberOf(store.getSource()));
  });
  // Each warpgroup puts its results where it had its rows.
  function.walk([&](AllocSharedOp alloc) {
    if (isBuffer(alloc, BufferUse::HoldsResults))
      apart.set(numbers[alloc]);
  });
  apart.reset(together);
  for (auto &[begin, end] : ranges) {
    llvm::SmallBitVector &row = overlap.emplace_back(ranges.size());
    for (auto [other, range] : llvm::enumerate(ranges))
      row[other] = range.first < end && begin < range.second;
  }
}

static bool loadsAnyTwice(FuncOp function) {
  llvm::SmallDenseSet<Value> loaded;
  return function
      .walk([&](gpu::LoadOp load) {
        const bool isFirst =
            !isa<RankedTensorType>(load.getType()) || loaded.insert(load.getBuffer()).second;
        return isFirst ? WalkResult::advance() : WalkResult::interrupt();
      })
      .wasInterrupted();
}

unsigned BarrierInsertion::run() {
  loadsTwice = getPlan(function).inPlace && loadsAnyTwice(function);
  State state(numbers.size());
  visit(*function.getBlock(), state);
  return numBarriers;
}

void BarrierInsertion::barrier(Operation *before, State &state) {
  OpBuilder builder(before);
  BarrierOp::create(builder, before->getLoc());
  ++numBarriers;
  meet(state);
}

void BarrierInsertion::visit(Block &block, State &state) {
  for (Operation &op : llvm::make_early_inc_range(block))
    visit(&op, state);
}

void BarrierInsertion::visitLoop(scf::ForOp loop, State &state) {
  State entry = state, last = entry;
  do {
    last = entry;
    State body = entry;
    visit(*loop.getBody(), body);
    entry.merge(body);
    state.merge(body);
  } while (!(entry == last));
}

void BarrierInsertion::visit(Operation *op, State &state) {
  auto write = [&](Value target, llvm::SmallBitVector &set) {
    const unsigned buffer = numberOf(target);
    const uint64_t slots = slotsOf(target);
    llvm::SmallBitVector written = state.writes;
    if ((state.slots[buffer] & slots) == 0)
      written.reset(buffer);
    if (overlaps(buffer, state.reads) || overlaps(buffer, written))
      barrier(op, state);
    set.set(buffer);
    state.slots[buffer] |= slots;
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case<LocalLoadOp>([&](LocalLoadOp load) {
        unsigned buffer = numberOf(load.getSource());
        if (overlaps(buffer, state.writes))
          barrier(op, state);
        state.reads.set(buffer);
      })
      .Case<WarpgroupDotOp>([&](WarpgroupDotOp dot) {
        for (Value operand : {dot.getA(), Value(dot.getB())})
          if (isa<SharedType>(operand.getType()))
            state.reads.set(numberOf(operand));
      })
      .Case<WarpRolesOp>([&](WarpRolesOp roles) { visit(roles.getConsumer().front(), state); })
      .Case<LocalStoreOp>([&](LocalStoreOp store) { write(store.getTarget(), state.writes); })
      .Case<CopyAsyncOp>([&](CopyAsyncOp copy) { write(copy.getTarget(), state.inFlight); })
      .Case<AsyncWaitOp>([&](AsyncWaitOp wait) {
        state.writes |= state.inFlight;
        if (wait.getPending() == 0)
          state.inFlight.reset();
      })
      .Case<gpu::LoadOp>([&](gpu::LoadOp) { state.readsReplaced |= getPlan(function).inPlace; })
      .Case<gpu::StoreOp>([&](gpu::StoreOp store) {
        if (state.readsReplaced && (loadsTwice || isReplicated(store.getValue().getType())))
          barrier(op, state);
      })
      .Case<BarrierOp>([&](BarrierOp barrier) {
        if (!barrier.getWarpgroup())
          return meet(state);
        state.meet(apart);
      })
      .Case<gpu::ReduceOp>([&](gpu::ReduceOp reduce) {
        // The consumers meet behind what they put there for each other.
        if (hasOwnExchange(reduce, joinKindOf(reduce, function, joinedBits(reduce))))
          meet(state);
      })
      .Case<AllFiniteOp>([&](AllFiniteOp) { meet(state); })
      .Case<NoneNegativeOp>([&](NoneNegativeOp) { state.meet(apart); })
      .Case<scf::ForOp>([&](scf::ForOp loop) { visitLoop(loop, state); })
      .Default([&](Operation *other) {
        // Each region of a branch follows the same past; without an else that past remains.
        State after = state;
        for (Region &region : other->getRegions())
          for (Block &block : region) {
            State branch = state;
            visit(block, branch);
            after.merge(branch);
          }
        state = after;
      });
}

unsigned tk::insertBarriers(FuncOp function) { return BarrierInsertion(function).run(); }
