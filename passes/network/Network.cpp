//===- Network.cpp - the network between GPUs -----------------------------===//
#include "passes/network/Network.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace tk::network {

StringRef nameOf(Collective collective) {
  static constexpr StringLiteral names[] = {"all-gather", "reduce-scatter", "all-reduce",
                                            "all-to-all", "send"};
  return names[static_cast<size_t>(collective)];
}

StringRef fieldOf(Collective collective) {
  static constexpr StringLiteral names[] = {"all_gather", "reduce_scatter", "all_reduce",
                                            "all_to_all", "send"};
  return names[static_cast<size_t>(collective)];
}

int64_t Network::devicesOfChild(size_t level) const {
  int64_t devices = 1;
  for (const Level &below : ArrayRef(levels).take_front(level))
    devices *= below.children;
  return devices;
}

int64_t Network::numDevices() const { return devicesOfChild(levels.size()); }

size_t Network::reachOf(size_t level) const {
  size_t top = level;
  while (top + 1 < levels.size() && !levels[top + 1].leavesDevices)
    ++top;
  return top;
}

namespace {

constexpr Range counts{1, 1 << 20}, bandwidths{1e-3, 1e6}, times{0, 1e6}, shares{1e-6, 1};
constexpr int64_t mostDevices = int64_t(1) << 16;
constexpr double nanosecondsOfMicrosecond = 1000;

std::string placeIn(StringRef list, size_t position) {
  return (list + "[" + Twine(position) + "]").str();
}

/// A number for all collectives, or an object with numbers by collective and `other` for the rest.
std::array<double, numCollectives> readByCollective(ObjectReader &reader, StringRef field,
                                                    Range range) {
  std::array<double, numCollectives> numbers = {};
  const json::Value *value = reader.value(field, true);
  if (!value)
    return numbers;
  if (value->kind() != json::Value::Object) {
    numbers.fill(reader.number(field, range));
    return numbers;
  }
  ObjectReader byName(*value, reader.placeOf(field), reader.faults());
  bool isComplete = true;
  for (size_t c = 0; c < numCollectives; ++c)
    isComplete &= byName.has(fieldOf(static_cast<Collective>(c)));
  const double other =
      byName.number("other", range, isComplete ? std::optional<double>(1.0) : std::nullopt);
  for (size_t c = 0; c < numCollectives; ++c)
    numbers[c] = byName.number(fieldOf(static_cast<Collective>(c)), range, other);
  return numbers;
}

std::vector<Protocol> readProtocols(ObjectReader &network) {
  std::vector<Protocol> protocols;
  const json::Array *list = network.array("protocols", true);
  if (!list)
    return protocols;
  if (list->empty())
    network.faults().add(Fault::OutOfRange, "protocols", "expected one protocol or more");
  for (const auto &[i, value] : enumerate(*list)) {
    ObjectReader reader(value, placeIn("protocols", i), network.faults());
    Protocol &protocol = protocols.emplace_back();
    protocol.name = reader.text("name");
    protocol.bases = readByCollective(reader, "base_us", times);
    for (double &base : protocol.bases)
      base *= nanosecondsOfMicrosecond;
    protocol.isRing = reader.choice("steps", {"tree", "ring"}, 1) == 1;
    protocol.means = static_cast<Means>(reader.choice("by", {"kernels", "copies", "stores"}, 0));
    protocol.multiprocessors = reader.number("multiprocessors", {0, 1024}, 0.0);
    reader.text("source", "");
    for (const Protocol &other : ArrayRef(protocols).drop_back())
      if (other.name == protocol.name)
        network.faults().add(Fault::Inconsistent, reader.placeOf("name"),
                             "two protocols are named '" + protocol.name + "'");
  }
  if (!list->empty() &&
      none_of(protocols, [](const Protocol &known) { return known.means == Means::Kernels; }))
    network.faults().add(Fault::Inconsistent, "protocols",
                         "all are by copies or stores, which do not pass every level: expected one "
                         "by kernels");
  return protocols;
}

void readTransports(ObjectReader &reader, ArrayRef<Protocol> protocols, Level &level) {
  const json::Value *value = reader.value("protocols", true);
  if (!value)
    return;
  ObjectReader byName(*value, reader.placeOf("protocols"), reader.faults());
  for (const Protocol &protocol : protocols) {
    Transport &transport = level.transports.emplace_back();
    const json::Value *entry = byName.value(protocol.name, protocol.means == Means::Kernels);
    if (!entry)
      continue;
    ObjectReader fields(*entry, byName.placeOf(protocol.name), reader.faults());
    transport.step = nanosecondsOfMicrosecond * fields.number("step_us", times);
    transport.shares = readByCollective(fields, "share", shares);
    transport.reductionShare = fields.number("reduction_share", {0, 1}, 0.0);
    fields.text("source", "");
  }
}

/// One number for both directions, or {"up": …, "down": …}.
void readBandwidth(ObjectReader &reader, Level &level) {
  const json::Value *value = reader.value("link_gb_s", true);
  if (!value)
    return;
  if (value->kind() != json::Value::Object) {
    level.up = level.down = reader.number("link_gb_s", bandwidths);
    return;
  }
  ObjectReader both(*value, reader.placeOf("link_gb_s"), reader.faults());
  level.up = both.number("up", bandwidths);
  level.down = both.number("down", bandwidths);
}

Level readLevel(ObjectReader &reader, ArrayRef<Protocol> protocols, bool isLowest) {
  Level level;
  level.name = reader.text("name");
  level.children = reader.integer("children", counts);
  level.links = reader.integer("links", counts);
  readBandwidth(reader, level);
  level.switches = reader.integer("switches", {0, counts.most});
  level.ports = level.switches || reader.has("ports") ? reader.integer("ports", counts) : 0;
  level.leavesDevices = isLowest || reader.choice("links_leave", {"devices", "switches"}, 1) == 0;
  readTransports(reader, protocols, level);
  level.source = reader.text("source", "");
  return level;
}

/// Ports of the switches: those to the children, and those to the level above.
void checkPorts(const Network &network, size_t i, FaultLog &faults) {
  const Level &level = network.levels[i];
  const std::string place = placeIn("levels", i) + ".switches";
  if (level.switches == 0) {
    if (level.children > 2)
      faults.add(Fault::Inconsistent, place,
                 "expected switches between " + Twine(level.children) +
                     " children; only two can have direct links");
    return;
  }
  int64_t needed = level.children * level.links;
  const bool isTop = i + 1 == network.levels.size();
  if (!isTop && !network.levels[i + 1].leavesDevices)
    needed += network.levels[i + 1].links;
  if (needed > level.switches * level.ports)
    faults.add(Fault::Inconsistent, place,
               "expected ports for " + Twine(needed) + " links, got " + Twine(level.switches) +
                   " switches of " + Twine(level.ports) + " ports");
}

void checkTree(const Network &network, FaultLog &faults) {
  int64_t devices = 1;
  for (const auto &[i, level] : enumerate(network.levels)) {
    devices *= level.children;
    if (devices > mostDevices) {
      faults.add(Fault::OutOfRange, placeIn("levels", i) + ".children",
                 "expected " + Twine(mostDevices) + " GPUs or fewer in all");
      return;
    }
    // Each GPU has the same number of links of its own.
    if (i > 0 && level.leavesDevices && level.links % network.devicesOfChild(i))
      faults.add(Fault::Inconsistent, placeIn("levels", i) + ".links",
                 "expected a multiple of the " + Twine(network.devicesOfChild(i)) +
                     " GPUs of a child, whose links these are, got " + Twine(level.links));
    checkPorts(network, i, faults);
    for (const Level &below : ArrayRef(network.levels).take_front(i))
      if (below.name == level.name)
        faults.add(Fault::Inconsistent, placeIn("levels", i) + ".name",
                   "two levels are named '" + level.name + "'");
  }
}

} // namespace

Expected<Network> parseNetwork(StringRef text) {
  Expected<json::Value> value = parseJson(text, "the network");
  if (!value)
    return value.takeError();
  FaultLog faults;
  Network network;
  {
    ObjectReader reader(*value, "", faults);
    reader.choice("format", {"tk network 1"}, 0);
    network.name = reader.text("name");
    network.device = reader.text("device");
    network.source = reader.text("source", "");
    network.protocols = readProtocols(reader);
    if (const json::Array *list = reader.array("levels", true)) {
      if (list->empty())
        faults.add(Fault::OutOfRange, "levels", "expected one level or more");
      for (const auto &[i, entry] : enumerate(*list)) {
        ObjectReader level(entry, placeIn("levels", i), faults);
        network.levels.push_back(readLevel(level, network.protocols, i == 0));
      }
    }
  }
  if (!faults.any())
    checkTree(network, faults);
  if (faults.any())
    return faults.take();
  return network;
}

} // namespace tk::network
