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
// Instead of 1 to 3 a copy may be at the place of a result: its coordinates are those of a box that
// the same block stores in the same iteration, and so of no other one's.
//
// Where such a tensor streams through the cache, loops that begin at another place for each tile
// (windows) share what they read with the tiles beside theirs, and with no others: that is to be
// evicted last. (H100, a window of 1024 of 16384 keys: 1.01; of loops over all of 16384 keys, which
// more tiles share than run at once, 0.993.)
//
// What threads load, as they do the matrix that one row is multiplied by, is read once if
//
// 1. each has whole vectors of 16 bytes that no other one has, in a loop that stores nothing, where
//    they are multiplied: what is reduced so leaves little to write;
// 2. of the numbers that the block's number is taken apart into each says what is loaded, directly
//    or as the loop's first step, and one index goes on by a whole tile at least in each step;
// 3. the tensor is a parameter that is larger than the cache, as above.
//
//===----------------------------------------------------------------------===//
#include "passes/layout/ReadOnce.h"
#include "passes/machine/limits/Layouts.h"

#include "dialects/tk/TkDialect.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/layout/AxisInfo.h"
#include "passes/machine/Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tk;

using namespace limits::read_once;

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

/// The launch of a function that no other one launches; null if there is none.
static gpu::LaunchOp launchOf(gpu::FuncOp function) {
  std::optional<SymbolTable::UseRange> uses =
      SymbolTable::getSymbolUses(function, function->getParentOp());
  return uses && llvm::hasSingleElement(*uses) ? dyn_cast<gpu::LaunchOp>(uses->begin()->getUser())
                                               : gpu::LaunchOp();
}

/// What elements of so many bytes take over all of `extents`, at most.
static std::optional<int64_t> bytesOf(KernelOp kernel, ValueRange extents, int64_t bytes) {
  for (Value extent : extents) {
    std::optional<int64_t> upper = getSizeFact(kernel, extent).upper;
    if (!upper || *upper > std::numeric_limits<int32_t>::max())
      return std::nullopt;
    bytes = static_cast<int64_t>(llvm::SaturatingMultiply<uint64_t>(bytes, *upper));
  }
  return bytes;
}

/// Does the cache hold less than so many bytes, and a part of them until the next launch?
static bool exceedsCache(std::optional<int64_t> bytes) {
  return bytes && *bytes > cacheBytesOfPlans && *bytes <= mostCaches * cacheBytesOfPlans;
}

/// The bytes of the tensor that `copy` reads, at most; nothing if that is not known.
static std::optional<int64_t> bytesOfTensor(gpu::BulkCopyOp copy) {
  auto function = copy->getParentOfType<gpu::FuncOp>();
  BlockArgument map = copy.getMapArgument();
  if (!map || map.getOwner() != function.getBlock())
    return std::nullopt;
  gpu::LaunchOp launch = launchOf(function);
  if (!launch || map.getArgNumber() >= launch.getArgs().size())
    return std::nullopt;
  auto described = launch.getArgs()[map.getArgNumber()].getDefiningOp<gpu::TensorMapOp>();
  if (!described)
    return std::nullopt;
  return bytesOf(launch->getParentOfType<KernelOp>(), described.getExtents(),
                 copy.getTarget().getType().getElementType().getIntOrFloatBitWidth() / 8);
}

/// Does a box that the copy's block stores begin at the same coordinates, with as many rows or
/// more? A tile's results are its own, and so is what the copy brings. Of operands of products
/// alone: rows that are normalised lose 5 % where none of them last until the next launch
/// (lab/tried.md).
static bool isAtPlaceOfResult(gpu::BulkCopyOp copy) {
  if (!llvm::all_of(copy.getTarget().getUsers(),
                    llvm::IsaPred<gpu::BulkCopyOp, gpu::WarpgroupDotOp>))
    return false;
  llvm::SmallDenseSet<Value> at;
  for (Value coordinate : copy.getCoordinates())
    if (!constantIndex(coordinate))
      at.insert(coordinate);
  return llvm::any_of(copy->getBlock()->getOps<gpu::BulkStoreOp>(), [&](gpu::BulkStoreOp store) {
    const int64_t rows = store.getSource().getType().getNumRows();
    return copy.getTarget().getType().getNumRows() <= rows &&
           llvm::all_of(store.getCoordinates(), [&](Value coordinate) {
             return constantIndex(coordinate) || at.contains(coordinate);
           });
  });
}

bool tk::isReadAgainSoon(gpu::BulkCopyOp copy) {
  auto loop = dyn_cast<scf::ForOp>(copy->getParentOp());
  if (copy.getOnce() || !loop || constantIndex(loop.getLowerBound()))
    return false;
  return llvm::any_of(loop->getBlock()->getOps<gpu::BulkCopyOp>(), [](gpu::BulkCopyOp ofTile) {
    return ofTile.getOnce() && isAtPlaceOfResult(ofTile);
  });
}

bool tk::isStreamedOnce(gpu::BulkCopyOp copy) {
  if (!copy.getMulticast() && isAtPlaceOfResult(copy))
    return exceedsCache(bytesOfTensor(copy));
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
  return exceedsCache(bytesOfTensor(copy));
}

