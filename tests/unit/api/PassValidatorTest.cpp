// A fault planted behind a pass: the validator names that pass, says what changed, and writes the
// IR that the pass got.
#include "compiler/validate/PassValidator.h"
#include "compiler/CompiledSource.h"
#include "compiler/Registration.h"
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"
#include "tk/npy.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <fstream>
#include <sstream>

using namespace tk;

namespace {

constexpr const char *program = R"(
kernel other(x: f32[N]) -> (y: f32[N]) {
  y[i] = x[i]
}

kernel less(x: f32[N, M]) -> (y: f32[N], z: f32[N, M]) {
  let t[i, j] = x[i, j] - 1.0
  y[i] = sum[j](t[i, j])
  z[i, j] = t[i, j] * 2.0
}
)";

/// Has differences add.
void plant(mlir::ModuleOp module) {
  module.walk([](mlir::arith::SubFOp op) {
    mlir::OpBuilder builder(op);
    op.replaceAllUsesWith(
        mlir::arith::AddFOp::create(builder, op.getLoc(), op.getLhs(), op.getRhs()).getResult());
    op.erase();
  });
}

struct Validated {
  std::string error; ///< or nothing
  unsigned checked = 0;
};

/// Compiles `less` with the fault behind the pass of this name.
Validated compileWithFault(llvm::StringRef faulty, const std::string &directory) {
  PassValidator validator({.directory = directory});
  DriverOptions driver;
  driver.pipeline.afterPass = [&](const PassRun &pass, mlir::ModuleOp module) {
    if (pass.name == faulty)
      plant(module);
    return validator.after(pass.name, module);
  };
  auto source = CompiledSource::create(program, {}, driver).value();
  const size_t kernel = source->signatures()[0].name == "less" ? 0 : 1;
  const std::vector<int64_t> dims = {5, 3};
  HostTensor x = HostTensor::zeros(DType::f32, {5, 3});
  REQUIRE(validator.arm(source->kernelOp(kernel), dims, {x.view()}, {}));
  Expected<std::string> text = source->stage_text(kernel, "gpu", "sm_90a", facts_for(dims));
  return {text ? "" : text.error().message(), validator.passesChecked()};
}

std::string contents(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace

TEST_CASE("passes that change nothing are let through", "[validate]") {
  TemporaryCache cache;
  Validated result = compileWithFault("", cache.directory);
  CHECK(result.error == "");
  CHECK(result.checked > 10);
  CHECK(cache.entries() == 0);
}

/// Compiles a kernel that folded constants make inexact, with all that it stores multiplied behind
/// a pass.
static std::string compileSteep(float factor) {
  PassValidator validator;
  DriverOptions driver;
  driver.pipeline.afterPass = [&](const PassRun &pass, mlir::ModuleOp module) {
    if (pass.name == "tk-merge-computes:merge")
      module.walk([&](ComputeOp compute) {
        mlir::OpBuilder builder(compute.getYield());
        for (mlir::OpOperand &value : compute.getYield()->getOpOperands()) {
          auto by = mlir::arith::ConstantOp::create(builder, compute.getLoc(),
                                                    builder.getF32FloatAttr(factor));
          value.set(mlir::arith::MulFOp::create(builder, compute.getLoc(), value.get(), by));
        }
      });
    return validator.after(pass.name, module);
  };
  // tanh is nearly -1: the constant is off by 1.1e-5 of itself.
  auto source = CompiledSource::create("kernel k(n: i32[N]) -> (y: f32[N]) {\n"
                                       "  y[i] = gelu_tanh(f32(bitor(-1, n[i]) - 2)) * 1000.0\n}",
                                       {}, driver)
                    .value();
  const std::vector<int64_t> dims = {7};
  HostTensor n = HostTensor::zeros(DType::i32, {7});
  REQUIRE(validator.arm(source->kernelOp(0), dims, {n.view()}, {}));
  Expected<std::string> text = source->stage_text(0, "gpu", "sm_90a", facts_for(dims));
  return text ? "" : text.error().message();
}

TEST_CASE("what rounded arithmetic magnifies is no change, what is beyond that is", "[validate]") {
  CHECK(compileSteep(1) == "");
  CHECK(compileSteep(1.0001F).find("changes what kernel 'k' computes") != std::string::npos);
}

TEST_CASE("the first pass that changes a value is named, with what it got", "[validate]") {
  TemporaryCache cache;
  for (const char *pass :
       {"tk-fuse-producers:elements", "tk-online-reductions:join", "tk-choose-schedule:coarsen"}) {
    INFO(pass);
    const std::string error = compileWithFault(pass, cache.directory).error;
    INFO(error);
    CHECK(error.find(std::string("pass '") + pass +
                     "' changes what kernel 'less' computes: result 0, element 0: -3 became 3") !=
          std::string::npos);
    std::string file = std::string("/less-before-") + pass + ".mlir";
    std::replace(file.begin(), file.end(), ':', '.');
    const std::string path = cache.directory + file;
    CHECK(error.find("tk-opt " + tkOptFlag(pass) + " " + path) != std::string::npos);
    // The IR is that of this kernel before the fault, and of nothing else.
    const std::string text = contents(path);
    CHECK(text.find("arith.subf") != std::string::npos);
    CHECK(text.find("arith.addf") == std::string::npos);
    CHECK(text.find("@other") == std::string::npos);
    CHECK(text.find("N = 5, M = 3") != std::string::npos);
    mlir::DialectRegistry registry;
    registerDialects(registry);
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    CHECK(mlir::parseSourceString<mlir::ModuleOp>(text, &context));
  }
}
