//===- SplitResidues.cpp - transposed convolutions by phase ---------------===//
//
// A transposed convolution of stride `s` uses only every s-th tap for each result. The kernel has
// the mask `(p + c - r) % s == 0` and reads the image at `(p + c - r) / s`. Most of the products
// are masked. This pass groups the results by their remainder (phase), so that no masked product is
// computed.
//
// 1. Find sums of matrix products under such masks. `p` is an index of the compute op, `r` one of
//    the sum, and `c` a constant of the launch. `p` must occur only in the quotients.
// 2. Write `p + c = s * (place + base) + phase` and `r = phase + s * tap`. The quotient is then
//    `place + base - tap`.
// 3. A new compute op over phases and places computes the sum over taps. The number of taps depends
//    on the phase. The new sum is a plain sum over windows, which tk-flatten-windows can take.
// 4. The last place of some phases lies past the last `p`. Its loads are padded with 0.
// 5. The old compute op reads the sum at its phase and place.
// 6. Along an axis with one tap, the condition is `(p + c) % s == 0`. Only phase 0 has products, so
//    the sum has no index for the phase. The old compute op selects the sum or 0.
//
// A transposed convolution may also be written without a mask, by the phase of its results. The
// weights are then read at `(p + c) % s + s * r`, and the image at `(p + c) / s - r`. The pass
// gives such an index `p` a phase and a place, too. The sum stays over `r`:
//
//   %y = tk.compute ["p"] {
//          tk.reduce [sum] ["r"] {x[(p + 1) / 2 - r] * w[(p + 1) % 2 + 2 * r]}}
//
// It becomes:
//
//   %u = tk.compute ["phase", "place"] {
//          tk.reduce [sum] ["r"] {x[place - r] * w[phase + 2 * r]}}
//   %y = tk.compute ["p"] {%u[(p + 1) % 2, (p + 1) / 2]}
//
// The sum may have one operand without an index of the results, as the gradient by a single channel
// has. The phases then are that operand's rows.
//
// The pass declines sums with a precision other than the default. It leaves kernels with a schedule
// block alone.
//
//   %y = tk.compute ["p"] {tk.reduce [sum] ["c", "r"] to (%C, %R) {
//          (p - r) % 2 == 0 ? x[c, (p - r) / 2] * w[c, r] : 0}}
//     =>
//   %u = tk.compute ["phase", "place"] {
//          tk.reduce [sum] ["c", "tap"] to (%C, (%R - phase + 1) / 2) {
//            x[c, place - tap] * w[c, phase + 2 * tap]}}
//   %y = tk.compute ["p"] {%u[p % 2, p / 2]}
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/IndexGrowth.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/tensor/normalize/IndexArithmetic.h"

#include "mlir/IR/IRMapping.h"

namespace tk {
#define GEN_PASS_DEF_SPLITRESIDUES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-residues";

namespace {

/// A condition `difference % step == 0`, where the difference grows by 1 with `index`, an index of
/// the statement, and gets less by 1 with `term`, one of the sum. There is no term if the axis has
/// one tap, or if no condition but the remainder itself is asked for.
struct Residue {
  Value difference;
  BlockArgument index, term;
  int64_t step;
  bool isAsked = false; ///< the remainder is a value of the sum

  bool hasPhase() const { return term || isAsked; }
};

class ResidueSplitting {
public:
  ResidueSplitting(ComputeOp compute, ReduceOp reduce)
      : compute(compute), reduce(reduce), loc(reduce.getLoc()) {}
  bool read();
  void rewrite();

private:
  bool readCondition(Value condition);
  bool readRemainders();
  bool arePhasesRows(arith::MulFOp product);
  bool areOperands();
  bool standsElsewhere(Value index, Value value);
  bool isQuotient(Value value);
  Value offsetOf(const Residue &residue);
  void padEnds(OpBuilder &inner, ValueRange own);
  Value createSum(OpBuilder &body, ValueRange indices);

