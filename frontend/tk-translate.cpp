// tk-translate FILE.tk: prints the tk dialect of a program, as it comes out of the frontend, or
// with
// --gather-checks the kernels that check its gathers.

#include "frontend/IRGen.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

#include <iostream>

int main(int argc, char **argv) {
  std::string path;
  bool locations = false;
  tk::frontend::TranslateOptions options;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--locations")
      locations = true;
    else if (std::string_view(argv[i]) == "--gather-checks")
      options.kernels = tk::frontend::Kernels::GatherChecks;
    else
      path = argv[i];
  }
  if (path.empty()) {
    std::cerr << "usage: tk-translate [--locations] [--gather-checks] FILE.tk\n";
    return 2;
  }
  tk::SourceManager sources;
  std::string why;
  tk::FileId file = sources.load(path, &why);
  if (file == tk::kNoFile) {
    std::cerr << "cannot read '" << path << "': " << why << "\n";
    return 1;
  }
  tk::Diagnostics diags(sources);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      tk::frontend::compileToTk(context, sources, file, diags, options);
  diags.render(std::cerr);
  if (!module)
    return diags.hasErrors() ? 1 : 70;
  mlir::OpPrintingFlags flags;
  if (locations)
    flags.enableDebugInfo(true, true);
  module->print(llvm::outs(), flags);
  return 0;
}
