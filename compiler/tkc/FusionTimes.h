//===- FusionTimes.h - what other choices of fusion would take ---*- C++ -*-===//
#ifndef TK_COMPILER_TKC_FUSIONTIMES_H
#define TK_COMPILER_TKC_FUSIONTIMES_H

#include "compiler/tkc/Commands.h"

#include <map>
#include <optional>
#include <string>

namespace tk::tkc {

/// Predicted microseconds of a kernel with either choice of fusion. A tensor is stored, or computed
/// where it is read; two compute ops stay apart, or become one. Nothing where there is no such
/// kernel.
struct FusionTimes {
  bool isMerge = false; ///< the choice is about two compute ops
  std::optional<double> separate, fused;

  const char *separateKey() const { return isMerge ? "apart_us" : "stored_us"; }
  const char *fusedKey() const { return isMerge ? "merged_us" : "inlined_us"; }
};

/// Both times of each tensor that tk-fuse-producers stored or inlined, and of each pair, "a+b",
/// about which tk-merge-computes decided. The kernel is lowered again with the other choice.
/// `ownTime` is the time of the choices that were made. Choices for which a few seconds do not
/// suffice are left out.
std::map<std::string, FusionTimes> fusionTimes(const SourceOptions &options,
                                               const std::string &target, const std::string &kernel,
                                               llvm::ArrayRef<CompiledSource::Remark> remarks,
                                               double ownTime, const std::string &ownPlan);

/// "stored: 12.1 us; computed where it is read: 61.4 us", or "apart: 12.1 us; merged: 9.4 us".
std::string textOf(const FusionTimes &times);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_FUSIONTIMES_H
