//===- ValueNames.cpp - what the program calls values ---------------------===//
#include "compiler/codegen/cuda/ValueNames.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tk::cuda {

/// A loop's name is its induction variable's, also where a pass has made the loop anew.
static constexpr llvm::StringLiteral ofLoop = "for ";
/// Of what a loop carries, and what is computed from it.
static constexpr unsigned deepest = 8;

static llvm::StringRef nameIn(Location where) {
  auto named = dyn_cast<NameLoc>(where);
  return named ? named.getName().getValue() : llvm::StringRef();
}

static bool isConstant(Value value) { return matchPattern(value, m_Constant()); }

/// The memory that a stage is part of.
static Value wholeOf(Value memory) {
  while (auto stage = memory.getDefiningOp<gpu::StageOp>())
    memory = stage.getSource();
  return memory;
}

/// The tensor that an argument, or a choice between arguments, stands for.
static std::string tensorOf(gpu::FuncOp func, Value argument) {
  while (auto select = argument.getDefiningOp<arith::SelectOp>())
    argument = select.getTrueValue();
  auto known = dyn_cast<BlockArgument>(argument);
  if (!known || known.getOwner() != func.getBlock())
    return "";
  llvm::StringRef name = func.getArgName(known.getArgNumber());
  const size_t map = name.rfind("_map");
  const bool isMap = map != name.npos && name.drop_front(map + 4).trim("_0123456789").empty();
  return (isMap ? name.take_front(map) : name).str();
}

/// The name of several tensors that lie together: none, unless it is one tensor.
static std::string prefixOf(const std::set<std::string> &tensors) {
  return tensors.size() == 1 ? *tensors.begin() + "_" : "";
}

ValueNames::ValueNames(gpu::FuncOp func, Statement statement)
    : func(func), statement(std::move(statement)) {
  for (unsigned i = 0; i < func.getBlock()->getNumArguments(); ++i)
    arguments.insert(func.getArgName(i));
  nameMemory();
  nameRings();
  func.walk([&](scf::ForOp loop) { nameBounds(loop); });
  func.walk([&](Operation *op) {
    if (isa<gpu::ReduceOp, gpu::ReduceRunsOp, gpu::ReduceInThreadsOp, gpu::DotOp>(op))
      if (const std::string name = statementOf(op); !name.empty())
        for (Value operand : op->getOperands())
          nameTerms(operand, name);
  });
}

std::string ValueNames::statementOf(Operation *op) const {
  auto place = op->getLoc()->findInstanceOf<FileLineColLoc>();
  if (!statement || !place)
    return "";
  auto [known, isNew] = statements.try_emplace(place);
  if (isNew)
    known->second = statement(place.getFilename(), place.getLine());
  return known->second;
}

void ValueNames::nameMemory() {
  auto brings = [&](Value memory, const std::string &tensor) {
    if (!tensor.empty())
      tensors[wholeOf(memory)].insert(tensor);
  };
  func.walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](gpu::BulkCopyOp copy) {
          const std::string tensor = tensorOf(func, copy.getMap());
          brings(copy.getTarget(), tensor);
          if (copy.getPhases() && !tensor.empty())
            tensors[copy.getPhases()].insert(tensor);
        })
        .Case<gpu::CopyAsyncOp, gpu::CopyPrivateOp>(
            [&](auto copy) { brings(copy.getTarget(), tensorOf(func, copy.getBuffer())); });
  });
  func.walk([&](gpu::LocalStoreOp store) {
    if (!tensors.contains(wholeOf(store.getTarget())))
      brings(store.getTarget(), statementOf(store));
  });
}

