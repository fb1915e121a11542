//===- Evaluate.cpp - execution of the reference's program ----------------===//
#include "compiler/interp/Accumulate.h"
#include "compiler/interp/Evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tk::interp::detail {

/// Drops what reductions and scans remember of other inputs.
static void forget(std::vector<Instruction> &instructions) {
  for (Instruction &instruction : instructions) {
    if (Reduction *reduction = instruction.reduction.get()) {
      reduction->lastResults.clear();
      forget(reduction->body.instructions);
      forget(reduction->rescale.instructions);
    }
    if (ScanState *scan = instruction.scan.get()) {
      scan->valid = false;
      forget(scan->body.instructions);
    }
  }
}

void Evaluation::forgetAll() {
  forget(program.prologue);
  for (ComputeProgram &compute : program.computes)
    forget(compute.body.instructions);
}

void Evaluation::redraw(unsigned draw) {
  rounding.seed(draw < 2 ? 0 : draw);
  sumsAsMatrixUnit = draw == 0;
  orderOfSums = draw < 2 ? 0 : draw;
  forgetAll();
  for (TensorState &state : states)
    state.memo.clear();
}

void Evaluation::takeAbsentTerms(bool takes) {
  takesAbsentTerms = takes;
  forgetAll();
  for (TensorState &state : states)
    state.memo.clear();
}

Status Evaluation::bind(const std::vector<int64_t> &dims, const std::vector<TensorView> &tensors,
                        const std::vector<Scalar> &scalars) {
  forgetAll();
  frame.assign(program.numSlots, Cell{});
  states.clear();
  memoBytes = 0;
  states.resize(program.tensors.size());
  if (dims.size() != program.dimSlots.size())
    return Error(ErrorCode::invalid_argument,
                 "expected " + std::to_string(program.dimSlots.size()) + " dimensions, got " +
                     std::to_string(dims.size()));
  for (size_t i = 0; i < dims.size(); ++i)
    frame[program.dimSlots[i]].i = dims[i];
  size_t tensor = 0, scalar = 0;
  for (size_t p = 0; p < program.paramTensors.size(); ++p) {
    if (int id = program.paramTensors[p]; id >= 0) {
      states[id].input = CellTensor(tensors.at(tensor++));
      states[id].shape = states[id].input.shape;
      continue;
    }
    Scalar value = scalars.at(scalar++);
    Width width = program.scalarWidths[p];
    if (width <= Width::F8E5M2)
      frame[program.scalarSlots[p]].f = roundTo(width, value.as_double());
    else
      frame[program.scalarSlots[p]].i =
          wrapTo(width, value.is_float ? static_cast<int64_t>(value.f) : value.i);
  }
  for (const Instruction &instruction : program.prologue)
    execute(instruction);
  // Axes that passes have made one are one here, too: the elements lie as they did.
  for (size_t id = 0; id < program.tensors.size(); ++id) {
    const std::vector<int> &extents = program.tensors[id].extents;
    if (extents.size() >= states[id].shape.size())
      continue;
    states[id].shape.clear();
    for (int extent : extents)
      states[id].shape.push_back(frame[extent].i);
  }
  for (auto &[slot, text] : program.assumptions)
    if (!frame[slot].i)
      return Error(ErrorCode::constraint_failed, "the condition " + text + " does not hold");
  for (const ComputeProgram &compute : program.computes)
    for (int id : compute.tensors) {
      int64_t count = 1;
      for (unsigned axis : program.tensors[id].axes) {
        states[id].shape.push_back(frame[compute.extents[axis]].i);
        if (__builtin_mul_overflow(count, states[id].shape.back(), &count))
          return Error(ErrorCode::overflow, "tensor size overflows 64 bits");
      }
      states[id].memo.reset(count, memoBytes);
    }
  return {};
}

Cell Evaluation::element(int tensor, int64_t position) {
  TensorState &state = states[tensor];
  const TensorSlot &slot = program.tensors[tensor];
  if (slot.compute < 0)
    return state.input[position];
  Cell cell;
  if (state.memo.find(position, cell))
    return cell;
  ComputeProgram &compute = program.computes[slot.compute];
  // Indices that this result is not over take their first value: it does not depend on them.
  for (int argument : compute.body.arguments)
    frame[argument].i = 0;
  int64_t rest = position;
  for (size_t axis = slot.axes.size(); axis-- > 0;) {
    frame[compute.body.arguments[slot.axes[axis]]].i = rest % state.shape[axis];
    rest /= state.shape[axis];
  }
  if (slot.overTiles) {
    cell = identity(slot.overTiles->kind, slot.isFloat, slot.storedAs);
    reduceTile(slot, compute, slot.overTiles->axes, cell);
  } else {
    run(compute.body);
    cell = frame[compute.body.yields[slot.result]];
  }
  if (slot.isFloat && program.mode == Mode::Typed)
    cell.f = roundTo(slot.storedAs, cell.f);
  state.memo.set(position, cell);
  boundMemos();
  return cell;
}

