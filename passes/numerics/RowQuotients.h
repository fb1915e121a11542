//===- RowQuotients.h - quotients by what a row has once --------*- C++ -*-===//
#ifndef TK_PASSES_NUMERICS_ROWQUOTIENTS_H
#define TK_PASSES_NUMERICS_ROWQUOTIENTS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Makes the quotients in `compute` that may be approximate products with reciprocals, where many
/// have the same divisor, whose reciprocal is as exact as it is; and leaves the limits out that
/// roundings to 8 bits have by themselves.
void shareReciprocals(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_NUMERICS_ROWQUOTIENTS_H
