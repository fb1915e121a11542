//===- OnlineBuilder.h - one reduction for a group --------------*- C++ -*-===//
//
// Builds the online reduction that tk-online-reductions puts in the place of several.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_FUSE_ONLINEBUILDER_H
#define TK_PASSES_TENSOR_FUSE_ONLINEBUILDER_H

#include "passes/tensor/fuse/OnlineAlgebra.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace tk {

/// A reduction of a group, and how its terms follow from the earlier ones.
struct OnlineMember {
  ReduceOp reduce;
  Separation separation;
};

/// Builds the one reduction that replaces a group.
class OnlineBuilder {
public:
  explicit OnlineBuilder(llvm::ArrayRef<OnlineMember> members)
      : members(members), first(members.front().reduce), onMembers(getResults(members)) {}

  ReduceOp build();

private:
  static llvm::SmallVector<mlir::Value> getResults(llvm::ArrayRef<OnlineMember> members) {
    llvm::SmallVector<mlir::Value> results;
    for (const OnlineMember &member : members)
      llvm::append_range(results, member.reduce->getResults());
    return results;
  }
  ReduceOp createEmpty(mlir::OpBuilder &builder);
  void buildBody(ReduceOp online);
  void buildRescale(ReduceOp online);
  mlir::Value materialize(mlir::OpBuilder &builder, mlir::Value value, mlir::IRMapping &mapping);
  void guard(const ExponentialFactor &factor, mlir::IRMapping &mapping);
  mlir::Value createFactor(mlir::OpBuilder &builder, const ExponentialFactor &factor,
                           mlir::IRMapping &olds, mlir::IRMapping &news);
  mlir::Value restoreNaN(mlir::OpBuilder &builder, ReduceOp online, const OnlineMember &member,
                         mlir::Value result);

  llvm::ArrayRef<OnlineMember> members;
  ReduceOp first;
  Dependence onMembers;
};

} // namespace tk

#endif // TK_PASSES_TENSOR_FUSE_ONLINEBUILDER_H
