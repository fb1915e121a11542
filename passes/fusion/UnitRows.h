//===- UnitRows.h - a row of one value for attention ------------*- C++ -*-===//
#ifndef TK_PASSES_FUSION_UNITROWS_H
#define TK_PASSES_FUSION_UNITROWS_H

#include "passes/fusion/ChainRows.h"

namespace tk {

/// Gives the statement of `chain`, whose results only loads inside the bounds read, one more index
/// of one value, which the inner products' other factors are over. Returns the new statement, in
/// the place of `compute`; null, and nothing is changed, if these factors read nothing.
ComputeOp addUnitRow(ComputeOp compute, const ChainRows &chain);

} // namespace tk

#endif // TK_PASSES_FUSION_UNITROWS_H