void ValueNames::nameRings() {
  func.walk([&](gpu::StageOp stage) {
    const Tensors brought = tensors.lookup(wholeOf(stage.getSource()));
    if (!isConstant(stage.getStage()))
      tensors[stage.getStage()].insert(brought.begin(), brought.end());
  });
  func.walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op).Case<gpu::PhaseWaitOp, gpu::PhaseArriveOp>([&](auto at) {
      auto slot = tensors.find(at.getSlot());
      if (slot != tensors.end()) {
        const Tensors brought = slot->second;
        tensors[at.getPhases()].insert(brought.begin(), brought.end());
      }
    });
  });
  func.walk([&](gpu::StageOp stage) {
    if (!isConstant(stage.getStage()))
      carry(stage.getStage(), prefixOf(tensors.lookup(stage.getStage())) + "slot");
  });
  func.walk([&](gpu::PhaseWaitOp wait) {
    const std::string prefix = prefixOf(tensors.lookup(wait.getPhases()));
    if (!isConstant(wait.getSlot()))
      carry(wait.getSlot(), prefix + "slot");
    auto before = wait.getParity().getDefiningOp<arith::SubIOp>();
    if (before && isConstant(before.getLhs())) {
      roles.try_emplace(wait.getParity(), "other_" + prefix + "phase");
      carry(before.getRhs(), prefix + "phase");
    } else if (!isConstant(wait.getParity())) {
      carry(wait.getParity(), prefix + "phase");
    }
  });
}

void ValueNames::carry(Value value, const std::string &name) {
  auto advanced = value.getDefiningOp<arith::SelectOp>();
  if (isConstant(value) || value.getDefiningOp<gpu::OfWarpgroupOp>() ||
      !roles.try_emplace(value, (advanced ? "next_" : "") + name).second)
    return;
  if (advanced) {
    // One step on in the ring: the first slot behind the last, and there the other phase.
    if (advanced.getCondition().getDefiningOp<arith::CmpIOp>())
      roles.try_emplace(advanced.getCondition(), name + "_wraps");
    if (advanced.getTrueValue().getDefiningOp<arith::SubIOp>())
      roles.try_emplace(advanced.getTrueValue(), "other_" + name);
    return;
  }
  auto throughLoop = [&](scf::ForOp loop, unsigned number) {
    carry(loop.getRegionIterArg(number), name);
    carry(loop.getResult(number), name);
    carry(loop.getInitArgs()[number], name);
    carry(loop.getYieldedValues()[number], name);
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop && argument != loop.getInductionVar())
      throughLoop(loop, argument.getArgNumber() - 1);
    return;
  }
  const unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto loop = value.getDefiningOp<scf::ForOp>())
    throughLoop(loop, number);
  else if (auto branch = value.getDefiningOp<scf::IfOp>())
    for (Block *block : {branch.thenBlock(), branch.elseBlock()})
      carry(block->getTerminator()->getOperand(number), name);
}

void ValueNames::nameBounds(scf::ForOp loop) {
  llvm::StringRef name = nameIn(loop.getLoc());
  if (!name.consume_front(ofLoop))
    return;
  name.consume_back("_begin");
  for (auto [bound, role] :
       {std::pair(loop.getUpperBound(), "_end"), std::pair(loop.getLowerBound(), "_first")})
    if (Operation *op = bound.getDefiningOp(); op && !isConstant(bound) && ownNameOf(bound).empty())
      roles.try_emplace(bound, name.str() + role);
}

void ValueNames::nameTerms(Value value, llvm::StringRef statement) {
  Operation *op = value.getDefiningOp();
  if (!op ||
      isa<gpu::ReduceOp, gpu::DotOp, gpu::LoadOp, gpu::LocalLoadOp, gpu::PrivateLoadOp,
          gpu::BroadcastOp, scf::ForOp>(op) ||
      !isa<FloatType>(getElementTypeOrSelf(value)) ||
      (statementOf(op) != statement && !isa<scf::IfOp>(op)) ||
      !roles.try_emplace(value, statement.str() + "_term").second)
    return;
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    const unsigned number = cast<OpResult>(value).getResultNumber();
    for (Block *block : {branch.thenBlock(), branch.elseBlock()})
      nameTerms(block->getTerminator()->getOperand(number), statement);
    return;
  }
  for (Value operand : op->getOperands())
    nameTerms(operand, statement);
}

