//===- Reduce.cpp - reductions of the reference ---------------------------===//
#include "compiler/interp/Accumulate.h"
#include "compiler/interp/Evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tk::interp::detail {

/// Executes what all steps of the innermost loop have in common.
void Evaluation::beginSteps(Reduction &reduction) {
  run(reduction.ofOuter);
  for (StepLoad &load : reduction.loads) {
    const TensorState &state = states[load.load->tensor];
    int64_t position = 0;
    bool isInside = true;
    load.stride = 0, load.extent = std::numeric_limits<int64_t>::max();
    for (size_t axis = 0; axis < state.shape.size(); ++axis) {
      const int64_t extent = state.shape[axis];
      position *= extent, load.stride *= extent;
      if (load.isIndex[axis]) {
        load.stride += 1, load.extent = std::min(load.extent, extent);
        continue;
      }
      const int64_t index = frame[load.load->indices[axis]].i;
      isInside &= index >= 0 && index < extent;
      position += index;
    }
    const Cell *cells = state.input.data();
    load.cells = isInside && cells ? cells + position : nullptr;
  }
}

/// Executes what a step of the innermost loop computes without accumulators.
void Evaluation::takeStep(const Reduction &reduction, int64_t index) {
  for (const StepLoad &step : reduction.loads) {
    if (step.cells && index >= 0 && index < step.extent)
      frame[step.load->destination] = step.cells[index * step.stride];
    else
      load(*step.load);
  }
  run(reduction.ofIndex);
}

void Evaluation::reduce(Reduction &reduction) {
  size_t n = reduction.kinds.size();
  // Slots hold either kind of number; equal bits are equal values.
  bool same = !reduction.lastResults.empty();
  for (size_t i = 0; same && i < reduction.outer.size(); ++i)
    same = frame[reduction.outer[i]].i == reduction.lastOuter[i].i;
  if (same) {
    for (size_t k = 0; k < n; ++k)
      frame[reduction.results[k]] = reduction.lastResults[k];
    return;
  }
  std::vector<Cell> outer;
  for (int slot : reduction.outer)
    outer.push_back(frame[slot]);
  std::vector<Cell> accumulators(n + 1);
  for (size_t k = 0; k < n; ++k)
    accumulators[k] = identity(reduction.kinds[k], reduction.isFloat[k], reduction.widths[k]);
  bool first = true;
  reduction.termsInGroup = 0;
  reduceOver(reduction, 0, accumulators, first);
  if (!reduction.group.empty())
    accumulators[0].f = addByteGroup(accumulators[0].f, reduction.group, reduction.cutsAccumulator);
  if (isSummedInGroups(reduction))
    accumulators[0].f = truncateToF32(accumulators[0].f);
  for (size_t k = 0; k < n; ++k)
    frame[reduction.results[k]] = accumulators[k];
  reduction.lastOuter = std::move(outer);
  reduction.lastResults.assign(accumulators.begin(), accumulators.begin() + static_cast<long>(n));
}

/// The terms of a sum in another order are each `step` after the one before, modulo `length`.
static int64_t stepOfOrder(unsigned order, int64_t length) {
  constexpr double goldenRatio = 0.6180339887498949; // far from small fractions
  double part = order * goldenRatio;
  int64_t step = std::max<int64_t>(1, std::llround((part - std::floor(part)) * length));
  while (std::gcd(step, length) != 1)
    ++step;
  return step;
}

void Evaluation::reduceOver(Reduction &reduction, unsigned depth, std::vector<Cell> &accumulators,
                            bool &first) {
  const bool isReordered =
      orderOfSums && reduction.kinds.size() == 1 && reduction.kinds[0] == ReduceKind::Sum;
  // Every other order has the loops the other way round.
  const auto rank = static_cast<unsigned>(reduction.lower.size());
  const unsigned loop = isReordered && orderOfSums % 2 ? rank - 1 - depth : depth;
  int64_t lower = frame[reduction.lower[loop]].i, upper = frame[reduction.upper[loop]].i;
  bool innermost = depth + 1 == rank;
  const int64_t length = std::max<int64_t>(upper - lower, 0);
  const int64_t step = isReordered && length > 2 ? stepOfOrder(orderOfSums, length) : 1;
  // Operations are counted as often as the program has them.
  const bool isOrdered = innermost && !counts && loop + 1 == rank;
  if (isOrdered && length > 0)
    beginSteps(reduction);
  for (int64_t n = 0, at = 0; n < length; ++n, at = (at + step) % length) {
    const int64_t i = lower + at;
    frame[reduction.body.arguments[loop]].i = i;
    if (innermost)
      reduceStep(reduction, accumulators, first, i, isOrdered);
    else
      reduceOver(reduction, depth + 1, accumulators, first);
  }
}

