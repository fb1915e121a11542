//===- Collectives.h - how long a collective takes --------------*- C++ -*-===//
//
// The cost model of communication. A collective is described by the bytes of the whole array and by
// the group that runs it; predict() gives nanoseconds.
//
//   B       bytes of the array that is gathered, reduced or exchanged, over the whole group
//   n       devices of the group
//   r, m    devices of the group that exchange data through the links of a level; those of them
//           below one child of the level
//   W       bandwidth of the child's links, one direction, times the group's share of it
//
//   all-gather, reduce-scatter   max over levels of B (r - m) / r / W
//   all-reduce                   both; in a level with reductions in its switches B / W
//   all-to-all                   max over levels of B m (r - m) / n^2 / W, times the part that is
//                                sent
//   send                         max over levels of B / W
//   time                         least over protocols of base + steps * step + bytes / (W * share)
//   all-reduce by stores         B (r - m) / W: all of it goes to each of the others
//
// With one level this is B (N - 1) / N over the link, and B (N - 1) / N^2 for an all-to-all.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_NETWORK_COLLECTIVES_H
#define TK_PASSES_NETWORK_COLLECTIVES_H

#include "passes/network/Mesh.h"

namespace tk::network {

/// Nanoseconds of a collective.
struct CollectiveTime {
  double latency = 0;      ///< before and between the bytes
  double transfer = 0;     ///< of the bytes, on the busiest level
  size_t level = 0;        ///< the busiest level
  size_t protocol = 0;     ///< the fastest one
  bool inSwitches = false; ///< whether the switches of the busiest level reduce

  double total() const { return latency + transfer; }
};

/// Whether protocols of copies and stores may be taken, too: between launches of kernels they can.
enum class PeerAccess : bool { none, allowed };

/// The part of an all-to-all over n devices that is sent if each row goes to k of them.
double partOfTopK(double topK, double devices);

/// `part` scales the bytes of an all-to-all. A group of one device takes no time.
CollectiveTime predict(const Network &network, const Group &group, Collective collective,
                       double bytes, double part = 1, PeerAccess peers = PeerAccess::none);

/// Bytes a nanosecond of the array that a long all-gather of the group moves: the W of the limits
/// of parallelism (C / W, F W / C), with (N - 1) / N taken into account. Infinite for one device.
double bandwidthOf(const Network &network, const Group &group, Collective collective);

} // namespace tk::network

#endif // TK_PASSES_NETWORK_COLLECTIVES_H
