//===- ProductWaits.h - where products are waited for -----------*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_PRODUCTWAITS_H
#define TK_PASSES_PIPELINE_PRODUCTWAITS_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// The only wait for a product in its block, if that waits for all and for nothing else.
gpu::WarpgroupWaitOp findPlainWait(gpu::WarpgroupDotOp dot);

} // namespace tk

#endif // TK_PASSES_PIPELINE_PRODUCTWAITS_H