std::string ValueNames::ownNameOf(Value value) const {
  const llvm::StringRef own = nameIn(value.getLoc());
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    llvm::StringRef name = loop ? nameIn(loop.getLoc()) : "";
    if (loop && loop.getInductionVar() == value && name.consume_front(ofLoop))
      return name.str();
    // The location of a loop is no name of what it carries.
    if (loop && loop.getInductionVar() != value && value.getLoc() == loop.getLoc())
      return "";
  }
  // The grid's size has the location of the block's number.
  const bool isOther = value.getDefiningOp<gpu::NumProgramsOp>() || own.starts_with(ofLoop);
  return isOther ? "" : own.str();
}

std::string ValueNames::carriedName(BlockArgument argument, unsigned depth) const {
  Operation *owner = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::WhileOp>(owner)) {
    // What the condition hands on has the name of what the body hands back.
    const bool isBefore = argument.getOwner() == loop.getBeforeBody();
    Value next = isBefore ? loop.getYieldOp().getOperand(argument.getArgNumber())
                          : loop.getConditionOp().getArgs()[argument.getArgNumber()];
    return find(next, depth);
  }
  auto loop = dyn_cast<scf::ForOp>(owner);
  if (!loop || argument == loop.getInductionVar())
    return "";
  const unsigned number = argument.getArgNumber() - 1;
  std::string name = find(loop.getYieldedValues()[number], depth);
  return name.empty() ? find(loop.getInitArgs()[number], depth) : name;
}

/// What numbers of a type are called behind the name of what was rounded.
static std::string typeSuffix(Value value) {
  std::string text;
  llvm::raw_string_ostream(text) << getElementTypeOrSelf(value);
  const llvm::StringRef type = text;
  return "_" + (type.starts_with("f8") ? "f8" : type.str());
}

/// Does a value come from the step of a loop before, or from before all steps?
static bool isFromBefore(Value value) {
  if (auto scaled = value.getDefiningOp<arith::MulFOp>())
    return isFromBefore(scaled.getLhs()) || isFromBefore(scaled.getRhs());
  return isa<BlockArgument>(value) || isConstant(value);
}

/// The reduction that an operation joins with those of steps before.
static Value reducedOperand(Operation *op) {
  if (!isa<arith::AddFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
           arith::AddIOp>(op))
    return {};
  for (unsigned i : {0u, 1u})
    if (op->getOperand(i).getDefiningOp<gpu::ReduceOp>() && isFromBefore(op->getOperand(1 - i)))
      return op->getOperand(i);
  return {};
}

/// Is this the factor by which sums over one maximum become sums over another one?
static bool isRescaling(Operation *op) {
  Value from = op->getOperand(0);
  return isa<ExpDiffOp, gpu::ScaledExpDiffOp>(op) && isFromBefore(from);
}

