//===- Placer.h - a kernel, rewritten for one rank --------------*- C++ -*-===//
#ifndef TK_PASSES_MESH_PLACER_H
#define TK_PASSES_MESH_PLACER_H

#include "passes/mesh/ChooseCarrier.h"
#include "passes/mesh/RowExchange.h"
#include "passes/mesh/SoftmaxChain.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <vector>

namespace tk::mesh {

/// Makes, from a kernel on whole tensors, the kernel that one rank runs on its shares.
class Placer {
public:
  Placer(KernelOp kernel, MeshCosts costs);
  /// The new kernel, in front of the old one; null, with diagnostics, if it cannot be placed.
  KernelOp run();

private:
  /// A tensor of the new kernel, and how it is sharded.
  struct Placed {
    mlir::Value tensor;
    Sharding sharding;
    mlir::SmallVector<mlir::Value> extents; ///< whole ones
  };

  /// How rows go to the ranks that hold their entries of a table (PlaceExchanges.cpp). Values are
  /// those of the new kernel, if they do not say otherwise.
  struct Route {
    int axis = noShard;
    size_t carrier = 0; ///< which of the rows' indices the axis divides
    std::string name;
    mlir::SmallVector<mlir::Value> extents; ///< of the rows' indices, on a rank
    mlir::Value rows, slotCount;            ///< rows of a rank, and slots for those of all
    mlir::Value offset;                     ///< of the carrier
    mlir::Value slots, rowOfSlot;           ///< of each row, and the other way, from 1
    mlir::Value sent, received;             ///< rows to and from each rank
    mlir::Value arrived;                    ///< ids
    mlir::Value oldRows, oldIds;            ///< of the old kernel: slots of all ranks, and ids
    llvm::DenseMap<mlir::Value, mlir::Value> computed; ///< of the old kernel: by rows, and in slots
    std::map<std::pair<void *, std::vector<int>>, mlir::Value> sentRows;
  };

  /// How the ranks of an axis that shards the keys of a softmax compute it (PlaceSoftmax.cpp).
  struct Softmax {
    SoftmaxChain chain;
    bool isDecided = false;
    int axis = noShard; ///< whose ranks each compute the state of their own keys
    std::string why;
    Placed own; ///< the logarithm of this rank's denominator
    std::map<int, std::pair<mlir::Value, Placed>> combined; ///< of all ranks, and the total: by the
                                                            ///< dimension that the axis shards
  };
  struct SoftmaxOption {
    enum class Kind { states, gatherKeys, repeat } kind;
    double time;
  };

  // The kernel (PlaceCollectives.cpp)
  void createKernel();
  bool placeResults();
  void place(ComputeOp compute);
  void combinePartials(Placed &placed, ComputeOp compute,
                       mlir::ArrayRef<mlir::BlockArgument> carriers, const Sharding &desired,
                       int kept);
  void addDivisibility();
  void eraseUnused();
  Sharding declaredSharding(unsigned number, int64_t rank) const;
  Sharding requiredOf(unsigned result) const;
  Sharding desiredOf(mlir::Value tensor, bool &isRequired);

  void placeWith(ComputeOp compute, mlir::MutableArrayRef<TensorUse> uses, const Sharding &desired,
                 bool isRequired, int slotAxis);

  // Rows that go where their entries are (RouteRows.cpp, PlaceExchanges.cpp)
  bool placeByExchange(ComputeOp compute);
  Route &routeFor(const RowExchange &exchange, ComputeOp compute);
  void sortRows(Route &route, const RowExchange &exchange, mlir::Location loc);
  void sendIds(Route &route, const RowExchange &exchange, mlir::Location loc);
  mlir::Value idOfRow(mlir::OpBuilder &b, mlir::Location loc, const Route &route, mlir::Value ids,
                      mlir::Value row);
  mlir::Value sendRows(Route &route, const RowExchange &exchange, const TensorUse &use,
                       ComputeOp compute);
  ComputeOp computeOnSlots(Route &route, const RowExchange &exchange,
                           mlir::ArrayRef<TensorUse> uses, ComputeOp compute);
  void placeOnSlots(ComputeOp onSlots, const RowExchange &exchange, const Sharding &desired);
  void bringBack(Route &route, const RowExchange &exchange, ComputeOp onSlots, ComputeOp compute);
  mlir::Value exchangeRows(mlir::Location loc, const Route &route, mlir::Value tensor, bool isBack,
                           bool isCounted);
  mlir::SmallVector<mlir::Value> rowCoordinates(mlir::OpBuilder &b, mlir::Location loc,
                                                const Route &route, mlir::Value row) const;
  mlir::Value rowPosition(mlir::OpBuilder &b, mlir::Location loc, const Route &route, size_t k,
                          mlir::Value own, const Placed &tensor, unsigned dim);
  mlir::Value rowOf(mlir::OpBuilder &b, mlir::Location loc, const Route &route,
                    mlir::Value slot) const;
  mlir::Value standFor(ComputeOp before, mlir::ArrayRef<mlir::Value> extents, Placed placed,
                       mlir::StringRef name);
  static bool isWholeRow(const RowExchange &exchange, const TensorUse &use);

