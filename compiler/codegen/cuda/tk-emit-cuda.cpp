//===- tk-emit-cuda.cpp - CUDA text of block-level IR ---------------------===//
//
// Prints the CUDA of the tkgpu functions in a file; with --arch also compiles it and prints what
// each kernel uses, one line each. For tests and for reading.
//
//===----------------------------------------------------------------------===//
#include "compiler/Registration.h"
#include "compiler/codegen/cuda/EmitCuda.h"
#include "runtime/cuda/Nvrtc.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace {
llvm::cl::opt<std::string> input(llvm::cl::Positional, llvm::cl::init("-"),
                                 llvm::cl::desc("<file of IR>"));
llvm::cl::opt<std::string> arch("arch", llvm::cl::desc("compile with NVRTC, for example sm_80"));
llvm::cl::opt<bool> noText("no-text", llvm::cl::desc("do not print the CUDA text"));
llvm::cl::opt<bool> lines("lines", llvm::cl::desc("with #line directives"));

int compile(const std::string &text) {
  auto nvrtc = tk::cuda::Nvrtc::get();
  if (!nvrtc) {
    llvm::outs() << "no NVRTC: " << nvrtc.error().message() << "\n";
    return 3;
  }
  tk::cuda::NvrtcOptions options;
  options.arch = arch;
  for (const tk::cuda::DeviceHeader &header : tk::cuda::deviceHeaders())
    options.headers.emplace_back(header.name.str(), header.text.str());
  auto result = (*nvrtc)->compile(text, options);
  if (!result) {
    llvm::errs() << result.error().message() << "\n";
    return 1;
  }
  llvm::outs() << result->log;
  return 0;
}
} // namespace

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "prints CUDA\n");
  mlir::DialectRegistry registry;
  tk::registerDialects(registry);
  mlir::MLIRContext context(registry);
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(input);
  if (!buffer) {
    llvm::errs() << input << ": " << buffer.getError().message() << "\n";
    return 1;
  }
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module || mlir::failed(mlir::verify(*module)))
    return 1;
  tk::cuda::EmitOptions options;
  options.lineDirectives = lines;
  auto emitted = tk::cuda::emitCuda(*module, options);
  if (mlir::failed(emitted))
    return 1;
  if (!noText)
    llvm::outs() << emitted->text;
  return arch.empty() ? 0 : compile(emitted->text);
}
