//===- LaunchPair.cpp - whether two launches can become one ---------------===//
//
// The pair qualifies if blocks of the second launch read what blocks of their own group in the
// first one have written. The two functions are compared value by value, by way of what the
// launches pass.
//
//===----------------------------------------------------------------------===//
#include "passes/launch/LaunchPair.h"
#include "passes/machine/limits/Launches.h"

#include "dialects/tkgpu/TkGpuCountOps.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/LeastSizes.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/layout/BulkBox.h"
#include "passes/layout/TileComponents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::launch_pair;

/// Is a value what `op` computes, in launches and functions alike?
static bool isQuotient(Operation *op) {
  return isa<FloorDivOp, arith::DivSIOp, arith::DivUIOp>(op);
}

/// Are two values of a kernel computed alike?
static bool isEqualAtHost(Value a, Value b) {
  if (a == b)
    return true;
  Operation *left = a.getDefiningOp(), *right = b.getDefiningOp();
  return left && right && left->getName() == right->getName() && isMemoryEffectFree(left) &&
         left->getAttrDictionary() == right->getAttrDictionary() && left->getNumRegions() == 0 &&
         left->getNumResults() == 1 &&
         llvm::equal(left->getOperands(), right->getOperands(), isEqualAtHost);
}

/// A function of blocks that run alone and once, and whose threads all do the same.
bool LaunchPair::isPlain(LaunchOp launch, FuncOp function) {
  bool plain = function && LaunchArguments::of(function) && !launch.getResident() &&
               matchPattern(launch.getGridY(), m_One()) &&
               matchPattern(launch.getGridZ(), m_One()) && function.getCluster() == 1 &&
               function.getProducerWarps() == 0 && function.getSpareWarps() == 0 &&
               function.getTeams() == 1 && !getPlan(function).inPlace;
  if (plain)
    function.walk([&](Operation *op) {
      plain &= !isa<WarpRolesOp, LaunchWaitOp, LaunchReleaseOp, LastBlockOp, AllocPhasesOp>(op);
      if (auto id = dyn_cast<ProgramIdOp>(op))
        plain &= id.getAxis() == GridAxis::X;
    });
  return plain;
}

/// What the second function reads of the first one's results: all of them. Blocks that store more
/// would wait for that before they count themselves.
bool LaunchPair::findResults() {
  unsigned inputs = first.getArgs().size();
  for (auto [number, value] : llvm::enumerate(second.getArgs()))
    if (value.getDefiningOp() == first.getOperation()) {
      unsigned result = cast<OpResult>(value).getResultNumber();
      results.emplace_back(parts.getBlock()->getArgument(inputs + result),
                           join.getBlock()->getArgument(number));
    }
  return llvm::all_of(first.getResults(),
                      [&](Value result) { return llvm::is_contained(second.getArgs(), result); });
}

/// Is a value of the first function what `host` is where it is launched?
bool LaunchPair::isSameAtHost(Value inFirst, Value host) {
  if (auto argument = dyn_cast<BlockArgument>(inFirst))
    return argument.getOwner() == parts.getBlock() &&
           argument.getArgNumber() < first.getArgs().size() &&
           isEqualAtHost(first.getArgs()[argument.getArgNumber()], host);
  APInt a, b;
  if (matchPattern(inFirst, m_ConstantInt(&a)))
    return matchPattern(host, m_ConstantInt(&b)) && a.getSExtValue() == b.getSExtValue();
  Operation *here = inFirst.getDefiningOp(), *there = host.getDefiningOp();
  bool isAlike =
      there && (here->getName() == there->getName() || (isQuotient(here) && isQuotient(there)));
  return isAlike && isa<IndexType>(inFirst.getType()) && isMemoryEffectFree(here) &&
         here->getNumRegions() == 0 && here->getNumOperands() > 0 &&
         here->getNumOperands() == there->getNumOperands() &&
         llvm::all_of(llvm::zip(here->getOperands(), there->getOperands()), [&](auto pair) {
           return isSameAtHost(std::get<0>(pair), std::get<1>(pair));
         });
}

