//===- EmitMatrix.cpp - products of tiles, packed conversions -------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk::cuda {

static bool isBit(llvm::ArrayRef<gpu::LayoutBit> bits, unsigned b, int32_t axis, int64_t step) {
  return b < bits.size() && bits[b].axis == axis && bits[b].step == step;
}

/// The lanes of a fragment: two bits along `along` in words of `word` elements, three across.
static bool hasFragmentLanes(gpu::LayoutAttr layout, int32_t along, int64_t word) {
  const auto lanes = layout.getLaneBits();
  bool fits = isBit(lanes, 0, along, word) && isBit(lanes, 1, along, 2 * word);
  for (unsigned b = 0; b < 3; ++b)
    fits = fits && isBit(lanes, 2 + b, 1 - along, 1 << b);
  return fits;
}

static bool isAccumulator(gpu::LayoutAttr layout) {
  const auto bits = layout.getRegisterBits();
  return hasFragmentLanes(layout, 1, 2) && isBit(bits, 0, 1, 1) && isBit(bits, 1, 0, 8);
}

/// Elements of a register of mma.m16n8's operands: of 32 bits, or one of f64.
static unsigned wordOfFragment(unsigned bytes) { return std::max(4 / bytes, 1u); }

/// How many neighbours along k a thread has of an operand of mma.m16n8: a word of the instruction,
/// or more, of which two words go to one instruction.
static int64_t neighboursAlongK(gpu::LayoutAttr layout) {
  return layout.getLaneBits().front().step;
}

/// Whether an operand's lanes and lowest registers are those of mma.m16n8, or of one whose k is in
/// another order, with runs of neighbours; `k` is its k axis.
static bool isOperand(gpu::LayoutAttr layout, int32_t k, unsigned bytes) {
  const auto bits = layout.getRegisterBits();
  const unsigned word = wordOfFragment(bytes);
  const int64_t run = neighboursAlongK(layout);
  unsigned b = 0;
  bool fits = hasFragmentLanes(layout, k, run) && run >= word;
  for (; fits && (1u << b) < word; ++b)
    fits = isBit(bits, b, k, 1 << b);
  if (k == 1) // A has rows 8 .. 15 too
    fits = fits && isBit(bits, b++, 0, 8);
  if (bytes == 8) // four of k, which are the lanes'
    return fits && run == word;
  return fits && isBit(bits, b, k, run > word ? word : 4 * word);
}

/// The bits of k that one instruction sums over: a word's elements, the lanes' and the upper half.
static int64_t insideInstruction(gpu::LayoutAttr operand, unsigned bytes) {
  const int64_t word = wordOfFragment(bytes), run = neighboursAlongK(operand);
  if (bytes == 8)
    return 3 * run;
  return (word - 1) | 3 * run | (run > word ? word : 4 * word);
}

/// What the bits of the accumulator's registers along `axis` do to an operand's register number.
static FailureOr<BitMap> operandRegisters(gpu::LayoutAttr accumulator, gpu::LayoutAttr operand,
                                          int32_t axis, unsigned firstBit) {
  BitMap map;
  for (auto [b, bit] : llvm::enumerate(accumulator.getRegisterBits())) {
    unsigned image = 0;
    if (b >= firstBit && bit.axis == axis && !bit.isReplication()) {
      llvm::SmallVector<int64_t> offset(2, 0);
      offset[axis] = bit.step;
      auto reg = operand.getRegisterAt(offset);
      if (!reg)
        return failure();
      image = *reg;
    }
    map.push_back(image);
  }
  return map;
}

/// The same for those bits of k, up to `end`, that are none of `inside`.
static FailureOr<BitMap> kRegisters(gpu::LayoutAttr operand, int32_t kAxis, int64_t inside,
                                    int64_t end) {
  BitMap map;
  for (int64_t step = 1; step < end; step *= 2) {
    if (step & inside)
      continue;
    llvm::SmallVector<int64_t> offset(2, 0);
    offset[kAxis] = step;
    auto reg = operand.getRegisterAt(offset);
    if (!reg)
      return failure();
    map.push_back(*reg);
  }
  return map;
}