/// Is the element of each thread another one?
static bool haveThreadsTheirOwn(gpu::LayoutAttr layout) {
  auto isOwn = [](const gpu::LayoutBit &bit) { return !bit.isReplication(); };
  return llvm::all_of(layout.getLaneBits(), isOwn) && llvm::all_of(layout.getWarpBits(), isOwn);
}

/// Is `value` multiplied, as it is or as f32, and nothing else done with it?
static bool isMultiplied(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<arith::MulFOp>(user) ||
           (isa<arith::ExtFOp>(user) && isMultiplied(user->getResult(0)));
  });
}

/// Everything that `value` is computed from, through the first steps of loops that count it.
static void collectSources(Value value, llvm::SmallDenseSet<Value> &sources) {
  if (!sources.insert(value).second)
    return;
  if (Operation *op = value.getDefiningOp()) {
    for (Value operand : op->getOperands())
      collectSources(operand, sources);
    return;
  }
  auto loop = dyn_cast<scf::ForOp>(cast<BlockArgument>(value).getOwner()->getParentOp());
  if (loop && value == loop.getInductionVar())
    collectSources(loop.getLowerBound(), sources);
}

/// Does an index that follows from what `loop` counts have other values in each iteration: a tile
/// from there, or a constant further, that is no longer than a step?
static bool goesThroughTiles(Value index, scf::ForOp loop) {
  auto sum = index.getDefiningOp<arith::AddIOp>();
  auto start = sum ? sum.getLhs().getDefiningOp<gpu::BroadcastOp>() : gpu::BroadcastOp();
  auto places = sum ? sum.getRhs().getDefiningOp<gpu::IotaOp>() : gpu::IotaOp();
  std::optional<int64_t> step = constantIndex(loop.getStep());
  if (!start || !places || !step || places.getType().getNumElements() > *step)
    return false;
  auto further = start.getSource().getDefiningOp<arith::AddIOp>();
  return (further && constantIndex(further.getRhs()) ? further.getLhs() : start.getSource()) ==
         loop.getInductionVar();
}

/// Does each of the numbers that the block's is taken apart into lead to `sources`?
static bool dependsOnBlock(gpu::FuncOp function, const llvm::SmallDenseSet<Value> &sources) {
  llvm::SetVector<Value> numbers;
  function.walk([&](gpu::ProgramIdOp id) { numbers.insert(id.getResult()); });
  bool dependsOnAll = !numbers.empty();
  for (unsigned n = 0; n < numbers.size(); ++n) {
    bool isUsed = false;
    for (Operation *user : numbers[n].getUsers()) {
      bool isPart = isa<arith::RemSIOp, arith::DivSIOp>(user) && user->getOperand(0) == numbers[n];
      if (isPart)
        numbers.insert(user->getResult(0));
      isUsed |= !isPart;
    }
    dependsOnAll &= !isUsed || sources.contains(numbers[n]);
  }
  return dependsOnAll;
}

bool tk::isStreamedOnce(gpu::LoadOp load) {
  auto function = load->getParentOfType<gpu::FuncOp>();
  auto type = dyn_cast<RankedTensorType>(load.getType());
  gpu::LayoutAttr layout = gpu::getLayout(load.getType());
  auto loop = load->getParentOfType<scf::ForOp>();
  auto buffer = dyn_cast<BlockArgument>(load.getBuffer());
  if (!type || !layout || !loop || !buffer || load.getRun() > 1 ||
      !type.getElementType().isIntOrFloat() || gpu::getPlan(function).inPlace ||
      load.getVector() * type.getElementTypeBitWidth() != vectorBits ||
      !haveThreadsTheirOwn(layout) || !isMultiplied(load.getResult()))
    return false;
  if (loop->walk([](gpu::StoreOp) { return WalkResult::interrupt(); }).wasInterrupted())
    return false;
  if (loop->getParentOp() != function)
    return false;
  llvm::SmallDenseSet<Value> sources;
  bool isCounted = false;
  for (Value index : load.getIndices()) {
    llvm::SmallDenseSet<Value> ofIndex;
    collectSources(index, ofIndex);
    bool isAlong = ofIndex.contains(loop.getInductionVar());
    if (isAlong && (isCounted || !goesThroughTiles(index, loop)))
      return false;
    isCounted |= isAlong;
    sources.insert(ofIndex.begin(), ofIndex.end());
  }
  gpu::LaunchOp launch = launchOf(function);
  if (!launch || buffer.getArgNumber() >= launch.getArgs().size() || !isCounted ||
      !dependsOnBlock(function, sources))
    return false;
  auto tensor = dyn_cast<BlockArgument>(launch.getArgs()[buffer.getArgNumber()]);
  auto kernel = launch->getParentOfType<KernelOp>();
  return tensor && tensor.getOwner()->getParentOp() == kernel &&
         exceedsCache(
             bytesOf(kernel, getExtents(kernel, tensor), type.getElementTypeBitWidth() / 8));
}
