//===- EmitWarpgroup.cpp - products of warpgroups --------------------------===//
//
// An operand in shared memory is named by a descriptor: where it begins, how far its groups of
// eight rows are apart, and its swizzle. A product steps through it in spans of 32 bytes of k and
// of 64 rows; each step is a constant number of bytes further on.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuProducts.h"
#include "passes/pipeline/Rings.h"

#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

#include <set>

using namespace mlir;

namespace tk::cuda {

/// Bytes of k that one instruction takes, and rows of A.
static constexpr int64_t kSpan = 32, kRows = 64;
/// So many instructions are one statement of the text, in functions of so many instructions: the
/// compiler takes longest for those. It orders what is around a statement otherwise, which costs
/// attention without a mask up to 5 %.
static constexpr int64_t kInRow = 4, kManyProducts = 64;
/// Columns that threads add up at a time: what else they sum leaves no registers for more.
static constexpr int64_t kPromotedColumns = 128;

namespace {

/// How a product walks through an operand in shared memory. `outer` is m or n.
class SharedOperand {
public:
  SharedOperand(gpu::SharedType type, unsigned kAxis)
      : type(type), bytes(type.getElementType().getIntOrFloatBitWidth() / 8),
        rowBytes(type.getRowLength() * bytes),
        kContiguous(type.getAxisOrder().front() == static_cast<int64_t>(kAxis)) {}