/// The warps of an operand stand where the accumulator's do along the axis that they share.
static bool sameAlong(llvm::ArrayRef<gpu::LayoutBit> a, llvm::ArrayRef<gpu::LayoutBit> b,
                      int32_t axis) {
  auto step = [&](llvm::ArrayRef<gpu::LayoutBit> bits, unsigned i) {
    return i < bits.size() && bits[i].axis == axis ? bits[i].step : 0;
  };
  for (unsigned i = 0; i < std::max(a.size(), b.size()); ++i)
    if (step(a, i) != step(b, i))
      return false;
  return true;
}

/// Of an accumulator's register bits, how many of the lowest ones lie along the same axis. In a
/// loop over slices sums go through such runs back and forth: what the end of one has read the
/// beginning of the next one reads again.
static unsigned firstRun(gpu::LayoutAttr accumulator) {
  const auto bits = accumulator.getRegisterBits();
  unsigned run = 0;
  while (run < bits.size() && !bits[run].isReplication() && bits[run].axis == bits[0].axis)
    ++run;
  return run;
}

FailureOr<std::string> KernelEmitter::termOf(gpu::DotOp dot, llvm::ArrayRef<std::string> elements) {
  Block &body = dot.getTerm().front().front();
  llvm::DenseMap<Value, std::string> texts;
  for (auto [argument, text] : llvm::zip(body.getArguments(), elements))
    texts[argument] = text;
  auto textOf = [&](Value value) {
    auto known = texts.find(value);
    return known == texts.end() ? scalar(value) : known->second;
  };
  for (Operation &op : body.without_terminator()) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      texts[constant] = literal(constant.getValue());
      continue;
    }
    auto value = expression(&op, llvm::map_to_vector(op.getOperands(), textOf));
    if (!value)
      return unsupported(&op, "expected an elementwise operation in the term of a tkgpu.dot");
    const std::string name = freshName("term");
    line("  const " + elementTypeName(op.getResult(0).getType()) + " " + name + " = " + *value +
         ";");
    texts[op.getResult(0)] = name;
  }
  return textOf(body.getTerminator()->getOperand(0));
}

/// Products of elements `a` and `b`, expressions in r, by the CUDA cores, added to `result`. `head`
/// is the loop over their sum.
LogicalResult KernelEmitter::emitCoreDot(gpu::DotOp dot, const std::string &result,
                                         const std::string &head, const std::string &a,
                                         const std::string &b) {
  auto acc = layoutOf(dot.getResult());
  Type accumulated = getElementTypeOrSelf(dot.getType());
  const unsigned accBits = acc.getRegisterBits().size();
  auto widened = [&](Value operand, const std::string &x) {
    Type type = getElementTypeOrSelf(operand.getType());
    if (isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32)
      return "tk::to_float(" + x + ")";
    return type == accumulated ? x : "(" + typeName(accumulated) + ")" + x;
  };
  if (dot.hasTerm()) {
    line(head + loopHeader(1u << accBits) + " {");
    auto sum = termOf(dot, {a, b, result + "[r]"});
    if (mlir::failed(sum))
      return failure();
    line("  " + result + "[r] = " + *sum + ";");
    line("}");
    return success();
  }
  const std::string term = result + "[r] = tk::multiply_add(" + widened(dot.getA(), a) + ", " +
                           widened(dot.getB(), b) + ", " + result + "[r]);";
  auto slice = dot.getA().getDefiningOp<gpu::LocalLoadOp>();
  const unsigned run = slice && slice.getFrom() ? firstRun(acc) : 0;
  if (run == 0 || run == accBits) {
    line(head + loopHeader(1u << accBits) + " " + term);
    return success();
  }
  line(head + "TK_UNROLL for (int i = 0; i < " + llvm::Twine(1u << accBits) + "; ++i) {");
  line("  const int r = i ^ (i >> " + llvm::Twine(run) + " & 1) * " + llvm::Twine((1u << run) - 1) +
       ";");
  line("  " + term);
  line("}");
  return success();
}

