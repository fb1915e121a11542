//===- SettledMasks.cpp - comparisons that the bounds of sizes decide -----===//
//
//   1. For indices along tiles of one axis, the least and the greatest number that any thread has
//      in each register are computed, of iotas, sums and remainders; of sizes from what is known of
//      the function's arguments. A rotated iota goes around the end in its first vector alone.
//   2. A comparison that so holds in some registers for all threads says in which.
//
// Before: %in = cmpi slt, %j, %Cs : tensor<4096xi1, #row>          // C in 3585 .. 4096
// After:  %in = cmpi slt, %j, %Cs {tkgpu.settled = 0xffffff} : ... // of 32 registers
//
//===----------------------------------------------------------------------===//
#include "passes/layout/SettledMasks.h"
#include "passes/machine/limits/Layouts.h"

#include "passes/analysis/LeastSizes.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/layout/TileComponents.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

/// Numbers from `least` to `most`, both included.
struct Interval {
  int64_t least, most;
};
using Intervals = SmallVector<Interval>; ///< by register

/// The ranges of index values in each register; where nothing is known, nothing.
class RegisterIntervals {
public:
  std::optional<Intervals> of(Value tile);

private:
  std::optional<Intervals> compute(Value tile);
  std::optional<Intervals> ofSum(Value a, Value b, int64_t sign);
  std::optional<Intervals> ofRemainder(arith::AndIOp op);

  DenseMap<Value, std::optional<Intervals>> known;
};

} // namespace

using namespace limits::settled_masks;

static std::optional<Interval> rangeOfScalar(Value scalar) {
  if (std::optional<int64_t> constant = getConstantIndex(scalar))
    return Interval{*constant, *constant};
  auto argument = dyn_cast<BlockArgument>(scalar);
  auto function = argument ? dyn_cast<FuncOp>(argument.getOwner()->getParentOp()) : FuncOp();
  if (!function)
    return std::nullopt;
  auto least = function->getAttrOfType<DenseI64ArrayAttr>(leastSizesAttrName);
  if (!least || !argument.getType().isIndex())
    return std::nullopt;
  // Nothing is known of a least of 0: what launches compute of sizes may be negative.
  int64_t from = least[argument.getArgNumber()];
  int64_t upper = function.getArgFact(argument.getArgNumber()).getUpper();
  return Interval{from > 0 ? from : -farAway, upper < 0 ? farAway : upper};
}

/// The places of a tile's elements, minus `shift`, which is a vector at most: elements of a first
/// vector so go around the end of `length` elements.
static Intervals rangesOfPlaces(RankedTensorType tile, Interval shift, int64_t length) {
  LayoutAttr layout = getLayout(tile);
  int64_t span = 0;
  for (ArrayRef<LayoutBit> bits : {layout.getLaneBits(), layout.getWarpBits()})
    for (LayoutBit bit : bits)
      span += bit.isReplication() ? 0 : bit.step;
  Intervals ranges;
  for (unsigned r = 0; r < layout.getNumRegisters(); ++r) {
    int64_t first = layout.getRegisterOffset(r)[0];
    bool goesAround = first < shift.most;
    ranges.push_back(goesAround ? Interval{0, length - 1}
                     : first + span < length
                         ? Interval{first - shift.most, first + span - shift.least}
                         : Interval{first - shift.most, first + span});
  }
  return ranges;
}

std::optional<Intervals> RegisterIntervals::of(Value tile) {
  if (auto it = known.find(tile); it != known.end())
    return it->second;
  std::optional<Intervals> result = compute(tile);
  return known[tile] = result;
}

std::optional<Intervals> RegisterIntervals::ofSum(Value a, Value b, int64_t sign) {
  std::optional<Intervals> left = of(a), right = of(b);
  if (!left || !right)
    return std::nullopt;
  for (auto [to, by] : llvm::zip_equal(*left, *right)) {
    to.least += sign * (sign > 0 ? by.least : by.most);
    to.most += sign * (sign > 0 ? by.most : by.least);
  }
  return left;
}

