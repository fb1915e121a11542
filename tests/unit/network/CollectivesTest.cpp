// Collectives against calculations by hand. Bandwidths are bytes a nanosecond, one direction: 450
// of a GPU, 400 of a node, 12800 of 32 nodes.
#include "tests/unit/network/Pod.h"

using namespace tk::network;

static constexpr double bytes = 1e9;

/// The group of the first axis of a mesh "x=8", or of the named one.
static Group group(const Network &network, llvm::StringRef mesh, llvm::StringRef axis = "x") {
  llvm::Expected<std::vector<Axis>> axes = parseAxes(mesh);
  REQUIRE(bool(axes));
  Mesh made{*axes};
  REQUIRE_FALSE(bool(checkFits(network, made)));
  return groupOf(network, made, {axis});
}

/// A protocol whose collectives all have one base.
static Protocol protocolOf(const char *name, double base, Means means = Means::Kernels) {
  Protocol protocol;
  protocol.name = name;
  protocol.bases.fill(base);
  protocol.means = means;
  return protocol;
}

static CollectiveTime timeOf(llvm::StringRef mesh, Collective collective,
                             llvm::StringRef axis = "x", double part = 1) {
  const Network network = pod();
  return predict(network, group(network, mesh, axis), collective, bytes, part);
}

TEST_CASE("an all-gather in a node moves B (N - 1) / N over each GPU's links", "[network]") {
  CHECK(isNear(timeOf("x=8", Collective::AllGather).total(), bytes * 7 / 8 / 450));
  CHECK(isNear(timeOf("x=8", Collective::ReduceScatter).total(), bytes * 7 / 8 / 450));
  CHECK(isNear(timeOf("x=2", Collective::AllGather).total(), bytes / 2 / 450));
  CHECK(timeOf("x=1", Collective::AllGather).total() == 0);
}

TEST_CASE("an all-reduce is a reduce-scatter and an all-gather", "[network]") {
  CHECK(isNear(timeOf("x=8", Collective::AllReduce).total(), 2 * bytes * 7 / 8 / 450));
  CHECK(isNear(timeOf("x=256", Collective::AllReduce).total(),
               2 * timeOf("x=256", Collective::AllGather).total()));
}

TEST_CASE("a larger group takes what its busiest level takes", "[network]") {
  // 32 nodes: 31/32 over 400 is more than 7/8 over 450.
  CollectiveTime unit = timeOf("x=256", Collective::AllGather);
  CHECK(isNear(unit.total(), bytes * 31 / 32 / 400));
  CHECK(unit.level == 1);
  // 128 nodes: a node's links carry what comes from the spine, too; 3/4 over 12800 is less.
  CollectiveTime whole = timeOf("x=1024", Collective::AllGather);
  CHECK(isNear(whole.total(), bytes * 127 / 128 / 400));
  // Two nodes: 1/2 over 400 is less than 7/8 over 450.
  CollectiveTime two = timeOf("x=16", Collective::AllGather);
  CHECK(isNear(two.total(), bytes * 7 / 8 / 450));
  CHECK(two.level == 0);
}

TEST_CASE("groups that run at the same time share a node's links", "[network]") {
  // One GPU of each of 128 nodes is in a group: it has the 50 of its own card.
  CHECK(isNear(timeOf("t=8,x=128", Collective::AllGather).total(), bytes * 127 / 128 / 50));
  // Four GPUs of each node: 200.
  CHECK(isNear(timeOf("x=4,t=2,y=8", Collective::AllGather, "y").total(), bytes * 7 / 8 / 50));
  const Network network = pod();
  llvm::Expected<std::vector<Axis>> axes = parseAxes("x=4,t=2,y=8");
  const Group both = groupOf(network, Mesh{*axes}, {"x", "y"});
  CHECK(both.size == 32);
  CHECK(
      isNear(predict(network, both, Collective::AllGather, bytes).total(), bytes * 28 / 32 / 200));
}