  ComputeOp compute;
  ReduceOp reduce;
  Location loc;
  Value term;                    ///< where all conditions hold
  SmallVector<Residue> residues; ///< those with a term first: each of these has a phase
  size_t countPhases = 0;
  SmallVector<BlockArgument> others; ///< indices of the statement that the sum is over
  SmallVector<Value> offsets, bases, places;
};

} // namespace

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

/// Is `value` a remainder that the sum asks for?
static bool isRemainder(Value value, const Residue &residue) {
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

/// The difference at index and term 0, a number of the launch.
Value ResidueSplitting::offsetOf(const Residue &residue) {
  OpBuilder before(compute);
  Arithmetic at{before, loc};
  IRMapping mapping;
  mapping.map(residue.index, at.number(0));
  if (residue.term)
    mapping.map(residue.term, at.number(0));
  return cloneFrom(before, residue.difference, compute, mapping);
}

/// The last place of some phases lies behind the last index: what is read there is 0.
void ResidueSplitting::padEnds(OpBuilder &inner, ValueRange own) {
  SmallVector<Value> moved;
  for (auto [index, place] : llvm::zip_equal(others, own))
    if (llvm::any_of(residues, [&](const Residue &residue) { return residue.index == index; }))
      moved.push_back(place);
  Dependence onPlace(moved);
  for (LoadOp load : llvm::to_vector(inner.getBlock()->getOps<LoadOp>())) {
    if (load.getPad() || !onPlace.on(load.getResult()))
      continue;
    OpBuilder before(load);
    Value zero = arith::ConstantOp::create(before, loc, before.getZeroAttr(load.getType()));
    load.getPadMutable().assign(zero);
  }
}

/// The sum over taps, at phases and then the others' indices, places in the stead of some.
Value ResidueSplitting::createSum(OpBuilder &body, ValueRange indices) {
  Arithmetic at{body, loc};
  IRMapping outer;
  for (auto [index, place] : llvm::zip_equal(others, indices.drop_front(countPhases)))
    if (llvm::none_of(residues, [&](const Residue &residue) { return residue.index == index; }))
      outer.map(index, place);
  SmallVector<Value> upper;
  for (Value end : reduce.getUpper())
    upper.push_back(cloneFrom(body, end, compute, outer));
  for (auto [n, residue] : llvm::enumerate(ArrayRef(residues).take_front(countPhases))) {
    if (residue.isAsked)
      continue;
    Value step = at.number(residue.step), &end = upper[residue.term.getArgNumber()];
    end = at.div(at.add(at.sub(end, indices[n]), at.number(residue.step - 1)), step);
  }
  SmallVector<StringRef> names;
  for (Attribute name : reduce.getIndexNames())
    names.push_back(cast<StringAttr>(name).getValue());
  auto sum = ReduceOp::create(
      body, loc, ReduceKind::Sum, names, reduce.getLower(), upper, reduce.getResult(0).getType(),
      [&](OpBuilder &inner, Location, ValueRange terms) {
        Arithmetic in{inner, loc};
        IRMapping mapping = outer;
        mapping.map(reduce.getBlock()->getArguments().take_front(terms.size()), terms);
        for (auto [n, residue] : llvm::enumerate(residues)) {
          const size_t position = llvm::find(others, residue.index) - others.begin();
          Value quotient = in.add(indices[countPhases + position], bases[n]);
          if (residue.term) {
            Value tap = terms[residue.term.getArgNumber()];
            quotient = in.sub(quotient, tap);
            mapping.map(residue.term, in.add(indices[n], in.mul(tap, in.number(residue.step))));
          }
          reduce.getBlock()->walk([&](FloorModOp rest) {
            if (isRemainder(rest.getResult(), residue))
              mapping.map(rest.getResult(), indices[n]);
          });
          reduce.getBlock()->walk([&](FloorDivOp division) {
            if (division.getLhs() == residue.difference &&
                getConstantIndex(division.getRhs()) == residue.step)
              mapping.map(division.getResult(), quotient);
          });
        }
        Value element = cloneFrom(inner, term, compute, mapping);
        padEnds(inner, indices.drop_front(countPhases));
        return element;
      });
  return sum.getResult(0);
}

void ResidueSplitting::rewrite() {
  note(reduce, passName, Verdict::Derived,
       "the " + describe(reduce) + " has terms of its own for each residue of " +
           (residues.front().isAsked ? "an index" : "what its mask takes"));
  OpBuilder before(compute);
  Arithmetic at{before, loc};
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  SmallVector<std::string> texts;
  texts.reserve(residues.size());
  for (const Residue &residue : residues) {
    auto name = cast<StringAttr>(compute.getIndexNames()[residue.index.getArgNumber()]);
    Value step = at.number(residue.step);
    if (residue.hasPhase()) {
      texts.push_back((name.getValue() + ".phase").str());
      names.push_back(texts.back());
      extents.push_back(step);
    }
    offsets.push_back(offsetOf(residue));
    bases.push_back(at.div(offsets.back(), step));
    Value last = at.add(at.sub(compute.getExtents()[residue.index.getArgNumber()], at.number(1)),
                        offsets.back());
    places.push_back(at.add(at.sub(at.div(last, step), bases.back()), at.number(1)));
  }
  for (BlockArgument index : others) {
    names.push_back(cast<StringAttr>(compute.getIndexNames()[index.getArgNumber()]).getValue());
    auto *residue = llvm::find_if(residues, [&](const Residue &of) { return of.index == index; });
    extents.push_back(residue == residues.end() ? compute.getExtents()[index.getArgNumber()]
                                                : places[residue - residues.begin()]);
  }
  std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".residues").str();
  auto statement =
      ComputeOp::create(before, loc, names, extents, ArrayRef<Type>{reduce.getResult(0).getType()},
                        ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
                        [&](OpBuilder &body, Location, ValueRange indices) {
                          YieldOp::create(body, loc, createSum(body, indices));
                        });
  OpBuilder builder(reduce);
  Arithmetic in{builder, loc};
  SmallVector<Value> phases, withoutTerm, own(llvm::to_vector_of<Value>(others));
  for (auto [n, residue] : llvm::enumerate(residues)) {
    Value moved = in.add(residue.index, offsets[n]), step = in.number(residue.step);
    (residue.hasPhase() ? phases : withoutTerm).push_back(in.mod(moved, step));
    own[llvm::find(others, residue.index) - others.begin()] = in.sub(in.div(moved, step), bases[n]);
  }
  llvm::append_range(phases, own);
  Value read = LoadOp::create(builder, loc, statement->getResult(0), phases, Value());
  // Other phases along an axis with one tap have no products.
  for (Value phase : withoutTerm) {
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(read.getType()));
    Value isFirst =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, phase, in.number(0));
    read = arith::SelectOp::create(builder, loc, isFirst, read, zero);
  }
  reduce.replaceAllUsesWith(ValueRange{read});
  reduce.erase();
}

namespace {

struct SplitResidues : tk::impl::SplitResiduesBase<SplitResidues> {
  void runOnOperation() override {
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      if (kernel->hasAttr("tk.schedules"))
        continue; // its blocks name indices, and say what becomes of each
      for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
        for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
          if (ResidueSplitting splitting(compute, reduce); splitting.read()) {
            splitting.rewrite();
            ++numSums;
          }
    }
  }
};

} // namespace
