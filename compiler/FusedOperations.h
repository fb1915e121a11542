//===- FusedOperations.h - a product's prologue and epilogue -----*- C++ -*-===//
#ifndef TK_COMPILER_FUSEDOPERATIONS_H
#define TK_COMPILER_FUSEDOPERATIONS_H

#include "dialects/tk/TkDialect.h"

#include <string>

namespace tk {

/// What a launch computes beside its sum of products, as text.
struct FusedOperations {
  std::string prologue; ///< of each factor
  std::string epilogue; ///< of each sum
};

/// Both are empty of a statement that is no sum of products.
FusedOperations fusedOperations(ComputeOp compute);

} // namespace tk

#endif // TK_COMPILER_FUSEDOPERATIONS_H
