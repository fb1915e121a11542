//===- SplitWindows.h - windows reduced axis by axis ------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_SPLIT_SPLITWINDOWS_H
#define TK_PASSES_TENSOR_SPLIT_SPLITWINDOWS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Reduces windows of several axes one axis after the other (SplitWindows.cpp); how many.
unsigned splitWindows(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_SPLITWINDOWS_H
