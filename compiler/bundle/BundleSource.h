//===- BundleSource.h - C++ that carries a bundle ----------------*- C++ -*-===//
#ifndef TK_COMPILER_BUNDLE_BUNDLESOURCE_H
#define TK_COMPILER_BUNDLE_BUNDLESOURCE_H

#include "tk/plan.h"

#include <string>
#include <vector>

namespace tk {

/// A header with one typed function a kernel, and the source file that defines them and embeds the
/// bundle's bytes.
struct BundleSource {
  std::string header, source;
};

struct BundleSourceOptions {
  std::string tkFile;     ///< where the kernels come from, for the comment
  std::string nameSpace;  ///< of the functions
  std::string headerName; ///< what the source file includes
  std::string bundlePath; ///< what it embeds
};

BundleSource printBundleSource(const std::vector<Signature> &signatures,
                               const BundleSourceOptions &options);

/// A C++ identifier from any text: "flash-attn" becomes "flash_attn".
std::string cxxIdentifier(const std::string &text);

} // namespace tk

#endif // TK_COMPILER_BUNDLE_BUNDLESOURCE_H
