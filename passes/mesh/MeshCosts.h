//===- MeshCosts.h - what a rank's work and its messages cost ---*- C++ -*-===//
//
// Times by which placements are compared: those of collectives from the description of the network
// (passes/network), those of work from the machine that its ranks are (passes/machine). Times are
// in nanoseconds.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MESH_MESHCOSTS_H
#define TK_PASSES_MESH_MESHCOSTS_H

#include "dialects/tk/TkMeshOps.h"
#include "passes/machine/Machine.h"
#include "passes/network/Collectives.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace tk::mesh {

/// A size that is not known.
inline constexpr double usualSize = 4096;

/// The network that `text` describes or names; empty: that of one node of H200s, or for meshes with
/// more ranks than it has that of 1024 H100s. The error is a DescriptionError.
llvm::Expected<network::Network> networkFor(llvm::StringRef text,
                                            llvm::ArrayRef<MeshAxisInfo> axes);

/// Launches of `blocks` blocks of rows, each of which but one is on its way for `transfer` before
/// its launch, or behind it. The longer of both runs without a pause, but that streams wait for
/// each other. Transfers that hold multiprocessors leave no place for some thread blocks of the
/// launch beside them, which has a thread block for each: it ends as late as if it began behind
/// them.
double timeByRows(double blocks, double launch, const network::CollectiveTime &transfer,
                  bool isHeld);

class MeshCosts {
public:
  MeshCosts(network::Network network, llvm::ArrayRef<MeshAxisInfo> axes);
  /// Of a kernel with the attributes of TkMeshOps.h.
  static llvm::Expected<MeshCosts> of(KernelOp kernel);

  /// A collective over the axis of that number, by copies where those are faster. `bytes` are those
  /// of the whole array.
  network::CollectiveTime collective(network::Collective kind, size_t axis, double bytes) const;
  double timeOf(network::Collective kind, size_t axis, double bytes) const {
    return collective(kind, axis, bytes).total();
  }
  /// An exchange of whole blocks, of which `bytes` lie on a rank: as an all-to-all, or as sends.
  network::CollectiveTime exchange(size_t axis, double bytes) const;
  /// Whether a transfer holds multiprocessors.
  bool isHeld(const network::CollectiveTime &time) const {
    return network.protocols[time.protocol].multiprocessors > 0;
  }
  /// Whether copy engines do it.
  bool isCopied(const network::CollectiveTime &time) const {
    return network.protocols[time.protocol].means == network::Means::Copies;
  }
  /// Sizes up to which stores into the memory of the peers are the fastest, and from which copies
  /// by copy engines are.
  struct Bounds {
    int64_t storedUpTo = 0, copiedFrom = 0;
  };
  Bounds boundsOf(llvm::function_ref<network::CollectiveTime(double bytes)> timeOf) const;
  /// Multiply-adds of a product of matrices with operands of a type, on one rank.
  double products(double multiplyAdds, mlir::Type operands) const;
  /// Work that memory bounds, by the bytes that it reads and writes.
  double bytes(double count) const { return count / machine.device.copyRate(); }

  const network::Network &description() const { return network; }
  const Machine &rank() const { return machine; }

private:
  network::Network network;
  Machine machine;
  std::vector<network::Group> groups; ///< by axis
};

} // namespace tk::mesh

#endif // TK_PASSES_MESH_MESHCOSTS_H
