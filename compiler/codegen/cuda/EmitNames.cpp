//===- EmitNames.cpp - what values are called in CUDA text ----------------===//
//
// 1. A value that stands for something of the source has that name (ValueNames.h).
// 2. An index or a condition that is computed from others that have names is called by the
//    computation.
// 3. An index whose name would be too long is called by one operand, and by what is done to it, as
//    `T_or_less`.
// 4. Any other value is called by the operation that makes it, as `fragment`, or by its type.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuFiniteOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tk::cuda {

/// The word between the operands in a name of what an operation computes; empty where it has none.
static llvm::StringRef joinOf(Operation *op) {
  using Name = llvm::StringRef;
  return llvm::TypeSwitch<Operation *, Name>(op)
      .Case([](arith::AddIOp) { return "_plus_"; })
      .Case([](arith::SubIOp) { return "_minus_"; })
      .Case([](arith::MulIOp) { return "_times_"; })
      .Case<arith::DivSIOp, arith::DivUIOp, FloorDivOp>([](Operation *) { return "_over_"; })
      .Case<arith::RemSIOp, arith::RemUIOp, FloorModOp>([](Operation *) { return "_mod_"; })
      .Case<arith::MinSIOp, arith::MinUIOp>([](Operation *) { return "_at_most_"; })
      .Case<arith::MaxSIOp, arith::MaxUIOp>([](Operation *) { return "_at_least_"; })
      .Case([](arith::AndIOp both) -> Name {
        return getElementTypeOrSelf(both.getType()).isIndex() ? "" : "_and_";
      })
      .Case([](arith::CmpIOp compare) -> Name {
        switch (compare.getPredicate()) {
        case arith::CmpIPredicate::eq:
          return "_is_";
        case arith::CmpIPredicate::ne:
          return "_is_not_";
        case arith::CmpIPredicate::slt:
        case arith::CmpIPredicate::ult:
          return "_below_";
        case arith::CmpIPredicate::sle:
        case arith::CmpIPredicate::ule:
          return "_up_to_";
        case arith::CmpIPredicate::sgt:
        case arith::CmpIPredicate::ugt:
          return "_above_";
        case arith::CmpIPredicate::sge:
        case arith::CmpIPredicate::uge:
          return "_from_";
        }
        llvm_unreachable("all predicates are handled");
      })
      .Default([](Operation *) { return ""; });
}

/// The words of joinOf that a name of an index may have inside.
static constexpr llvm::StringLiteral joins[] = {
    "_plus_",   "_minus_",  "_times_", "_over_", "_mod_", "_at_most_", "_at_least_", "_or_less",
    "_or_more", "_shifted", "_scaled", "_part",  "_rest", "_to_",      "_down_to_"};

/// What a name of arithmetic begins with, without the arithmetic.
static llvm::StringRef stemOf(llvm::StringRef name) {
  for (llvm::StringRef join : joins)
    name = name.take_front(name.find(join));
  return name;
}

/// How a name says what is done to an index if it does not say with which operand.
static llvm::StringRef endingOf(Operation *op) {
  using Name = llvm::StringRef;
  return llvm::TypeSwitch<Operation *, Name>(op)
      .Case<arith::AddIOp, arith::SubIOp>([](Operation *) { return "_shifted"; })
      .Case([](arith::MulIOp) { return "_scaled"; })
      .Case<arith::DivSIOp, arith::DivUIOp, FloorDivOp>([](Operation *) { return "_part"; })
      .Case<arith::RemSIOp, arith::RemUIOp, FloorModOp>([](Operation *) { return "_rest"; })
      .Case<arith::MinSIOp, arith::MinUIOp>([](Operation *) { return "_or_less"; })
      .Case<arith::MaxSIOp, arith::MaxUIOp>([](Operation *) { return "_or_more"; })
      .Default([](Operation *) { return ""; });
}

/// `x` and a negative power of two: `x` rounded down to a multiple.
static std::optional<int64_t> multipleOf(Operation *op) {
  APInt mask;
  if (!isa<arith::AndIOp>(op) || !getElementTypeOrSelf(op->getResult(0)).isIndex() ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&mask)) || !mask.isNegative() ||
      !(-mask).isPowerOf2())
    return std::nullopt;
  return (-mask).getSExtValue();
}

