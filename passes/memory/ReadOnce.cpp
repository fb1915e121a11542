//===- ReadOnce.cpp - copies of what is read once -------------------------===//
//
// 1. One coordinate is the number of the block, or of the tile that the block has come to, times a
//    constant: blocks read different boxes.
// 2. The other ones are constants or count the loops around the copy, all of them, whose bounds are
//    the same for every block: a block reads different boxes each time.
// 3. Where several blocks have parts of one sum, that coordinate is the block's number modulo the
//    number of tiles, and the loop goes through the block's part: as many terms, or groups of them,
//    for each block, from the quotient times that number on.
// 4. The tensor's extents are bounded at the launch, and their product is more than the cache
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

/// The number of tiles if `value` is the block's number modulo that: its tile, of which other
/// blocks have other parts.
static Value tilesOfParts(Value value) {
  auto tile = value.getDefiningOp<arith::RemSIOp>();
  return tile && tile.getLhs().getDefiningOp<gpu::ProgramIdOp>() ? tile.getRhs() : Value();
}

static bool isNumberOfTile(Value value) {
  auto product = value.getDefiningOp<arith::MulIOp>();
  return product && constantIndex(product.getRhs()) &&
         (product.getLhs().getDefiningOp<gpu::ProgramIdOp>() || countsTiles(product.getLhs()) ||
          tilesOfParts(product.getLhs()));
}

/// The length of a part if `value` is where the block's part begins: its number divided by that of
/// tiles, times the length.
static Value lengthOfPart(Value value, Value tiles) {
  auto product = value.getDefiningOp<arith::MulIOp>();
  auto part = product ? product.getLhs().getDefiningOp<arith::DivSIOp>() : arith::DivSIOp();
  bool isPart = part && part.getRhs() == tiles && part.getLhs().getDefiningOp<gpu::ProgramIdOp>();
  return isPart ? product.getRhs() : Value();
}

/// Does `loop` go through the block's part, group by group, up to its end at most?
static bool goesThroughPart(scf::ForOp loop, Value tiles) {
  Value length = lengthOfPart(loop.getLowerBound(), tiles), end = loop.getUpperBound();
  if (auto least = end.getDefiningOp<arith::MinSIOp>())
    end = least.getLhs();
  auto sum = end.getDefiningOp<arith::AddIOp>();
  return length && constantIndex(loop.getStep()) && sum && sum.getLhs() == loop.getLowerBound() &&
         sum.getRhs() == length;
}

/// The place in the block's part, counted by a loop up to its length, if `coordinate` is where the
/// part begins and that.
static Value placeInPart(Value coordinate, Value tiles) {
  auto sum = coordinate.getDefiningOp<arith::AddIOp>();
  Value length = sum ? lengthOfPart(sum.getLhs(), tiles) : Value();
  auto argument = length ? dyn_cast<BlockArgument>(sum.getRhs()) : BlockArgument();
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  bool isWhole = loop && argument == loop.getInductionVar() && loop.getUpperBound() == length &&
                 constantIndex(loop.getLowerBound()) == 0;
  return isWhole ? sum.getRhs() : Value();
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
  Value tiles;
  for (Value coordinate : copy.getCoordinates())
    if (isNumberOfTile(coordinate))
      tiles = tilesOfParts(coordinate.getDefiningOp()->getOperand(0));
  bool isInPart = false;
  for (Value coordinate : copy.getCoordinates()) {
    if (isNumberOfTile(coordinate)) {
      if (!tiles)
        counted.insert(coordinate.getDefiningOp()->getOperand(0));
    } else if (Value place = tiles ? placeInPart(coordinate, tiles) : Value()) {
      counted.insert(place);
      isInPart = true;
    } else if (auto group = tiles ? coordinate.getDefiningOp<arith::MulIOp>() : arith::MulIOp();
               group && constantIndex(group.getRhs())) {
      counted.insert(group.getLhs());
    } else if (!constantIndex(coordinate)) {
      counted.insert(coordinate);
    }
  }
  for (Operation *op = copy->getParentOp(); !isa<gpu::FuncOp>(op); op = op->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    bool isOfPart = loop && tiles && goesThroughPart(loop, tiles);
    bool isSame =
        loop && constantIndex(loop.getStep()) && (constantIndex(loop.getLowerBound()) || isOfPart);
    if (!loop || !counted.erase(loop.getInductionVar()) ||
        !(isSame || countsTiles(loop.getInductionVar())))
      return false;
    isInPart |= isOfPart;
  }
  if (tiles && !isInPart)
    return false;
  // What is left is the block's own number, or something that is not known to differ.
  if (llvm::any_of(counted, [](Value rest) { return !rest.getDefiningOp<gpu::ProgramIdOp>(); }))
    return false;
  std::optional<int64_t> bytes = bytesOfTensor(copy);
  return bytes && *bytes > cacheBytes && *bytes <= mostCaches * cacheBytes;
}
