//===- Trial.cpp - one program against the reference ----------------------===//
#include "tests/fuzz/Trial.h"

#include "compiler/CompiledSource.h"
#include "compiler/interp/Tolerance.h"
#include "compiler/tkc/Inputs.h"
#include "compiler/tkc/Session.h"
#include "compiler/validate/LoweringValidator.h"
#include "compiler/validate/PassValidator.h"
#include "tests/fuzz/Differences.h"
#include "tests/fuzz/Evaluate.h"
#include "tests/fuzz/Fault.h"
#include "tests/fuzz/Promises.h"
#ifdef TK_HAS_EMU
#include "compiler/codegen/emu/TextBatch.h"
#endif

#include <algorithm>
#include <cmath>
#include <set>

namespace tk::fuzz {
namespace {

Verdict failure(const std::string &kind, const std::string &message) {
  return {Outcome::Wrong, kind, message};
}

Verdict failureOf(const std::string &stage, const Error &error) {
  switch (error.code()) {
  case ErrorCode::compile_failed:
  case ErrorCode::constraint_failed:
    return {Outcome::Rejected, stage, error.message()};
  default:
    return failure(stage + ": " + std::string(name(error.code())), error.message());
  }
}

double ulpOf(DType type) {
  switch (type) {
  case DType::f64:
    return 0x1p-52;
  case DType::f16:
    return 0x1p-10;
  case DType::bf16:
    return 0x1p-7;
  case DType::f8e4m3:
    return 0x1p-3;
  case DType::f8e5m2:
    return 0x1p-2;
  default:
    return 0x1p-23;
  }
}

class Trial {
public:
  Trial(const Program &program, const TrialOptions &options,
        std::shared_ptr<emu::TextBatch> emulatedTexts, LoweringValidator *lowering = nullptr)
      : program(program), options(options), emulatedTexts(std::move(emulatedTexts)),
        lowering(lowering), kernel(program.hasGradient() ? 1 : 0) {}

  /// All that comes before the first launch.
  void prepare() {
    take({&Trial::compile, &Trial::gather, &Trial::checkGradient, &Trial::checkReference,
          &Trial::createSession});
  }
  Verdict finish() {
    take({&Trial::launch, &Trial::compare});
    verdict.operations = operations;
    return verdict;
  }

private:
  using Step = Verdict (Trial::*)();
  /// Up to the first step that the program does not pass.
  void take(std::initializer_list<Step> steps) {
    for (Step step : steps)
      if (verdict.outcome == Outcome::Right)
        verdict = (this->*step)();
  }

  Verdict compile() {
    CompileOptions compileOptions;
    compileOptions.file_name = "fuzz.tk";
    compileOptions.target = options.target;
    DriverOptions driver;
    driver.emulatedTexts = emulatedTexts;
    if (!program.disabledPasses.empty())
      driver.pipeline.disabled.insert(program.disabledPasses);
    for (const std::string &pass : options.leftOut)
      driver.pipeline.disabled.insert(pass);
    driver.pipeline.last = options.lastPass;
    if (options.validatePasses || options.listOperations || !options.faulty.empty() || lowering)
      driver.pipeline.afterPass = [this](const PassRun &pass, mlir::ModuleOp module) {
        if (selects(options.faulty, pass))
          plantFault(module);
        if (options.listOperations)
          listOperations(module);
        if (lowering)
          lowering->record(pass, module);
        return options.validatePasses ? validator.after(pass.name, module) : mlir::success();
      };
    auto compiled = CompiledSource::create(program.text(), compileOptions, driver);
    // What a kernel may do its gradient may do as well.
    if (!compiled && program.hasGradient() &&
        CompiledSource::create(program.kernelText(), compileOptions, driver))
      return failure("gradient: refused", compiled.error().message());
    if (!compiled)
      return failureOf("frontend", compiled.error());
    source = *compiled;
    return {};
  }

  void listOperations(mlir::ModuleOp module) {
    std::set<std::string> names;
    module.walk([&](mlir::Operation *op) { names.insert(op->getName().getStringRef().str()); });
    operations.clear();
    for (const std::string &name : names)
      operations += name + " ";
  }