std::string ValueNames::nameOfResult(Operation *op, Value result, unsigned depth) const {
  const Type type = getElementTypeOrSelf(result.getType());
  const std::string name = statementOf(op);
  auto with = [&](llvm::StringRef what) { return name.empty() ? "" : (name + "_" + what).str(); };
  const unsigned number = cast<OpResult>(result).getResultNumber();
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case<gpu::ReduceOp, gpu::ReduceRunsOp, gpu::ReduceInThreadsOp>(
          [&](auto reduce) { return with(stringifyReduceKind(reduce.getKind())); })
      .Case<gpu::DotOp, gpu::WarpgroupDotOp>([&](Operation *) { return with("sum"); })
      .Case([&](gpu::WarpgroupWaitOp wait) { return find(wait.getSources()[number], depth); })
      .Case<gpu::BroadcastOp, gpu::ConvertLayoutOp, gpu::TransposeOp, gpu::ExtractOp, gpu::HoldOp>(
          [&](Operation *same) { return find(same->getOperand(0), depth); })
      .Case<ExpDiffOp, gpu::ScaledExpDiffOp, math::ExpOp, math::Exp2Op>(
          [&](Operation *exp) { return with(isRescaling(exp) ? "rescale" : "exp"); })
      .Case<arith::TruncFOp, arith::ExtFOp>([&](Operation *cast) {
        Value source = cast->getOperand(0);
        while (auto held = source.getDefiningOp<gpu::HoldOp>())
          source = held.getSource();
        auto load = source.getDefiningOp<gpu::LoadOp>();
        const std::string from = load ? tensorOf(func, load.getBuffer()) : find(source, depth);
        return from.empty() ? from : from + typeSuffix(result);
      })
      .Case([&](arith::IndexCastOp cast) {
        auto load = cast.getIn().getDefiningOp<gpu::LoadOp>();
        const std::string from = load ? tensorOf(func, load.getBuffer()) : "";
        return from.empty() ? from : from + "_index";
      })
      .Case<gpu::LocalLoadOp, gpu::PrivateLoadOp>([&](auto load) {
        const std::string prefix = prefixOf(tensors.lookup(wholeOf(load.getSource())));
        const bool isShared = isa<gpu::SharedType>(load.getSource().getType());
        return prefix.empty() ? "" : prefix + (isShared ? "fragment" : "value");
      })
      .Case<gpu::DrawOp, gpu::ToldOp>([&](Operation *) { return std::string("drawn"); })
      .Case([&](scf::ForOp loop) { return find(loop.getRegionIterArg(number), depth); })
      .Case([&](scf::IfOp branch) {
        const std::string yielded = find(branch.thenYield().getOperand(number), depth);
        return yielded.empty() && branch.elseBlock()
                   ? find(branch.elseYield().getOperand(number), depth)
                   : yielded;
      })
      .Case<gpu::LoadOp>([&](Operation *) { return std::string(); })
      .Default([&](Operation *) {
        if (type.isIndex() || type.isInteger(1) || op->getNumRegions() || isConstant(result))
          return std::string();
        if (Value reduced = reducedOperand(op))
          return find(reduced, depth);
        // The name of an argument is the address of a tensor.
        return arguments.contains(name) || isCounter(name) ? name + "_value" : name;
      });
}

std::string ValueNames::of(Value value) const {
  auto [known, isNew] = found.try_emplace(value);
  if (isNew) {
    std::string name = find(value, /*depth=*/0);
    found[value] = name;
    return name;
  }
  return known->second;
}

std::string ValueNames::find(Value value, unsigned depth) const {
  if (depth++ > deepest)
    return "";
  if (auto known = found.find(value); known != found.end() && !known->second.empty())
    return known->second;
  if (std::string own = ownNameOf(value); !own.empty())
    return own;
  if (auto phases = value.getDefiningOp<gpu::AllocPhasesOp>()) {
    return phases.getNotes()
               ? "doubts"
               : prefixOf(tensors.lookup(value)) + (phases.getArrivals() == 1 ? "full" : "empty");
  }
  if (Operation *op = value.getDefiningOp();
      isa_and_nonnull<gpu::AllocSharedOp, gpu::AllocPrivateOp, gpu::StageOp>(op))
    return prefixOf(tensors.lookup(wholeOf(value))) + (isa<gpu::StageOp>(op) ? "stage" : "stages");
  if (auto role = roles.find(value); role != roles.end()) {
    // An exponential says more than that it is added up.
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<ExpDiffOp, gpu::ScaledExpDiffOp, math::ExpOp, arith::ExtFOp>(op))
      return role->second;
  }
  if (auto argument = dyn_cast<BlockArgument>(value))
    return carriedName(argument, depth);
  return nameOfResult(value.getDefiningOp(), value, depth);
}

} // namespace tk::cuda
