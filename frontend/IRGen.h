// From the analysed program to the tk dialect.

#ifndef TK_FRONTEND_IRGEN_H
#define TK_FRONTEND_IRGEN_H

#include "frontend/Diagnostics.h"
#include "frontend/SemaTree.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace tk::frontend {

/// On a tk.compute whose indices do not all begin at 0: what each begins at, as text. For people:
/// no pass reads it.
inline constexpr llvm::StringLiteral beginsAttrName = "tk.begins";

/// What is made of the kernels of a program.
enum class Kernels {
  AsWritten,
  /// In place of each kernel one with its name and parameters that finds how far the indices of its
  /// gathers reach: for each four numbers, the lowest, the highest, and the bounds of the axis.
  GatherChecks,
};

struct TranslateOptions {
  FileId schedules = kNoFile; ///< a file of schedule blocks that replace the program's
  Kernels kernels = Kernels::AsWritten;
};

/// A module with one tk.kernel for each kernel, in verified form. Null only for a bug of ours.
/// Loads the dialects that it uses into the context.
mlir::OwningOpRef<mlir::ModuleOp> generate(mlir::MLIRContext &context, const sema::Module &module,
                                           const SourceManager &sources,
                                           Kernels which = Kernels::AsWritten);

/// Parses, analyses and translates one file of `sources`. Null if errors were reported.
mlir::OwningOpRef<mlir::ModuleOp> compileToTk(mlir::MLIRContext &context, SourceManager &sources,
                                              FileId file, Diagnostics &diags,
                                              const TranslateOptions &options = {});

} // namespace tk::frontend

#endif // TK_FRONTEND_IRGEN_H
