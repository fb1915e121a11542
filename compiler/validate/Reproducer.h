//===- Reproducer.h - the IR that a wrong pass got ---------------*- C++ -*-===//
#ifndef TK_COMPILER_VALIDATE_REPRODUCER_H
#define TK_COMPILER_VALIDATE_REPRODUCER_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace tk {

/// Writes what a pass got to DIRECTORY/KERNEL-before-PASS.mlir (the directory for temporary files
/// where none is given), with the command that runs the pass and what is wrong with what it makes.
/// Returns that command, empty where the file cannot be written.
std::string writePassReproducer(llvm::StringRef directory, llvm::StringRef kernel,
                                llvm::StringRef pass, llvm::StringRef wrong, llvm::StringRef ir);

} // namespace tk

#endif // TK_COMPILER_VALIDATE_REPRODUCER_H
