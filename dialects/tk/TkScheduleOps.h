//===- TkScheduleOps.h - conditions that select a variant -------*- C++ -*-===//
#ifndef TK_DIALECTS_TK_TKSCHEDULEOPS_H
#define TK_DIALECTS_TK_TKSCHEDULEOPS_H

#include "dialects/tk/TkDialect.h"

#define GET_OP_CLASSES
#include "dialects/tk/TkScheduleOps.h.inc"

#endif // TK_DIALECTS_TK_TKSCHEDULEOPS_H
