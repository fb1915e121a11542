// The plan of a kernel on a mesh of ranks, as plain data: which local kernels each rank launches,
// and the collectives between them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tk/dtype.h"
#include "tk/expr.h"
#include "tk/plan.h"

namespace tk {

/// An axis of a mesh, and how many ranks stand along it.
struct MeshAxis {
  std::string name;
  int64_t size = 1;
  bool operator==(const MeshAxis &) const = default;
};

/// A tensor of a rank.
struct MeshTensor {
  enum class Kind : uint8_t { parameter, result, temporary };
  Kind kind = Kind::temporary;
  uint32_t index = 0; ///< of Signature::tensor; not for temporaries
  std::string name;
  DType dtype = DType::f32;
  std::vector<DimExpr> shape;        ///< on a rank, over the variables of the kernel's signature
  std::vector<std::string> sharding; ///< of parameters and results: an axis for each extent, or ""
  bool operator==(const MeshTensor &) const = default;
};

/// An integer or scalar argument of a local kernel.
struct MeshScalar {
  enum class Kind : uint8_t { value, argument, rank };
  Kind kind = Kind::value;
  uint32_t index = 0; ///< the scalar argument, or the axis whose position it is
  DimExpr value;
  bool operator==(const MeshScalar &) const = default;
};

/// How partial results are combined.
enum class MeshCombine : uint8_t { sum, prod, max, min, any, all };

struct MeshStep {
  enum class Kind : uint8_t {
    launch,
    all_gather,
    all_reduce,
    reduce_scatter,
    all_to_all,
    exchange, ///< block `r` of the rows goes to rank `r`, where it becomes the sender's block
    copy,
    gather_launch,   ///< an all_gather whose blocks of rows are launched as they arrive
    launch_exchange, ///< launches of blocks of rows, each of which an exchange sends
  };
  static constexpr uint32_t no_tensor = ~uint32_t{0};
  Kind kind = Kind::launch;
  // Of a launch, and of the kinds that hold one.
  uint32_t kernel = 0; ///< of ShardedKernel::locals
  std::string symbol;
  std::vector<uint32_t> inputs, outputs; ///< MeshPlan::tensors, in the kernel's order
  std::vector<MeshScalar> scalars;
  /// Whether an input or an output is taken by blocks of rows, if launches are; as long as these.
  std::vector<uint8_t> sliced_inputs, sliced_outputs;
  // Of the others: from one tensor to another.
  uint32_t from = 0, to = 0;
  uint32_t axis = 0;
  MeshCombine combine = MeshCombine::sum;
  uint32_t dim = 0;    ///< that is gathered, scattered, or made whole
  uint32_t to_dim = 0; ///< all_to_all: that becomes sharded
  /// exchange: i32 tensors with the rows of each block that count, as they are sent and received.
  /// Without them, and where the device alone knows them, whole blocks are sent.
  uint32_t sent = no_tensor, received = no_tensor;
  bool launches() const {
    return kind == Kind::launch || kind == Kind::gather_launch || kind == Kind::launch_exchange;
  }
  bool communicates() const { return kind != Kind::launch && kind != Kind::copy; }
  bool operator==(const MeshStep &) const = default;
};

struct MeshPlan {
  std::vector<MeshAxis> axes;
  std::vector<MeshTensor> tensors;
  std::vector<MeshStep> steps;
  std::vector<Check> checks; ///< beside those of the signature: that axes divide extents
  /// Readable text, one line a step.
  std::string str(const Signature &signature) const;
  /// The collectives among the steps.
  size_t num_collectives() const;
  bool operator==(const MeshPlan &) const = default;
};

std::string_view name(MeshStep::Kind kind) noexcept;
std::string_view name(MeshCombine combine) noexcept;

} // namespace tk
