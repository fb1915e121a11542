//===- ScheduleChoice.cpp - which schedule block shapes a variant ---------===//
#include "compiler/plan/ScheduleChoice.h"
#include "dialects/tk/TkScheduleOps.h"
#include "passes/analysis/CallOverlap.h"

#include "tk/backend.h"

using namespace mlir;

namespace tk {

static constexpr StringLiteral blocksName = "tk.schedules";

std::vector<ScheduleHeader> scheduleHeaders(KernelOp kernel) {
  std::vector<ScheduleHeader> headers;
  auto blocks = kernel->getAttrOfType<ArrayAttr>(blocksName);
  if (!blocks)
    return headers;
  for (auto block : blocks.getAsRange<DictionaryAttr>()) {
    auto arch = block.getAs<StringAttr>("arch");
    headers.push_back({arch ? arch.str() : "", std::nullopt});
  }
  unsigned next = 0;
  for (auto op : kernel.getBody().getOps<ScheduleConditionOp>())
    headers[op.getBlock()].condition = next++;
  return headers;
}

bool isForTarget(const ScheduleHeader &header, std::string_view target) {
  if (header.arch.empty() || header.arch == target)
    return true;
  if (detail::is_emulated(target))
    return header.arch == "emu" || isForTarget(header, detail::architecture_of(target));
  // sm_90a has all of sm_90, and more.
  return target.starts_with(header.arch) && target.size() == header.arch.size() + 1;
}

std::optional<unsigned> chooseSchedule(const std::vector<ScheduleHeader> &headers,
                                       std::string_view target, const Facts &facts) {
  for (unsigned block = 0; block < headers.size(); ++block) {
    std::optional<unsigned> condition = headers[block].condition;
    bool holds = !condition || (*condition < facts.schedules.size() && facts.schedules[*condition]);
    if (holds && isForTarget(headers[block], target))
      return block;
  }
  return std::nullopt;
}

void keepSchedule(KernelOp kernel, std::optional<unsigned> block) {
  for (auto op : llvm::make_early_inc_range(kernel.getBody().getOps<ScheduleConditionOp>()))
    op.erase();
  if (!block) {
    kernel->removeAttr(blocksName);
    return;
  }
  auto blocks = kernel->getAttrOfType<ArrayAttr>(blocksName);
  NamedAttrList entries(cast<DictionaryAttr>(blocks[*block]));
  entries.erase("arch");
  entries.erase("when");
  MLIRContext *context = kernel.getContext();
  // How calls follow each other is no part of a plan: a block with nothing else leaves that alone.
  if (Attribute overlap = entries.erase("overlap")) {
    auto number = dyn_cast<IntegerAttr>(overlap);
    if (!number || number.getInt() != 0)
      kernel->setAttr(overlapsCallsAttrName, UnitAttr::get(context));
    auto isPlace = [](NamedAttribute entry) {
      return entry.getName() == "at" || entry.getName() == "places";
    };
    if (llvm::all_of(entries, isPlace)) {
      kernel->removeAttr(blocksName);
      return;
    }
  }
  kernel->setAttr(blocksName, ArrayAttr::get(context, {entries.getDictionary(context)}));
}

} // namespace tk
