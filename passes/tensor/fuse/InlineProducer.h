//===- InlineProducer.h - a producer's expression at a read -----*- C++ -*-===//
//
// tk-fuse-producers replaces a load of a local tensor by what the tensor's element is computed by.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_FUSE_INLINEPRODUCER_H
#define TK_PASSES_TENSOR_FUSE_INLINEPRODUCER_H

#include "passes/tensor/fuse/FuseProducers.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace tk {

/// Clones a producer's expression in place of a load.
class Inliner {
public:
  explicit Inliner(Read read)
      : load(read.load), consumer(read.consumer), producer(read.producer),
        compute(mlir::cast<ComputeOp>(read.producer.getOwner())), builder(read.load) {}

  void run();

private:
  mlir::Value clone(mlir::Value value);
  void setInsertionPoint(mlir::Operation *op);
  mlir::Value selectInBounds(mlir::Value element);

  LoadOp load;
  ComputeOp consumer;
  mlir::OpResult producer;
  ComputeOp compute;
  mlir::OpBuilder builder;
  mlir::IRMapping mapping;
  llvm::SmallVector<mlir::Operation *> cloned;
  bool mayMoveOut = true;
};

} // namespace tk

#endif // TK_PASSES_TENSOR_FUSE_INLINEPRODUCER_H
