//===- NarrowestCut.cpp - what to keep of an expression -------------------===//
//
// A minimum cut through values, by the largest flow from what is there to what is needed (Ford and
// Fulkerson): each value is an edge that its bits pass, each use one without limit. The values cut
// are those whose start is still reached and whose end is not.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/NarrowestCut.h"

#include <algorithm>

using namespace tk;

unsigned NarrowestCut::add(int64_t bits) {
  unsigned value = edgesOf.size() / 2 - 1;
  edgesOf.resize(edgesOf.size() + 2);
  connect(startOf(value), endOf(value), bits);
  return value;
}

void NarrowestCut::connect(unsigned from, unsigned to, int64_t room) {
  edgesOf[from].push_back(edges.size());
  edges.push_back({to, room});
  edgesOf[to].push_back(edges.size());
  edges.push_back({from, 0});
}

/// Sends up to `most` from `node` to the sink by a way of nodes not seen; returns how much.
int64_t NarrowestCut::push(unsigned node, int64_t most, llvm::BitVector &seen) {
  if (node == sink)
    return most;
  seen.set(node);
  for (unsigned number : edgesOf[node]) {
    Edge edge = edges[number];
    if (edge.room == 0 || seen.test(edge.to))
      continue;
    if (int64_t sent = push(edge.to, std::min(most, edge.room), seen)) {
      edges[number].room -= sent;
      edges[number ^ 1].room += sent;
      return sent;
    }
  }
  return 0;
}

llvm::SmallVector<unsigned> NarrowestCut::find() {
  llvm::BitVector seen(edgesOf.size());
  while (push(source, all, seen) != 0)
    seen.reset();
  llvm::SmallVector<unsigned> cut;
  for (unsigned value = 0; startOf(value) < edgesOf.size(); ++value)
    if (seen.test(startOf(value)) && !seen.test(endOf(value)))
      cut.push_back(value);
  return cut;
}