/// The term that the body has computed; 0 where a mask leaves it out, whatever its factors are.
Cell Evaluation::termOf(const Reduction &reduction, size_t k) const {
  const int present = reduction.present[k];
  return present >= 0 && !takesAbsentTerms && !frame[present].i ? Cell{}
                                                                : frame[reduction.body.yields[k]];
}

void Evaluation::reduceStep(Reduction &reduction, std::vector<Cell> &accumulators, bool &first,
                            int64_t index, bool isOrdered) {
  size_t n = reduction.kinds.size();
  if (isOrdered)
    takeStep(reduction, index);
  if (n == 1) {
    if (counts)
      ++counts->operations;
    if (!isOrdered)
      run(reduction.body);
    Cell term = termOf(reduction, 0);
    ReduceKind kind = reduction.kinds[0];
    if (isArgReduction(kind)) {
      // The last accumulator holds the extremum, the first its index.
      if (first || takesOver(kind, reduction.isFloat[0], accumulators[1], term)) {
        accumulators[1] = term;
        accumulators[0].i = index;
      }
      first = false;
      return;
    }
    if (isSummedInGroups(reduction)) {
      // A naive program on a matrix unit is as inexact as the unit: it adds 16 products to the
      // accumulator at a time and truncates the sum (Fasi, Higham, Mikaitis and Pranesh, Numerical
      // behavior of NVIDIA tensor cores, 2021).
      if (reduction.hasByteFactors) {
        reduction.group.push_back(term.f);
        if (reduction.group.size() == byteTermsOfStep)
          accumulators[0].f =
              addByteGroup(accumulators[0].f, reduction.group, reduction.cutsAccumulator);
        return;
      }
      accumulators[0].f += term.f;
      if (++reduction.termsInGroup % termsOfMatrixStep == 0)
        accumulators[0].f = truncateToF32(accumulators[0].f);
      return;
    }
    if (kind == ReduceKind::Sum && reduction.isFloat[0] && program.mode == Mode::F64) {
      accumulators[0].f += term.f;
      return;
    }
    accumulators[0] = combine(kind, reduction.isFloat[0], reduction.widths[0], sumRounding(),
                              accumulators[0], term);
    return;
  }
  // Online: accumulator k's term may use the updated values of the accumulators before it. The
  // body is run once an accumulator, with ever more of them up to date.
  size_t indices = reduction.lower.size();
  std::vector<Cell> old(accumulators.begin(), accumulators.begin() + n);
  for (size_t k = 0; k < n; ++k) {
    for (size_t r = 0; r + 1 < n; ++r)
      frame[reduction.body.arguments[indices + r]] = accumulators[r];
    isOrdered ? run(reduction.ofStates) : run(reduction.body);
    Cell term = termOf(reduction, k);
    if (k > 0) {
      for (size_t r = 0; r + 1 < n; ++r) {
        frame[reduction.rescale.arguments[r]] = old[r];
        frame[reduction.rescale.arguments[n - 1 + r]] = accumulators[r];
      }
      run(reduction.rescale);
      if (reduction.kinds[k] == ReduceKind::Sum && reduction.isFloat[k])
        accumulators[k].f *= frame[reduction.rescale.yields[k - 1]].f;
    }
    accumulators[k] = combine(reduction.kinds[k], reduction.isFloat[k], reduction.widths[k],
                              sumRounding(), accumulators[k], term);
  }
}

} // namespace tk::interp::detail