/// What is remembered saves time alone: where it takes too much memory it is computed anew.
void Evaluation::boundMemos() {
  if (memoBytes <= mostMemoBytes)
    return;
  for (TensorState &state : states)
    state.memo.clear();
}

/// Takes what a result yields, over the values of indices in the tiles that their counters say,
/// into `all`; those of `axes` are still to be gone through.
void Evaluation::reduceTile(const TensorSlot &slot, ComputeProgram &compute,
                            llvm::ArrayRef<TileReduction::Axis> axes, Cell &all) {
  if (axes.empty()) {
    run(compute.body);
    all = combine(slot.overTiles->kind, slot.isFloat, slot.storedAs, sumRounding(), all,
                  frame[compute.body.yields[slot.result]]);
    return;
  }
  const TileReduction::Axis &axis = axes.front();
  const int64_t from = frame[compute.body.arguments[axis.counter]].i * axis.size,
                to = std::min(from + axis.size, frame[compute.extents[axis.index]].i);
  for (int64_t i = from; i < to; ++i) {
    frame[compute.body.arguments[axis.index]].i = i;
    reduceTile(slot, compute, axes.drop_front(), all);
  }
}

void Evaluation::beginCounts() {
  counts = std::make_unique<Counts>();
  for (const TensorState &state : states) {
    int64_t elements = 1;
    for (int64_t extent : state.shape)
      elements *= extent;
    counts->isRead.emplace_back(elements);
  }
}

/// Is an instruction an operation on floats? Conversions and choices are none.
static bool isFloatOperation(Code code) {
  return (code >= Code::AddF && code <= Code::CopySign) ||
         (code >= Code::NegF && code <= Code::Trunc) || code == Code::Fma || code == Code::FPowI;
}

void Evaluation::run(const Body &body) {
  for (const Instruction &instruction : body.instructions)
    execute(instruction);
}

void Evaluation::run(const std::vector<const Instruction *> &instructions) {
  for (const Instruction *instruction : instructions)
    execute(*instruction);
}

void Evaluation::execute(const Instruction &instruction) {
  switch (instruction.code) {
  case Code::Load:
    return load(instruction);
  case Code::Reduce:
    return reduce(*instruction.reduction);
  case Code::Scan:
    return scan(instruction);
  default:
    if (counts)
      counts->operations += isFloatOperation(instruction.code);
    return executeScalar(instruction, frame.data(), rounding);
  }
}

void Evaluation::load(const Instruction &instruction) {
  const TensorState &state = states[instruction.tensor];
  const std::vector<int64_t> &shape = state.shape;
  int64_t position = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    int64_t index = frame[instruction.indices[axis]].i;
    if (index < 0 || index >= shape[axis]) {
      // An access that was proved inside never gets here; poison shows where the proof was wrong.
      Cell poison{};
      if (program.tensors[instruction.tensor].isFloat)
        poison.f = std::numeric_limits<double>::quiet_NaN();
      frame[instruction.destination] = instruction.pad >= 0 ? frame[instruction.pad] : poison;
      return;
    }
    position = position * shape[axis] + index;
  }
  if (counts && program.tensors[instruction.tensor].compute < 0)
    counts->isRead[instruction.tensor][position] = true;
  if (const Cell *cells = state.input.data()) {
    frame[instruction.destination] = cells[position];
    return;
  }
  // Evaluating a compute overwrites the slots of its own body only.
  frame[instruction.destination] = element(instruction.tensor, position);
}

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

void Evaluation::scan(const Instruction &instruction) {
  ScanState &scan = *instruction.scan;
  int64_t position = std::min(frame[scan.position].i, frame[scan.upper].i - 1);
  std::vector<Cell> outer;
  for (int slot : scan.outer)
    outer.push_back(frame[slot]);
  const int64_t lower = frame[scan.lower].i;
  bool same = scan.valid && outer.size() == scan.lastOuter.size() &&
              scan.lastPosition <= position && scan.lastLower == lower;
  for (size_t i = 0; same && i < outer.size(); ++i)
    same = outer[i].i == scan.lastOuter[i].i;
  int64_t from = same ? scan.lastPosition + 1 : lower;
  Cell accumulator = same ? scan.accumulator : identity(scan.kind, scan.isFloat, instruction.width);
  for (int64_t i = from; i <= position; ++i) {
    frame[scan.body.arguments[0]].i = i;
    if (counts)
      ++counts->operations;
    run(scan.body);
    accumulator = combine(scan.kind, scan.isFloat, instruction.width, sumRounding(), accumulator,
                          frame[scan.body.yields[0]]);
  }
  scan.accumulator = accumulator;
  scan.lastOuter = std::move(outer);
  scan.lastPosition = position;
  scan.lastLower = lower;
  scan.valid = true;
  frame[instruction.destination] = accumulator;
}

} // namespace tk::interp::detail