LogicalResult KernelEmitter::emitDot(gpu::DotOp dot) {
  auto acc = layoutOf(dot.getResult()), a = layoutOf(dot.getA()), b = layoutOf(dot.getB());
  auto aType = cast<RankedTensorType>(dot.getA().getType());
  const unsigned bytes = elementBytes(aType), bBytes = elementBytes(dot.getB().getType());
  const int64_t depth = aType.getDimSize(1);
  Type accumulated = getElementTypeOrSelf(dot.getType());
  const bool multiplied = bytes != 4 || dot.getPrecision() == Precision::TF32;
  const bool tensorCores =
      multiplied && bytes == bBytes && isAccumulator(acc) && isOperand(a, 1, bytes) &&
      isOperand(b, 0, bytes) && neighboursAlongK(a) == neighboursAlongK(b) &&
      (accumulated.isF32() || accumulated.isF64() || accumulated.isInteger(32));
  const int64_t kStep = tensorCores ? 32 / bytes : 1;
  const unsigned firstBit = tensorCores ? 2 : 0;
  auto aOfAcc = operandRegisters(acc, a, 0, firstBit),
       bOfAcc = operandRegisters(acc, b, 1, firstBit);
  const int64_t inside = tensorCores ? insideInstruction(a, bytes) : 0;
  auto aOfK = kRegisters(a, 1, inside, depth), bOfK = kRegisters(b, 0, inside, depth);
  bool fits = succeeded(aOfAcc) && succeeded(bOfAcc) && succeeded(aOfK) && succeeded(bOfK) &&
              sameAlong(acc.getWarpBits(), a.getWarpBits(), 0) &&
              sameAlong(acc.getWarpBits(), b.getWarpBits(), 1);
  if (!tensorCores)
    fits = fits && sameAlong(acc.getLaneBits(), a.getLaneBits(), 0) &&
           sameAlong(acc.getLaneBits(), b.getLaneBits(), 1);
  if (!fits)
    return unsupported(dot, "expected operands whose rows and columns are in the threads of the "
                            "accumulator, got layouts ")
           << a << ", " << b << " and " << acc;

  const unsigned aLow = tensorCores ? llvm::Log2_32(16 / bytes) : 0;
  const unsigned bLow = tensorCores ? llvm::Log2_32(8 / bytes) : 0;
  const Fragments aTile = fragmentsOf(dot.getA(), aLow), bTile = fragmentsOf(dot.getB(), bLow);
  auto named = names.find(dot.getAcc());
  const bool inPlace = named != names.end() && dot.getAcc().hasOneUse() &&
                       dot.getAcc().getParentBlock() == dot->getBlock();
  const std::string result = inPlace ? named->second : copyOf(dot.getAcc());
  names[dot.getResult()] = result;

  const unsigned accBits = acc.getRegisterBits().size();
  const RegisterIndex r("r", accBits, firstBit), k("k", llvm::Log2_64(depth / kStep));
  const std::string aAt = aTile.at(r.mapped(*aOfAcc).combined(k.mapped(*aOfK)));
  const std::string bAt = bTile.at(r.mapped(*bOfAcc).combined(k.mapped(*bOfK)));
  std::string head;
  if (depth > kStep)
    head = "TK_UNROLL for (int k = 0; k < " + std::to_string(depth / kStep) + "; ++k) ";
  if (tensorCores) {
    // What the matrix unit would cut off where it adds to a long sum, threads round.
    const bool isBlocked = dot.getPrecision() == Precision::Blocked;
    const std::string sums = isBlocked ? freshName("part") : result;
    if (isBlocked)
      line("float " + sums + "[" + std::to_string(1u << accBits) + "] = {};");
    line(head + loopHeader(1u << accBits, 4) + " tk::mma_m16n8(&" + sums + "[r], " + aAt + ", " +
         bAt + ");");
    if (isBlocked)
      line(loopHeader(1u << accBits) + " " + result + "[r] += " + sums + "[r];");
    return success();
  }
  return emitCoreDot(dot, result, head, aAt.substr(1), bAt.substr(1));
}