  Verdict gather() {
    tkc::ArgumentTexts texts;
    texts.inputs = program.inputOptions();
    texts.scalars = program.scalarOptions();
    texts.gaps = program.gapOptions();
    texts.axes = program.axesOptions();
    Uses uses = usesOf(program);
    for (size_t s = 0; s < program.symbols.size(); ++s)
      if (uses.symbols[s])
        texts.dims[program.symbols[s].name] = program.symbols[s].size;
    // Sizes and places that a kernel refuses its gradient need not.
    if (program.hasGradient())
      if (auto ofKernel = tkc::gatherArguments(source->signatures()[0], texts); !ofKernel)
        return failureOf("arguments", ofKernel.error());
    auto gathered = tkc::gatherArguments(source->signatures()[kernel], texts);
    if (!gathered)
      return failureOf("arguments", gathered.error());
    arguments = std::move(*gathered);
    const Signature &signature = source->signatures()[kernel];
    parameters = signature.num_tensors() - signature.results.size();
    for (unsigned t = 0; t < parameters; ++t)
      views.push_back(arguments.tensors[t].view());
    // Returned values: the declared results, then the inout parameters in order.
    for (unsigned r = 0; r < signature.results.size(); ++r)
      returned.push_back(parameters + r);
    for (unsigned t = 0; t < parameters; ++t)
      if (signature.tensor(t).in_out)
        returned.push_back(t);
    return {};
  }

  /// The gradient of the frontend's IR against differences of it, in f64; then the kernel's
  /// results, in their types, are what the gradient takes.
  Verdict checkGradient() {
    if (!program.hasGradient())
      return {};
    const Differences differences = compareWithDifferences(*source, arguments);
    if (!differences.wrong.empty())
      return failure("gradient: wrong", differences.wrong);
    const Signature &signature = source->signatures()[0];
    const unsigned inputs =
        signature.num_tensors() - static_cast<unsigned>(signature.results.size());
    auto made = interp::Reference::create(source->kernelOp(0), interp::Mode::Typed);
    if (!made ||
        !made->bind(arguments.dims, {views.begin(), views.begin() + inputs}, arguments.scalars))
      return failure("reference", "it does not know an operation, or binding failed");
    for (unsigned r = 0; r < signature.results.size(); ++r) {
      HostTensor &result = arguments.tensors[inputs + r];
      const size_t size = size_of(result.dtype);
      for (size_t at = 0; at * size < result.bytes.size(); ++at) {
        const interp::Cell cell = made->element(r, static_cast<int64_t>(at));
        // What follows from infinities is not said where they may be left out.
        if (made->resultIsFloat(r) && !std::isfinite(cell.f))
          return {Outcome::Rejected, "gradient", "a result is no number"};
        const double value = made->resultIsFloat(r)           ? cell.f
                             : result.dtype == DType::boolean ? static_cast<double>(cell.i != 0)
                                                              : static_cast<double>(cell.i);
        store_from_f64(result.dtype, result.bytes.data() + at * size, value);
      }
    }
    return {};
  }

  /// The reference on the frontend's IR against the program's own evaluation.
  Verdict checkReference() {
    exact = makeReference(interp::Mode::F64);
    naive = makeReference(interp::Mode::Typed);
    if (!exact || !naive)
      return failure("reference", "it does not know an operation, or binding failed");
    if (options.validatePasses)
      if (Status armed =
              validator.arm(source->kernelOp(kernel), arguments.dims, views, arguments.scalars);
          !armed)
        return failureOf("validator", armed.error());
    return program.hasGradient() ? Verdict() : checkMeaning(); // which knows the kernel itself
  }

  std::unique_ptr<interp::Reference> makeReference(interp::Mode mode) {
    auto created = interp::Reference::create(source->kernelOp(kernel), mode);
    if (!created || !created->bind(arguments.dims, views, arguments.scalars))
      return nullptr;
    return std::make_unique<interp::Reference>(std::move(*created));
  }

  Verdict checkMeaning() {
    const Signature &signature = source->signatures()[kernel];
    Evaluator evaluator(program);
    for (unsigned t = 0; t < parameters; ++t)
      evaluator.setInput(signature.tensor(t).name, views[t]);
    for (unsigned r = 0; r < returned.size(); ++r) {
      const std::string &name = signature.tensor(returned[r]).name;
      int64_t count = evaluator.count(name);
      const double scale = scaleOf(r);
      for (int64_t at : sampled(count)) {
        interp::Cell cell = exact->element(r, at);
        if (signature.tensor(returned[r]).dtype == DType::u8) // held as the bits of an i8
          cell.i = static_cast<uint8_t>(cell.i);
        double theirs = exact->resultIsFloat(r) ? cell.f : static_cast<double>(cell.i);
        double mine = evaluator.element(name, at);
        bool same = std::isnan(mine) || std::isnan(theirs)
                        ? std::isnan(mine) == std::isnan(theirs)
                        : mine == theirs || std::fabs(mine - theirs) <= 1e-6 * scale;
        if (!same)
          return failure("meaning", name + " at " + std::to_string(at) + ": the text says " +
                                        std::to_string(mine) + ", its IR " +
                                        std::to_string(theirs));
      }
    }
    return {};
  }

