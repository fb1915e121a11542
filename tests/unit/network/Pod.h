// A network without latency, on which collectives can be calculated by hand: 4 * 32 nodes of 8
// GPUs.
#ifndef TK_TESTS_UNIT_NETWORK_POD_H
#define TK_TESTS_UNIT_NETWORK_POD_H

#include "passes/network/Collectives.h"
#include "tests/unit/catch.h"

#include "llvm/Support/MemoryBuffer.h"

#include <cmath>
#include <string>

namespace tk::network {

inline const char *podText = R"({
  "name": "pod", "device": "H100",
  "protocols": [{"name": "p", "base_us": 0}],
  "levels": [
    {"name": "node", "children": 8, "links": 18, "link_gb_s": 25, "switches": 4, "ports": 64,
     "protocols": {"p": {"step_us": 0, "share": 1}}},
    {"name": "leaf", "children": 32, "links": 8, "link_gb_s": 50, "links_leave": "devices",
     "switches": 8, "ports": 64, "protocols": {"p": {"step_us": 0, "share": 1}}},
    {"name": "spine", "children": 4, "links": 256, "link_gb_s": 50, "links_leave": "switches",
     "switches": 16, "ports": 64, "protocols": {"p": {"step_us": 0, "share": 1}}}
  ]
})";

inline Network readNetwork(llvm::StringRef text) {
  llvm::Expected<Network> network = parseNetwork(text);
  std::string message;
  if (!network)
    message = llvm::toString(network.takeError());
  INFO(message);
  REQUIRE(message.empty());
  return std::move(*network);
}

inline Network pod() { return readNetwork(podText); }

/// A file of examples/.
inline std::string example(const std::string &name) {
  auto buffer = llvm::MemoryBuffer::getFile(std::string(TK_EXAMPLES) + "/" + name);
  INFO(name);
  REQUIRE(bool(buffer));
  return (*buffer)->getBuffer().str();
}

inline bool isNear(double value, double expected, double tolerance = 1e-9) {
  return std::abs(value - expected) <= tolerance * std::abs(expected);
}

} // namespace tk::network

#endif // TK_TESTS_UNIT_NETWORK_POD_H
