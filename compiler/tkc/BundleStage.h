//===- BundleStage.h - tkc build --emit bundle -------------------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_BUNDLESTAGE_H
#define TK_COMPILER_TKC_BUNDLESTAGE_H

#include "compiler/tkc/Commands.h"

namespace tk::tkc {

/// The options of `build` that concern bundles alone.
struct BundleOptions {
  std::vector<std::string> variants; ///< NAME=INT,…
  std::string sourceBase;
  std::string nameSpace;
  std::string depfile; ///< of any stage

  void addTo(CLI::App &command);
};

/// Writes a bundle of all kernels, or the one named, for the targets named; returns the exit code.
int emitBundle(SourceOptions &options, const BundleOptions &bundle, const std::string &output);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_BUNDLESTAGE_H