/// A name that says how an index is computed from others that have names, as `S_plus_127`; empty
/// where there is none, or it is long.
std::string KernelEmitter::nameOfArithmetic(Operation *op) {
  constexpr size_t longest = 32;
  const llvm::StringRef join = joinOf(op);
  const std::optional<int64_t> multiple = multipleOf(op);
  if (join.empty() && !multiple)
    return "";
  auto nameOf = [&](Value operand) {
    if (auto spread = operand.getDefiningOp<gpu::BroadcastOp>())
      operand = spread.getSource();
    APInt constant;
    if (matchPattern(operand, m_ConstantInt(&constant)))
      return constant.isNegative() ? std::string() : llvm::toString(constant, 10, false);
    std::string known = names.lookup(operand);
    if (known.empty())
      known = groupLocals.lookup(operand);
    return telling.contains(known) ? known : std::string();
  };
  const std::string first = nameOf(op->getOperand(0)), second = nameOf(op->getOperand(1));
  auto isWord = [](llvm::StringRef name) { return !name.empty() && !llvm::isDigit(name[0]); };
  std::string name;
  if (multiple && isWord(first))
    name = first + "_down_to_" + std::to_string(*multiple);
  else if (isWord(first) && !second.empty() && !join.empty())
    name = (first + join + second).str();
  else if (isa<arith::SubIOp>(op) && !first.empty() && isWord(second))
    name = second + "_to_" + first; // from an index to a number
  if (!name.empty() && name.size() <= longest)
    return name;
  const llvm::StringRef stem = stemOf(isWord(first) ? first : second), ending = endingOf(op);
  return isWord(stem) && !ending.empty() && stem.size() + ending.size() <= longest
             ? (stem + ending).str()
             : "";
}

/// A name for a value that says what it is; empty where nothing does.
std::string KernelEmitter::hintOf(Value value) {
  std::string name = valueNames.of(value);
  Operation *op = value.getDefiningOp();
  const Type type = getElementTypeOrSelf(value.getType());
  return name.empty() && op && (type.isIndex() || type.isInteger(1)) ? nameOfArithmetic(op) : name;
}

std::string KernelEmitter::nameFor(Value value) {
  Operation *op = value.getDefiningOp();
  std::string hint = hintOf(value);
  if (!hint.empty()) {
    std::string name = used.fresh(isCounter(hint) ? hint + "_index" : hint);
    telling.insert(name);
    return name;
  }
  if (!op) {
    auto loop = dyn_cast<scf::ForOp>(cast<BlockArgument>(value).getOwner()->getParentOp());
    return freshName(loop && loop.getInductionVar() == value ? "step" : "carried");
  }
  hint = llvm::TypeSwitch<Operation *, std::string>(op)
             .Case([&](gpu::LoadOp load) { return names[load.getBuffer()] + "_value"; })
             .Case([](gpu::ProgramIdOp id) {
               return "block_" + stringifyGridAxis(id.getAxis()).str();
             })
             .Case([](gpu::NumProgramsOp count) {
               return "grid_" + stringifyGridAxis(count.getAxis()).str();
             })
             .Case([](gpu::ReduceOp reduce) {
               return stringifyReduceKind(reduce.getKind()).str() + "_of_tile";
             })
             .Case([](gpu::DotOp) { return std::string("acc"); })
             .Case<arith::CmpIOp, arith::CmpFOp>([](Operation *) { return std::string("is"); })
             .Case<arith::TruncFOp>([](Operation *) { return std::string("rounded"); })
             .Case<ExpDiffOp, gpu::ScaledExpDiffOp, math::ExpOp>(
                 [](Operation *) { return std::string("e"); })
             .Case<gpu::LocalLoadOp>([](Operation *) { return std::string("fragment"); })
             .Case<gpu::NotedOp, gpu::DoubtedOp>([](Operation *) { return std::string("doubted"); })
             .Case([](gpu::OfWarpgroupOp) { return std::string("of_warpgroup"); })
             .Default([&](Operation *op) {
               Type type = getElementTypeOrSelf(value.getType());
               return std::string(type.isIndex() ? "n" : type.isInteger(1) ? "is" : "v");
             });
  if (isCounter(hint))
    used.reserve(hint); // so that the first one has a number
  const std::string name = freshName(hint);
  if (isa<gpu::ProgramIdOp, gpu::NumProgramsOp>(op))
    telling.insert(name);
  return name;
}

} // namespace tk::cuda
