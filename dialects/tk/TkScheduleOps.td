//===- TkScheduleOps.td - what chooses between schedule blocks ------------===//
#ifndef TK_DIALECTS_TK_TKSCHEDULEOPS_TD
#define TK_DIALECTS_TK_TKSCHEDULEOPS_TD

include "dialects/tk/TkDialect.td"

def Tk_ScheduleConditionOp : Op<Tk_Dialect, "schedule_condition"> {
  let summary = "Whether a schedule block of the kernel applies, decided for each launch";
  let description = [{
    `block` is the position in the kernel's `tk.schedules` of a block with a `when` clause, which
    `text` quotes. A variant of a kernel is compiled for the outcome: the condition is gone then,
    and `tk.schedules` holds the block that was chosen alone.
  }];
  let arguments = (ins I1:$condition, StrAttr:$text, I64Attr:$block);
  let assemblyFormat = "$condition `,` $text `block` $block attr-dict";
}

#endif // TK_DIALECTS_TK_TKSCHEDULEOPS_TD
