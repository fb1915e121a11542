//===- ValuesTest.cpp - fusion changes no value ---------------------------===//
//
// Runs the reference on each kernel of the given files before and after every pass of the tensor
// level, over several sizes and random inputs, and compares the results.
//
// usage: tk-fusion-values-test FILE.mlir ...
//
//===----------------------------------------------------------------------===//
#include "compiler/Pipeline.h"
#include "compiler/Registration.h"
#include "compiler/interp/Interpreter.h"
#include "passes/Passes.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <deque>
#include <random>

using namespace mlir;

namespace {

/// The inputs of one run, drawn from a seed.
struct Inputs {
  std::vector<int64_t> dims;
  std::deque<std::vector<char>> storage;
  std::vector<tk::TensorView> tensors;
  std::vector<tk::Scalar> scalars;

  // Views point into the storage: moved, never copied.
  Inputs() = default;
  Inputs(Inputs &&) noexcept = default;
};

tk::DType getDType(Type type) {
  if (type.isF32())
    return tk::DType::f32;
  if (type.isBF16())
    return tk::DType::bf16;
  if (type.isF16())
    return tk::DType::f16;
  if (type.isInteger(64))
    return tk::DType::i64;
  return tk::DType::i32;
}

template <typename T> void put(std::vector<char> &bytes, T value) {
  const char *raw = reinterpret_cast<const char *>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof(T));
}

void putRandom(std::vector<char> &bytes, tk::DType dtype, std::mt19937 &random) {
  float value = std::normal_distribution<float>()(random);
  if (dtype == tk::DType::i32)
    return put<int32_t>(bytes, random() % 5);
  if (dtype == tk::DType::i64)
    return put<int64_t>(bytes, random() % 5);
  if (dtype == tk::DType::f32)
    return put<float>(bytes, value);
  llvm::APFloat number(value);
  bool lost;
  number.convert(dtype == tk::DType::bf16 ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf(),
                 llvm::APFloat::rmNearestTiesToEven, &lost);
  put<uint16_t>(bytes, number.bitcastToAPInt().getZExtValue());
}

Inputs drawInputs(tk::KernelOp kernel, unsigned seed) {
  static constexpr int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7};
  Inputs inputs;
  std::mt19937 random(seed);
  for (unsigned n = 0; n < kernel.getNumDims(); ++n)
    inputs.dims.push_back(seed == 0 && n % 3 == 2 ? 0 : sizes[random() % std::size(sizes)]);
  for (Value param : kernel.getParamArguments()) {
    tk::Scalar scalar(0.75);
    tk::TensorView view;
    if (auto type = dyn_cast<RankedTensorType>(param.getType())) {
      tk::BindOp bind = kernel.getBind(param);
      tk::Extents shape;
      for (auto [n, extent] : llvm::enumerate(bind.getExtents())) {
        APInt constant;
        if (auto arg = dyn_cast<BlockArgument>(extent))
          shape.push_back(inputs.dims[arg.getArgNumber()]);
        else
          shape.push_back(matchPattern(extent, m_ConstantInt(&constant)) ? constant.getSExtValue()
                                                                         : type.getDimSize(n));
      }
      tk::DType dtype = getDType(type.getElementType());
      std::vector<char> &bytes = inputs.storage.emplace_back();
      int64_t count = *tk::element_count(shape);
      for (int64_t i = 0; i < count; ++i)
        putRandom(bytes, dtype, random);
      bytes.resize(bytes.size() + 16);
      view = tk::TensorView(bytes.data(), dtype, shape);
    } else if (!isa<FloatType>(param.getType())) {
      scalar = tk::Scalar(int64_t(3));
    }
    inputs.tensors.push_back(view);
    inputs.scalars.push_back(scalar);
  }
  return inputs;
}

using Values = std::vector<std::vector<double>>;

/// All results of a kernel, or nothing where the sizes break one of its assumptions.
std::optional<Values> evaluate(tk::KernelOp kernel, const Inputs &inputs) {
  auto reference = tk::interp::Reference::create(kernel, tk::interp::Mode::F64);
  if (!reference) {
    llvm::errs() << "no reference for @" << kernel.getSymName() << "\n";
    exit(1);
  }
  if (!reference->bind(inputs.dims, inputs.tensors, inputs.scalars))
    return std::nullopt;
  Values values;
  for (unsigned r = 0; r < reference->numResults(); ++r) {
    int64_t count = 1;
    for (int64_t extent : reference->resultShape(r))
      count *= extent;
    std::vector<double> &list = values.emplace_back();
    for (int64_t i = 0; i < count; ++i) {
      tk::interp::Cell cell = reference->element(r, i);
      list.push_back(reference->resultIsFloat(r) ? cell.f : static_cast<double>(cell.i));
    }
  }
  return values;
}

