//===- EmitNames.cpp - what values are called in CUDA text ----------------===//
//
// 1. A value with a NameLoc has that name: passes give one to what stands for an index.
// 2. An index that is computed from others that have names is called by the computation.
// 3. Any other value is called by the operation that makes it, as `fragment`, or by its type.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tk::cuda {

/// The counters of loops that emission writes around single operations. No number may have such a
/// name: inside of the loop the name would mean the counter.
static bool isCounter(llvm::StringRef name) {
  constexpr llvm::StringLiteral counters = "hkmnpr";
  return name.size() == 1 && counters.contains(name);
}

std::string KernelEmitter::freshName(llvm::StringRef hint) {
  std::string name;
  for (char c : hint)
    name += llvm::isAlnum(c) || c == '_' ? c : '_';
  if (name.empty() || llvm::isDigit(name[0]))
    name = "v" + name;
  // Names with two underscores are the implementation's, and macros such as __launch_bounds__.
  const llvm::StringRef word = name;
  if (word.starts_with("_") || word.starts_with("TK_") || word.contains("__"))
    name = "n" + name;
  for (;;) {
    const unsigned count = usedNames[name]++;
    if (count == 0)
      return name;
    const std::string numbered = name + "_" + std::to_string(count);
    if (usedNames.try_emplace(numbered, 1).second)
      return numbered;
  }
}

/// A name that says how an index is computed from others that have names, as `S_plus_127`; empty
/// where there is none, or it is long.
std::string KernelEmitter::nameOfArithmetic(Operation *op) {
  constexpr size_t longest = 28;
  const llvm::StringRef join =
      llvm::TypeSwitch<Operation *, llvm::StringRef>(op)
          .Case([](arith::AddIOp) { return "_plus_"; })
          .Case([](arith::SubIOp) { return "_minus_"; })
          .Case([](arith::MulIOp) { return "_times_"; })
          .Case<arith::DivSIOp, arith::DivUIOp, FloorDivOp>([](Operation *) { return "_over_"; })
          .Case<arith::RemSIOp, arith::RemUIOp, FloorModOp>([](Operation *) { return "_mod_"; })
          .Default([](Operation *) { return ""; });
  if (join.empty() || isa<RankedTensorType>(op->getResult(0).getType()))
    return "";
  auto nameOf = [&](Value operand) {
    APInt constant;
    if (matchPattern(operand, m_ConstantInt(&constant)))
      return constant.isNegative() ? std::string() : llvm::toString(constant, 10, false);
    auto known = names.find(operand);
    return known != names.end() && telling.contains(known->second) ? known->second : std::string();
  };
  const std::string first = nameOf(op->getOperand(0)), second = nameOf(op->getOperand(1));
  const bool isNamed = !first.empty() && !second.empty() && !llvm::isDigit(first[0]);
  return isNamed && first.size() + join.size() + second.size() <= longest
             ? (first + join + second).str()
             : "";
}

/// A name for a value that says what it is; empty where nothing does.
std::string KernelEmitter::hintOf(Value value) {
  // A loop's name is its induction variable's, also where a pass has made the loop anew.
  constexpr llvm::StringLiteral ofLoop = "for ";
  auto nameIn = [](Location where) {
    auto named = dyn_cast<NameLoc>(where);
    return named ? named.getName().getValue() : llvm::StringRef();
  };
  const llvm::StringRef own = nameIn(value.getLoc());
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    llvm::StringRef name = loop ? nameIn(loop.getLoc()) : "";
    if (loop && loop.getInductionVar() == value && name.consume_front(ofLoop))
      return name.str();
  }
  if (!own.empty() && !own.starts_with(ofLoop))
    return own.str();
  Operation *op = value.getDefiningOp();
  return op && value.getType().isIndex() ? nameOfArithmetic(op) : "";
}

std::string KernelEmitter::nameFor(Value value) {
  Operation *op = value.getDefiningOp();
  std::string hint = hintOf(value);
  if (!hint.empty()) {
    std::string name = freshName(isCounter(hint) ? hint + "_index" : hint);
    telling.insert(name);
    return name;
  }
  if (!op) {
    auto loop = dyn_cast<scf::ForOp>(cast<BlockArgument>(value).getOwner()->getParentOp());
    return freshName(loop && loop.getInductionVar() == value ? "at" : "carried");
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
             .Case<gpu::AllocSharedOp, gpu::AllocPrivateOp>(
                 [](Operation *) { return std::string("stage"); })
             .Case([&](gpu::PrivateLoadOp load) { return names[load.getSource()] + "_value"; })
             .Case([](gpu::AllocPhasesOp phases) {
               return std::string(phases.getNotes()           ? "doubts"
                                  : phases.getArrivals() == 1 ? "full"
                                                              : "empty");
             })
             .Case<arith::CmpIOp, arith::CmpFOp>([](Operation *) { return std::string("is"); })
             .Case<arith::TruncFOp>([](Operation *) { return std::string("rounded"); })
             .Case<ExpDiffOp, gpu::ScaledExpDiffOp, math::ExpOp>(
                 [](Operation *) { return std::string("e"); })
             .Case<gpu::LocalLoadOp>([](Operation *) { return std::string("fragment"); })
             .Default([&](Operation *op) {
               Type type = getElementTypeOrSelf(value.getType());
               return std::string(type.isIndex() ? "n" : type.isInteger(1) ? "is" : "v");
             });
  if (isCounter(hint))
    usedNames.try_emplace(hint, 1); // so that the first one has a number
  return freshName(hint);
}

} // namespace tk::cuda
