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
#include "passes/tensor/windows/ResidueSplitting.h"

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
