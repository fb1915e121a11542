//===- ReadResidues.cpp - conditions on remainders in sums ----------------===//
#include "passes/tensor/windows/ResidueSplitting.h"

#include "passes/analysis/IndexGrowth.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

using namespace mlir;
using namespace tk;

bool ResidueSplitting::readCondition(Value condition) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>())
    return readCondition(both.getLhs()) && readCondition(both.getRhs());
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq ||
      getConstantIndex(compare.getRhs()) != 0)
    return false;
  auto rest = compare.getLhs().getDefiningOp<FloorModOp>();
  std::optional<int64_t> step = rest ? getConstantIndex(rest.getRhs()) : std::nullopt;
  if (!step || *step < 2)
    return false;
  Residue residue{rest.getLhs(), {}, {}, *step};
  for (BlockArgument own : getIterationIndices(residue.difference)) {
    std::optional<int64_t> grows = growth(residue.difference, own);
    if (own.getOwner() == compute.getBlock() && grows == 1 && !residue.index)
      residue.index = own;
    else if (own.getOwner() == reduce.getBlock() && grows == -1 && !residue.term)
      residue.term = own;
    else
      return false;
  }
  if (!residue.index)
    return false;
  residues.insert(residue.term ? residues.begin() + countPhases++ : residues.end(), residue);
  return true;
}

/// Is `value` the quotient that a condition is about?
bool ResidueSplitting::isQuotient(Value value) {
  auto quotient = value.getDefiningOp<FloorDivOp>();
  return quotient && llvm::any_of(residues, [&](const Residue &residue) {
           return quotient.getLhs() == residue.difference &&
                  getConstantIndex(quotient.getRhs()) == residue.step;
         });
}

bool tk::isRemainder(Value value, const Residue &residue) {
  auto rest = value.getDefiningOp<FloorModOp>();
  return residue.isAsked && rest && rest.getLhs() == residue.difference &&
         getConstantIndex(rest.getRhs()) == residue.step;
}

/// Finds the indices of the compute op that the sum takes quotients and remainders of, where no
/// condition says anything about them.
bool ResidueSplitting::readRemainders() {
  term = reduce.getYield().getValues()[0];
  for (auto rest : reduce.getBlock()->getOps<FloorModOp>()) {
    std::optional<int64_t> step = getConstantIndex(rest.getRhs());
    SmallVector<BlockArgument> over = getIterationIndices(rest.getLhs());
    if (!step || *step < 2 || over.size() != 1 || over[0].getOwner() != compute.getBlock() ||
        growth(rest.getLhs(), over[0]) != 1)
      return false;
    auto known = llvm::find_if(residues, [&](const Residue &of) { return of.index == over[0]; });
    if (known == residues.end())
      residues.push_back({rest.getLhs(), over[0], {}, *step, /*isAsked=*/true});
    else if (known->difference != rest.getLhs() || known->step != *step)
      return false;
  }
  countPhases = residues.size();
  // Taps step from phase to phase: an index of the sum stands beside the remainder. Places of pages
  // have none.
  auto hasTaps = [&](const Residue &residue) {
    SmallVector<Value> remainders;
    for (auto rest : reduce.getBlock()->getOps<FloorModOp>())
      if (isRemainder(rest.getResult(), residue))
        remainders.push_back(rest.getResult());
    Dependence onRemainder(remainders);
    return llvm::any_of(reduce.getBlock()->getOps<LoadOp>(), [&](LoadOp load) {
      return llvm::any_of(load.getIndices(), [&](Value at) {
        return onRemainder.on(at) &&
               llvm::any_of(getIterationIndices(at), [&](BlockArgument index) {
                 return index.getOwner() == reduce.getBlock();
               });
      });
    });
  };
  auto hasQuotient = [&](const Residue &residue) {
    return llvm::any_of(reduce.getBlock()->getOps<FloorDivOp>(), [&](FloorDivOp division) {
      return division.getLhs() == residue.difference &&
             getConstantIndex(division.getRhs()) == residue.step;
    });
  };
  return !residues.empty() && llvm::all_of(residues, hasTaps) &&
         llvm::all_of(residues, hasQuotient);
}

