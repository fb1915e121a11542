//===- TkScheduleOps.td - conditions that select a variant ----------------===//
#ifndef TK_DIALECTS_TK_TKSCHEDULEOPS_TD
#define TK_DIALECTS_TK_TKSCHEDULEOPS_TD

include "dialects/tk/TkDialect.td"

def Tk_ScheduleConditionOp : Op<Tk_Dialect, "schedule_condition"> {
  let summary = "State the condition of a schedule block, which each launch decides";
  let description = [{
    `block` is the position of a schedule block with a `when` clause in the kernel's
    `tk.schedules`. `condition` is the clause, computed from dimensions and scalars. `text` quotes
    it.

    A variant of a kernel is compiled for one outcome. In the variant the operation is erased, and
    `tk.schedules` holds only the chosen block.

    ```mlir
    tk.schedule_condition %large, "M >= 1024" block 0
    ```
  }];
  let arguments = (ins I1:$condition, StrAttr:$text, I64Attr:$block);
  let assemblyFormat = "$condition `,` $text `block` $block attr-dict";
}

def Tk_ScalarCaseOp : Op<Tk_Dialect, "scalar_case"> {
  let summary = "State conditions on scalars that are part of a specialisation key";
  let description = [{
    Each launch evaluates the conditions. If all of them hold, the launch uses a variant in which
    each condition is a `tk.assume`. Otherwise it uses a variant without the operation. A condition
    that fails is not an error, unlike that of a `tk.assume`. `text` describes the conditions to a
    reader.

    The parser reads only the generic form, because in the printed form a comma follows the
    conditions.

    ```mlir
    "tk.scalar_case"(%positive, %small) <{text = "0 < cap <= 50"}> : (i1, i1) -> ()
    ```
  }];
  let arguments = (ins Variadic<I1>:$conditions, StrAttr:$text);
  let assemblyFormat = "$conditions `,` $text attr-dict";
}

#endif // TK_DIALECTS_TK_TKSCHEDULEOPS_TD
