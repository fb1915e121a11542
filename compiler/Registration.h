//===- Registration.h - the dialects that tk uses ---------------*- C++ -*-===//
#ifndef TK_COMPILER_REGISTRATION_H
#define TK_COMPILER_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace tk {

/// Adds every dialect that a stage of the compiler may hold: tk, tkgpu and the upstream ones.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace tk

#endif // TK_COMPILER_REGISTRATION_H