/// Are the phases all the indices of one operand that the other one lacks? It is a vector then, as
/// the weights of one channel are. The sum has other terms than taps: those are few.
bool ResidueSplitting::arePhasesRows(arith::MulFOp product) {
  auto isVector = [&](Value operand) {
    return llvm::none_of(compute.getBlock()->getArguments(), [&](BlockArgument index) {
      return Dependence(ValueRange{index}).on(operand);
    });
  };
  auto dependsOn = [&](Value operand, BlockArgument index) {
    return index && Dependence(ValueRange{index}).on(operand);
  };
  return reduce.getNumIndices() > residues.size() &&
         llvm::any_of(residues, [&](const Residue &residue) {
           return llvm::any_of(ArrayRef<unsigned>{0, 1}, [&](unsigned side) {
             return isVector(product->getOperand(side)) &&
                    dependsOn(product->getOperand(side), residue.term) &&
                    dependsOn(product->getOperand(1 - side), residue.index);
           });
         });
}

/// Is the sum one of two operands, of which each has an index, or a quotient of one, that the other
/// one lacks?
bool ResidueSplitting::areOperands() {
  auto product = term.getDefiningOp<arith::MulFOp>();
  if (countPhases == 0 || !residues.front().isAsked)
    return isMatrixProductIn(reduce, term) || (product && arePhasesRows(product));
  if (!product)
    return false;
  // The operands read the quotients and the remainders apart.
  llvm::SetVector<Value> own[2];
  for (unsigned side : {0, 1})
    for (BlockArgument index : compute.getBlock()->getArguments()) {
      auto *residue = llvm::find_if(residues, [&](const Residue &of) { return of.index == index; });
      Value operand = product->getOperand(side);
      if (residue == residues.end()) {
        if (Dependence(ValueRange{index}).on(operand))
          own[side].insert(index);
        continue;
      }
      for (auto division : reduce.getBlock()->getOps<FloorDivOp>())
        if (isQuotient(division) && division.getLhs() == residue->difference &&
            Dependence(ValueRange{division.getResult()}).on(operand))
          own[side].insert(index);
    }
  return llvm::any_of(own[0], [&](Value index) { return !own[1].contains(index); }) &&
         llvm::any_of(own[1], [&](Value index) { return !own[0].contains(index); });
}

/// Does `value` depend on `index` other than by quotients?
bool ResidueSplitting::standsElsewhere(Value index, Value value) {
  if (value == index)
    return true;
  Operation *op = value.getDefiningOp();
  return op && compute->isProperAncestor(op) && !isQuotient(value) &&
         llvm::none_of(residues, [&](const Residue &of) { return isRemainder(value, of); }) &&
         llvm::any_of(op->getOperands(),
                      [&](Value operand) { return standsElsewhere(index, operand); });
}

bool ResidueSplitting::read() {
  if (reduce->getBlock() != compute.getBlock() || reduce.isOnline() ||
      reduce.getKind(0) != ReduceKind::Sum || reduce.getPrecision() != Precision::Default)
    return false;
  auto choice = reduce.getYield().getValues()[0].getDefiningOp<arith::SelectOp>();
  if (choice && isZero(choice.getFalseValue()) && readCondition(choice.getCondition())) {
    term = choice.getTrueValue();
  } else {
    residues.clear();
    countPhases = 0;
    if (!readRemainders())
      return false;
  }
  llvm::SmallDenseSet<Value> different;
  for (const Residue &residue : residues) {
    if (!different.insert(residue.index).second || standsElsewhere(residue.index, term))
      return false;
    if (!residue.term)
      continue;
    const unsigned n = residue.term.getArgNumber();
    if (!different.insert(residue.term).second || getConstantIndex(reduce.getLower()[n]) != 0 ||
        !isKernelLevel(reduce.getUpper()[n], compute))
      return false;
  }
  // Only products by many columns are worth statements of their own.
  if (llvm::any_of(*reduce.getBlock(), [](Operation &op) { return op.getNumRegions() != 0; }) ||
      !areOperands())
    return false;
  for (BlockArgument index : compute.getBlock()->getArguments())
    if (Dependence(ValueRange{index}).on(reduce.getResult(0)))
      others.push_back(index);
  return true;
}