/// The position of the first function's blocks modulo the second one's number of blocks.
bool LaunchPair::findGroup() {
  if (matchPattern(second.getGridX(), m_One()))
    return true;
  std::optional<int64_t> upper = getSizeFact(kernel, second.getGridX()).upper;
  if (!upper)
    return false;
  numGroups = *upper;
  for (auto remainder : parts.getBlock()->getOps<arith::RemSIOp>())
    if (remainder.getLhs().getDefiningOp<ProgramIdOp>() &&
        isSameAtHost(remainder.getRhs(), second.getGridX())) {
      group = remainder;
      groups = remainder.getRhs();
      return true;
    }
  return false;
}

/// Is a value of the second function's block the same in the first function's blocks of its group?
bool LaunchPair::isSame(Value inFirst, Value inSecond) {
  if (inSecond.getDefiningOp<ProgramIdOp>())
    return inFirst == group;
  auto a = dyn_cast<RankedTensorType>(inFirst.getType());
  auto b = dyn_cast<RankedTensorType>(inSecond.getType());
  if (a && b ? a.getShape() != b.getShape() || a.getElementType() != b.getElementType()
             : inFirst.getType() != inSecond.getType())
    return false;
  if (auto argument = dyn_cast<BlockArgument>(inSecond))
    return argument.getOwner() == join.getBlock() &&
           argument.getArgNumber() < second.getArgs().size() &&
           isSameAtHost(inFirst, second.getArgs()[argument.getArgNumber()]);
  Operation *here = inFirst.getDefiningOp(), *there = inSecond.getDefiningOp();
  APInt left, right;
  if (matchPattern(inFirst, m_ConstantInt(&left)))
    return matchPattern(inSecond, m_ConstantInt(&right)) && left == right;
  return here && here->getName() == there->getName() &&
         here->getAttrDictionary() == there->getAttrDictionary() && isMemoryEffectFree(here) &&
         here->getNumRegions() == 0 && here->getNumResults() == 1 && !isa<gpu::LoadOp>(here) &&
         here->getNumOperands() == there->getNumOperands() &&
         llvm::all_of(llvm::zip(here->getOperands(), there->getOperands()),
                      [&](auto pair) { return isSame(std::get<0>(pair), std::get<1>(pair)); });
}

/// Does an index of the first function take other values in each group: the group's number, or a
/// tile from a multiple of it on?
bool LaunchPair::isOwnPlace(Value index) {
  if (index == group)
    return true;
  auto sum = index.getDefiningOp<arith::AddIOp>();
  auto start = sum ? sum.getLhs().getDefiningOp<BroadcastOp>() : nullptr;
  auto iota = sum ? sum.getRhs().getDefiningOp<IotaOp>() : nullptr;
  auto product = start ? start.getSource().getDefiningOp<arith::MulIOp>() : nullptr;
  std::optional<int64_t> factor = product ? getConstantIndex(product.getRhs()) : std::nullopt;
  return iota && factor && product.getLhs() == group &&
         cast<RankedTensorType>(iota.getType()).getNumElements() <= *factor;
}

/// Do the second function's blocks read of a result only what blocks of their group write?
bool LaunchPair::readsOwnGroup(BlockArgument written, BlockArgument read) {
  SmallVector<StoreOp> stores;
  SmallVector<gpu::LoadOp> loads;
  for (Operation *user : written.getUsers()) {
    auto store = dyn_cast<StoreOp>(user);
    if (!store)
      return false;
    stores.push_back(store);
  }
  for (Operation *user : read.getUsers()) {
    auto load = dyn_cast<gpu::LoadOp>(user);
    if (!load)
      return false;
    loads.push_back(load);
  }
  if (stores.empty())
    return false;
  unsigned rank = stores.front().getIndices().size();
  // The axis along which each group has a place of its own, the same for all accesses.
  auto isOwnAlong = [&](unsigned axis) {
    StoreOp model = stores.front();
    return isOwnPlace(model.getIndices()[axis]) &&
           llvm::all_of(stores,
                        [&](StoreOp store) {
                          return store.getIndices().size() == rank &&
                                 store.getIndices()[axis] == model.getIndices()[axis] &&
                                 llvm::equal(store.getStrides(), model.getStrides());
                        }) &&
           llvm::all_of(loads, [&](gpu::LoadOp load) {
             return load.getIndices().size() == rank &&
                    isSame(model.getIndices()[axis], load.getIndices()[axis]) &&
                    llvm::all_of(llvm::zip(model.getStrides(), load.getStrides()), [&](auto pair) {
                      return isSame(std::get<0>(pair), std::get<1>(pair));
                    });
           });
  };
  return llvm::any_of(llvm::seq(rank), isOwnAlong);
}

