//===- CpuBench.cpp - throughput of kernels on the CPU --------------------===//
//
// tk-cpu-bench FILE(.tk|.mlir) [--threads=N] [--flops=EXPRESSION-FREE NUMBER] [--unfused]
//              [--ir=FILE] [--blas] NAME=SIZE ...
//
// Prints the median time of a launch and, with --flops (operations of a launch), GFLOP/s. --blas
// times OpenBLAS's sgemm at M, N, K in the same run, in alternation.
//
//===----------------------------------------------------------------------===//
#include "tests/target/cpu/KernelCheck.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <dlfcn.h>

using namespace tk;
using namespace tk::test;

static double seconds(const std::function<void()> &run) {
  auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

static double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

using Sgemm = void (*)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                       float, float *, int);

static Sgemm loadBlas(unsigned threads) {
  void *library = dlopen("libopenblas.so.0", RTLD_NOW);
  if (!library)
    return nullptr;
  if (auto set = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads")))
    set(int(threads));
  return reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
}

int main(int argc, char **argv) {
  std::string path, irPath;
  Sizes sizes;
  unsigned threads = 1;
  double flops = 0;
  bool fuse = true, blas = false;
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef word = argv[i];
    if (word.consume_front("--threads="))
      word.getAsInteger(10, threads);
    else if (word.consume_front("--flops="))
      flops = std::atof(word.str().c_str());
    else if (word.consume_front("--ir="))
      irPath = word.str();
    else if (word == "--unfused")
      fuse = false;
    else if (word == "--blas")
      blas = true;
    else if (word.contains('='))
      word.split('=').second.getAsInteger(10, sizes[word.split('=').first.str()]);
    else
      path = word.str();
  }
  mlir::DialectRegistry registry;
  cpu::registerCpuDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = loadKernels(context, path, fuse);
  if (!module)
    return 1;
  KernelOp kernel = *module->getOps<KernelOp>().begin();
  cpu::CpuOptions options;
  std::string ir, loops;
  if (!irPath.empty()) {
    options.llvmIR = &ir;
    options.afterPass = [&](llvm::StringRef pass, mlir::Operation *op) {
      if (pass == "canonicalize")
        llvm::raw_string_ostream(loops) << *op;
    };
  }
  auto executable = cpu::compileForCpu(*module, kernel.getSymName(), options);
  if (!executable) {
    llvm::errs() << llvm::toString(executable.takeError()) << "\n";
    return 1;
  }
  if (!irPath.empty()) {
    std::error_code error;
    llvm::raw_fd_ostream(irPath, error) << loops << "\n" << ir;
  }
  auto spent = (*executable)->times();
  Launch launch = makeLaunch(kernel, sizes, sizes.count("V") ? sizes["V"] : 100, 1);
  Sgemm sgemm = blas ? loadBlas(threads) : nullptr;
  int m = int(sizes["M"]), n = int(sizes["N"]), k = int(sizes["K"]);
  std::vector<float> a(size_t(m) * k, 0.5f), b(size_t(k) * n, 0.25f), c(size_t(m) * n);
  std::vector<double> ours, theirs;
  double total = 0;
  while (total < 1.5 && ours.size() < 2000) {
    ours.push_back(seconds([&] { launch.run((*executable)->entry(), threads); }));
    if (sgemm)
      theirs.push_back(seconds(
          [&] { sgemm(101, 111, 111, m, n, k, 1, a.data(), k, b.data(), n, 0, c.data(), n); }));
    total += ours.back();
  }
  llvm::outs() << llvm::format("%s: %.3f ms", kernel.getSymName().str().c_str(),
                               median(ours) * 1e3);
  if (flops > 0)
    llvm::outs() << llvm::format(", %.1f GFLOP/s", flops / median(ours) * 1e-9);
  if (sgemm)
    llvm::outs() << llvm::format(", OpenBLAS %.3f ms %.1f GFLOP/s", median(theirs) * 1e3,
                                 flops / median(theirs) * 1e-9);
  llvm::outs() << llvm::format("; compiled in %.1f + %.1f + %.1f ms\n", spent.passes,
                               spent.optimise, spent.generate);
  return 0;
}
