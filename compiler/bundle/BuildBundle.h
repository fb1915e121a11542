//===- BuildBundle.h - kernels compiled ahead of time ------------*- C++ -*-===//
#ifndef TK_COMPILER_BUNDLE_BUILDBUNDLE_H
#define TK_COMPILER_BUNDLE_BUILDBUNDLE_H

#include "compiler/CompiledSource.h"
#include "tk/bundle.h"

#include <map>
#include <string>
#include <vector>

namespace tk {

/// What one variant may assume.
struct VariantRequest {
  /// Sizes, of which it assumes what they share with others: their power-of-two divisor and the
  /// power of two above them.
  std::map<std::string, int64_t> sizes;
  bool general = false; ///< nothing of other dimensions; else what is usual (see usual_facts)
};

/// What a bundle is to hold: code of every kernel, for every architecture, in every variant.
struct BundleRequest {
  std::vector<size_t> kernels;
  std::vector<std::string> archs; ///< "sm_90a", …
  std::vector<VariantRequest> variants;
};

/// Compiles; needs NVRTC but no GPU.
Expected<Bundle> buildBundle(CompiledSource &source, const BundleRequest &request);

} // namespace tk

#endif // TK_COMPILER_BUNDLE_BUILDBUNDLE_H
