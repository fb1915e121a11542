//===- Evaluate.cpp - execution of the reference's program ----------------===//
#include "compiler/interp/Accumulate.h"
#include "compiler/interp/Evaluation.h"

#include <algorithm>
#include <limits>

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
