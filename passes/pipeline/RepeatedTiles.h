//===- RepeatedTiles.h - tiles that a block may compute twice ---*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_REPEATEDTILES_H
#define TK_PASSES_PIPELINE_REPEATEDTILES_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tk {

/// Is there room for a flag apart from other shared memory, and for barriers?
bool haveRoomForFlag(gpu::FuncOp function);

/// Where barriers of `roles` are initialised, before the block synchronises. A program without
/// tiles asks for the flag at once.
mlir::OpBuilder beforeBarrier(gpu::WarpRolesOp roles);

/// Can a tile be computed twice? What is stored must be all that it is, and read by nobody.
bool canRepeat(mlir::scf::ForOp tiles);

/// Has the tiles of a program computed a second time if there is a doubt, of which `phases` hold
/// the flag. Circular buffers go on where they are; all else begins anew. Returns whether it is the
/// second time.
mlir::Value repeatTiles(mlir::scf::ForOp tiles, mlir::Value phases);

} // namespace tk

#endif // TK_PASSES_PIPELINE_REPEATEDTILES_H
