// Checking of arguments against a signature, and what a bound kernel holds.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/cpu/CpuLaunch.h"
#include "runtime/cuda/GpuLaunch.h"
#include "runtime/cuda/Memory.h"
#include "runtime/emu/EmuLaunch.h"
#include "tk/module.h"

namespace tk::detail {

/// Where each scratch buffer lies in one allocation; what launches restore lies before it.
struct ScratchLayout {
  std::vector<int64_t> offsets;
  std::vector<int64_t> bytes;
  int64_t total = 0;     ///< a multiple of 256
  bool restores = false; ///< something is 0 whenever no launch uses it
};

/// Throws `overflow` where a buffer's size does.
ScratchLayout lay_out_scratch(const LaunchPlan &plan, std::span<const Scalar> variables);

/// Arguments sorted by tensor and scalar number.
struct Arguments {
  std::vector<std::optional<TensorView>> tensors;
  std::vector<std::optional<Scalar>> scalars;
};

/// Sorts arguments that come by name or in the signature's order. Throws `invalid_argument`.
Arguments sort_named(const Signature &signature, std::span<const NamedValue> values);
Arguments sort_positional(const Signature &signature, std::span<const Value> values);

/// The arguments after every check that needs no compiled code.
struct CheckedArguments {
  std::vector<TensorView> tensors;
  std::vector<Scalar> variables; ///< dimensions, then scalars
  std::vector<int64_t> dims;
  Device device;
};

/// Checks types, ranks, devices, strides, dimensions, sizes, constraints, storage and overlap.
CheckedArguments check_arguments(const Signature &signature, const Arguments &arguments,
                                 Device::Kind device);
/// The checks that depend on addresses: null, alignment, overlap of results with other tensors.
void check_addresses(const Signature &signature, std::span<const TensorView> tensors,
                     std::span<void *const> pointers);
/// The facts of checked arguments: alignments up to 16 bytes; strides of strided tensors alone.
Facts facts_of(const Signature &signature, const CheckedArguments &checked);

/// Weakens the facts of a launch to those that also hold for the sizes `plan`, of dimensions by
/// name; see CompileOptions::plan_dims.
void plan_for(Facts &facts, const Signature &signature, const CheckedArguments &checked,
              const std::map<std::string, int64_t> &plan);

/// Is every buffer between the launches of a plan below small_tensor_limit?
bool scratch_is_small(const LaunchPlan &plan, std::span<const Scalar> variables);

/// One compiled variant of a kernel, with its code loaded on the devices that used it.
struct Variant {
  Facts facts;
  Executable executable;
};

class BoundImpl {
public:
  std::shared_ptr<const Variant> variant;
  const Signature *signature = nullptr;
  CheckedArguments checked;
  std::vector<uint32_t> alignments; ///< bytes, a tensor
  std::vector<bool> empty_tensor;
  int64_t scratch_bytes = 0;
  bool stands_in = false; ///< its variant is a general one: another is compiled meanwhile
  bool restores = false;  ///< its launches count on what those before them left at 0
  cpu::ResolvedPlan cpu;
  cuda::ResolvedPlan gpu;
  EmulatedPlan emulated;
  std::shared_ptr<cuda::ScratchPool> scratch;
  std::shared_ptr<const BoundImpl> gather_checks; ///< run before; null where there are none

  void launch(Stream stream, std::span<void *const> pointers) const;
};

/// Runs a kernel that checks gathers on a kernel's addresses, waits for it, and throws
/// `index_out_of_bounds` for the first index that is outside.
void check_gathers(const BoundImpl &checks, Stream stream, std::span<void *const> pointers);

} // namespace tk::detail
