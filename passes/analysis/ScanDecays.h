//===- ScanDecays.h - scans whose states decay ------------------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_SCANDECAYS_H
#define TK_PASSES_ANALYSIS_SCANDECAYS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Has `scan` a decay for each term: the factor of what it has reduced before the term?
inline bool hasDecays(ScanOp scan) { return scan.getYield().getValues().size() > 1; }

} // namespace tk

#endif // TK_PASSES_ANALYSIS_SCANDECAYS_H
