//===- Profile.h - what a kernel's launches take when they run ---*- C++ -*-===//
#ifndef TK_COMPILER_TKC_PROFILE_H
#define TK_COMPILER_TKC_PROFILE_H

#include "compiler/KernelView.h"
#include "compiler/tkc/Commands.h"
#include "compiler/tkc/Inputs.h"

#include "llvm/Support/JSON.h"

namespace tk::tkc {

/// Measures a kernel on its target: the median time of each launch alone and of a whole call, and
/// the rate of a large copy. Where Nsight Compute is found, also the reasons for which warps
/// waited, by line. Fails with `no_device` and the like on a machine without a GPU.
Expected<llvm::json::Object> profileKernel(const ChosenKernel &chosen, const SourceOptions &options,
                                           const ArgumentTexts &texts, const std::string &target,
                                           const KernelView &view);

/// What a document of `tkc view --json` has of a profile; `path` is its file. Fails where the
/// document is of another kernel, other sizes or another target, or has none.
Expected<llvm::json::Object> readProfile(const std::string &path, const std::string &kernel,
                                         const std::string &target, const llvm::json::Object &dims);

/// Samples of Nsight Compute's source page, as CSV, by the places of the view.
Expected<llvm::json::Object> readStalls(llvm::StringRef csv, const KernelView &view);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_PROFILE_H
