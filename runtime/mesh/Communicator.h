// How the ranks of a mesh exchange tensors.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/mesh/StepBounds.h"
#include "tk/mesh_plan.h"
#include "tk/module.h"

namespace tk::detail {

/// A collective of a plan on this rank's tensors, which are dense.
struct CollectiveCall {
  const MeshStep *step = nullptr;
  size_t axis = 0; ///< of the mesh
  DType dtype = DType::f32;
  Extents from_shape, to_shape;
  const void *from = nullptr;
  void *to = nullptr;
  const void *sent = nullptr, *received = nullptr; ///< see MeshStep
  void *landing = nullptr;                         ///< see Communicator::landing_bytes
  StepBounds bounds = {};
};

/// Launches what a plan computes of the block of rows of that number.
using LaunchBlock = std::function<void(size_t block)>;

class Communicator {
public:
  virtual ~Communicator() = default;
  virtual const std::vector<MeshAxis> &axes() const = 0;
  virtual int64_t rank() const = 0;
  /// See MeshOptions.
  virtual const std::string &network() const = 0;
  /// Whether the kernels of a target can be launched on this rank.
  virtual bool takes(std::string_view target) const = 0;
  /// Throws `rank_lost` where a rank does not come in time or the group was aborted.
  virtual void run(const CollectiveCall &call, Stream stream) = 0;
  /// Runs collectives of which none reads what another one writes.
  virtual void run_together(std::span<const CollectiveCall> calls, Stream stream) {
    for (const CollectiveCall &call : calls)
      run(call, stream);
  }
  /// Runs a gather_launch: the block of this rank first, then those of its peers as they arrive; or
  /// a launch_exchange: the blocks for its peers, each sent behind its launch, and its own at last.
  virtual void run_by_rows(const CollectiveCall &call, Stream stream,
                           const LaunchBlock &launch) = 0;
  /// The texts of all ranks, in their order; all ranks call it.
  virtual std::vector<std::string> exchange(const std::string &own) = 0;
  virtual void abort(std::string_view reason) = 0;
  /// A step along an axis of one rank.
  virtual void run_alone(const CollectiveCall &call, Stream stream);
  /// Where the tensors of this rank lie.
  virtual Device device() const { return Device::cpu(); }
  /// Whether `exchange` is for the first call of given sizes alone, as it waits for the device.
  virtual bool compares_once() const { return false; }
  /// Memory for what lies between the steps of one launch on a stream, aligned to 256 bytes.
  /// `has_blocks` says whether peers send blocks into it beside launches.
  virtual std::shared_ptr<void> temporaries(int64_t bytes, Stream stream, bool has_blocks);

  /// How much memory beside the tensors a collective needs, which peers write to; `is_in_window`
  /// says whether its result lies between launches. The call has no addresses yet.
  virtual int64_t landing_bytes(const CollectiveCall & /*call*/, bool /*is_in_window*/) const {
    return 0;
  }

  int64_t position(size_t axis) const;
  int64_t size() const;
};

/// The ranks that differ from `rank` in their position along `axis` alone, in order.
std::vector<int64_t> peers_along(const std::vector<MeshAxis> &axes, int64_t rank, size_t axis);

/// The bytes that StepBounds are about.
int64_t array_bytes(const CollectiveCall &call, size_t ranks);

/// The bytes of a block of an exchange between `ranks` ranks; those that are sent to a rank and
/// received from one, by the counts of the call, which lie in host memory.
size_t block_bytes(const CollectiveCall &call, size_t ranks);
size_t sent_bytes(const CollectiveCall &call, size_t block, size_t ranks);
size_t received_bytes(const CollectiveCall &call, size_t block, size_t ranks);

/// Computes a rank's part of a collective in host memory, from the tensors of its peers in the
/// order of their positions. Partial results are added in that order, so that every rank gets the
/// same.
void combine_on_host(const CollectiveCall &call, std::span<const void *const> peers,
                     size_t position);

} // namespace tk::detail
