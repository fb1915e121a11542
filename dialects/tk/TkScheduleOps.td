//===- TkScheduleOps.td - what tells variants apart, beside sizes ---------===//
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

def Tk_ScalarCaseOp : Op<Tk_Dialect, "scalar_case"> {
  let summary = "What a pass would like to know of scalars, decided for each launch";
  let description = [{
    Unlike those of `tk.assume` the conditions may fail: launches for which all of them hold have a
    variant of their own, in which they are assumptions. In the others they are gone. `text` is what
    people read, such as "0 < cap <= 50".
  }];
  let arguments = (ins Variadic<I1>:$conditions, StrAttr:$text);
  let assemblyFormat = "$conditions `,` $text attr-dict";
}

#endif // TK_DIALECTS_TK_TKSCHEDULEOPS_TD
