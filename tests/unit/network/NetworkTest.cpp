// Descriptions of networks and meshes: what is read, and each fault with its place.
#include "tests/unit/network/Pod.h"

using namespace tk::network;

namespace {

struct Problem {
  Fault fault;
  std::string place, message;
};

Problem problemOf(llvm::Error error) {
  Problem problem{Fault::NotJson, "none", "no error"};
  llvm::handleAllErrors(std::move(error), [&](const DescriptionError &found) {
    problem = {found.fault, found.place, found.message};
  });
  return problem;
}

/// The fault of the pod with `from` replaced by `to`.
Problem problemWith(const std::string &from, const std::string &to) {
  std::string text = podText;
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  llvm::Expected<Network> network = parseNetwork(text);
  if (network)
    return {Fault::NotJson, "none", "no error"};
  return problemOf(network.takeError());
}

} // namespace

TEST_CASE("a network's levels, links and switches are read", "[network]") {
  const Network network = pod();
  CHECK(network.numDevices() == 1024);
  CHECK(network.devicesOfChild(2) == 256);
  CHECK(network.levels[0].outOfChild() == 450);
  CHECK(network.levels[1].intoChild() == 400);
  CHECK(network.levels[2].outOfChild() == 12800);
  // Cards of the GPUs carry what comes from the nodes; the spine's data passes the leaf's links.
  CHECK(network.reachOf(0) == 0);
  CHECK(network.reachOf(1) == 2);
}

TEST_CASE("shares and directions can differ", "[network]") {
  std::string text = podText;
  const std::string share = "\"share\": 1}", link = "\"link_gb_s\": 25";
  text.replace(text.find(share), share.size(),
               "\"share\": {\"all_reduce\": 0.5, \"other\": 0.75}}");
  text.replace(text.find(link), link.size(), "\"link_gb_s\": {\"up\": 20, \"down\": 25}");
  const Network network = readNetwork(text);
  const Transport &transport = network.levels[0].transports[0];
  CHECK(transport.shares[static_cast<size_t>(Collective::AllReduce)] == 0.5);
  CHECK(transport.shares[static_cast<size_t>(Collective::Send)] == 0.75);
  CHECK(network.levels[0].up == 20);
  CHECK(network.levels[0].down == 25);
}

TEST_CASE("a protocol can be by copies, which need not pass each level", "[network]") {
  std::string text = podText;
  const std::string protocols = "[{\"name\": \"p\", \"base_us\": 0}]", level = "{\"p\": {";
  text.replace(text.find(protocols), protocols.size(),
               "[{\"name\": \"p\", \"base_us\": 0, \"multiprocessors\": 16}, {\"name\": \"c\", "
               "\"by\": \"copies\", \"base_us\": 6}]");
  text.replace(text.find(level), level.size(),
               "{\"c\": {\"step_us\": 1, \"share\": 0.5}, \"p\": {");
  const Network network = readNetwork(text);
  CHECK(network.protocols[0].means == Means::Kernels);
  CHECK(network.protocols[0].multiprocessors == 16);
  CHECK(network.protocols[1].means == Means::Copies);
  CHECK(network.protocols[1].multiprocessors == 0);
  CHECK(network.levels[0].transports[1].shares[static_cast<size_t>(Collective::Send)] == 0.5);
  CHECK(network.levels[1].transports[1].shares[static_cast<size_t>(Collective::Send)] == 0);
}

TEST_CASE("a base may be that of one collective", "[network]") {
  std::string text = podText;
  const std::string base = "\"base_us\": 0";
  text.replace(text.find(base), base.size(), "\"base_us\": {\"all_gather\": 4, \"other\": 2.5}");
  const Protocol protocol = readNetwork(text).protocols[0];
  CHECK(protocol.bases[static_cast<size_t>(Collective::AllGather)] == 4000);
  CHECK(protocol.bases[static_cast<size_t>(Collective::ReduceScatter)] == 2500);
  CHECK(protocol.bases[static_cast<size_t>(Collective::Send)] == 2500);
}

TEST_CASE("the networks of examples are valid", "[network]") {
  for (const char *name : {"h100-superpod", "h100-node", "h200-pair"})
    CHECK(shippedNetwork(name) ==
          llvm::StringRef(example(std::string("networks/") + name + ".json")));
  CHECK_FALSE(shippedNetwork("h100").has_value());
  CHECK(readNetwork(example("networks/h100-superpod.json")).numDevices() == 1024);
  CHECK(readNetwork(example("networks/h100-node.json")).numDevices() == 8);
  CHECK(readNetwork(example("networks/h200-pair.json")).numDevices() == 2);
}

