// Bundles: kernels compiled ahead of time, in one file that the runtime loads without a compiler.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tk/error.h"
#include "tk/module.h"
#include "tk/plan.h"

namespace tk {

/// Code of one kernel for one GPU architecture or for a level of CPUs, and what it assumes.
struct BundleVariant {
  std::string arch; ///< "sm_90a", "cpu-x86-64-v3"
  /// One entry a dimension, and one a tensor: the alignment that its address must have.
  Facts facts;
  LaunchPlan plan;
  std::string cubin; ///< of a CPU: the object file
  bool operator==(const BundleVariant &) const = default;
};

struct BundleKernel {
  Signature signature;
  std::vector<BundleVariant> variants; ///< of those that fit a call, the first is launched
  bool operator==(const BundleKernel &) const = default;
};

struct Bundle {
  std::vector<BundleKernel> kernels;
  bool operator==(const Bundle &) const = default;
};

/// The bytes of a bundle's file: a magic number, a format version, the contents, a checksum.
std::string encode(const Bundle &bundle);
/// Reads and verifies; fails with `bad_file`, saying of `name` what is wrong with it. Needs no GPU.
Expected<Bundle> decode_bundle(std::string_view bytes, const std::string &name = "<memory>");
Expected<Bundle> read_bundle(const std::string &path);

/// A module whose kernels launch the bundle's code on this machine's GPU; on its CPU if TK_TARGET
/// says so, or if the bundle has code for CPUs and there is no GPU, or no code for one. Fails with
/// the driver's error where there is no GPU and no code for CPUs, and with `unsupported` where the
/// bundle has no code for the GPU or the CPU; a launch fails with `unsupported` where no variant
/// covers its sizes or addresses. `Module::ir` has nothing to show.
Module load_bundle(const std::string &path);
Expected<Module> try_load_bundle(const std::string &path);
/// The same from bytes that are already in memory; they are copied.
Module load_bundle_bytes(std::string_view bytes, const std::string &name = "<memory>");
Expected<Module> try_load_bundle_bytes(std::string_view bytes,
                                       const std::string &name = "<memory>");

/// Whether code for an architecture such as "sm_80" or "sm_90a" runs on a GPU of that compute
/// capability: code with an "a" on that very one, other code on later ones of the same major
/// version too.
bool runs_on(std::string_view arch, int major, int minor);
/// Whether code that assumes `assumed` is right for a call of which `known` is known; facts without
/// tensors are those of aligned ones. Only strided tensors have strides that are not known anyway.
bool covers(const Facts &assumed, const Facts &known, const Signature &signature);
/// Facts for people: "M % 16 == 0, M <= 4096, addresses aligned to 16"; "any sizes" for none.
std::string describe(const Facts &facts, const Signature &signature);

} // namespace tk