/// Four bytes that are neighbours are one word.
static std::string wordOf(gpu::LayoutAttr layout) {
  for (unsigned axis = 0; axis < layout.getRank(); ++axis)
    if (layout.getVectorWidth(axis) >= 4)
      return "<4>";
  return "";
}

/// The only use of what `op` computes, in the same block.
static Operation *onlyUserOf(Operation *op) {
  Operation *user = op->hasOneUse() ? *op->user_begin() : nullptr;
  return user && user->getBlock() == op->getBlock() ? user : nullptr;
}

std::optional<ScaledIntegers> KernelEmitter::scaledIntegers(Operation *op) {
  auto rounding = dyn_cast_or_null<arith::TruncFOp>(op);
  auto product = rounding ? rounding.getIn().getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  if (!product || onlyUserOf(product) != op || !gpu::hasMode(product, gpu::MathMode::Approx) ||
      !isTile(product) || !getElementTypeOrSelf(rounding.getType()).isBF16() ||
      wordOf(layoutOf(product)).empty())
    return std::nullopt;
  for (int side : {0, 1}) {
    auto widened = product->getOperand(side).getDefiningOp<arith::SIToFPOp>();
    auto scale = product->getOperand(1 - side).getDefiningOp<gpu::BroadcastOp>();
    if (!widened || onlyUserOf(widened) != product || !scale ||
        !getElementTypeOrSelf(widened.getIn().getType()).isInteger(8))
      continue;
    auto map = isTile(scale.getSource())
                   ? registersInSource(scale)
                   : FailureOr<std::pair<BitMap, unsigned>>(std::pair(BitMap(), 0u));
    if (mlir::succeeded(map) && llvm::all_of(llvm::ArrayRef(map->first).take_front(2),
                                             [](unsigned bit) { return bit == 0; }))
      return ScaledIntegers{widened.getIn(), scale};
  }
  return std::nullopt;
}

/// Is `op` told with the rounding that ends a product of integers?
bool KernelEmitter::isWithinScaledIntegers(Operation *op) {
  if (isa<arith::SIToFPOp>(op))
    op = onlyUserOf(op);
  auto product = dyn_cast_or_null<arith::MulFOp>(op);
  return product && scaledIntegers(onlyUserOf(product));
}

LogicalResult KernelEmitter::emitWholeTile(Operation *op) {
  if (std::optional<CappedTile> capped = cappedTile(op)) {
    emitCap(*capped, op->getResult(0));
    return success();
  }
  if (std::optional<ScaledIntegers> scaled = scaledIntegers(op)) {
    const std::string x = materialize(scaled->integers), y = declare(op->getResult(0));
    line("tk::scale_integers(" + y + ", " + x + ", [&](int r) { return " +
         element(scaled->scale, RegisterIndex("r", registerBits(op->getResult(0)))) + "; });");
    return success();
  }
  if (auto rand = dyn_cast<RandOp>(op))
    return emitNeighbours(rand);
  const std::string source = materialize(op->getOperand(0));
  const std::string name = declare(op->getResult(0));
  const std::string function = isa<math::TanhOp>(op) ? "tanh_approx"
                               : isa<arith::SIToFPOp>(op)
                                   ? "widen" + wordOf(layoutOf(op->getResult(0)))
                               : isa<arith::ExtFOp>(op) ? "widen"
                                                        : "narrow";
  line("tk::" + function + "(" + name + ", " + source + ");");
  return success();
}

} // namespace tk::cuda
