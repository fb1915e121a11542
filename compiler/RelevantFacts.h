//===- RelevantFacts.h - what a variant depends on --------------*- C++ -*-===//
#ifndef TK_COMPILER_RELEVANTFACTS_H
#define TK_COMPILER_RELEVANTFACTS_H

#include "dialects/tk/TkDialect.h"

#include <string_view>
#include <vector>

namespace tk {

/// Is the text of kernels for `target` CUDA, as for sm_90a and emu?
bool isGpuText(std::string_view target);

/// By dimension: does a reduction or scan of the kernel run over it?
std::vector<bool> findReducedDims(KernelOp kernel);

/// By dimension: is it the extent of an index that is added to another one in an axis of a tensor,
/// such as a tap of a window, or of another index of the same reduction?
std::vector<bool> findWindowDims(KernelOp kernel);

/// Is an axis of a tensor read at a number that is computed from two indices, such as i + tap?
bool readsWindows(KernelOp kernel);

} // namespace tk

#endif // TK_COMPILER_RELEVANTFACTS_H
