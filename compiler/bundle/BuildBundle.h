//===- BuildBundle.h - kernels compiled ahead of time ------------*- C++ -*-===//
#ifndef TK_COMPILER_BUNDLE_BUILDBUNDLE_H
#define TK_COMPILER_BUNDLE_BUILDBUNDLE_H

#include "compiler/CompiledSource.h"
#include "tk/bundle.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tk {

/// What one variant may assume.
struct VariantRequest {
  /// Sizes, of which it assumes what they share with others: their power-of-two divisor and the
  /// power of two above them.
  std::map<std::string, int64_t> sizes;
  bool general = false; ///< nothing of other dimensions; else what is usual (see usual_facts)
  /// Classes of sizes, of which it assumes their divisor and their bound.
  std::map<std::string, SizeClass> classes = {};
};

/// What a bundle is to hold: code of every kernel, for every architecture, in every variant.
struct BundleRequest {
  std::vector<size_t> kernels;
  std::vector<std::string> archs; ///< "sm_90a", "cpu-x86-64-v3", …
  std::vector<VariantRequest> variants;
};

/// What a text such as "T=1..8192,B=4" asks for: sizes, and ranges with their end and an optional
/// step (`T=64..8192:64`). A range makes a variant for each of its classes (see size_classes), with
/// those of other ranges combined.
Expected<std::vector<VariantRequest>> parseVariants(std::string_view text);

/// "cpu-x86-64-v4" from "cpu", which is this machine's level, or from itself; nothing for a GPU's
/// architecture. Fails for a level that bundles do not have.
Expected<std::optional<std::string>> cpuArch(std::string_view target);

/// Compiles; needs NVRTC for GPUs, but no GPU.
Expected<Bundle> buildBundle(CompiledSource &source, const BundleRequest &request);

} // namespace tk

#endif // TK_COMPILER_BUNDLE_BUILDBUNDLE_H
