//===- ScheduleChoice.h - which schedule block shapes a variant --*- C++ -*-===//
//
// A kernel may have several schedule blocks. The first that is for the target and whose `when`
// clause holds applies; the clauses are decided by the launch's sizes, so that the outcome is a
// fact of the variant.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_PLAN_SCHEDULECHOICE_H
#define TK_COMPILER_PLAN_SCHEDULECHOICE_H

#include "dialects/tk/TkDialect.h"
#include "tk/plan.h"

#include <optional>
#include <string_view>
#include <vector>

namespace tk {

/// What decides whether a block applies.
struct ScheduleHeader {
  std::string arch;                  ///< as written after `for`; empty: any
  std::optional<unsigned> condition; ///< its `when` clause in Signature::schedules
};

/// The headers of a kernel's blocks, in order.
std::vector<ScheduleHeader> scheduleHeaders(KernelOp kernel);

/// Whether a block may apply on a target: "cpu", "emu", "sm_90a", …
bool isForTarget(const ScheduleHeader &header, std::string_view target);

/// The block that applies under the facts, if one does.
std::optional<unsigned> chooseSchedule(const std::vector<ScheduleHeader> &headers,
                                       std::string_view target, const Facts &facts);

/// Leaves a kernel the block that was chosen alone, without what chose it.
void keepSchedule(KernelOp kernel, std::optional<unsigned> block);

} // namespace tk

#endif // TK_COMPILER_PLAN_SCHEDULECHOICE_H
