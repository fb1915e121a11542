//===- WriteCompute.h - compute ops that passes write -----------*- C++ -*-===//
#ifndef TK_PASSES_MESH_WRITECOMPUTE_H
#define TK_PASSES_MESH_WRITECOMPUTE_H

#include "dialects/tk/TkDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk::mesh {

using ComputeBody =
    llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

/// A tensor of one element of `type` for each value of the indices.
inline mlir::Value makeCompute(mlir::OpBuilder &builder, mlir::Location loc,
                               llvm::ArrayRef<std::string> indices, mlir::ValueRange extents,
                               mlir::Type type, const std::string &name, ComputeBody body) {
  llvm::SmallVector<llvm::StringRef> names(indices.begin(), indices.end());
  auto made = ComputeOp::create(
      builder, loc, names, extents, llvm::ArrayRef<mlir::Type>{type},
      llvm::ArrayRef<llvm::StringRef>{name}, llvm::ArrayRef<llvm::SmallVector<unsigned>>{},
      [&](mlir::OpBuilder &inner, mlir::Location at, mlir::ValueRange arguments) {
        YieldOp::create(inner, at, mlir::ValueRange{body(inner, at, arguments)});
      });
  return made.getResult(0);
}

inline mlir::Value indexOf(mlir::OpBuilder &b, mlir::Location loc, int64_t number) {
  return mlir::arith::ConstantIndexOp::create(b, loc, number);
}

/// An element of a tensor of i32 as an index.
inline mlir::Value loadIndex(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                             mlir::ValueRange position) {
  mlir::Value read = LoadOp::create(b, loc, tensor, position, mlir::Value()).getResult();
  return mlir::arith::IndexCastOp::create(b, loc, b.getIndexType(), read);
}

inline mlir::Value asI32(mlir::OpBuilder &b, mlir::Location loc, mlir::Value index) {
  return mlir::arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
}

} // namespace tk::mesh

#endif // TK_PASSES_MESH_WRITECOMPUTE_H
