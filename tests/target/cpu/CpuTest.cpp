//===- CpuTest.cpp - kernels compiled for the CPU against the reference ---===//
//
// Each file in kernels/ (.mlir or .tk) holds kernels and lines that say at which sizes they are
// run:
//
//   // run: M=3 N=5 K=7
//   // integers: 10        elements of integer inputs are below this
//
// Every result is compared with the f64 interpreter. TK_CPU_TEST=NAME runs one file.
//
//===----------------------------------------------------------------------===//
#include "tests/target/cpu/KernelCheck.h"
#include "tests/unit/catch.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace tk;
using namespace tk::test;

namespace {
struct Plan {
  std::vector<Sizes> runs;
  int64_t integers = 100;
};
} // namespace

static Plan readPlan(llvm::StringRef text) {
  Plan plan;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    if (line.consume_front("// integers: "))
      line.trim().getAsInteger(10, plan.integers);
    if (!line.consume_front("// run:"))
      continue;
    Sizes sizes;
    llvm::SmallVector<llvm::StringRef> words;
    line.split(words, ' ', -1, false);
    for (llvm::StringRef word : words) {
      auto [name, value] = word.split('=');
      int64_t size = -1;
      value.getAsInteger(10, size);
      sizes[name.str()] = size;
    }
    plan.runs.push_back(sizes);
  }
  return plan;
}

static std::string describe(const Sizes &sizes) {
  std::string text;
  for (auto &[name, size] : sizes)
    text += name + "=" + std::to_string(size) + " ";
  return text;
}

static void runFile(const std::string &path, const Plan &plan, bool fuse) {
  mlir::DialectRegistry registry;
  cpu::registerCpuDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  INFO(path << (fuse ? " fused" : " not fused"));
  auto module = loadKernels(context, path, fuse);
  REQUIRE(bool(module));
  REQUIRE(!plan.runs.empty());
  for (KernelOp kernel : module->getOps<KernelOp>()) {
    INFO("kernel " << kernel.getSymName().str());
    auto executable = cpu::compileForCpu(*module, kernel.getSymName());
    if (!executable)
      FAIL(llvm::toString(executable.takeError()));
    auto isGiven = [&](const Sizes &sizes) { // of the kernels of a file each has its own
      return llvm::all_of(kernel.getDimNames().getAsRange<mlir::StringAttr>(),
                          [&](mlir::StringAttr name) { return sizes.contains(name.str()); });
    };
    CHECK(llvm::any_of(plan.runs, isGiven));
    for (const Sizes &sizes : llvm::make_filter_range(plan.runs, isGiven)) {
      INFO(describe(sizes));
      int64_t integers = plan.integers;
      for (const char *table : {"E", "V", "PAGES"}) // what the examples' integer inputs index
        if (auto it = sizes.find(table); it != sizes.end())
          integers = it->second;
      const std::string wrong = checkKernel(kernel, **executable, sizes, integers);
      INFO(wrong);
      CHECK(wrong.empty());
    }
  }
}

/// The product of sizes up to which the reference takes seconds for a sample of the elements, each
/// of which it computes anew. The whole kernels' own tests have the others.
static constexpr double largestProduct = 1 << 27;

static bool isSmall(const Sizes &sizes) {
  double product = 1;
  for (auto &[name, size] : sizes)
    product *= static_cast<double>(size);
  return product <= largestProduct;
}

/// The sizes of tests/e2e/cases.txt, by file, but large ones.
static std::map<std::string, Plan> readCases() {
  std::map<std::string, Plan> plans;
  auto text = llvm::MemoryBuffer::getFile(TK_SOURCE "/tests/e2e/cases.txt");
  if (!text)
    return plans;
  llvm::StringRef rest = (*text)->getBuffer();
  while (!rest.empty()) {
    auto [line, next] = rest.split('\n');
    rest = next;
    llvm::SmallVector<llvm::StringRef> words;
    line.split(words, ' ', -1, false);
    if (words.empty() || line.starts_with("#") || !words[0].starts_with("examples/"))
      continue;
    Sizes sizes;
    for (size_t i = 1; i + 1 < words.size(); ++i)
      if (words[i] == "--dim")
        words[i + 1].split('=').second.getAsInteger(10, sizes[words[i + 1].split('=').first.str()]);
    Plan &plan = plans[TK_SOURCE "/" + words[0].str()];
    if (isSmall(sizes))
      plan.runs.push_back(sizes);
  }
  return plans;
}

static bool isChosen(llvm::StringRef path) {
  const char *only = std::getenv("TK_CPU_TEST");
  return !only || llvm::sys::path::stem(path) == only;
}

TEST_CASE("kernels equal the reference") {
  std::error_code error;
  std::vector<std::string> paths;
  for (llvm::sys::fs::directory_iterator it(TK_SOURCE "/tests/target/cpu/kernels", error), end;
       it != end && !error; it.increment(error))
    if (llvm::sys::path::extension(it->path()) == ".mlir" ||
        llvm::sys::path::extension(it->path()) == ".tk")
      paths.push_back(it->path());
  std::sort(paths.begin(), paths.end());
  REQUIRE(!paths.empty());
  for (const std::string &path : paths)
    for (bool fuse : {false, true})
      if (isChosen(path))
        DYNAMIC_SECTION(path << fuse) {
          auto text = llvm::MemoryBuffer::getFile(path);
          REQUIRE(bool(text));
          runFile(path, readPlan((*text)->getBuffer()), fuse);
        }
}

TEST_CASE("examples equal the reference") {
  for (auto &[path, plan] : readCases())
    for (bool fuse : {false, true})
      if (isChosen(path))
        DYNAMIC_SECTION(path << fuse) { runFile(path, plan, fuse); }
}
