//===- ReadOnce.cpp - copies of what is read once -------------------------===//
//
// 1. One coordinate is the number of the block, or of the tile that the block has come to, times a
//    constant: blocks read different boxes.
// 2. The other ones are constants or count the loops around the copy, all of them, whose bounds are
//    the same for every block: a block reads different boxes each time.
// 3. The tensor's extents are bounded at the launch, and their product is more than the cache
//    holds. Bounds are powers of two where a size is none: the tensor may have half of that.
//
//===----------------------------------------------------------------------===//
#include "passes/memory/ReadOnce.h"

#include "dialects/tk/TkDialect.h"
#include "passes/memory/AxisInfo.h"
#include "passes/tiling/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tk;

/// Of an H200, and how many times that a tensor may be for a part of it to last until the next
/// launch (16 rows by 28672 x 8192 of bf16, 470 MB, gain 3 % warm and lose as much cold).
static constexpr int64_t cacheBytes = 50 << 20, mostCaches = 6;

/// The loop that goes through a block's tiles, if `value` counts it; it begins at the block's
/// number.
static bool countsTiles(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  return loop && value == loop.getInductionVar() &&
         loop.getLowerBound().getDefiningOp<gpu::ProgramIdOp>();
}

static bool isNumberOfTile(Value value) {
  auto product = value.getDefiningOp<arith::MulIOp>();
  return product && constantIndex(product.getRhs()) &&
         (product.getLhs().getDefiningOp<gpu::ProgramIdOp>() || countsTiles(product.getLhs()));
}

/// The bytes of the tensor that `copy` reads, at most; nothing if that is not known.
static std::optional<int64_t> bytesOfTensor(gpu::BulkCopyOp copy) {
  auto function = copy->getParentOfType<gpu::FuncOp>();
  auto map = dyn_cast<BlockArgument>(copy.getMap());
  if (!map || map.getOwner() != function.getBlock())
    return std::nullopt;
  std::optional<SymbolTable::UseRange> uses =
      SymbolTable::getSymbolUses(function, function->getParentOp());
  if (!uses || !llvm::hasSingleElement(*uses))
    return std::nullopt;
  auto launch = dyn_cast<gpu::LaunchOp>(uses->begin()->getUser());
  if (!launch || map.getArgNumber() >= launch.getArgs().size())
    return std::nullopt;
  auto described = launch.getArgs()[map.getArgNumber()].getDefiningOp<gpu::TensorMapOp>();
  if (!described)
    return std::nullopt;
  int64_t bytes = copy.getTarget().getType().getElementType().getIntOrFloatBitWidth() / 8;
  for (Value extent : described.getExtents()) {
    std::optional<int64_t> upper = getSizeFact(launch->getParentOfType<KernelOp>(), extent).upper;
    if (!upper || *upper > std::numeric_limits<int32_t>::max())
      return std::nullopt;
    bytes = static_cast<int64_t>(llvm::SaturatingMultiply<uint64_t>(bytes, *upper));
  }
  return bytes;
}

bool tk::isStreamedOnce(gpu::BulkCopyOp copy) {
  if (copy.getMulticast() || llvm::count_if(copy.getCoordinates(), isNumberOfTile) != 1)
    return false;
  llvm::SmallDenseSet<Value> counted;
  for (Value coordinate : copy.getCoordinates()) {
    if (isNumberOfTile(coordinate))
      counted.insert(coordinate.getDefiningOp()->getOperand(0));
    else if (!constantIndex(coordinate))
      counted.insert(coordinate);
  }
  for (Operation *op = copy->getParentOp(); !isa<gpu::FuncOp>(op); op = op->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    bool isSame = loop && constantIndex(loop.getLowerBound()) && constantIndex(loop.getStep());
    if (!loop || !counted.erase(loop.getInductionVar()) ||
        !(isSame || countsTiles(loop.getInductionVar())))
      return false;
  }
  // What is left is the block's own number, or something that is not known to differ.
  if (llvm::any_of(counted, [](Value rest) { return !rest.getDefiningOp<gpu::ProgramIdOp>(); }))
    return false;
  std::optional<int64_t> bytes = bytesOfTensor(copy);
  return bytes && *bytes > cacheBytes && *bytes <= mostCaches * cacheBytes;
}