TEST_CASE("faults of a network name the field", "[network]") {
  struct Row {
    const char *from, *to;
    Fault fault;
    const char *place, *part;
  };
  const Row rows[] = {
      {"{", "[", Fault::NotJson, "", "no JSON"},
      {"\"children\": 8,", "", Fault::Missing, "levels[0].children", "missing"},
      {"\"children\": 8", "\"childern\": 8", Fault::Missing, "levels[0].children", "'childern'"},
      {"\"device\"", "\"colour\": 1, \"device\"", Fault::Unknown, "colour", "unknown field"},
      {"\"links\": 18", "\"links\": \"18\"", Fault::WrongType, "levels[0].links", "a string"},
      {"\"links\": 18", "\"links\": 18.5", Fault::WrongType, "levels[0].links", "18.5"},
      {"\"links\": 18", "\"links\": 0", Fault::OutOfRange, "levels[0].links", "got 0"},
      {"\"links\": 18", "\"links\": null", Fault::WrongType, "levels[0].links", "null"},
      {"\"link_gb_s\": 25", "\"link_gb_s\": -25", Fault::OutOfRange, "levels[0].link_gb_s", "-25"},
      {"\"link_gb_s\": 25", "\"link_gb_s\": {\"up\": 25}", Fault::Missing,
       "levels[0].link_gb_s.down", "missing"},
      {"\"share\": 1", "\"share\": 1.5", Fault::OutOfRange, "levels[0].protocols.p.share", "1.5"},
      {"\"share\": 1", "\"share\": {\"all_gather\": 1}", Fault::Missing,
       "levels[0].protocols.p.share.other", "missing"},
      {"{\"p\": {", "{\"q\": {", Fault::Missing, "levels[0].protocols.p", "missing"},
      {"\"base_us\": 0", "\"base_us\": -1", Fault::OutOfRange, "protocols[0].base_us", "-1"},
      {"\"base_us\": 0", "\"base_us\": {\"send\": 1}", Fault::Missing, "protocols[0].base_us.other",
       ""},
      {"\"base_us\": 0", "\"base_us\": 0, \"steps\": \"star\"", Fault::Unknown,
       "protocols[0].steps", "tree, ring"},
      {"\"base_us\": 0", "\"base_us\": 0, \"by\": \"hand\"", Fault::Unknown, "protocols[0].by",
       "kernels, copies"},
      {"\"base_us\": 0", "\"base_us\": 0, \"by\": \"copies\"", Fault::Inconsistent, "protocols",
       "one by kernels"},
      {"\"base_us\": 0", "\"base_us\": 0, \"multiprocessors\": -1", Fault::OutOfRange,
       "protocols[0].multiprocessors", "-1"},
      {"[{\"name\": \"p\", \"base_us\": 0}]", "[]", Fault::OutOfRange, "protocols", "one protocol"},
      {"[{\"name\": \"p\", \"base_us\": 0}]", "7", Fault::WrongType, "protocols", "an array"},
      {"\"name\": \"leaf\"", "\"name\": \"node\"", Fault::Inconsistent, "levels[1].name",
       "two levels"},
      {"\"links\": 8", "\"links\": 9", Fault::Inconsistent, "levels[1].links", "multiple of the 8"},
      {"\"switches\": 8", "\"switches\": 7", Fault::Inconsistent, "levels[1].switches",
       "ports for 512 links"},
      {"\"switches\": 4", "\"switches\": 0", Fault::Inconsistent, "levels[0].switches",
       "direct links"},
      {"\"children\": 4", "\"children\": 100000", Fault::OutOfRange, "levels[2].children",
       "GPUs or fewer"},
      {"\"links_leave\": \"devices\"", "\"links_leave\": \"nodes\"", Fault::Unknown,
       "levels[1].links_leave", "devices, switches"},
  };
  for (const Row &row : rows) {
    const Problem problem = problemWith(row.from, row.to);
    INFO(row.to << " -> " << problem.place << ": " << problem.message);
    CHECK(problem.fault == row.fault);
    CHECK(problem.place == row.place);
    CHECK(llvm::StringRef(problem.message).contains(row.part));
  }
  CHECK(problemOf(parseNetwork("3").takeError()).fault == Fault::WrongType);
  CHECK(problemOf(parseNetwork("").takeError()).fault == Fault::NotJson);
  CHECK(problemOf(parseNetwork(std::string(100, '[')).takeError()).fault == Fault::NotJson);
}

TEST_CASE("axes are read in their order, and each once", "[network]") {
  llvm::Expected<std::vector<Axis>> axes = parseAxes("dp=16, tp=8");
  REQUIRE(bool(axes));
  REQUIRE(axes->size() == 2);
  CHECK((*axes)[0].name == "dp");
  CHECK((*axes)[1].size == 8);
  auto faultOf = [](llvm::StringRef text) { return problemOf(parseAxes(text).takeError()).fault; };
  CHECK(faultOf("") == Fault::WrongType);
  CHECK(faultOf("dp") == Fault::WrongType);
  CHECK(faultOf("dp=x") == Fault::WrongType);
  CHECK(faultOf("=4") == Fault::WrongType);
  CHECK(faultOf("dp=0") == Fault::OutOfRange);
  CHECK(faultOf("dp=-2") == Fault::OutOfRange);
  CHECK(faultOf("dp=99999999999999999999") == Fault::WrongType);
  CHECK(faultOf("dp=2,dp=2") == Fault::Inconsistent);
}

TEST_CASE("a mesh that is larger than the network does not fit", "[network]") {
  const Problem problem = problemOf(checkFits(pod(), Mesh{{{"dp", 1025}}}));
  CHECK(problem.fault == Fault::OutOfRange);
  CHECK(llvm::StringRef(problem.message).contains("1025"));
  CHECK_FALSE(bool(checkFits(pod(), Mesh{{{"dp", 128}, {"tp", 8}}})));
}
