//===- EmitPositions.cpp - places in a tile, compared with a bound a row --===//
//
// A mask of a tile compares the places along one axis with a bound that each row has: a comparison
// for every element, and a choice by it. But a thread's places along the axis rise with its
// register number, so that those below a bound are its first n: one word a row holds all results,
// and the machine sets several predicates from a word at once.
//
//   cmpi slt, broadcast(addi(broadcast(%start), iota)), broadcast(%bound)
//     →  u32 below[rows] = tk::places_below<run, step, n, type>(bound[row], start + thread's place)
//        element (row, c): below[row] >> c & 1
//
// Choices between neighbours of 16 bits and zeros take both bits at once, as a mask.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"

#include "passes/layout/SettledMasks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk::cuda {

/// The words have 32 bits; for fewer places than this the comparisons themselves are as cheap.
static constexpr unsigned fewestPlaces = 8, mostPlaces = 32;

/// Where a tile of one axis that counts on from some place begins; nothing if it is no such tile.
/// Null: at 0.
static std::optional<Value> startOf(Value places) {
  if (isa_and_nonnull<gpu::IotaOp>(places.getDefiningOp()))
    return Value();
  auto sum = places.getDefiningOp<arith::AddIOp>();
  if (!sum)
    return std::nullopt;
  for (unsigned side : {0u, 1u})
    if (Value start = gpu::splatSource(sum->getOperand(side));
        start && isa_and_nonnull<gpu::IotaOp>(sum->getOperand(1 - side).getDefiningOp()))
      return start;
  return std::nullopt;
}

/// Which of a thread's registers hold the places along `axis`: the first `run` of them are
/// neighbours, and each further run begins `step` places after the one before.
std::optional<PlaceWords> KernelEmitter::placesAlong(gpu::LayoutAttr layout, unsigned axis) {
  PlaceWords words;
  unsigned next = 1;
  for (auto [bit, to] : llvm::enumerate(layout.getRegisterBits())) {
    const bool isAlong = to.axis == static_cast<int32_t>(axis);
    words.place.push_back(isAlong ? 1u << llvm::Log2_32(words.numPlaces) : 0);
    words.row.push_back(isAlong ? 0 : 1u << words.registerOf.size());
    if (!isAlong) {
      words.registerOf.push_back(1u << bit);
      continue;
    }
    const unsigned step = to.step;
    if (step != next && words.step == 0)
      words.run = words.numPlaces, words.step = step;
    else if (step != next)
      return std::nullopt;
    words.numPlaces *= 2;
    next = 2 * step;
  }
  if (words.step == 0)
    words.run = words.numPlaces, words.step = next;
  if (layout.getHeld() != 0 || words.numPlaces < fewestPlaces || words.numPlaces > mostPlaces)
    return std::nullopt;
  return words;
}

std::optional<PlaceWords> KernelEmitter::matchPlaceTest(Operation *op) {
  using P = arith::CmpIPredicate;
  auto compare = dyn_cast<arith::CmpIOp>(op);
  auto tile = compare ? dyn_cast<RankedTensorType>(compare.getType()) : nullptr;
  if (!tile || tile.getRank() < 2 ||
      (compare.getPredicate() != P::slt && compare.getPredicate() != P::sge))
    return std::nullopt;
  auto places = compare.getLhs().getDefiningOp<gpu::BroadcastOp>();
  auto bound = compare.getRhs().getDefiningOp<gpu::BroadcastOp>();
  if (!places || !bound || places.getDims().size() != 1 ||
      llvm::is_contained(bound.getDims(), places.getDims().front()))
    return std::nullopt;
  const std::optional<Value> start = startOf(places.getSource());
  const unsigned axis = places.getDims().front();
  std::optional<PlaceWords> words =
      start ? placesAlong(gpu::getLayout(tile), axis) : std::optional<PlaceWords>();
  if (words)
    words->start = *start, words->axis = axis;
  return words;
}

