//===- Network.h - the network between GPUs ---------------------*- C++ -*-===//
//
// A network is a tree. Its leaves are GPUs. A unit of level 0 holds GPUs (a node), a unit of level
// 1 holds units of level 0 (the nodes below one group of leaf switches), and so on. Each child of a
// level has links to the switches of its level. Bandwidths are in bytes a nanosecond (GB/s) and one
// direction, times in nanoseconds. docs/explanation/network-model.md has the formulas and the
// reasons, docs/reference/mesh.md the fields of the file.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_NETWORK_NETWORK_H
#define TK_PASSES_NETWORK_NETWORK_H

#include "passes/network/Fields.h"

#include <array>

namespace tk::network {

/// A collective operation, or the send of a pipeline's stage to the next.
enum class Collective : uint8_t { AllGather, ReduceScatter, AllReduce, AllToAll, Send };
inline constexpr size_t numCollectives = 5;
/// "all-gather", as the report has it.
llvm::StringRef nameOf(Collective collective);
/// "all_gather", as descriptions have it.
llvm::StringRef fieldOf(Collective collective);

/// What moves the data of a protocol: kernels of a library; copy engines, which gather and send
/// only; or stores of one kernel into the memory of the peers, which does all but send. The latter
/// two do not go through every level.
enum class Means : uint8_t { Kernels, Copies, Stores };

/// A way in which data is moved: low latency at a part of the rate, or the full rate.
struct Protocol {
  std::string name;
  std::array<double, numCollectives> bases = {}; ///< of a collective, beside its steps
  bool isRing = false;                           ///< n - 1 steps between n units, else log2(n)
  Means means = Means::Kernels;
  double multiprocessors = 0; ///< of a GPU, which a transfer holds
};

/// What a protocol reaches at one level.
struct Transport {
  double step = 0;                                ///< latency of one step
  std::array<double, numCollectives> shares = {}; ///< of the links' bandwidth; 0: not possible
  /// Of the bandwidth, in bytes of the array, of an all-reduce in the switches; 0: they reduce
  /// nothing.
  double reductionShare = 0;
};

struct Level {
  std::string name;
  int64_t children = 1;
  int64_t links = 1;               ///< from each child to the switches of this level
  double up = 0, down = 0;         ///< bandwidth of one link, out of the child and into it
  int64_t switches = 0, ports = 0; ///< switches of one unit, and ports of each; none: direct links
  bool leavesDevices = true;       ///< the links start at GPUs, not at the switches below
  std::vector<Transport> transports; ///< one for each protocol of the network
  std::string source;                ///< where the figures come from

  double outOfChild() const { return static_cast<double>(links) * up; }
  double intoChild() const { return static_cast<double>(links) * down; }
};

struct Network {
  std::string name, source;
  std::string device; ///< a row of Devices.def
  std::vector<Protocol> protocols;
  std::vector<Level> levels; ///< from the GPUs up

  int64_t numDevices() const;
  /// GPUs below one child of the level; below one unit of it.
  int64_t devicesOfChild(size_t level) const;
  int64_t devicesOfUnit(size_t level) const { return devicesOfChild(level + 1); }
  /// The level up to whose units data moves through the links of `level`: data from above the first
  /// level whose links leave the GPUs themselves does not pass here.
  size_t reachOf(size_t level) const;
};

/// The description of examples/networks that has this name, such as "h200-pair".
std::optional<llvm::StringRef> shippedNetwork(llvm::StringRef name);

/// Reads a description; the error is a DescriptionError.
llvm::Expected<Network> parseNetwork(llvm::StringRef text);

} // namespace tk::network

#endif // TK_PASSES_NETWORK_NETWORK_H
