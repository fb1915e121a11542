//===- UsualTables.h - what integer tensors hold, for predictions -*- C++ -*-===//
//
// How often a loop runs may depend on lengths, offsets or numbers that a tensor holds. A prediction
// knows the sizes of tensors alone. It assumes values that are usual for what the program does with
// them, and computes what the program's own tables then hold.
//
// 1. A parameter whose elements bound a range at both ends, `sum[t in off[g]..off[g + 1]]`, holds
//    offsets of equal ranges.
// 2. A parameter that is an index of a tensor, or is compared with an index for equality, holds
//    each number equally often.
// 3. A parameter that bounds an index from below holds 0.
// 4. Any other parameter holds lengths: as large as the tensors allow.
// 5. The interpreter computes the integer tensors that follow from these.
// 6. A tensor of offsets that the program computes, and that 5 leaves out, divides its axis into
//    equal ranges.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_USUALTABLES_H
#define TK_COMPILER_USUALTABLES_H

#include "dialects/tk/TkDialect.h"
#include "passes/machine/LaunchCost.h"
#include "tk/expr.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tk {

/// The integer tensors of a kernel, by their names in launches: parameters, and results of compute
/// ops. `program` is the kernel as written, which says what parameters are for; `fused` is a module
/// with the kernel as it is fused, and is changed. Large tensors are left out, as are those that
/// depend on floats.
TensorTables usualTables(KernelOp program, mlir::ModuleOp fused, llvm::ArrayRef<int64_t> dims,
                         llvm::ArrayRef<Scalar> scalars);

} // namespace tk

#endif // TK_COMPILER_USUALTABLES_H