  static std::vector<int64_t> sampled(int64_t count) {
    std::vector<int64_t> list;
    int64_t step = std::max<int64_t>(1, count / 200);
    for (int64_t at = 0; at < count; at += step)
      list.push_back(at);
    if (count > 0)
      list.push_back(count - 1);
    return list;
  }

  Verdict createSession() {
    auto created = tkc::Session::create(source, kernel, options.target, arguments);
    if (!created)
      return failureOf(options.target + " compile", created.error());
    session = std::move(*created);
    return {};
  }

  Verdict launch() {
    // The emulator's asynchronous effects are late, then early, then by chance.
    for (uint8_t fill : {0xFF, 0x7B, 0xFF}) {
      auto ran = session->run(arguments, fill);
      if (!ran)
        return failureOf(options.target + " run", ran.error());
      if (!outputs.empty())
        for (size_t t = 0; t < ran->size(); ++t)
          if (outputs[t].bytes != (*ran)[t].bytes)
            return failure(options.target + ": unwritten",
                           source->signatures()[kernel].tensor(t).name +
                               ": two runs differ: an element is not written, or the result is "
                               "not repeatable");
      outputs = std::move(*ran);
    }
    return {};
  }

  /// The largest magnitude of a result's samples; what cancels entirely is 0 but for roundings, see
  /// docs/reference/numerics.md.
  double scaleOf(unsigned result) {
    double scale = 1e-3;
    if (!exact->resultIsFloat(result))
      return scale;
    int64_t count = 1;
    for (int64_t extent : exact->resultShape(result))
      count *= extent;
    for (int64_t at : sampled(count))
      if (double value = std::fabs(exact->element(result, at).f); std::isfinite(value))
        scale = std::max(scale, value);
    return scale;
  }

  /// How far a result moves where each float of the inputs is off by a unit in the last place, up
  /// or down: a small difference of large terms is no more certain than they are.
  double sensitivityOf(unsigned result, double ulp) {
    std::vector<HostTensor> moved;
    for (unsigned t = 0; t < parameters; ++t) {
      const HostTensor &input = arguments.tensors[t];
      moved.push_back(is_float(input.dtype) ? HostTensor::zeros(DType::f64, input.shape) : input);
      if (!is_float(input.dtype))
        continue;
      const size_t size = size_of(input.dtype);
      for (size_t at = 0; at < input.bytes.size() / size; ++at) {
        const bool up = (at * 0x9E3779B97F4A7C15ULL >> 63) != 0;
        store_from_f64(DType::f64, moved[t].bytes.data() + at * sizeof(double),
                       load_as_f64(input.dtype, input.bytes.data() + at * size) *
                           (1 + (up ? ulp : -ulp)));
      }
    }
    std::vector<TensorView> movedViews;
    for (HostTensor &tensor : moved)
      movedViews.push_back(tensor.view());
    auto other = interp::Reference::create(source->kernelOp(kernel), interp::Mode::F64);
    if (!other || !other->bind(arguments.dims, movedViews, arguments.scalars))
      return 0;
    int64_t count = 1;
    for (int64_t extent : exact->resultShape(result))
      count *= extent;
    double farthest = 0;
    for (int64_t at : sampled(count))
      if (double way = std::fabs(other->element(result, at).f - exact->element(result, at).f);
          std::isfinite(way))
        farthest = std::max(farthest, way);
    return farthest;
  }

  /// The slack that a few roundings to the coarsest type of the program may need.
  bool isMarginal(const interp::Comparison &comparison, unsigned result, DType coarsest) {
    if (!exact->resultIsFloat(result) || comparison.reason.starts_with("NaN"))
      return false;
    const double ulp = ulpOf(coarsest);
    const double slack = 4 * comparison.naiveError + 4 * ulp * scaleOf(result);
    return comparison.maxError <= slack ||
           comparison.maxError <= slack + 4 * sensitivityOf(result, ulp);
  }