/// Of a power of two, as long as no multiple of it lies between the ends.
std::optional<Intervals> RegisterIntervals::ofRemainder(arith::AndIOp op) {
  std::optional<Intervals> ranges = of(op.getLhs()), masks = of(op.getRhs());
  if (!ranges || !masks)
    return std::nullopt;
  for (auto [range, mask] : llvm::zip_equal(*ranges, *masks)) {
    int64_t divisor = mask.least + 1;
    if (mask.least != mask.most || divisor < 1 || !llvm::isPowerOf2_64(divisor))
      return std::nullopt;
    int64_t whole = llvm::divideFloorSigned(range.least, divisor);
    bool isOne = whole == llvm::divideFloorSigned(range.most, divisor);
    range = isOne ? Interval{range.least - whole * divisor, range.most - whole * divisor}
                  : Interval{0, divisor - 1};
  }
  return ranges;
}

std::optional<Intervals> RegisterIntervals::compute(Value tile) {
  Operation *op = tile.getDefiningOp();
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  LayoutAttr layout = getLayout(tile.getType());
  if (!op || !layout || type.getRank() != 1 || !type.getElementType().isIndex())
    return std::nullopt;
  auto everywhere = [&](std::optional<Interval> range) {
    return range ? std::optional(Intervals(layout.getNumRegisters(), *range)) : std::nullopt;
  };
  return llvm::TypeSwitch<Operation *, std::optional<Intervals>>(op)
      .Case([&](IotaOp) { return rangesOfPlaces(type, {0, 0}, type.getDimSize(0)); })
      .Case([&](RotatedIotaOp rotated) -> std::optional<Intervals> {
        int64_t length = rotated.getLengthAround();
        if (std::optional<int64_t> shift = getConstantIndex(rotated.getShift()))
          return rangesOfPlaces(type, {*shift, *shift}, length);
        auto shift = rotated.getShift().getDefiningOp<MisalignmentOp>();
        if (!shift)
          return std::nullopt;
        return rangesOfPlaces(type, {0, int64_t(shift.getAlignment()) - 1}, length);
      })
      .Case([&](arith::ConstantOp constant) -> std::optional<Intervals> {
        auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
        if (!splat)
          return std::nullopt;
        int64_t value = splat.getSplatValue<APInt>().getSExtValue();
        return everywhere(Interval{value, value});
      })
      .Case([&](BroadcastOp broadcast) -> std::optional<Intervals> {
        if (isTile(broadcast.getSource()))
          return std::nullopt;
        return everywhere(rangeOfScalar(broadcast.getSource()));
      })
      .Case([&](arith::AddIOp sum) { return ofSum(sum.getLhs(), sum.getRhs(), 1); })
      .Case([&](arith::SubIOp sum) { return ofSum(sum.getLhs(), sum.getRhs(), -1); })
      .Case([&](arith::AndIOp mask) { return ofRemainder(mask); })
      .Default([](Operation *) { return std::nullopt; });
}

/// The registers in which a comparison holds for all threads.
static uint64_t settledRegisters(arith::CmpIOp compare, RegisterIntervals &ranges) {
  std::optional<Intervals> left = ranges.of(compare.getLhs()), right = ranges.of(compare.getRhs());
  if (!left || !right || left->size() > 64)
    return 0;
  uint64_t settled = 0;
  for (auto [r, a, b] : llvm::enumerate(*left, *right)) {
    using P = arith::CmpIPredicate;
    P predicate = compare.getPredicate();
    bool holds =
        (predicate == P::slt && a.most < b.least) || (predicate == P::sle && a.most <= b.least) ||
        (predicate == P::sgt && a.least > b.most) || (predicate == P::sge && a.least >= b.most);
    settled |= uint64_t(holds) << r;
  }
  return settled;
}

unsigned tk::settleMasks(FuncOp function) {
  Builder builder(function.getContext());
  RegisterIntervals ranges;
  unsigned numSettled = 0;
  function.walk([&](arith::CmpIOp compare) {
    uint64_t settled = settledRegisters(compare, ranges);
    if (settled == 0)
      return;
    compare->setAttr(settledAttrName, builder.getI64IntegerAttr(int64_t(settled)));
    ++numSettled;
  });
  return numSettled;
}
