//===- ViewChoices.h - what else the compiler could have done ----*- C++ -*-===//
#ifndef TK_COMPILER_TKC_VIEWCHOICES_H
#define TK_COMPILER_TKC_VIEWCHOICES_H

#include "compiler/KernelView.h"
#include "compiler/tkc/Commands.h"

#include "llvm/Support/JSON.h"

namespace tk::tkc {

/// Predicted times of a kernel as it is, without each rewrite that the passes report, and with
/// schedules that differ from its plan in one entry. Null where the kernel's time is not known.
llvm::json::Value choicesOf(const SourceOptions &options, const std::string &target,
                            const std::string &kernel, const KernelView &view);

/// The plan of the kernel with the view's schedule block: empty if it is the view's own, null where
/// there is no block, or no plan with it.
llvm::json::Value planWithBlock(const SourceOptions &options, const std::string &target,
                                const std::string &kernel, const KernelView &view);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_VIEWCHOICES_H
