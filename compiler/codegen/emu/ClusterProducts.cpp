//===- ClusterProducts.cpp - products of warpgroups -----------------------===//
//
// A product begins when all threads of its warpgroup have come to it. From then until one of them
// waits for its group it reads shared memory and writes the accumulators: at once, by chance, or at
// the wait. Meanwhile the registers of the accumulators hold NaNs, unless effects are early.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/emu/Cluster.h"

#include <algorithm>
#include <cstring>

namespace tk::emu {

void Cluster::warpgroup_fence(Place) { me().registersFenced = true; }

void Cluster::warpgroup_commit(Place) { ++me().openProducts; }

void Cluster::warpgroup_mma(Products type, int n, bool transposeA, bool transposeB, void *acc,
                            const void *aRegisters, unsigned long long a, unsigned long long b,
                            bool accumulate, Place place) {
  const unsigned position = me().index % warpgroupSize;
  if (me().index - position + warpgroupSize > shape.threads)
    fail(place, "begins a product in a warpgroup that is not whole: the block has " +
                    std::to_string(shape.threads) + " threads");
  if (!me().registersFenced)
    fail(place, "begins a product with no warpgroup_fence before it");
  Warpgroup &group = myWarpgroup();
  const ProductShape product{type, n, transposeA, transposeB, aRegisters != nullptr};
  if (group.arrived == 0) {
    group.shape = product;
    group.a = a, group.b = b;
    group.accumulate = accumulate;
    group.place = place;
    group.first = current;
  } else if (!(group.shape == product) || group.a != a || group.b != b ||
             group.accumulate != accumulate || group.place.line != place.line) {
    fail(place, "begins another product than " + order.text(group.first) + " of its warpgroup at " +
                    Sites::text(group.place));
  }
  group.acc[position] = acc;
  group.aRegisters[position] = aRegisters;
  if (++group.arrived < warpgroupSize) {
    wait(Waiting::product, place);
    return;
  }
  group.arrived = 0;
  beginProduct(group, place);
  const unsigned first = current - position;
  for (unsigned i = first; i < first + warpgroupSize; ++i)
    if (i != current)
      makeReady(static_cast<Agent>(i));
}

size_t Cluster::takeAccumulator(Warpgroup &group, void *registers, size_t bytes) {
  auto *at = static_cast<unsigned char *>(registers);
  for (size_t i = 0; i < group.accumulators.size(); ++i)
    if (Accumulator &known = group.accumulators[i]; known.pending && known.registers == at) {
      ++known.pending;
      return i;
    }
  size_t slot = group.accumulators.size();
  if (group.freeAccumulators.empty()) {
    group.accumulators.emplace_back();
  } else {
    slot = group.freeAccumulators.back();
    group.freeAccumulators.pop_back();
  }
  group.accumulators[slot] = {at, {at, at + bytes}, 1};
  if (timing.kind != Timing::Kind::early)
    std::memset(at, 0xff, bytes);
  return slot;
}

void Cluster::beginProduct(Warpgroup &group, Place place) {
  Product product;
  product.shape = group.shape;
  product.accumulate = group.accumulate;
  product.group = me().openProducts;
  product.place = place;
  product.site = sites.number(place);
  const Agent first = static_cast<Agent>(current - me().index % warpgroupSize);
  product.clock = order.common(first, warpgroupSize / warpSize);
  const Viewer view{order.warpgroupAgent(me().block, me().index / warpgroupSize), &product.clock};
  const Access mine = access(place);
  SharedMemory &shared = myBlock().shared;
  auto begin = [&](Side side, uint64_t bits, std::vector<int64_t> &chunks) {
    const MatrixDescriptor descriptor = MatrixDescriptor::decode(bits);
    if (descriptor.baseOffset)
      fail(place, "uses a descriptor with a base offset, which the emulator does not model");
    chunks = operandChunks(product.shape, side, descriptor);
    for (int64_t chunk : chunks)
      if (!shared.beginRead(chunk, 16, 16, static_cast<uint8_t>(descriptor.swizzle), mine, view))
        fail(place, (side == Side::a ? "begins a product whose operand A "
                                     : "begins a product whose operand B ") +
                        shared.complaint);
  };
  if (group.shape.aInRegisters)
    product.aValues = registerValues(group.shape, group.aRegisters);
  else
    begin(Side::a, group.a, product.aChunks);
  begin(Side::b, group.b, product.bChunks);
  const auto bytes = static_cast<size_t>(group.shape.n) / 2 * 4;
  for (void *registers : group.acc)
    product.accumulators.push_back(takeAccumulator(group, registers, bytes));
  if (global.counts)
    global.counts->multiplied(double{ProductShape::rows} * product.shape.n * product.shape.depth());
  group.products.push_back(std::move(product));
  if (byChance())
    for (Product &begun : group.products) // in order: they may share accumulators
      computeProduct(group, begun);
}

void Cluster::computeProduct(Warpgroup &group, Product &product) {
  if (product.applied)
    return;
  product.applied = true;
  const SharedMemory &shared = myBlock().shared;
  auto values = [&](Side side, const std::vector<int64_t> &chunks) {
    std::vector<unsigned char> bytes;
    for (int64_t chunk : chunks)
      bytes.insert(bytes.end(), shared.at(chunk), shared.at(chunk) + 16);
    return operandValues(product.shape, side, bytes.data());
  };
  unsigned char *acc[warpgroupSize];
  for (unsigned t = 0; t < warpgroupSize; ++t)
    acc[t] = group.accumulators[product.accumulators[t]].value.data();
  multiplyWarpgroup(product.shape,
                    product.shape.aInRegisters ? product.aValues : values(Side::a, product.aChunks),
                    values(Side::b, product.bChunks), product.accumulate, acc);
  if (timing.kind == Timing::Kind::early)
    for (size_t slot : product.accumulators) {
      const Accumulator &done = group.accumulators[slot];
      std::memcpy(done.registers, done.value.data(), done.value.size());
    }
}

void Cluster::completeProduct(Warpgroup &group, Product &product) {
  computeProduct(group, product);
  const Agent agent = order.warpgroupAgent(me().block, me().index / warpgroupSize);
  const Access mine{order.next(), agent, product.site};
  const Viewer view{agent, &product.clock};
  SharedMemory &shared = myBlock().shared;
  for (const auto *chunks : {&product.aChunks, &product.bChunks})
    for (int64_t chunk : *chunks)
      shared.endRead(chunk, 16, mine, view);
  for (size_t slot : product.accumulators) {
    Accumulator &done = group.accumulators[slot];
    if (--done.pending)
      continue;
    std::memcpy(done.registers, done.value.data(), done.value.size());
    group.freeAccumulators.push_back(slot);
  }
  group.completeStamp = mine.stamp;
}

void Cluster::warpgroup_wait(int pending, Place) {
  Warpgroup &group = myWarpgroup();
  while (!group.products.empty() &&
         group.products.front().group + static_cast<unsigned>(pending) < me().openProducts) {
    completeProduct(group, group.products.front());
    group.products.pop_front();
  }
  if (group.completeStamp)
    order.see(current, order.warpgroupAgent(me().block, me().index / warpgroupSize),
              group.completeStamp);
}

} // namespace tk::emu
