// Sharded kernels on a mesh of ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tk/mesh_plan.h"
#include "tk/module.h"
#include "tk/npy.h"

namespace tk {

namespace detail {
class Communicator;
class MeshKernelImpl;
} // namespace detail

struct MeshOptions {
  /// How long a rank waits for the others before it fails with `rank_lost`.
  std::chrono::milliseconds timeout{30000};
  /// The network between the ranks, by whose costs collectives are chosen: the text of a
  /// description (docs/reference/mesh.md), or the name of one that tk has. Empty: "h200-node", or
  /// for more than its 8 GPUs "h100-superpod". All ranks give the same.
  std::string network;
};

/// One rank's place in a mesh. Ranks are numbered in row-major order of the axes. A handle: copies
/// are the same rank.
class Mesh {
public:
  /// A group of ranks that are threads of this process, for the targets cpu and emu: one mesh a
  /// rank. Each is to be used by one thread at a time, and all of them make the same calls in the
  /// same order.
  static std::vector<Mesh> threads(std::span<const MeshAxis> axes, MeshOptions options = {});
  static std::vector<Mesh> threads(std::initializer_list<MeshAxis> axes, MeshOptions options = {}) {
    return threads(std::span(axes.begin(), axes.size()), std::move(options));
  }

  /// A rank of a group of processes on this machine, for the targets cpu and emu. All ranks give
  /// the same `path`: files begin with it that hold what they exchange, in a folder that all may
  /// write, best one in memory such as /dev/shm. None of them is there before, and none once all
  /// ranks are gone. Returns once all ranks are here, and fails with `rank_lost` where one does not
  /// come.
  static Mesh process(const std::string &path, int64_t rank, std::span<const MeshAxis> axes,
                      MeshOptions options = {});

  const std::vector<MeshAxis> &axes() const;
  int64_t size() const; ///< ranks
  int64_t rank() const; ///< this one
  /// The position of this rank along an axis.
  int64_t position(size_t axis) const;
  /// Makes every wait of the group, on any rank, fail with `rank_lost` and this reason.
  void abort(std::string_view reason) const;

  Mesh() = default;
  explicit Mesh(std::shared_ptr<detail::Communicator> impl) : m_impl(std::move(impl)) {}
  detail::Communicator &impl() const;

private:
  std::shared_ptr<detail::Communicator> m_impl;
};

/// A sharded kernel on a rank of a mesh. Used by one thread at a time. The axes that the kernel
/// names must be axes of the mesh; ranks along other axes compute the same.
class MeshKernel {
public:
  /// Derives the collectives, and compiles; throws `invalid_argument` where the mesh lacks an axis.
  MeshKernel(const Kernel &kernel, const Mesh &mesh);
  /// The kernel on whole tensors.
  const Signature &signature() const;
  /// The plan of the last call; before the first one, that of sizes that are not known. Collectives
  /// are chosen by the cost for the sizes of a call, each rounded up to a power of two.
  const MeshPlan &plan() const;
  /// The shapes of this rank's shares of the results, for given parameters.
  std::vector<Extents> result_shapes(std::span<const NamedValue> inputs) const;
  /// Runs this rank's part: arguments by name, each with the rank's own share. The first call for
  /// given sizes compares program, sizes and plan with those of the other ranks, and fails with
  /// `mesh_mismatch` where they differ.
  void operator()(Stream stream, std::span<const NamedValue> inputs,
                  std::span<const NamedValue> outputs) const;
  void operator()(Stream stream, std::initializer_list<NamedValue> inputs,
                  std::initializer_list<NamedValue> outputs) const {
    (*this)(stream, std::span(inputs.begin(), inputs.size()),
            std::span(outputs.begin(), outputs.size()));
  }
  Status try_launch(Stream stream, std::span<const NamedValue> inputs,
                    std::span<const NamedValue> outputs) const;

private:
  std::shared_ptr<detail::MeshKernelImpl> m_impl;
};

/// The part of a whole tensor that one rank holds, copied into a dense tensor in host memory.
/// `positions` are the rank's along each of the mesh's axes. Fails with `constraint_failed` where
/// an axis does not divide an extent.
Expected<HostTensor> share_of(const TensorView &whole, std::span<const std::string> sharding,
                              std::span<const MeshAxis> axes, std::span<const int64_t> positions);
/// Puts a rank's share back into the whole tensor.
Status put_share(const TensorView &share, const TensorView &whole,
                 std::span<const std::string> sharding, std::span<const MeshAxis> axes,
                 std::span<const int64_t> positions);

} // namespace tk
