//===- BlockWalk.h - what one block does ------------------------*- C++ -*-===//
//
// Goes through a tkgpu.func as one block does, for sizes and a block number that are given, and
// counts. A loop is not run: its first, its last and some iterations between are looked at, and
// stand for the others. Both sides of a branch whose condition depends on data count half.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_BLOCKWALK_H
#define TK_PASSES_MACHINE_BLOCKWALK_H

#include "passes/machine/AccessClocks.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/KnownValues.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace tk::gpu {
class SortOp;
} // namespace tk::gpu

namespace tk {

/// A tensor in global memory, as a launch's function sees it.
struct TensorArgument {
  unsigned tensor = 0;                            ///< which of the kernel's; see KernelCost
  llvm::SmallVector<int64_t, 5> extents = {};     ///< of a tensor map; empty: a buffer
  llvm::SmallVector<int64_t, 5> box = {};         ///< of a tensor map
  bool hasPlaces = false;                         ///< rows of the box are places of windows
  const std::vector<int64_t> *elements = nullptr; ///< of an integer tensor, where they are assumed
};

/// What a function's arguments are.
struct Arguments {
  llvm::DenseMap<mlir::Value, Known> numbers;
  llvm::DenseMap<mlir::Value, TensorArgument> tensors;
};

/// Accesses to one tensor, in bytes of whole sectors.
struct Traffic {
  double readBytes = 0;
  double writtenBytes = 0;
};

/// What blocks do. `work` has no bytes of device memory: they follow from all blocks' traffic.
struct BlockCounts {
  LaunchWork work;
  double operations = 0;       ///< as WorkCount counts them
  bool hasUnknownLoop = false; ///< a loop whose iterations data decides; it counts as one iteration
  llvm::MapVector<unsigned, Traffic> traffic; ///< by tensor
  void add(const BlockCounts &other, double times);
};

/// What operations do, by their places in the program.
using PlaceCounts = llvm::MapVector<mlir::Location, BlockCounts>;

/// What accesses of a wave of blocks have in common: by operation, the places that they access.
struct AccessedPlaces {
  unsigned tensor = 0;
  llvm::DenseSet<uint64_t> places;
};
using Accesses = llvm::DenseMap<mlir::Operation *, AccessedPlaces>;

class BlockWalk {
public:
  BlockWalk(gpu::FuncOp function, const Arguments &arguments, BlockPlace place);

  /// All that the block does; its parts are added to `places`, weighted by `weight`.
  BlockCounts count(PlaceCounts &places, double weight);
  /// Only the first iteration of each loop: the places that it reads go to `accesses`.
  void record(Accesses &accesses);

private:
  void walk(mlir::Block &block, double times);
  void visit(mlir::Operation *op, double times);
  void visitCounted(mlir::Operation *op, double times);
  void visitFor(mlir::scf::ForOp loop, double times);
  void visitWhile(mlir::scf::WhileOp loop, double times);
  /// Gives the loop's body what an iteration is given. False if there is none.
  bool begin(mlir::scf::WhileOp loop, llvm::ArrayRef<Known> carried, bool isFirst);
  void visitIf(mlir::scf::IfOp branch, double times);
  void visitRoles(gpu::WarpRolesOp roles, double times);
  bool visitMemory(mlir::Operation *op, double times);
  bool visitShared(mlir::Operation *op, double times);
  void addShared(AccessCost cost, double times);
  void addSort(gpu::SortOp sort, double times);
  bool visitProduct(mlir::Operation *op, double times);
  bool visitReduction(mlir::Operation *op, double times);
  void visitElements(mlir::Operation *op, double times);

  void access(mlir::Operation *op, mlir::Value memory, mlir::ValueRange indices,
              mlir::ValueRange strides, mlir::ArrayAttr dims, mlir::ValueRange masks,
              mlir::RankedTensorType tile, mlir::Type element, bool writes, double times);
  void accessBox(mlir::Operation *op, mlir::Value map, mlir::ValueRange coordinates,
                 gpu::SharedType tile, double share, bool writes, double times);
  void remember(mlir::Operation *op, unsigned tensor, mlir::ValueRange coordinates);
  double newShare(unsigned tensor, Footprint access);
  void readTable(gpu::LoadOp load);
  /// Counts a wait for memory where a block waits for what it reads.
  void wait(mlir::Location place, double times);

  gpu::FuncOp function;
  const Arguments &arguments;
  KnownValues values;
  BlockCounts counts;
  PlaceCounts *placeCounts = nullptr;
  double weightOfPlaces = 1;
  Accesses *recorded = nullptr;
  llvm::DenseMap<unsigned, std::vector<Footprint>> recent; ///< accesses of each tensor
  double readSoFar = 0;                                    ///< bytes that threads have read
  llvm::DenseMap<mlir::Block *, double> stagesOf; ///< iterations whose copies are under way
};

} // namespace tk

#endif // TK_PASSES_MACHINE_BLOCKWALK_H