TEST_CASE("a GPU outside the mesh leaves its own links unused, not those of switches",
          "[network]") {
  // Two GPUs of different nodes, of eight nodes' groups of one: nobody else is below the leaf.
  Network network = pod();
  network.levels[0].children = 1; // a node of one GPU with 8 cards
  CHECK(isNear(predict(network, group(network, "x=2"), Collective::AllGather, bytes).total(),
               bytes / 2 / 400));
  // 3 of 8 GPUs in one node: 2/3 over 450.
  CHECK(isNear(timeOf("x=3", Collective::AllGather).total(), bytes * 2 / 3 / 450));
}

TEST_CASE("a group that is cut by a node's border is as slow as its smaller part", "[network]") {
  // The third group is GPUs 6, 7 | 8: the card of GPU 8 receives 2/3.
  CHECK(isNear(timeOf("x=3,y=3", Collective::AllGather).total(), bytes * 2 / 3 / 50));
}

TEST_CASE("reductions in the switches send each byte once", "[network]") {
  Network network = pod();
  network.levels[0].transports[0].reductionShare = 1;
  CollectiveTime time = predict(network, group(network, "x=8"), Collective::AllReduce, bytes);
  CHECK(time.inSwitches);
  CHECK(isNear(time.total(), bytes / 450));
  // Two GPUs exchange as much without them, and other collectives reduce nothing.
  CHECK_FALSE(predict(network, group(network, "x=2"), Collective::AllReduce, bytes).inSwitches);
  CHECK(isNear(predict(network, group(network, "x=8"), Collective::AllGather, bytes).total(),
               bytes * 7 / 8 / 450));
  // A group over 32 nodes waits for the leaf, which does not reduce.
  time = predict(network, group(network, "x=256"), Collective::AllReduce, bytes);
  CHECK_FALSE(time.inSwitches);
  CHECK(isNear(time.total(), 2 * bytes * 31 / 32 / 400));
}

TEST_CASE("an all-to-all sends B (N - 1) / N^2 from each GPU", "[network]") {
  CHECK(isNear(timeOf("x=8", Collective::AllToAll).total(), bytes * 7 / 64 / 450));
  // M nodes: B (M - 1) / M^2 over the node's links.
  CHECK(isNear(timeOf("x=16", Collective::AllToAll).total(), bytes * 1 / 4 / 400));
  CHECK(isNear(timeOf("x=256", Collective::AllToAll).total(), bytes * 31 / 1024 / 400));
}

TEST_CASE("a row that goes to k of N experts sends min(k / N, 1) of that", "[network]") {
  CHECK(partOfTopK(4, 8) == 0.5);
  CHECK(partOfTopK(8, 4) == 1);
  CHECK(isNear(timeOf("x=8", Collective::AllToAll, "x", partOfTopK(4, 8)).total(),
               bytes * 7 / 128 / 450));
  // The part is of an all-to-all only.
  CHECK(isNear(timeOf("x=8", Collective::AllGather, "x", 0.5).total(), bytes * 7 / 8 / 450));
}

TEST_CASE("a stage sends to the next over the slowest level between them", "[network]") {
  CHECK(isNear(timeOf("t=8,x=4", Collective::Send).total(), bytes / 50));
  CHECK(isNear(timeOf("x=4", Collective::Send).total(), bytes / 450));
}

TEST_CASE("copies gather and send where they are allowed and reach", "[network]") {
  Network network = pod();
  network.protocols.push_back(protocolOf("copies", 6000, Means::Copies));
  for (Level &level : network.levels)
    level.transports.emplace_back();
  network.levels[0].transports[1].step = 500;
  network.levels[0].transports[1].shares.fill(2); // twice the links' rate, to be told apart
  auto time = [&](llvm::StringRef mesh, Collective collective, PeerAccess peers) {
    return predict(network, group(network, mesh), collective, bytes, 1, peers).total();
  };
  CHECK(isNear(time("x=8", Collective::AllGather, PeerAccess::allowed),
               7 * 6000 + 500 + bytes * 7 / 8 / 900)); // one copy after the other
  CHECK(isNear(time("x=8", Collective::Send, PeerAccess::allowed), 6000 + 500 + bytes / 900));
  CHECK(isNear(time("x=8", Collective::AllGather, PeerAccess::none), bytes * 7 / 8 / 450));
  CHECK(isNear(time("x=8", Collective::AllReduce, PeerAccess::allowed), 2 * bytes * 7 / 8 / 450));
  // Nodes are reached by cards alone.
  CHECK(isNear(time("x=256", Collective::AllGather, PeerAccess::allowed), bytes * 31 / 32 / 400));
  CHECK(isNear(bandwidthOf(network, group(network, "x=8"), Collective::AllGather), 450.0 * 8 / 7));
}