  // Softmaxes over keys that ranks share (PlaceSoftmax.cpp, CombineStates.cpp)
  void findSoftmaxes();
  void decide(Softmax &softmax);
  void decideFor(Softmax &softmax, int axis);
  int queryOf(const SoftmaxChain &chain, int axis);
  bool sharesKeys(const SoftmaxChain &chain, int axis) const;
  double timeOfOperands(const SoftmaxChain &chain, int axis, int dim);
  SoftmaxOption chooseOption(const SoftmaxChain &chain, int axis, int query, std::string &times);
  void force(Softmax &softmax, int axis, int dim);
  void separateSums(Softmax &softmax);
  Softmax *stateOf(ComputeOp compute);
  bool placeLog(ComputeOp compute);
  void combineStates(Softmax &softmax, Placed &placed, ComputeOp compute, const Sharding &desired);
  mlir::Value stackBlocks(const Placed &own, int axis, int dim, mlir::Location loc);
  const std::pair<mlir::Value, Placed> &combinedLog(Softmax &softmax, int dim);
  void computeOwnLog(Softmax &softmax);

  // One compute op (Placer.cpp, CombinePartials.cpp)
  Placed rewrite(ComputeOp compute, mlir::ArrayRef<TensorUse> uses,
                 mlir::ArrayRef<mlir::BlockArgument> carriers);
  void useShare(LoadOp load, unsigned dim, const Subscript &subscript, mlir::BlockArgument index,
                llvm::SmallPtrSetImpl<mlir::OpOperand *> &local);
  void useGlobalIndex(mlir::BlockArgument index, mlir::Value offset,
                      const llvm::SmallPtrSetImpl<mlir::OpOperand *> &local);
  void boundShare(ReduceOp reduce, unsigned index, bool isWhole, mlir::Value share,
                  mlir::Value offset);
  Placed versionFor(const TensorUse &use, mlir::ArrayRef<mlir::BlockArgument> carriers);
  void combine(Placed &result, ReduceKind kind, llvm::StringRef what, int axis,
               const Sharding &desired);
  bool sendsBlocks(const Placed &result, ReduceKind kind, int axis, unsigned dim) const;
  void addBlocks(Placed &result, int axis);
  void convertElements(Placed &result, mlir::Type type, llvm::StringRef name);
  bool keepShares(ComputeOp compute, mlir::MutableArrayRef<TensorUse> uses, int axis);
  void convert(Placed &result, const Sharding &wanted, llvm::StringRef name);
  mlir::Value slice(const Placed &from, unsigned dim, int axis, llvm::StringRef name);

  mlir::Value shareOf(mlir::Value extent, int axis);
  mlir::Value offsetOf(mlir::Value extent, int axis);
  mlir::Value allGather(mlir::Location loc, const Placed &from, unsigned dim);
  mlir::Value allToAll(mlir::Location loc, const Placed &from, unsigned dim, unsigned to);
  mlir::RankedTensorType localType(mlir::RankedTensorType type, const Sharding &sharding) const;

  KernelOp kernel, made;
  mlir::SmallVector<MeshAxisInfo> axes;
  MeshCosts costs;
  mlir::OpBuilder builder;
  mlir::IRMapping values;                      ///< sizes and scalars
  llvm::DenseMap<mlir::Value, Placed> tensors; ///< by tensor of the old kernel
  std::map<std::pair<void *, std::vector<int>>, mlir::Value> versions;
  llvm::MapVector<std::pair<mlir::Value, int>, mlir::Value> shares; ///< by whole extent and axis
  std::map<std::pair<void *, int>, mlir::Value> offsets;
  std::map<int, mlir::Value> ranks;
  std::map<std::tuple<void *, int, unsigned>, std::unique_ptr<Route>> routes;
  std::vector<std::unique_ptr<Softmax>> softmaxes;
  llvm::DenseMap<mlir::Operation *, Softmax *> softmaxOf; ///< by compute op of a chain
  /// What an axis divides of compute ops of a chain; null: nothing.
  llvm::DenseMap<std::pair<mlir::Operation *, int>, mlir::BlockArgument> forced;
  llvm::DenseMap<mlir::Operation *, mlir::SmallVector<ComputeOp>> separated; ///< in front of it
  llvm::DenseSet<mlir::Value> divided; ///< extents that their axis divides, as they are multiples
  bool failed = false;
};

} // namespace tk::mesh

#endif // TK_PASSES_MESH_PLACER_H