/// A number that a value of the kernel is never below.
int64_t LaunchPair::leastOf(Value value) {
  if (std::optional<int64_t> constant = getConstantIndex(value))
    return *constant;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    SizeFact fact = getSizeFact(kernel, value);
    auto least = kernel->getAttrOfType<DenseI64ArrayAttr>(leastSizesAttrName);
    unsigned number = argument.getArgNumber();
    if (fact.exact)
      return *fact.exact;
    return least && number < least.size() ? least[number] : 0;
  }
  Operation *op = value.getDefiningOp();
  auto operand = [&](unsigned i) { return leastOf(op->getOperand(i)); };
  if (isa<arith::AddIOp>(op))
    return operand(0) + operand(1);
  if (isa<arith::MaxSIOp>(op))
    return std::max(operand(0), operand(1));
  if (isa<arith::MinSIOp>(op))
    return std::min(operand(0), operand(1));
  if (isa<arith::MulIOp>(op) && operand(0) > 0 && operand(1) > 0)
    return 1;
  // Parts of a length that is computed: one at least, if there is anything.
  auto padded = isQuotient(op) ? op->getOperand(0).getDefiningOp<arith::AddIOp>() : nullptr;
  auto less = padded ? padded.getRhs().getDefiningOp<arith::SubIOp>() : nullptr;
  if (less && less.getLhs() == op->getOperand(1) && getConstantIndex(less.getRhs()) == 1)
    return leastOf(padded.getLhs()) > 0 && operand(1) > 0 ? 1 : nothingKnown;
  std::optional<int64_t> divisor =
      isQuotient(op) ? getConstantIndex(op->getOperand(1)) : std::nullopt;
  return divisor && *divisor > 0 && operand(0) >= 0 ? operand(0) / *divisor : nothingKnown;
}

bool LaunchPair::analyse(int64_t mostGroups) {
  if (!isPlain(first, parts) || !isPlain(second, join) ||
      parts.getNumWarps() != join.getNumWarps() || parts.getIndexBits() != join.getIndexBits() ||
      hasProducts(parts) || hasProducts(join) || !findResults() || !findGroup() ||
      numGroups > mostGroups)
    return false;
  bool counts = false;
  join.walk([&](NumProgramsOp) { counts = true; });
  if (counts)
    return false;
  // What the second one writes may replace a parameter, which other groups' blocks still read.
  for (auto [number, parameter] : llvm::enumerate(kernel.getParamArguments()))
    if (kernel.getParam(number).getInout() && llvm::is_contained(first.getArgs(), parameter))
      return false;
  // Tensor maps are made for one launch.
  for (Value argument : second.getArgs())
    if (isa<TensorMapType>(argument.getType()))
      return false;
  Value blocks = first.getGridX();
  if (group) {
    // Where there are no groups the second launch has nothing to do either.
    auto product = blocks.getDefiningOp<arith::MulIOp>();
    if (!product)
      return false;
    bool isLast = isEqualAtHost(product.getRhs(), second.getGridX());
    if (!isLast && !isEqualAtHost(product.getLhs(), second.getGridX()))
      return false;
    blocks = isLast ? product.getLhs() : product.getRhs();
  }
  auto target = kernel->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttr>(targetAttrName);
  if (!target || numGroups > target.getProcessors())
    return false;
  // Blocks whose place others wait for would keep it while they count themselves.
  std::optional<int64_t> most = getSizeFact(kernel, blocks).upper;
  int64_t perProcessor = std::min<int64_t>(parts.getMinBlocks().value_or(1), mostPerProcessor);
  bool takesLong = !parts.getBlock()->getOps<scf::ForOp>().empty();
  int64_t atOnce = group || !takesLong ? 0 : target.getProcessors() * perProcessor;
  return most && *most <= std::max(mostBlocksOfGroup, atOnce) && leastOf(blocks) > 0 &&
         llvm::all_of(results,
                      [&](auto &pair) { return !group || readsOwnGroup(pair.first, pair.second); });
}