TEST_CASE("stores take one step, and an all-reduce by them sends all to each of the others",
          "[network]") {
  Network network = pod();
  network.protocols.push_back(protocolOf("stores", 4000, Means::Stores));
  for (Level &level : network.levels)
    level.transports.emplace_back();
  network.levels[0].transports[1].step = 1000;
  network.levels[0].transports[1].shares.fill(8); // of the links' rate, to be told apart
  auto time = [&](llvm::StringRef mesh, Collective collective, PeerAccess peers) {
    return predict(network, group(network, mesh), collective, bytes, 1, peers).total();
  };
  const double rate = 8 * 450;
  for (Collective collective : {Collective::AllGather, Collective::ReduceScatter})
    CHECK(isNear(time("x=8", collective, PeerAccess::allowed), 5000 + bytes * 7 / 8 / rate));
  CHECK(isNear(time("x=2", Collective::AllReduce, PeerAccess::allowed), 5000 + bytes / rate));
  CHECK(isNear(time("x=4", Collective::AllReduce, PeerAccess::allowed), 5000 + 3 * bytes / rate));
  CHECK(
      isNear(time("x=8", Collective::AllToAll, PeerAccess::allowed), 5000 + bytes * 7 / 64 / rate));
  // A send runs beside a launch, which needs the multiprocessors.
  CHECK(isNear(time("x=8", Collective::Send, PeerAccess::allowed), bytes / 450));
  CHECK(isNear(time("x=8", Collective::AllGather, PeerAccess::none), bytes * 7 / 8 / 450));
  CHECK(isNear(time("x=256", Collective::AllGather, PeerAccess::allowed), bytes * 31 / 32 / 400));
}

TEST_CASE("small arrays take latency: steps by the protocol", "[network]") {
  Network network = pod();
  network.protocols[0].bases.fill(5000);
  network.levels[0].transports[0].step = 500;
  network.levels[1].transports[0].step = 3000;
  auto latency = [&](llvm::StringRef mesh, Collective collective) {
    return predict(network, group(network, mesh), collective, 1).latency;
  };
  CHECK(latency("x=8", Collective::AllGather) == 5000 + 7 * 500);
  CHECK(latency("x=8", Collective::AllReduce) == 5000 + 14 * 500);
  CHECK(latency("x=32", Collective::AllReduce) == 5000 + 14 * 500 + 6 * 3000);
  CHECK(latency("x=32", Collective::AllToAll) == 5000 + 3000);
  CHECK(latency("x=8", Collective::Send) == 5000 + 500);
  network.protocols[0].isRing = false; // log2
  CHECK(latency("x=8", Collective::AllReduce) == 5000 + 6 * 500);
  CHECK(latency("x=32", Collective::AllGather) == 5000 + 3 * 500 + 2 * 3000);
  CHECK(latency("x=3", Collective::AllGather) == 5000 + 2 * 500);
}

