//===- Stages.h - the circular buffers of a function -------------*- C++ -*-===//
#ifndef TK_COMPILER_STAGES_H
#define TK_COMPILER_STAGES_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include <string>

namespace tk {

/// The stages of each circular buffer that tensors are copied into, as "2 stages of 128x128 bf16
/// from q"; empty where there is none. The plan has the most stages that are wanted, of slices of
/// the reduced index; how many tiles are in flight follows from the shared memory that is left.
std::string describeStages(gpu::FuncOp function);

} // namespace tk

#endif // TK_COMPILER_STAGES_H
