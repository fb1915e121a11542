// The formulas of the cost model, with plain numbers.
#include "passes/machine/CostModel.h"
#include "tests/unit/catch.h"

using namespace tk;

static Machine h200() { return machineOf(*findArchitectureRow("sm_90a"), *findDevice("H200")); }

/// Many blocks of four warps, so that no term is about waves.
static LaunchWork manyBlocks() {
  LaunchWork work;
  work.blocks = 132 * 64;
  work.blocksAtOnce = 8;
  return work;
}

static bool isNear(double value, double expected) {
  return value > 0.98 * expected && value < 1.02 * expected;
}

TEST_CASE("bytes take their time at the rate of a copy", "[cost]") {
  LaunchWork work = manyBlocks();
  work.readBytes = 3e9;
  work.writtenBytes = 1.25e9;
  Prediction time = predict(work, h200());
  CHECK(isNear(time.of(Bound::Memory), 1e6)); // 4250 bytes a nanosecond
  CHECK(time.bound == Bound::Memory);
  CHECK(isNear(time.total, 1e6 + cost::launch));
}

TEST_CASE("few blocks reach a part of the memory's rate", "[cost]") {
  LaunchWork all = manyBlocks(), few = manyBlocks();
  all.readBytes = few.readBytes = 1e9;
  few.blocks = 8;
  CHECK(predict(few, h200()).of(Bound::Memory) > 5 * predict(all, h200()).of(Bound::Memory));
}

TEST_CASE("the matrix unit has a rate for each type", "[cost]") {
  LaunchWork work = manyBlocks();
  const double products = 8192.0 * 8192 * 8192;
  work.warpgroupProducts[static_cast<size_t>(MatrixType::Half)] = products;
  const double half = predict(work, h200()).of(Bound::Matrix);
  CHECK(isNear(2 * products / half, 2 * 2048 * 132 * 1.98 * 0.72)); // operations a nanosecond
  work.warpgroupProducts = {};
  work.warpgroupProducts[static_cast<size_t>(MatrixType::ByteFloat)] = products;
  CHECK(isNear(predict(work, h200()).of(Bound::Matrix), half / 2));
  work.warpgroupProducts = {};
  work.warpProducts[static_cast<size_t>(MatrixType::Half)] = products;
  CHECK(isNear(predict(work, h200()).of(Bound::Matrix), half / cost::shareOfWarpProducts));
}

TEST_CASE("a last wave that is not full costs as much as a full one", "[cost]") {
  LaunchWork work;
  work.instructions = 1e9;
  work.warps = 8;
  work.blocks = 132;
  const double full = predict(work, h200()).of(Bound::Cores);
  work.blocks = 133; // one multiprocessor has two blocks of 1/133
  CHECK(isNear(predict(work, h200()).of(Bound::Cores), full * 2 * 132 / 133));
  work.blocks = 66;
  CHECK(isNear(predict(work, h200()).of(Bound::Cores), 2 * full));
}

TEST_CASE("a heavy block is waited for", "[cost]") {
  LaunchWork work;
  work.blocks = 132;
  work.special = 1e8;
  const double even = predict(work, h200()).of(Bound::Special);
  work.heaviest = 3;
  CHECK(isNear(predict(work, h200()).of(Bound::Special), 3 * even));
}

TEST_CASE("waits add up over waves", "[cost]") {
  LaunchWork work;
  work.blocks = 132 * 4;
  work.blocksAtOnce = 2;
  work.waits = 10;
  work.barriers = 5;
  Prediction time = predict(work, h200());
  CHECK(time.waves == 2);
  CHECK(isNear(time.of(Bound::Latency), 2 * (10 * cost::memoryLatency + 5 * cost::barrier)));
  CHECK(time.bound == Bound::Latency);
}

TEST_CASE("nothing to do takes no time", "[cost]") { CHECK(predict({}, h200()).total == 0); }

TEST_CASE("scratch costs a launch and the way there and back", "[cost]") {
  const double small = cost::ofScratch(h200(), 1e6), large = cost::ofScratch(h200(), 1e9);
  CHECK(small < cost::launch * 1.2);
  CHECK(isNear(large, cost::launch + 2e9 / 4250));
}

TEST_CASE("to compute once is free of recomputation", "[cost]") {
  CHECK(cost::ofRecomputation(h200(), 1e9, 1) == 0);
  CHECK(cost::ofRecomputation(h200(), 1e9, 3) > cost::ofRecomputation(h200(), 1e9, 2));
}

TEST_CASE("a part's share is by how much the time grows as the part does", "[cost]") {
  LaunchWork work = manyBlocks();
  work.readBytes = 1e8;
  work.cacheBytes = 2e8;
  work.special = 1e8;
  work.warpgroupProducts[static_cast<size_t>(MatrixType::Half)] = 1e10;
  const Prediction before = predict(work, h200());
  const std::array<double, numBounds> shares = sharesOfParts(before);
  double sum = 0;
  for (double share : shares)
    sum += share;
  CHECK(isNear(sum, 1));
  work.warpgroupProducts[static_cast<size_t>(MatrixType::Half)] *= 1.001;
  const double grown = predict(work, h200()).total - before.total;
  const double share = shares[static_cast<size_t>(Bound::Matrix)];
  CHECK(share > 0.1);
  CHECK(isNear(grown / (before.total - cost::launch), 0.001 * share));
}

TEST_CASE("the time of a launch is the sum of what it says", "[cost]") {
  LaunchWork work = manyBlocks();
  work.readBytes = 1e8;
  work.special = 1e8;
  work.waits = 3;
  work.heaviest = 128; // twice what each of 132 has
  const Prediction time = predict(work, h200());
  CHECK(isNear(time.total, time.launch + time.begin + time.overlapped + time.of(Bound::Latency)));
  CHECK(isNear(time.launch + time.begin, cost::launch));
  CHECK(time.overlapped > time.of(Bound::Memory));
  CHECK(isNear(time.uneven, work.heaviest * 132 / work.blocks));
  CHECK(isUnevenPart(Bound::Special));
  CHECK(!isUnevenPart(Bound::Memory));
}

TEST_CASE("the roofs are the machine's, of the fastest unit that a launch uses", "[cost]") {
  LaunchWork work = manyBlocks();
  work.instructions = 1e6;
  CHECK(roofsOf(work, h200()).operationsOf == "CUDA cores");
  CHECK(isNear(roofsOf(work, h200()).operations, 2 * 128 * 132 * 1.98));
  CHECK(roofsOf(work, h200()).bytes == h200().device.copyRate());
  work.warpgroupProducts[static_cast<size_t>(MatrixType::BFloat)] = 1;
  CHECK(roofsOf(work, h200()).operationsOf == "bf16 on the matrix unit");
  CHECK(isNear(roofsOf(work, h200()).operations, 2 * 2048 * 132 * 1.98 * 0.72));
}

TEST_CASE("nothing to do has no shares", "[cost]") {
  for (double share : sharesOfParts(predict({}, h200())))
    CHECK(share == 0);
}