TEST_CASE("the faster of two protocols is taken", "[network]") {
  Network network = pod();
  network.protocols = {protocolOf("quick", 1000), protocolOf("long", 9000)};
  for (Level &level : network.levels) {
    level.transports.resize(2);
    level.transports[0].shares.fill(0.25);
    level.transports[1].shares.fill(0.75);
    level.transports[0].step = level.transports[1].step = 0;
  }
  // Equal at B / 2 * (1 / 112.5 - 1 / 337.5) = 8000.
  const double equal = 2 * 8000 / (1 / 112.5 - 1 / 337.5);
  const Group two = group(network, "x=2");
  CHECK(predict(network, two, Collective::AllGather, 0.99 * equal).protocol == 0);
  CHECK(predict(network, two, Collective::AllGather, 1.01 * equal).protocol == 1);
  CHECK(isNear(predict(network, two, Collective::AllGather, equal).total(),
               1000 + equal / 2 / 112.5));
  // Switches reduce for the protocol that says so alone.
  network.levels[0].transports[1].reductionShare = 1;
  const Group node = group(network, "x=8");
  CHECK(isNear(predict(network, node, Collective::AllReduce, bytes).total(), 9000 + bytes / 450));
  CHECK_FALSE(predict(network, node, Collective::AllReduce, 1000).inSwitches);
}

TEST_CASE("the slower direction of a link counts", "[network]") {
  Network network = pod();
  network.levels[0].down = 20;
  CHECK(isNear(predict(network, group(network, "x=8"), Collective::AllGather, bytes).total(),
               bytes * 7 / 8 / 360));
}

TEST_CASE("the bandwidth of a group is that of long arrays", "[network]") {
  const Network network = pod();
  CHECK(isNear(bandwidthOf(network, group(network, "x=8"), Collective::AllGather), 450.0 * 8 / 7));
  CHECK(std::isinf(bandwidthOf(network, group(network, "x=1"), Collective::AllGather)));
}

TEST_CASE("collectives of two H200 are within 15 % of what was measured", "[network]") {
  const Network network = readNetwork(example("networks/h200-pair.json"));
  const Group two = group(network, "x=2");
  struct Measured {
    Collective collective;
    double bytes, microseconds;
  };
  const double kilo = 1024, mega = kilo * kilo, giga = kilo * mega;
  // An all-reduce of two moves B over the links; the last is 333 GB/s of that.
  const Measured alone[] = {{Collective::AllReduce, 8 * kilo, 9.4},
                            {Collective::AllReduce, 512 * kilo, 12.9},
                            {Collective::AllReduce, 32 * mega, 139},
                            {Collective::AllReduce, giga, giga / 333e3},
                            {Collective::AllGather, mega, 15.4},
                            {Collective::AllGather, 4 * mega, 29.7},
                            {Collective::AllGather, 16 * mega, 58.3},
                            {Collective::AllGather, 64 * mega, 161.6},
                            {Collective::AllGather, giga, giga / 2 / 288e3},
                            {Collective::ReduceScatter, mega, 13.4},
                            {Collective::ReduceScatter, 4 * mega, 26.9},
                            {Collective::ReduceScatter, 16 * mega, 55.2},
                            {Collective::ReduceScatter, 64 * mega, 169.1},
                            {Collective::ReduceScatter, giga, giga / 2 / 288e3}};
  for (const Measured &measured : alone)
    CHECK(isNear(predict(network, two, measured.collective, measured.bytes).total() / 1000,
                 measured.microseconds, 0.15));
  // Rows of 4096 bf16, gathered before a product or scattered behind it; the products alone take
  // the first time, both the second.
  struct Fused {
    Collective collective;
    double rows, alone, both;
  };
  const Fused fused[] = {
      {Collective::AllGather, 128, 21, 36},        {Collective::AllGather, 2048, 170, 229},
      {Collective::AllGather, 8192, 626, 792},     {Collective::AllGather, 16384, 1212, 1644},
      {Collective::ReduceScatter, 128, 24, 37},    {Collective::ReduceScatter, 2048, 159, 212},
      {Collective::ReduceScatter, 8192, 628, 808}, {Collective::ReduceScatter, 16384, 1331, 1697}};
  for (const Fused &measured : fused) {
    const double comms =
        predict(network, two, measured.collective, measured.rows * 4096 * 2).total() / 1000;
    INFO(measured.rows << " rows, " << comms << " us");
    CHECK(isNear(measured.alone + comms, measured.both, 0.15));
  }
}
