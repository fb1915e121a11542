//===- OrderBody.cpp - what the steps of a reduction have in common -------===//
//
// Most instructions of a reduction's body rest on values from outside, such as positions of rows.
// They are executed once for all steps of the innermost loop. Where a reduction has several
// accumulators, its body is run for each of them: what rests on none is executed once for each
// step. Elements of parameters are often a stride apart, so that their places are computed once.
//
//===----------------------------------------------------------------------===//
#include "compiler/interp/Program.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace tk::interp::detail {

/// Does `instruction` read a slot of `slots`?
static bool readsAny(const Instruction &instruction, const llvm::DenseSet<int> &slots) {
  auto isOf = [&](int slot) { return slot >= 0 && slots.contains(slot); };
  if (isOf(instruction.a) || isOf(instruction.b) || isOf(instruction.c) || isOf(instruction.pad) ||
      llvm::any_of(instruction.indices, isOf))
    return true;
  if (const Reduction *reduction = instruction.reduction.get())
    return llvm::any_of(reduction->outer, isOf);
  if (const ScanState *scan = instruction.scan.get())
    return isOf(scan->lower) || isOf(scan->upper) || isOf(scan->position) ||
           llvm::any_of(scan->outer, isOf);
  return false;
}

static void addResults(const Instruction &instruction, llvm::DenseSet<int> &slots) {
  if (const Reduction *reduction = instruction.reduction.get())
    slots.insert_range(reduction->results);
  else
    slots.insert(instruction.destination);
}

/// Is `load` one of cells that lie a stride apart, for values of `index`? `isParameter` says of
/// which tensors there are such cells.
static bool isOfSteps(const Instruction &load, int index, const llvm::DenseSet<int> &steps,
                      llvm::function_ref<bool(int)> isParameter) {
  return load.code == Code::Load && isParameter(load.tensor) &&
         (load.pad < 0 || !steps.contains(load.pad)) && llvm::all_of(load.indices, [&](int slot) {
           return slot == index || !steps.contains(slot);
         });
}

void orderBody(Reduction &reduction, llvm::function_ref<bool(int)> isParameter) {
  const size_t rank = reduction.lower.size();
  const int index = reduction.body.arguments[rank - 1];
  llvm::DenseSet<int> steps, states;
  steps.insert(index);
  for (size_t argument = rank; argument < reduction.body.arguments.size(); ++argument)
    states.insert(reduction.body.arguments[argument]);
  for (const Instruction &instruction : reduction.body.instructions) {
    const bool isOfStates = readsAny(instruction, states);
    const bool changes = isOfStates || readsAny(instruction, steps);
    if (!isOfStates && changes && isOfSteps(instruction, index, steps, isParameter)) {
      StepLoad &load = reduction.loads.emplace_back();
      load.load = &instruction;
      for (int slot : instruction.indices)
        load.isIndex.push_back(slot == index);
    } else {
      (isOfStates ? reduction.ofStates
       : changes  ? reduction.ofIndex
                  : reduction.ofOuter)
          .push_back(&instruction);
    }
    if (isOfStates)
      addResults(instruction, states);
    else if (changes)
      addResults(instruction, steps);
  }
}

} // namespace tk::interp::detail
