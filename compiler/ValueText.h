//===- ValueText.h - values of different statements as text ------*- C++ -*-===//
#ifndef TK_COMPILER_VALUETEXT_H
#define TK_COMPILER_VALUETEXT_H

#include "dialects/tk/TkDialect.h"

#include <string>

namespace tk {

/// A text that two values of a program share only if they are the same function of indices with the
/// same extents. Empty where the text would be long.
std::string textOfValue(mlir::Value value);

} // namespace tk

#endif // TK_COMPILER_VALUETEXT_H
