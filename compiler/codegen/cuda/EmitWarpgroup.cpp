//===- EmitWarpgroup.cpp - products of warpgroups --------------------------===//
//
// A product is a loop over spans of k (WarpgroupOperand.h), each an instruction, or one call for
// several spans. Promoted products leave short sums, which threads add up in f32.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "compiler/codegen/cuda/WarpgroupOperand.h"
#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

#include <set>

using namespace mlir;

namespace tk::cuda {

/// So many instructions are one statement of the text, in functions of so many instructions: the
/// compiler takes longest for those. It orders what is around a statement otherwise, which costs
/// attention without a mask up to 5 %.
static constexpr int64_t kInRow = 4, kManyProducts = 64;
/// Columns that threads add up at a time: what else they sum leaves no registers for more.
static constexpr int64_t kPromotedColumns = 128;

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

/// Columns that one instruction fills.
static int64_t columnsAtOnce(gpu::WarpgroupDotOp dot, gpu::LayoutAttr accumulator) {
  const int64_t columns = std::min(columnsOf(accumulator), dot.getB().getType().getShape()[1]);
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
                      b = advanceOf(dot) + descriptorOf(dot, dot.getB(), 1, "b_at");
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

/// The left factor of `dot`, in registers, at span `k` of block `m` of rows: four words a span and
/// block of rows, in the order of warpgroupOperandLayout.
std::string KernelEmitter::registerFactor(gpu::WarpgroupDotOp dot) {
  const int64_t bytes = elementOf(dot.getB()).getIntOrFloatBitWidth() / 8, perSpan = 16 / bytes;
  std::string array = materialize(dot.getA());
  if (bytes == 4) {
    // The instruction would cut off what tf32 has no bits for.
    const std::string rounded = freshName("rounded");
    line("float " + rounded + "[" + llvm::Twine(registersOf(dot.getA())) + "];");
    line(loopHeader(registersOf(dot.getA()), 1) + " " + rounded + "[r] = tk::round_to_tf32(" +
         array + "[r]);");
    array = rounded;
  }
  const bool hasBlocks = rowBlocksOf(dot) > 1;
  return "&" + array + "[k * " + std::to_string(perSpan) +
         (hasBlocks ? " + m * " + std::to_string(perSpan * spansOf(dot)) : "") + "]";
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
  const int64_t columns = columnsOf(accumulator), atOnce = columnsAtOnce(dot, accumulator);
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
  const std::string acc =
      fromZero ? nameFor(dot.getResult()) : accumulatorOf(dot, dot.getAcc(), replaces);
  if (fromZero)
    declareAs(dot.getResult(), acc, aType ? Value() : dot.getAcc());
  names[dot.getResult()] = acc;

  const std::string advance = advanceOf(dot);
  // Several spans in a row are one call, unless blocks of rows take turns.
  const bool inRow =
      blocks == 1 && spans >= kInRow && productsOf(func) >= kManyProducts && !sumsOf(dot);
  std::string a, typeNames = typeName(elementOf(dot.getA())) + ", " +
                             typeName(bType.getElementType()) + ", " + std::to_string(atOnce) +
                             ", ";
  if (aType) {
    const SharedOperand walk(aType, 1);
    auto held = heldFactors.find(dot);
    a = held != heldFactors.end() ? held->second + "[k]" : leftFactor(dot, blocks);
    typeNames += walk.isTransposed() ? "true, " : "false, ";
  } else {
    a = registerFactor(dot);
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
