//===- Launches.cpp - the predicted time of a block's launches ------------===//
#include "compiler/step/Launches.h"

#include <algorithm>
#include <cmath>

namespace tk::step {
namespace {

Launch launchOf(const LaunchWork &work, double flops, const Machine &machine) {
  const Prediction time = predict(work, machine);
  Launch launch;
  launch.flops = flops;
  launch.bytes = work.readBytes + work.writtenBytes;
  launch.math = std::max({time.of(Bound::Matrix), time.of(Bound::Cores), time.of(Bound::Special)});
  launch.memory = std::max(time.of(Bound::Memory), time.of(Bound::Cache));
  launch.total = time.total;
  launch.bound = time.bound;
  return launch;
}

void addProducts(LaunchWork &work, double terms, const ElementType &type, const Machine &machine) {
  const bool hasWarpgroups = machine.architecture->has(Feature::WarpgroupProducts);
  auto &products = hasWarpgroups ? work.warpgroupProducts : work.warpProducts;
  products[static_cast<size_t>(type.matrix)] += terms;
}

struct Tile {
  double rows, columns, warps;
};
/// Tiles that the planner has for products (passes/machine/WarpgroupTiles.h has their reasons).
constexpr Tile tiles[] = {{128, 256, 12}, {128, 128, 12}, {64, 256, 8}, {64, 128, 8}, {64, 64, 8}};
/// Waits of a block for memory before its first product, and of its store.
constexpr double waitsOfProduct = 2;

LaunchWork workOf(const Product &product, const Tile &tile, const ElementType &type,
                  const Machine &machine) {
  LaunchWork work;
  const double across = std::ceil(product.rows / tile.rows),
               along = std::ceil(product.columns / tile.columns);
  work.blocks = across * along * product.groups;
  work.warps = tile.warps;
  const double operands = (product.rows + product.columns) * product.inner * product.groups;
  work.readBytes = operands * type.bytes;
  work.writtenBytes = product.rows * product.columns * product.groups * type.bytes;
  work.cacheBytes =
      work.blocks * (tile.rows + tile.columns) * product.inner * type.bytes + work.writtenBytes;
  addProducts(work, work.blocks * tile.rows * tile.columns * product.inner, type, machine);
  work.waits = waitsOfProduct;
  return work;
}

} // namespace

Launch product(const Product &product, const ElementType &type, const Machine &machine) {
  const double flops = 2 * product.rows * product.columns * product.inner * product.groups;
  Launch best;
  for (const Tile &tile : tiles) {
    Launch launch = launchOf(workOf(product, tile, type, machine), flops, machine);
    if (best.total == 0 || launch.total < best.total)
      best = launch;
  }
  return best;
}

namespace {

constexpr double rowsOfAttention = 128, warpsOfAttention = 12;
/// Instructions of CUDA cores for each score: a scale, a maximum, a sum and half a conversion; in
/// the backward pass also the two gradients of the score.
constexpr double instructionsOfScore = 4, instructionsOfGradient = 12;
/// Products of an attention's loop: two forward; five backward, one of which repeats the scores.
constexpr double productsForward = 2, productsBackward = 5;

} // namespace

Launch attention(const Attention &attention, const ElementType &type, const Machine &machine) {
  LaunchWork work;
  const double rows = attention.sequences * attention.length,
               keys =
                   attention.isCausal ? (attention.length + rowsOfAttention) / 2 : attention.length,
               scores = rows * std::min(keys, attention.length) * attention.heads;
  const double products = attention.isBackward ? productsBackward : productsForward;
  work.blocks =
      attention.sequences * std::ceil(attention.length / rowsOfAttention) * attention.heads;
  work.warps = warpsOfAttention;
  addProducts(work, products * scores * attention.headSize, type, machine);
  work.special = scores;
  work.instructions =
      scores * (attention.isBackward ? instructionsOfGradient : instructionsOfScore);
  const double queries = rows * attention.heads * attention.headSize * type.bytes,
               keysAndValues = 2 * rows * attention.kvHeads * attention.headSize * type.bytes;
  // Backward: queries, outputs, their gradients, keys and values in; the three gradients out.
  work.readBytes = attention.isBackward ? 3 * queries + keysAndValues : queries + keysAndValues;
  work.writtenBytes = attention.isBackward ? queries + keysAndValues : queries;
  work.cacheBytes = work.readBytes + work.writtenBytes +
                    2 * scores / rowsOfAttention * attention.headSize * type.bytes;
  work.waits = waitsOfProduct;
  const double whole = attention.isCausal ? attention.length / 2 : attention.length;
  return launchOf(work, 2 * products * rows * whole * attention.heads * attention.headSize,
                  machine);
}

Launch pass(double readBytes, double writtenBytes, const Machine &machine) {
  constexpr double bytesOfBlock = 32768, blocksAtOnce = 4, warps = 8;
  LaunchWork work;
  work.readBytes = readBytes;
  work.writtenBytes = writtenBytes;
  work.cacheBytes = readBytes + writtenBytes;
  const double blocks = std::ceil((readBytes + writtenBytes) / bytesOfBlock);
  const double most = double(machine.device.processors) * blocksAtOnce;
  work.blocks = std::min(blocks, most); // blocks beyond one wave are persistent
  work.blocksAtOnce = blocksAtOnce;
  work.warps = warps;
  work.waits = 1;
  return launchOf(work, 0, machine);
}

double sustainedRate(const ElementType &type, const Machine &machine) {
  return 2 * matrixRate(*machine.architecture, type.matrix) * double(machine.device.processors) *
         machine.device.clock() * machine.device.matrixShare();
}

} // namespace tk::step
