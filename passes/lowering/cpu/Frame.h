//===- Frame.h - one emitted function --------------------------*- C++ -*-===//
//
// A function of the lowered kernel: the entry, or the body of a parallel loop. Both receive the
// addresses of everything in one array ("slots"), so that nothing has to be captured: whatever a
// function needs of the kernel's level (dimensions, scalars, arithmetic on them, tensors) it
// recomputes in its own first block, on demand.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LOWERING_CPU_FRAME_H
#define TK_PASSES_LOWERING_CPU_FRAME_H

#include "dialects/tk/TkDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace tk::cpu {

/// Where a kernel-level tensor lives.
struct TensorPlace {
  enum class Kind { Argument, Scratch } kind;
  unsigned index;      ///< into the tensors of the arguments, or of the scratch buffers
  int strideBase = -1; ///< of a strided parameter: where its strides stand among the integers
};

/// How the arguments of a kernel are laid out (see cpu_abi.h), and where its tensors live.
class KernelLayout {
public:
  explicit KernelLayout(KernelOp kernel);

  KernelOp kernel;
  llvm::DenseMap<mlir::Value, TensorPlace> places;
  llvm::DenseMap<mlir::Value, unsigned> intPositions, floatPositions;
  llvm::SmallVector<mlir::Value> scratch; ///< tensors that live in scratch buffers
  /// Values to be copied into an argument at the end: value, number of the tensor argument.
  llvm::SmallVector<std::pair<mlir::Value, unsigned>> copies;

  llvm::SmallVector<mlir::Value> extentsOf(mlir::Value tensor) const;

private:
  void placeResults();
  bool canWriteInPlace(ComputeOp compute, mlir::Value param) const;
};

/// The element type that a tensor's elements have in memory.
mlir::Type storageType(mlir::Type element);

class Frame {
public:
  /// Creates the function `name`. The entry takes the arguments, a body slots and a range.
  static Frame createEntry(mlir::ModuleOp module, KernelLayout &layout, llvm::StringRef name);
  static Frame createBody(mlir::ModuleOp module, KernelLayout &layout, llvm::StringRef name);

  mlir::func::FuncOp function;
  mlir::Value begin, end; ///< of a parallel body, index

  /// The value in this function of a scalar defined at the kernel's level.
  mlir::Value get(mlir::Value kernelValue);
  /// A tensor of the kernel as a memref with its strides.
  mlir::Value memref(mlir::Value tensor);
  /// Tensor argument number `argument`, dense and of the shape of `like`.
  mlir::Value denseArgument(mlir::Value like, unsigned argument);
  /// Memory for a tile: on the stack where small, else from the heap until the function returns.
  mlir::Value allocate(mlir::MemRefType type);
  /// Entry only: allocates scratch buffers and fills the slots.
  void setUp();
  /// Entry only: frees scratch.
  void tearDown(mlir::OpBuilder &builder);
  /// Slots for scalars that the entry computes and bodies read.
  void publish(mlir::OpBuilder &builder, unsigned slot, mlir::Value buffer);
  mlir::Value published(unsigned slot, mlir::MemRefType type);
  /// Calls the runtime's parallel_for on `body` over [0, count).
  void callParallelFor(mlir::OpBuilder &builder, mlir::Value count, mlir::Value grain,
                       llvm::StringRef body);
  /// Ends the function; heap tiles are freed.
  void finish(mlir::OpBuilder &builder);
  /// Builds at the end of the part of the first block that is evaluated once.
  mlir::OpBuilder onceBuilder();
  unsigned firstFreeSlot() const { return 1 + layout->scratch.size(); }
  static constexpr unsigned extraSlots = 64;

private:
  mlir::Value loadSlot(unsigned slot);
  mlir::Value loadArgument(unsigned array, unsigned position, mlir::Type type);
  mlir::Value scalarParam(mlir::Value param);
  mlir::Value dataPointer(mlir::Value tensor);
  mlir::Value makeMemRef(mlir::Value pointer, mlir::MemRefType type, mlir::ValueRange sizes,
                         mlir::ValueRange strides);

  mlir::ModuleOp module;
  KernelLayout *layout = nullptr;
  mlir::Operation *onceEnd = nullptr;
  mlir::Value args, slots, argTensors, argInts, argFloats;
  llvm::DenseMap<mlir::Value, mlir::Value> values, memrefs;
  llvm::DenseMap<mlir::Value, mlir::Value> scratchPointers;
  llvm::SmallVector<mlir::Value> heapTiles, heapScratch;
};

} // namespace tk::cpu

#endif // TK_PASSES_LOWERING_CPU_FRAME_H
