//===- FusionTimes.h - what it would take to store, or not -------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_FUSIONTIMES_H
#define TK_COMPILER_TKC_FUSIONTIMES_H

#include "compiler/tkc/Commands.h"

#include <map>
#include <optional>
#include <string>

namespace tk::tkc {

/// Predicted microseconds of a kernel that stores a tensor, and of one that computes the tensor
/// where it is read. Nothing where there is no such kernel.
struct FusionTimes {
  std::optional<double> stored, inlined;
};

/// Both times of each tensor that tk-fuse-producers stored or inlined. The kernel is lowered again
/// with the other choice. `ownTime` is the time of the choices that were made.
std::map<std::string, FusionTimes> fusionTimes(const SourceOptions &options,
                                               const std::string &target, const std::string &kernel,
                                               llvm::ArrayRef<CompiledSource::Remark> remarks,
                                               double ownTime, const std::string &ownPlan);

/// "stored: 12.1 us; computed where it is read: 61.4 us".
std::string textOf(const FusionTimes &times);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_FUSIONTIMES_H