  bool isTransposed() const { return !kContiguous; }
  int64_t panelBytes() const { return gpu::SharedType(type).getPanelStride() * bytes; }
  int64_t leadingBytes() const { return kContiguous ? 16 : panelBytes(); }
  int64_t strideBytes() const { return 8 * rowBytes; }
  std::string swizzle() const {
    const int64_t span = gpu::SharedType(type).getHardwareSwizzle().value_or(0);
    return span ? "tk::Swizzle::bytes" + std::to_string(span) : "tk::Swizzle::none";
  }
  /// How far the element `outer` along m or n is from the first; a whole panel where those are
  /// contiguous.
  int64_t outerBytes(int64_t outer) const {
    if (kContiguous)
      return outer * rowBytes;
    return outer * bytes / rowBytes * panelBytes() + outer * bytes % rowBytes;
  }
  /// How far span `k` is, an expression.
  std::string spanBytes(llvm::StringRef k) const {
    if (!kContiguous)
      return (k + " * " + std::to_string(kSpan / bytes * rowBytes)).str();
    const int64_t spans = rowBytes / kSpan;
    if (type.getPanel() == 0)
      return (k + " * " + std::to_string(kSpan)).str();
    return (k + " / " + std::to_string(spans) + " * " + std::to_string(panelBytes()) + " + " + k +
            " % " + std::to_string(spans) + " * " + std::to_string(kSpan))
        .str();
  }

private:
  mutable gpu::SharedType type;
  int64_t bytes, rowBytes;
  bool kContiguous;
};

} // namespace

/// The bytes by which the operand of a warpgroup lies behind that of the first, an expression in
/// `warp`; "0" where all read the same.
static std::string groupBytes(const SharedOperand &operand, gpu::LayoutAttr accumulator,
                              int32_t axis) {
  BitMap steps;
  for (auto [b, bit] : llvm::enumerate(accumulator.getWarpBits()))
    steps.push_back(b >= 2 && bit.axis == axis ? operand.outerBytes(bit.step) : 0);
  return sumOfBits("warp", steps);
}

/// What TK_WARPGROUP_MMA calls a pair of operand types.
static std::string productName(Type a, Type b) {
  auto nameOf = [](Type type) -> std::string {
    if (type.isBF16())
      return "bf16";
    if (type.isF16())
      return "f16";
    if (type.isF32())
      return "tf32";
    if (isa<Float8E4M3FNType>(type))
      return "e4m3";
    if (isa<Float8E5M2Type>(type))
      return "e5m2";
    return "i8";
  };
  return a == b ? nameOf(a) : nameOf(a) + "_" + nameOf(b);
}

/// Columns of the accumulator that a warpgroup has.
static int64_t columnsOf(gpu::LayoutAttr accumulator) {
  int64_t columns = 1;
  for (ArrayRef<gpu::LayoutBit> bits : {accumulator.getRegisterBits(), accumulator.getLaneBits()})
    for (gpu::LayoutBit bit : bits)
      columns *= bit.axis == 1 && !bit.isReplication() ? 2 : 1;
  return columns;
}

/// Columns that one instruction fills.
static int64_t columnsAtOnce(gpu::WarpgroupDotOp dot, gpu::LayoutAttr accumulator) {
  const int64_t columns = columnsOf(accumulator);
  return gpu::isPromoted(dot) ? std::min(columns, kPromotedColumns) : columns;
}

static Type elementOf(Value operand) {
  if (auto shared = dyn_cast<gpu::SharedType>(operand.getType()))
    return shared.getElementType();
  return getElementTypeOrSelf(operand.getType());
}

/// The sums that the instructions of `dot` compute as well; null if there are none.
static gpu::WarpgroupSumsOp sumsOf(gpu::WarpgroupDotOp dot) {
  return dyn_cast<gpu::WarpgroupSumsOp>(dot->getNextNode());
}

std::string warpgroupDeclarations(ModuleOp module) {
  std::set<std::string> lines;
  module.walk([&](gpu::WarpgroupDotOp dot) {
    gpu::WarpgroupSumsOp sums = sumsOf(dot);
    const int64_t more = sums ? cast<RankedTensorType>(sums.getType()).getDimSize(1) : 0;
    if (auto layout = gpu::getLayout(dot.getType()))
      lines.insert("TK_WARPGROUP_MMA(" + productName(elementOf(dot.getA()), elementOf(dot.getB())) +
                   ", " + std::to_string(columnsAtOnce(dot, layout) + more) + ")\n");
  });
  std::string text;
  for (const std::string &line : lines)
    text += line;
  return text;
}

/// Instructions of the products of `func` for one block of rows.
static int64_t productsOf(gpu::FuncOp func) {
  int64_t count = 0;
  func.walk([&](gpu::WarpgroupDotOp dot) {
    gpu::SharedType b = dot.getB().getType();
    count += b.getShape()[0] * b.getElementType().getIntOrFloatBitWidth() / 8 / kSpan;
  });
  return count;
}

/// The product of `spans` spans in a row, or of span k where that is 1. `a` and `b`, expressions in
/// k, are its operands, and `adds` says whether the first span is added to what is there.
static std::string productCall(const std::string &types, int64_t spans, const std::string &target,
                               const std::string &a, const std::string &b,
                               const std::string &adds) {
  const std::string call = "tk::warpgroup_mma<" + types;
  if (spans > 1)
    return call + ", " + std::to_string(spans) + ">(" + target + ", [&](int k) { return " + a +
           "; }, [&](int k) { return " + b + "; }, " + adds + ");";
  std::string accumulate = adds;
  if (adds != "1")
    accumulate = adds == "0" ? "k != 0" : "k != 0 || " + adds;
  return call + ">(" + target + ", " + a + ", " + b + ", " + accumulate + ");";
}

std::string KernelEmitter::accumulatorOf(Operation *product, Value acc, bool replaces) {
  auto named = names.find(acc);
  const bool inPlace = named != names.end() && (acc.hasOneUse() || replaces) &&
                       acc.getParentBlock() == product->getBlock();
  return inPlace ? named->second : copyOf(acc);
}

std::string KernelEmitter::firstDescriptor(gpu::WarpgroupDotOp dot, Value operand, int32_t axis) {
  const SharedOperand walk(cast<gpu::SharedType>(operand.getType()), 1 - axis);
  std::string group = groupBytes(walk, layoutOf(dot.getResult()), axis);
  if (group != "0")
    useWarp();
  std::string text = "tk::descriptor_advance(tk::matrix_descriptor(" + names[operand] + ", ";
  llvm::raw_string_ostream(text) << walk.leadingBytes() << ", " << walk.strideBytes() << ", "
                                 << walk.swizzle() << "), " << group << ")";
  return text;
}

/// Is this product's left factor in shared memory, and the same in all steps of `loop`?
static bool hasFixedFactor(gpu::WarpgroupDotOp dot, scf::ForOp loop) {
  return isa<gpu::SharedType>(dot.getA().getType()) && dot->getParentOfType<scf::ForOp>() == loop &&
         loop.isDefinedOutsideOfLoop(dot.getA());
}

/// Instructions along the sum of a product.
static int64_t spansOf(gpu::WarpgroupDotOp dot) {
  auto type = dot.getB().getType();
  return type.getShape()[0] * type.getElementType().getIntOrFloatBitWidth() / 8 / kSpan;
}

int64_t KernelEmitter::rowBlocksOf(gpu::WarpgroupDotOp dot) {
  return registersOf(dot.getResult()) / (columnsOf(layoutOf(dot.getResult())) / 2);
}

void KernelEmitter::declareFactors(scf::ForOp loop) {
  loop.walk([&](gpu::WarpgroupDotOp dot) {
    if (!hasFixedFactor(dot, loop) || !comesApart(dot) || rowBlocksOf(dot) > 1)
      return;
    const SharedOperand walk(cast<gpu::SharedType>(dot.getA().getType()), 1);
    const std::string name = freshName("a_at"), first = firstDescriptor(dot, dot.getA(), 0);
    line("const tk::HeldDescriptors<" + llvm::Twine(spansOf(dot)) + "> " + name + "(" + first +
         ", [&](int k) { return " + walk.spanBytes("k") + "; });");
    heldFactors[dot] = name;
  });
}

/// The product that `dot` is summed with before threads add both up; null if there is none.
static gpu::WarpgroupDotOp chainedBefore(gpu::WarpgroupDotOp dot) {
  auto before = dot.getAcc().getDefiningOp<gpu::WarpgroupDotOp>();
  const bool isChained =
      before && before->getBlock() == dot->getBlock() && before->hasOneUse() &&
      dot.getPrecision() == Precision::Blocked && before.getPrecision() == Precision::Blocked &&
      isa<gpu::SharedType>(before.getA().getType()) && isa<gpu::SharedType>(dot.getA().getType());
  return isChained ? before : gpu::WarpgroupDotOp();
}

/// Is the product summed with one behind it before threads add both up?
static bool isContinued(gpu::WarpgroupDotOp dot) {
  if (!dot->hasOneUse())
    return false;
  auto next = dyn_cast<gpu::WarpgroupDotOp>(*dot->user_begin());
  return next && next.getAcc() == dot.getResult() && chainedBefore(next) == dot;
}

void KernelEmitter::emitPromotedDots(gpu::WarpgroupDotOp last, const PromotedDot &how) {
  llvm::SmallVector<gpu::WarpgroupDotOp> dots = {last};
  while (gpu::WarpgroupDotOp before = chainedBefore(dots.back()))
    dots.push_back(before);
  const std::string part = freshName("part"), count = std::to_string(how.atOnce / 2);
  llvm::SmallVector<std::string> calls;
  for (gpu::WarpgroupDotOp dot : llvm::reverse(dots)) {
    const SharedOperand walk(dot.getB().getType(), 0);
    const bool isFirst = calls.empty();
    const std::string a = dot == last ? how.a : leftFactor(dot, how.blocks),
                      b = (comesApart(dot) ? "tk::descriptor_plus(" : "tk::descriptor_advance(") +
                          descriptorOf(dot, dot.getB(), 1, "b_at");
    const std::string loop =
        "TK_UNROLL for (int k = 0; k < " + std::to_string(spansOf(dot)) + "; ++k) ";
    calls.push_back((how.inRow ? "" : loop) +
                    productCall(how.types, how.inRow ? spansOf(dot) : 1, part, a,
                                b + ", " + walk.spanBytes("k") + " + n * " +
                                    std::to_string(walk.outerBytes(how.atOnce)) + ")",
                                isFirst ? "0" : "1"));
  }
  line(std::string(how.blocks > 1
                       ? "TK_UNROLL for (int m = 0; m < " + std::to_string(how.blocks) + "; ++m) "
                       : "") +
       "TK_UNROLL for (int n = 0; n < " + std::to_string(how.columns / how.atOnce) + "; ++n) {");
  line("  float " + part + "[" + count + "];");
  line("  tk::warpgroup_fence();");
  for (const std::string &call : calls)
    line("  " + call);
  line("  tk::warpgroup_commit();");
  line("  tk::warpgroup_wait<0>();");
  line("  tk::fence_registers(" + part + ");");
  line("  TK_UNROLL for (int r = 0; r < " + count + "; ++r) " + how.sums + "[" +
       (how.blocks > 1 ? "m * " + std::to_string(how.columns / 2) + " + " : "") + "n * " + count +
       " + r] += " + part + "[r];");
  line("}");
}

std::string KernelEmitter::descriptorOf(gpu::WarpgroupDotOp dot, Value operand, int32_t axis,
                                        llvm::StringRef hint) {
  const std::string name = freshName(hint);
  line("const tk::u64 " + name + " = " + firstDescriptor(dot, operand, axis) + ";");
  return name;
}

/// The left factor of `dot`, in shared memory, at span `k` of block `m` of rows.
std::string KernelEmitter::leftFactor(gpu::WarpgroupDotOp dot, int64_t blocks) {
  const SharedOperand walk(cast<gpu::SharedType>(dot.getA().getType()), 1);
  std::string text = comesApart(dot) ? "tk::descriptor_plus(" : "tk::descriptor_advance(";
  text += descriptorOf(dot, dot.getA(), 0, "a_at") + ", " + walk.spanBytes("k");
  if (blocks > 1)
    text += " + m * " + std::to_string(walk.outerBytes(kRows));
  return text + ")";
}

LogicalResult KernelEmitter::emitWarpgroupDot(gpu::WarpgroupDotOp dot) {
  auto accumulator = layoutOf(dot.getResult());
  auto shape = cast<RankedTensorType>(dot.getType()).getShape();
  auto bType = dot.getB().getType();
  auto aType = dyn_cast<gpu::SharedType>(dot.getA().getType());
  if (accumulator != gpu::warpgroupAccumulatorLayout(dot.getContext(), shape[0], shape[1],
                                                     func.getNumWarps(), bType.getInterleave()))
    return unsupported(dot, "expected the layout of a warpgroup's accumulator, got ")
           << accumulator;
  const SharedOperand b(bType, 0);
  const int64_t bytes = bType.getElementType().getIntOrFloatBitWidth() / 8,
                columns = columnsOf(accumulator), atOnce = columnsAtOnce(dot, accumulator);
  const int64_t spans = spansOf(dot), blocks = rowBlocksOf(dot);
  if (isContinued(dot)) {
    names[dot.getResult()] = accumulatorOf(dot, dot.getAcc(), /*replaces=*/false);
    return success();
  }

  // A product that never accumulates takes the registers alone; what they held has been read.
  const bool replaces = dot.getAccumulate() && matchPattern(dot.getAccumulate(), m_Zero());
  // What starts from zero needs no zeros: its first instruction does not accumulate. Beside a
  // left operand in registers they are named all the same: accumulators that nothing is known of
  // would be held from the kernel's start on.
  const bool fromZero = !gpu::isPromoted(dot) && (matchPattern(dot.getAcc(), m_AnyZeroFloat()) ||
                                                  matchPattern(dot.getAcc(), m_Zero()));
  std::string acc;
  if (fromZero) {
    acc = nameFor(dot.getResult());
    declareAs(dot.getResult(), acc, aType ? Value() : dot.getAcc());
  } else {
    acc = accumulatorOf(dot, dot.getAcc(), replaces);
  }
  names[dot.getResult()] = acc;

  const std::string advance = comesApart(dot) ? "tk::descriptor_plus(" : "tk::descriptor_advance(";
  // Several spans in a row are one call, unless blocks of rows take turns.
  const bool inRow =
      blocks == 1 && spans >= kInRow && productsOf(func) >= kManyProducts && !sumsOf(dot);
  std::string a, typeNames = typeName(elementOf(dot.getA())) + ", " +
                             typeName(bType.getElementType()) + ", " + std::to_string(atOnce) +
                             ", ";
  if (aType) {
    const SharedOperand walk(aType, 1);
    if (auto held = heldFactors.find(dot); held != heldFactors.end()) {
      a = held->second + "[k]";
    } else {
      a = leftFactor(dot, blocks);
    }
    typeNames += walk.isTransposed() ? "true, " : "false, ";
  } else {
    // Four words a span and block of rows, in the order of warpgroupOperandLayout.
    const int64_t perSpan = 16 / bytes;
    std::string array = materialize(dot.getA());
    if (bytes == 4) {
      // The instruction would cut off what tf32 has no bits for.
      const std::string rounded = freshName("rounded");
      line("float " + rounded + "[" + llvm::Twine(registersOf(dot.getA())) + "];");
      line(loopHeader(registersOf(dot.getA()), 1) + " " + rounded + "[r] = tk::round_to_tf32(" +
           array + "[r]);");
      array = rounded;
    }
    a = "&" + array + "[k * " + std::to_string(perSpan) +
        (blocks > 1 ? " + m * " + std::to_string(perSpan * spans) : "") + "]";
    if (inRow)
      typeNames += "false, ";
  }
  // Whether the first span adds to what is there.
  const std::string adds = gpu::isPromoted(dot) || fromZero || replaces ? "0"
                           : dot.getAccumulate() ? scalar(dot.getAccumulate())
                                                 : "1";
  const std::string isTransposed = b.isTransposed() ? "true" : "false";
  if (gpu::isPromoted(dot)) {
    emitPromotedDots(dot, {acc, a, typeNames + isTransposed, columns, atOnce, blocks, inRow});
    return success();
  }
  const std::string bAt = descriptorOf(dot, dot.getB(), 1, "b_at");
  const std::string loops = "TK_UNROLL for (int k = 0; k < " + std::to_string(spans) + "; ++k) ";
  const std::string rows = "TK_UNROLL for (int m = 0; m < " + std::to_string(blocks) + "; ++m) ";
  if (gpu::WarpgroupSumsOp sums = sumsOf(dot)) {
    const std::string more = accumulatorOf(sums, sums.getAcc(), /*replaces=*/false);
    names[sums.getResult()] = more;
    line("tk::warpgroup_fence();");
    line(loops + "tk::warpgroup_mma_and_sums<" + typeName(elementOf(dot.getA())) + ", " +
         typeName(bType.getElementType()) + ", " + llvm::Twine(atOnce) +
         (b.isTransposed() ? ", true" : "") + ">(&" + acc + "[0], &" + more + "[0], " + a + ", " +
         advance + bAt + ", " + b.spanBytes("k") + "), " + adds + ");");
    line("tk::warpgroup_commit();");
    return success();
  }
  line("tk::warpgroup_fence();");
  line(
      (inRow ? "" : loops) + (blocks > 1 ? rows : "") +
      productCall(typeNames + isTransposed, inRow ? spans : 1,
                  "&" + acc + "[" + (blocks > 1 ? "m * " + std::to_string(columns / 2) : "0") + "]",
                  a, advance + bAt + ", " + b.spanBytes("k") + ")", adds));
  line("tk::warpgroup_commit();");
  return success();
}

LogicalResult KernelEmitter::emitWarpgroupSums(gpu::WarpgroupSumsOp sums) {
  // The product in front has begun them.
  return names.contains(sums.getResult()) ? success() : unsupported(sums, "expected a product");
}

LogicalResult KernelEmitter::emitClear(gpu::ClearOp clear) {
  const std::string name = copyOf(clear.getSource());
  line("tk::clear_registers(" + name + ");");
  names[clear.getResult()] = name;
  return success();
}

LogicalResult KernelEmitter::emitFirstInThreads(gpu::FirstInThreadsOp first) {
  const std::string source = materialize(first.getSource());
  const unsigned count = registersOf(first.getResult());
  const unsigned apart = registersOf(first.getSource()) / count;
  const std::string name = declare(first);
  line(loopHeader(count, 1) + " " + name + "[r] = " + source + "[r * " + llvm::Twine(apart) + "];");
  return success();
}

/// Is the product that `source` is complete after `wait`? All but the latest `pending` ones are.
static bool isComplete(Value source, gpu::WarpgroupWaitOp wait) {
  Operation *product = source.getDefiningOp();
  if (wait.getPending() == 0)
    return true;
  if (!product || product->getBlock() != wait->getBlock())
    return false;
  uint64_t later = 0;
  for (Operation *op = product->getNextNode(); op && op != wait; op = op->getNextNode())
    later += isa<gpu::WarpgroupDotOp>(op);
  return later >= wait.getPending();
}

LogicalResult KernelEmitter::emitWarpgroupWait(gpu::WarpgroupWaitOp wait) {
  line("tk::warpgroup_wait<" + llvm::Twine(wait.getPending()) + ">();");
  for (auto [source, result] : llvm::zip(wait.getSources(), wait.getResults())) {
    auto named = names.find(source);
    if (named == names.end())
      return unsupported(wait, "expected the results of products");
    const std::string array = named->second;
    names[result] = array;
    if (isComplete(source, wait))
      line("tk::fence_registers(" + array + ");");
  }
  return success();
}

} // namespace tk::cuda
