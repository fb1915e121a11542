//===- WarpSpecialization.h - cutting copies out of a function --*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_WARPSPECIALIZATION_H
#define TK_PASSES_PIPELINE_WARPSPECIALIZATION_H

#include "passes/pipeline/Rings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

/// Do all threads of the block meet in `function`, to exchange values between warps?
bool doWarpsMeet(gpu::FuncOp function);

/// Where a ring stands at some point of a program.
struct RingState {
  mlir::Value slot, parity;
};
using RingStates = llvm::DenseMap<Ring *, RingState>;

/// Turns a function with rings into two programs, or into one in which all wait for each copy.
class WarpSpecialization {
public:
  WarpSpecialization(gpu::FuncOp function, llvm::MutableArrayRef<Ring> rings)
      : function(function), rings(rings), builder(function.getContext()) {}

  /// Can the copies be made a program of their own? Comes before `apply(true)`.
  bool canCutOut();
  /// With `teams` above one, warps of the consumer take tiles in turns (TeamTiles).
  void apply(bool inRoles, int64_t teams);

private:
  // ProducerSlice.cpp, with canCutOut.
  bool addToSlice(mlir::Value value);

  // WarpSpecialization.cpp
  RingStates initialStates();
  RingState advance(mlir::Location loc, Ring &ring, RingState state);
  llvm::SmallVector<Ring *> ringsIn(mlir::Operation *op);
  mlir::Value constant(mlir::Location loc, int64_t value) {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }
  void allocate();
  llvm::SmallVector<mlir::Value> unpack(llvm::ArrayRef<Ring *> inside, const RingStates &states);
  void pack(llvm::ArrayRef<Ring *> inside, mlir::ValueRange values, RingStates &states);
  void beginCopy(gpu::BulkCopyOp copy, mlir::IRMapping &mapping, RingStates &states);
  void produce(mlir::Block &from, mlir::IRMapping &mapping, RingStates &states);
  void consume(mlir::Block &block, RingStates &states);
  void leaveBefore(Ring &ring, const RingState &state, mlir::Operation *steps);
  void enterRing(Ring &ring, const RingState &state);
  void setRegisters(gpu::WarpRolesOp roles);

  gpu::FuncOp function;
  llvm::MutableArrayRef<Ring> rings;
  bool oneRole = false;
  mlir::Operation *start = nullptr; ///< where phases are ready
  mlir::OpBuilder builder;
  llvm::SetVector<mlir::Operation *> slice;
};

} // namespace tk

#endif // TK_PASSES_PIPELINE_WARPSPECIALIZATION_H
