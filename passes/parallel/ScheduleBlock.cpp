//===- ScheduleBlock.cpp - what a program says of a schedule --------------===//
//
// The frontend leaves a kernel's schedule blocks as dictionaries in `tk.schedules`. The first that
// is for the target applies; its entries are looked up by the names of the statement's indices.
//
//===----------------------------------------------------------------------===//
#include "passes/parallel/ScheduleBlock.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;

/// A block for another architecture does not apply; nor does one with a condition on sizes, which
/// one compiled kernel cannot decide.
static bool applies(DictionaryAttr schedule, gpu::TargetAttr target) {
  if (schedule.contains("when"))
    return false;
  auto arch = schedule.getAs<StringAttr>("arch");
  if (!arch)
    return true;
  StringRef number = arch.getValue();
  if (!number.consume_front("sm_"))
    return false;
  number = number.take_while(llvm::isDigit);
  int64_t value = 0;
  return !number.getAsInteger(10, value) && value == target.getArch();
}

static ScheduleBlock read(DictionaryAttr schedule, StatementShape &shape) {
  auto number = [&](StringRef key) -> std::optional<int64_t> {
    auto attr = schedule.getAs<IntegerAttr>(key);
    return attr ? std::optional(attr.getInt()) : std::nullopt;
  };
  ScheduleBlock block;
  block.stages = number("stages");
  block.group = number("raster");
  block.vector = number("vector");
  auto sizes = schedule.getAs<DictionaryAttr>("tile");
  if (!sizes)
    return block;
  auto apply = [&](Value index) {
    if (auto size = sizes.getAs<IntegerAttr>(shape.nameOf(index)))
      block.tiles.try_emplace(index, llvm::bit_floor<uint64_t>(size.getInt()));
  };
  for (Value index : shape.compute.getBlock()->getArguments())
    apply(index);
  for (Operation *op : shape.reductions) {
    auto reduction = dyn_cast<ReduceOp>(op);
    for (unsigned i = 0; i < (reduction ? reduction.getNumIndices() : 1); ++i)
      apply(op->getRegion(0).front().getArgument(i));
  }
  return block;
}

ScheduleBlock tk::readScheduleBlock(StatementShape &shape, gpu::TargetAttr target) {
  if (auto schedules = shape.kernel->getAttrOfType<ArrayAttr>("tk.schedules"))
    for (auto schedule : schedules.getAsRange<DictionaryAttr>())
      if (applies(schedule, target))
        return read(schedule, shape);
  return ScheduleBlock();
}
