//===- ClusterBulk.cpp - copies by the bulk copy engine -------------------===//
//
// A load reads global memory when it begins, and its bytes are in flight in shared memory until
// they arrive: at once, by chance, or when no thread can go on without them. A store reads shared
// memory when it begins or when its thread waits for that, and writes global memory when it begins
// or when its thread waits for that or ends.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/emu/Cluster.h"

#include <algorithm>

namespace tk::emu {

static constexpr int mapAlignment = 128, runAlignment = 16;

const TensorBox &Cluster::boxOf(const void *map, int axes, const int *at, Place place) {
  const uint64_t *words = static_cast<const uint64_t *>(map);
  if (words[0] != TensorBox::mark || words[1] >= maps.size())
    fail(place, "uses a tensor map that is not one of its parameters");
  const TensorBox &box = maps[words[1]];
  if (box.empty)
    fail(place, "uses the tensor map of a tensor without elements");
  if (static_cast<unsigned>(axes) != box.axes)
    fail(place, "gives " + std::to_string(axes) + " coordinates to a tensor map of " +
                    std::to_string(box.axes) + " axes");
  if (box.swizzle && box.rowBytes() != int64_t{16} << box.swizzle)
    fail(place, "moves rows of " + std::to_string(box.rowBytes()) + " bytes in a swizzle of " +
                    std::to_string(16 << box.swizzle) +
                    " bytes, which the emulator does not model");
  // What an H200 answers to such a coordinate is an illegal instruction.
  if (at[0] * static_cast<int64_t>(size_of(box.dtype)) % runAlignment != 0)
    fail(place, "begins a box at element " + std::to_string(at[0]) +
                    " of its innermost axis, not at a multiple of 16 bytes");
  return box;
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

void Cluster::beginLoad(unsigned target, int64_t to, std::vector<unsigned char> data,
                        unsigned barrier, int alignment, uint8_t swizzle, Place place) {
  Block &block = *blocks[target];
  if (!block.phases[barrier].fenced)
    fail(place, "begins a bulk copy for a phase barrier with no phase_init_fence after its "
                "initialisation");
  if (!block.shared.beginWrite(to, static_cast<int>(data.size()), alignment, true, swizzle,
                               access(place), viewer()))
    fail(place, block.shared.complaint);
  loads.push_back({target, to, std::move(data), barrier, place});
}

void Cluster::completeLoad(size_t index) {
  BulkLoad load = std::move(loads[index]);
  loads.erase(loads.begin() + static_cast<std::ptrdiff_t>(index));
  Block &block = *blocks[load.block];
  const auto bytes = static_cast<int>(load.data.size());
  const Agent agent = order.barrierAgent(load.block, load.barrier);
  const Access mine{order.next(), agent, sites.number(load.place)};
  block.shared.apply(load.to, load.data.data(), bytes);
  block.shared.endWrite(load.to, bytes, mine);
  PhaseState &state = block.phases[load.barrier];
  state.bytes -= bytes;
  order.show(agent, mine.stamp, state.gathering);
  endPhaseIfDone(load.block, load.barrier);
}

bool Cluster::completeOneLoad() {
  if (loads.empty())
    return false;
  completeLoad(timing.kind == Timing::Kind::random ? random() % loads.size() : 0);
  return true;
}

void Cluster::bulk_load(void *to, const void *map, int axes, const int *at, void *barrier,
                        unsigned mask, Place place) {
  const TensorBox &box = boxOf(map, axes, at, place);
  if (box.hasPlaces)
    fail(place, "copies a plain box by a tensor map of windows");
  loadBox(box, to, at, nullptr, barrier, mask, place);
}

void Cluster::bulk_load_windows(void *to, const void *map, int axes, const int *at, const int *by,
                                void *barrier, Place place) {
  const TensorBox &box = boxOf(map, axes, at, place);
  if (!box.hasPlaces)
    fail(place, "copies windows by a tensor map of plain boxes");
  const int most = axes == 3 ? 65535 : axes == 4 ? 255 : 31;
  for (int axis = 0; axis + 2 < axes; ++axis)
    if (by[axis] < 0 || by[axis] > most)
      fail(place, "reads windows at a distance of " + std::to_string(by[axis]) +
                      " elements, of which there may be 0 to " + std::to_string(most));
  if (!box.isPlace(at))
    fail(place, "begins to copy windows where there is no place of one");
  loadBox(box, to, at, by, barrier, 0, place);
}

void Cluster::loadBox(const TensorBox &box, void *to, const int *at, const int *by, void *barrier,
                      unsigned mask, Place place) {
  const int64_t offset = ownOffset(to, "copies to", place);
  const int64_t barrierOffset = ownOffset(barrier, "copies for a barrier at", place);
  std::vector<unsigned char> data;
  if (!box.load(global, at, by, offset, access(place), viewer(), data))
    fail(place, global.complaint);
  if (mask == 0)
    mask = 1u << me().block;
  if (mask >> numBlocks)
    fail(place,
         "copies to blocks that the cluster of " + std::to_string(numBlocks) + " does not have");
  for (unsigned target = 0; target < numBlocks; ++target)
    if (mask >> target & 1) {
      if (blocks[target]->live == 0)
        fail(place,
             "copies to block " + std::to_string(target) + " of the cluster, which has ended");
      const unsigned phase = phaseAt(*blocks[target], barrierOffset, place);
      beginLoad(target, offset, data, phase, mapAlignment, static_cast<uint8_t>(box.swizzle),
                place);
      if (timing.kind == Timing::Kind::early)
        completeLoad(loads.size() - 1);
    }
}

void Cluster::bulk_copy(void *to, const void *from, int bytes, void *barrier, Place place) {
  const int64_t offset = ownOffset(to, "copies to", place);
  const int64_t barrierOffset = ownOffset(barrier, "copies for a barrier at", place);
  if (bytes <= 0 || bytes % runAlignment != 0)
    fail(place, "copies " + std::to_string(bytes) + " bytes, not a multiple of 16");
  if (!GlobalMemory::holds(from))
    fail(place, "copies from an address that is not in global memory");
  const auto *source = static_cast<const unsigned char *>(
      global.locateRead(from, bytes, runAlignment, access(place), viewer()));
  if (!source)
    fail(place, global.complaint);
  beginLoad(me().block, offset, {source, source + bytes}, phaseAt(myBlock(), barrierOffset, place),
            runAlignment, SharedMemory::anySwizzle, place);
  if (timing.kind == Timing::Kind::early)
    completeLoad(loads.size() - 1);
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

void Cluster::beginStore(BulkStore store, Place place) {
  SharedMemory &shared = myBlock().shared;
  store.group = me().openStores;
  store.place = place;
  const Access mine = access(place);
  if (!shared.beginRead(store.from, store.bytes, store.box ? mapAlignment : runAlignment,
                        SharedMemory::anySwizzle, mine, viewer()))
    fail(place, shared.complaint);
  if (byChance())
    store.data.assign(shared.at(store.from), shared.at(store.from) + store.bytes);
  if (!store.data.empty() && byChance())
    writeStore(store, mine, viewer());
  me().stores.push_back(std::move(store));
}

void Cluster::readStore(Thread &thread, BulkStore &store) {
  if (store.read)
    return;
  SharedMemory &shared = blocks[thread.block]->shared;
  if (store.data.empty())
    store.data.assign(shared.at(store.from), shared.at(store.from) + store.bytes);
  shared.endRead(store.from, store.bytes, access(store.place), viewer());
  store.read = true;
}

void Cluster::writeStore(BulkStore &store, Access mine, const Viewer &view) {
  if (store.written)
    return;
  store.written = true;
  const unsigned char *data = store.data.data();
  const bool done =
      store.box   ? store.box->store(global, store.at, store.from, data, store.add, mine, view)
      : store.add ? global.add(store.to, data, store.bytes, DType::f32)
                  : global.write(store.to, data, store.bytes, runAlignment, mine, view);
  if (!done)
    fail(store.place, global.complaint);
}

void Cluster::bulk_store(const void *map, int axes, const int *at, const void *from, bool add,
                         Place place) {
  const TensorBox &box = boxOf(map, axes, at, place);
  // What an H200 answers, wherever the box ends; a load's may begin there.
  for (int axis = 0; axis < axes; ++axis)
    if (at[axis] < 0)
      fail(place, "stores to a box that begins at coordinate " + std::to_string(at[axis]) +
                      " of its tensor, which is an illegal instruction");
  BulkStore store;
  store.from = ownOffset(from, "stores from", place);
  store.box = &box;
  store.bytes = box.bytes();
  std::copy_n(at, axes, store.at);
  store.add = add;
  beginStore(std::move(store), place);
}

void Cluster::bulk_copy_out(void *to, const void *from, int bytes, bool add, Place place) {
  if (bytes <= 0 || bytes % runAlignment != 0)
    fail(place, "copies " + std::to_string(bytes) + " bytes, not a multiple of 16");
  if (!GlobalMemory::holds(to))
    fail(place, "copies to an address that is not in global memory");
  BulkStore store;
  store.from = ownOffset(from, "stores from", place);
  store.bytes = bytes;
  store.to = to;
  store.add = add;
  beginStore(std::move(store), place);
}

void Cluster::bulk_commit(Place) { ++me().openStores; }

void Cluster::bulk_wait(int pending, bool readOnly, Place place) {
  Thread &mine = me();
  for (BulkStore &store : mine.stores) {
    // As for async_wait.
    if (store.group + static_cast<unsigned>(pending) >= mine.openStores)
      continue;
    readStore(mine, store);
    if (!readOnly)
      writeStore(store, access(place), viewer());
  }
  std::erase_if(mine.stores, [](const BulkStore &store) { return store.read && store.written; });
}

void Cluster::fence_async_proxy(Place) { order.fence(current); }

} // namespace tk::emu
