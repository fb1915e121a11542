//===- Table.h - columns of text --------------------------------*- C++ -*-===//
#ifndef TK_COMPILER_STEP_TABLE_H
#define TK_COMPILER_STEP_TABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace tk::step {

/// Prints lines of cells, each column as wide as its widest cell. The first column and the last are
/// aligned left.
void printTable(llvm::raw_ostream &os, llvm::ArrayRef<std::vector<std::string>> table);

} // namespace tk::step

#endif // TK_COMPILER_STEP_TABLE_H