bool KernelEmitter::servesPlaceTests(Operation *op) {
  return op->getNumResults() == 1 && startOf(op->getResult(0)) && !op->use_empty() &&
         llvm::all_of(op->getUsers(), [&](Operation *user) {
           return isa<gpu::BroadcastOp>(user) &&
                  llvm::all_of(user->getUsers(), [&](Operation *test) {
                    return test->getOperand(0) == user->getResult(0) && matchPlaceTest(test);
                  });
         });
}

bool KernelEmitter::emitPlaceTest(Operation *compare) {
  std::optional<PlaceWords> words = matchPlaceTest(compare);
  if (!words)
    return false;
  flushGroup(); // the bounds, and where the places begin, may be of it
  locate(compare->getLoc());
  const bool isBelow = cast<arith::CmpIOp>(compare).getPredicate() == arith::CmpIPredicate::slt;
  const unsigned rowBits = words->registerOf.size();
  const RegisterIndex row("r", rowBits);
  words->name = freshName(isBelow ? "below" : "from");
  const std::string first = (words->start ? scalar(words->start) + " + " : std::string()) +
                            threadCoordinate(layoutOf(compare->getResult(0)), words->axis);
  line("tk::u32 " + words->name + "[" + llvm::Twine(1u << rowBits) + "];");
  const std::string call =
      "tk::places_below<" + std::to_string(words->run) + ", " + std::to_string(words->step) + ", " +
      std::to_string(words->numPlaces) + ", " + elementTypeName(compare->getOperand(0).getType()) +
      ">(" + element(compare->getOperand(1), row.mapped(words->registerOf)) + ", " + first + ")";
  line(loopHeader(1u << rowBits) + " " + words->name + "[r] = " + (isBelow ? "" : "~") + call +
       ";");
  placeTests[compare->getResult(0)] = *words;
  return true;
}

bool KernelEmitter::emitKeptPairs(Operation *op) {
  auto select = dyn_cast<arith::SelectOp>(op);
  const auto test = select ? placeTests.find(select.getCondition()) : placeTests.end();
  if (test == placeTests.end() || op->hasAttr(settledAttrName))
    return false;
  Type type = getElementTypeOrSelf(select.getType());
  if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() != 16) // an index has no width
    return false;
  const bool keepsThose = matchPattern(select.getFalseValue(), m_PosZeroFloat());
  Value source = keepsThose ? select.getTrueValue() : select.getFalseValue();
  Value zeros = keepsThose ? select.getFalseValue() : select.getTrueValue();
  const PlaceWords &words = test->second;
  if (!matchPattern(zeros, m_PosZeroFloat()) || words.place.empty() || words.place[0] != 1)
    return false;
  flushGroup();
  // Where the source's registers are in an array: neighbours must stay neighbours.
  RegisterIndex at("r", words.place.size());
  while (auto extract = source.getDefiningOp<gpu::ExtractOp>()) {
    auto map = registersInSource(extract);
    if (mlir::failed(map) || map->first.empty() || map->first[0] != 1 || map->second % 2 != 0)
      return false;
    at = at.mapped(map->first).combined(RegisterIndex(map->second));
    source = extract.getSource();
  }
  if (auto name = names.find(source); name == names.end() || layoutOf(source).getHeld() != 0)
    return false;
  locate(op->getLoc());
  const RegisterIndex reg("r", words.place.size());
  const std::string name = declare(op->getResult(0)), from = element(source, at);
  line(loopHeader(registersOf(op->getResult(0)), 2) + " tk::keep_pair(&" + name + "[" + reg.str() +
       "], &" + from + ", " + (keepsThose ? "" : "~") + "tk::pair_mask(" + words.name + "[" +
       reg.mapped(words.row).str() + "], " + reg.mapped(words.place).str() + "));");
  return true;
}

std::string PlaceWords::at(const RegisterIndex &reg) const {
  return "((" + name + "[" + reg.mapped(row).str() + "] >> (" + reg.mapped(place).str() +
         ") & 1) != 0)";
}

} // namespace tk::cuda
