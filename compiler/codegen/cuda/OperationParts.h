//===- OperationParts.h - what methods tell of an operation ------*- C++ -*-===//
#ifndef TK_COMPILER_CODEGEN_CUDA_OPERATIONPARTS_H
#define TK_COMPILER_CODEGEN_CUDA_OPERATIONPARTS_H

#include "compiler/codegen/cuda/RegisterIndex.h"
#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/IR/Value.h"

#include <string>

namespace tk::cuda {

/// The functor of the device library that combines two values.
std::string functorOf(ReduceKind kind);

/// Where the groups that a reduction combines end up.
struct Reduced {
  unsigned registers = 1;
  BitMap sourceOf; ///< by bit of the result's register: the source's register
};

/// How products are written whose sums threads add up in `sums`: the last one's left factor, the
/// types, and columns, those of one instruction and blocks of rows.
struct PromotedDot {
  std::string sums, a, types;
  int64_t columns, atOnce, blocks;
  bool inRow;
};

/// A rounded product of integers of 8 bits, in words, and what those of a word have in common.
struct ScaledIntegers {
  mlir::Value integers, scale;
};

} // namespace tk::cuda

#endif // TK_COMPILER_CODEGEN_CUDA_OPERATIONPARTS_H
