//===- Collectives.cpp - how long a collective takes ----------------------===//
#include "passes/network/Collectives.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tk::network {

double partOfTopK(double topK, double devices) { return std::min(topK / devices, 1.0); }

namespace {

/// The bytes that leave a child and those that enter it, of an array of one byte.
double bytesThrough(const Group &group, const Span &span, Collective collective, Means means) {
  switch (collective) {
  case Collective::AllGather:
  case Collective::ReduceScatter:
    return (span.reach - span.members) / span.reach;
  case Collective::AllReduce:
    if (means == Means::Stores) // all of it, to each of the others
      return span.reach - span.members;
    return 2 * (span.reach - span.members) / span.reach;
  case Collective::AllToAll:
    return span.members * (span.reach - span.members) / (group.size * group.size);
  case Collective::Send:
    return 1;
  }
  return 0;
}

/// Nanoseconds of one byte of the array through a level's links; `inSwitches` says how.
double timeOfByte(const Level &level, const Transport &transport, const Group &group,
                  const Span &span, Collective collective, Means means, bool &inSwitches) {
  // Links carry both directions at once, and each collective but the send uses both alike.
  const double bandwidth = std::min(level.outOfChild(), level.intoChild()) * span.share;
  const double share = transport.shares[static_cast<size_t>(collective)];
  const double usual = bytesThrough(group, span, collective, means) / (bandwidth * share);
  inSwitches = false;
  if (collective != Collective::AllReduce || transport.reductionShare <= 0)
    return usual;
  const double reduced = 1 / (bandwidth * transport.reductionShare);
  inSwitches = reduced < usual;
  return std::min(usual, reduced);
}

/// Whether a means does a collective at all.
bool does(Means means, Collective collective) {
  switch (means) {
  case Means::Kernels:
    return true;
  case Means::Copies:
    return collective == Collective::AllGather || collective == Collective::Send;
  case Means::Stores:
    return collective != Collective::Send;
  }
  return false;
}

/// The steps of a collective through one level.
double stepsOf(const Protocol &protocol, const Span &span, Collective collective, bool inSwitches) {
  if (collective == Collective::AllToAll || collective == Collective::Send ||
      protocol.means != Means::Kernels)
    return 1;
  if (inSwitches)
    return 2; // up to the switch and down from it
  const double steps = protocol.isRing ? span.units - 1 : std::ceil(std::log2(span.units));
  return collective == Collective::AllReduce ? 2 * steps : steps;
}

CollectiveTime timeWith(const Network &network, size_t protocol, const Group &group,
                        Collective collective, double bytes) {
  CollectiveTime time;
  time.protocol = protocol;
  const Means means = network.protocols[protocol].means;
  time.latency = network.protocols[protocol].bases[static_cast<size_t>(collective)];
  if (means == Means::Copies && collective == Collective::AllGather)
    time.latency *= group.size - 1; // one copy after the other
  double highest = 0;
  for (size_t i = 0; i < network.levels.size(); ++i) {
    const Span &span = group.spans[i];
    if (!span.isUsed())
      continue;
    const Level &level = network.levels[i];
    const Transport &transport = level.transports[protocol];
    bool inSwitches = false;
    const double transfer =
        bytes * timeOfByte(level, transport, group, span, collective, means, inSwitches);
    const double steps = stepsOf(network.protocols[protocol], span, collective, inSwitches);
    // Data that is sent once goes straight to its device: only the slowest level counts.
    if (collective == Collective::AllToAll || collective == Collective::Send)
      highest = std::max(highest, transport.step);
    else
      time.latency += steps * transport.step;
    if (transfer > time.transfer) {
      time.transfer = transfer;
      time.level = i;
      time.inSwitches = inSwitches;
    }
  }
  time.latency += highest;
  return time;
}

} // namespace

CollectiveTime predict(const Network &network, const Group &group, Collective collective,
                       double bytes, double part, PeerAccess peers) {
  CollectiveTime best;
  if (group.size <= 1 || bytes <= 0)
    return best;
  if (collective == Collective::AllToAll)
    bytes *= part;
  bool isFirst = true;
  for (size_t p = 0; p < network.protocols.size(); ++p) {
    const Means means = network.protocols[p].means;
    if ((means != Means::Kernels && peers == PeerAccess::none) || !does(means, collective))
      continue;
    CollectiveTime time = timeWith(network, p, group, collective, bytes);
    if (isFirst || time.total() < best.total())
      best = time;
    isFirst = false;
  }
  return best;
}

double bandwidthOf(const Network &network, const Group &group, Collective collective) {
  if (group.size <= 1)
    return std::numeric_limits<double>::infinity();
  double most = 0;
  for (size_t p = 0; p < network.protocols.size(); ++p)
    if (network.protocols[p].means == Means::Kernels)
      most = std::max(most, 1 / timeWith(network, p, group, collective, 1).transfer);
  return most;
}

} // namespace tk::network