double getDistance(const Values &a, const Values &b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (size_t r = 0; r < a.size() && r < b.size(); ++r)
    for (size_t i = 0; i < a[r].size(); ++i) {
      double x = a[r][i], y = b[r][i];
      if (std::isnan(x) != std::isnan(y))
        return INFINITY;
      if (x != y && !std::isnan(x))
        worst = std::max(worst, std::abs(x - y) / (1.0 + std::abs(x)));
    }
  return worst;
}

struct Case {
  Inputs inputs;
  Values expected;
};

/// Compares after each pass, so that the first one that changes a value is named.
struct Comparison : PassInstrumentation {
  Comparison(StringRef file, bool &good, const std::vector<std::vector<Case>> &cases)
      : file(file), good(good), cases(cases) {}

  void runAfterPass(Pass *pass, Operation *op) override {
    auto module = dyn_cast<ModuleOp>(op);
    if (!good || !module)
      return;
    for (auto [kernel, list] : llvm::zip_equal(module.getOps<tk::KernelOp>(), cases))
      for (const Case &one : list)
        compare(kernel, one, pass);
  }

  void compare(tk::KernelOp kernel, const Case &one, Pass *pass) {
    auto values = evaluate(kernel, one.inputs);
    double distance = values ? getDistance(one.expected, *values) : INFINITY;
    if (!good || distance < 1e-2) // a rounding to bf16 may move before a division
      return;
    good = false;
    llvm::errs() << file << ": @" << kernel.getSymName() << ": " << pass->getArgument()
                 << " changed a value by " << distance << " at dimensions";
    for (int64_t dim : one.inputs.dims)
      llvm::errs() << " " << dim;
    llvm::errs() << "\n" << *kernel->getParentOp() << "\n";
  }

  StringRef file;
  bool &good;
  const std::vector<std::vector<Case>> &cases;
};

bool check(ModuleOp module, StringRef file) {
  std::vector<std::vector<Case>> cases;
  for (tk::KernelOp kernel : module.getOps<tk::KernelOp>()) {
    std::vector<Case> &list = cases.emplace_back();
    for (unsigned seed = 0; seed < 400 && list.size() < 6; ++seed) {
      Inputs inputs = drawInputs(kernel, seed);
      if (auto values = evaluate(kernel, inputs))
        list.push_back({std::move(inputs), std::move(*values)});
    }
    if (list.empty()) {
      llvm::errs() << file << ": @" << kernel.getSymName() << ": no sizes fit its assumptions\n";
      return false;
    }
  }
  bool good = true;
  PassManager manager(module->getContext());
  manager.addInstrumentation(std::make_unique<Comparison>(file, good, cases));
  for (const tk::PhaseRow &phase : tk::phaseTable())
    for (const tk::PassRow &row : phase.rows) {
      StringRef pass = row.name;
      if (pass == "tk-split-reductions")
        pass = "tk-split-reductions{chunk=2}"; // so that reductions of a few elements are split
      if (phase.stage == tk::Stage::Fused && failed(parsePassPipeline(pass, manager)))
        return false;
    }
  return succeeded(manager.run(module)) && good;
}

/// Checks each section of a file, which tk-opt --split-input-file reads as a file of its own.
bool checkFile(MLIRContext &context, StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return false;
  SmallVector<StringRef> sections;
  (*file)->getBuffer().split(sections, "// -----");
  bool right = true;
  for (StringRef section : sections) {
    auto module = parseSourceString<ModuleOp>(section, &context, path);
    right &= module && check(*module, path);
  }
  return right;
}

} // namespace

int main(int argc, char **argv) {
  tk::registerTkPasses();
  tk::registerFamilies();
  DialectRegistry registry;
  tk::registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  int failures = argc < 2;
  for (int i = 1; i < argc; ++i)
    failures += !checkFile(context, argv[i]);
  llvm::outs() << argc - 1 << " files, " << failures << " failed\n";
  return failures != 0;
}