  Verdict compare() {
    const Signature &signature = source->signatures()[kernel];
    interp::ComparisonOptions comparisonOptions;
    comparisonOptions.maxElements = options.checkElements;
    comparisonOptions.inexactProducts = interp::multipliesInexactly(source->kernelOp(kernel));
    int64_t longest = 1;
    for (int64_t dim : arguments.dims)
      longest = std::max(longest, dim);
    Verdict verdict;
    for (unsigned r = 0; r < returned.size(); ++r) {
      const Parameter &param = signature.tensor(returned[r]);
      if (const Promise *promised = promiseOf(program, param.name)) {
        const std::string broken = findBroken(*promised, outputs[returned[r]]);
        if (!broken.empty())
          return failure(options.target + ": promise", param.name + ": " + broken);
        continue;
      }
      DType coarsest = interp::coarsestRounding(source->kernelOp(kernel), param.dtype);
      interp::Comparison comparison = interp::compare(outputs[returned[r]].view(), r, *exact,
                                                      *naive, coarsest, longest, comparisonOptions);
      if (comparison.ok)
        continue;
      std::string message = param.name + ": " + comparison.reason;
      if (!isMarginal(comparison, r, coarsest))
        return failure(options.target + ": wrong", message);
      verdict = {Outcome::Marginal, options.target, message};
    }
    return verdict;
  }

  const Program &program;
  const TrialOptions &options;
  std::shared_ptr<emu::TextBatch> emulatedTexts;
  LoweringValidator *lowering; ///< records the passes, where set
  size_t kernel;               ///< the one that runs: the gradient where there is one
  Verdict verdict;
  std::string operations; ///< after the last pass
  PassValidator validator;
  std::shared_ptr<CompiledSource> source;
  tkc::RunArguments arguments;
  unsigned parameters = 0;
  std::vector<TensorView> views;
  std::vector<unsigned> returned; ///< the tensors that the reference returns, in its order
  std::unique_ptr<interp::Reference> exact, naive;
  std::unique_ptr<tkc::Session> session;
  std::vector<HostTensor> outputs;
};

} // namespace

void runTrials(std::span<const Program> programs, const TrialOptions &options,
               const std::function<void(const Verdict &)> &tell) {
  std::shared_ptr<emu::TextBatch> texts;
#ifdef TK_HAS_EMU
  if (programs.size() > 1 && options.target.starts_with("emu"))
    texts = std::make_shared<emu::TextBatch>();
#endif
  std::vector<std::unique_ptr<Trial>> trials;
  for (const Program &program : programs) {
    trials.push_back(std::make_unique<Trial>(program, options, texts));
    trials.back()->prepare();
    if (!texts) {
      tell(trials.back()->finish());
      trials.pop_back();
    }
  }
#ifdef TK_HAS_EMU
  if (texts && !texts->code())
    return;
#endif
  for (std::unique_ptr<Trial> &trial : trials) {
    tell(trial->finish());
    trial.reset();
  }
}

std::string findWrongPass(const Program &program, const TrialOptions &options,
                          const std::string &directory) {
  using Outcome = LoweringValidator::Outcome;
  LoweringValidator lowering(directory);
  TrialOptions trial = options;
  trial.validatePasses = false; // what changes a value at the tensor level has been named
  Trial(program, trial, nullptr, &lowering).prepare();
  auto executeUpTo = [&](unsigned last) -> LoweringValidator::Execution {
    trial.lastPass = last;
    Trial cut(program, trial, nullptr);
    cut.prepare();
    const Verdict verdict = cut.finish();
    if (!verdict.failed() && verdict.outcome != fuzz::Outcome::Rejected)
      return {};
    const bool hasRun = verdict.kind.starts_with(options.target + ":") ||
                        verdict.kind.starts_with(options.target + " run");
    return {hasRun ? Outcome::Wrong : Outcome::NotCompiled, verdict.message};
  };
  return lowering.findWrongPass(program.name, "", executeUpTo).value_or("");
}

Verdict runFrontend(const std::string &text) {
  CompileOptions options;
  options.file_name = "fuzz.tk";
  auto compiled = CompiledSource::create(text, options);
  if (compiled)
    return {};
  if (compiled.error().code() == ErrorCode::internal)
    return failure("frontend: internal", compiled.error().message());
  return {Outcome::Rejected, "frontend", compiled.error().message()};
}

} // namespace tk::fuzz
