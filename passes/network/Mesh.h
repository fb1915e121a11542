//===- Mesh.h - axes of parallelism on a network ----------------*- C++ -*-===//
//
// A mesh gives each GPU a coordinate on each axis. The axes are placed from the innermost out: GPUs
// that differ in the first axis only are neighbours. The GPUs that differ in some axes only are a
// group, which runs collectives. All groups of the same axes run theirs at the same time.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_NETWORK_MESH_H
#define TK_PASSES_NETWORK_MESH_H

#include "passes/network/Network.h"

namespace tk::network {

struct Axis {
  std::string name;
  int64_t size = 1;
};

/// Axes from the innermost to the outermost.
struct Mesh {
  std::vector<Axis> axes;

  int64_t numDevices() const;
  /// 1 for an axis that the mesh has not.
  int64_t sizeOf(llvm::StringRef axis) const;
};

/// Reads "dp=16,tp=8": axes in the order in which they are written.
llvm::Expected<std::vector<Axis>> parseAxes(llvm::StringRef text);

/// A group's place at one level of a network. Of all groups of the mesh and of all units, these are
/// the figures of the one whose links are busiest.
struct Span {
  double reach = 1;   ///< devices of the group that exchange data through links of the level
  double members = 1; ///< of these, devices below one child of the level
  double share = 1;   ///< of the child's links that the group has
  double units = 1;   ///< children of one unit that hold devices of the group
  bool isUsed() const { return reach > members; }
};

struct Group {
  double size = 1;
  std::vector<Span> spans; ///< one for each level
};

/// The group of the named axes. The mesh must fit on the network.
Group groupOf(const Network &network, const Mesh &mesh, llvm::ArrayRef<llvm::StringRef> axes);

/// Fails unless the network has as many GPUs as the mesh.
llvm::Error checkFits(const Network &network, const Mesh &mesh);

} // namespace tk::network

#endif // TK_PASSES_NETWORK_MESH_H
