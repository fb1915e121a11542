//===- tk-fuzz.cpp - random programs against the reference ----------------===//
//
// tk-fuzz [--seed N] [--count N] [--targets cpu,emu] [--time-limit SECONDS] [--noise N] [--out DIR]
//         [--print] [--no-shrink] [--verbose] [--max-rejected PERCENT] [--max-marginal PERCENT]
//         [--stats] [--fault PASS] [--regroup] [--forms] [--named] [--gradients]
//
// Program n of a run has the seed N + n, so `--seed S --count 1` repeats one. Exit status 1 if
// anything failed; what failed is shrunk and written to DIR with the command that runs it. A pass
// that changes a value at the tensor level is named, and the first behind which the program is
// executed wrongly below that, with those without any one of which it is right. --fault plants a
// fault behind a pass. --stats lists how many programs were emitted from IR with each operation of
// tkgpu: what no program reaches is not tested.
//
//===----------------------------------------------------------------------===//
#include "compiler/Pipeline.h"
#include "compiler/Registration.h"
#include "tests/fuzz/Generator.h"
#include "tests/fuzz/Noise.h"
#include "tests/fuzz/Shrink.h"
#include "tests/fuzz/Trial.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace tk::fuzz {
namespace {

struct RunOptions {
  uint64_t seed = 1;
  int count = 100;
  int noise = 0;
  std::vector<std::string> targets = {"cpu"};
  double timeLimit = 1e9;
  std::string directory = "fuzz-failures";
  bool print = false, shrink = true, regroup = false, forms = false, named = false,
       gradients = false, verbose = false, validate = true, stats = false;
  std::string faulty;
  int shrinkAttempts = 300;
  int maxRejected = 100, maxMarginal = 100;
};

/// A process's start, and the compiler's, are dear beside one program; memory is the limit.
constexpr int batchSize = 25;

class Run {
public:
  explicit Run(RunOptions given)
      : options(std::move(given)),
        deadline(std::chrono::steady_clock::now() +
                 std::chrono::milliseconds(static_cast<int64_t>(options.timeLimit * 1000))) {}

  int go() {
    for (int n = 0; n < options.count && inTime(); n += batchSize)
      for (const std::string &target : options.targets)
        batch(options.seed + static_cast<uint64_t>(n), std::min(batchSize, options.count - n),
              target);
    for (int n = 0; n < options.noise && inTime(); ++n)
      noisy(options.seed + static_cast<uint64_t>(n));
    return summary();
  }

private:
  bool inTime() const { return std::chrono::steady_clock::now() < deadline; }

  GeneratorOptions sizesFor(const std::string &target) const {
    GeneratorOptions sizes;
    sizes.forms = options.forms;
    sizes.named = options.named;
    sizes.gradients = options.gradients;
    if (target.starts_with("emu") || options.gradients) {
      sizes.maxCost = 3e4;
      sizes.maxElements = 3000;
    }
    return sizes;
  }

  /// Programs that share a process, and what they emit a run of the host's compiler.
  void batch(uint64_t seed, int count, const std::string &target) {
    std::vector<Program> programs;
    for (int n = 0; n < count; ++n) {
      const uint64_t own = seed + static_cast<uint64_t>(n);
      Program program = generate(own, sizesFor(target));
      programs.push_back(options.regroup ? regrouped(std::move(program), own) : std::move(program));
    }
    if (options.print) {
      for (const Program &program : programs)
        std::printf("// %s\n%s", program.command("fuzz.tk", target).c_str(),
                    program.text().c_str());
      return;
    }
    TrialOptions trial;
    trial.deadline = deadline;
    trial.target = target;
    trial.validatePasses = options.validate;
    trial.listOperations = options.stats;
    trial.faulty = options.faulty;
    if (target != "cpu" && !target.starts_with("emu"))
      trial.memoryLimit = 0; // a GPU's driver reserves more addresses than there is memory
    const std::vector<Verdict> verdicts = runGuarded(programs, trial);
    for (size_t n = 0; n < verdicts.size(); ++n)
      tell(seed + static_cast<uint64_t>(n), target, trial, std::move(programs[n]), verdicts[n]);
  }

  void tell(uint64_t seed, const std::string &target, const TrialOptions &trial, Program program,
            const Verdict &verdict) {
    count(verdict);
    std::istringstream names(verdict.operations);
    for (std::string name; names >> name;)
      ++programsWith[name];
    if (verdict.failed()) {
      std::printf("seed %llu on %s: %s: %s\n", static_cast<unsigned long long>(seed),
                  target.c_str(), verdict.kind.c_str(), verdict.message.c_str());
      std::fflush(stdout);
      write(seed, target, trial, std::move(program), verdict);
    } else if (options.verbose && verdict.outcome != Outcome::Right) {
      std::printf("seed %llu on %s: %s %s: %s\n", static_cast<unsigned long long>(seed),
                  target.c_str(),
                  verdict.outcome == Outcome::Rejected ? "rejected by" : "marginal on",
                  verdict.kind.c_str(), verdict.message.c_str());
    }
  }

  void write(uint64_t seed, const std::string &target, const TrialOptions &trial, Program program,
             const Verdict &verdict) {
    Verdict last = verdict;
    if (options.shrink &&
        !last.kind.ends_with("promise")) // a smaller program would break what it does not promise
      program = shrink(
          program,
          [&](const Program &candidate) {
            if (!inTime())
              return false;
            Verdict now = runGuarded(candidate, trial);
            bool same = now.failed() && now.kind == verdict.kind;
            if (same)
              last = now;
            return same;
          },
          options.shrinkAttempts);
    std::filesystem::create_directories(options.directory);
    // What changes a value at the tensor level has been named.
    const bool isBelow =
        last.kind.starts_with(target + ":") || last.kind.starts_with(target + " run");
    const std::string suspects =
        isBelow ? firstPassToBlame(program, trial) + passesToBlame(program, trial) : std::string();
    std::string file = options.directory + "/" + target + "-" + std::to_string(seed) + ".tk";
    std::ofstream out(file);
    out << "// seed " << seed << ": " << last.kind << "\n// " << program.command(file, target)
        << "\n"
        << suspects << program.text();
    std::printf("  %s\n  %s\n%s%s", program.command(file, target).c_str(), last.message.c_str(),
                suspects.c_str(), program.text().c_str());
    std::fflush(stdout);
  }

  /// Comments that name the first pass behind which the program fails, or nothing.
  std::string firstPassToBlame(const Program &program, const TrialOptions &trial) const {
    std::istringstream lines(findWrongPassGuarded(program, trial, options.directory));
    std::string comments;
    for (std::string line; std::getline(lines, line);)
      comments += "// " + line + "\n";
    return comments;
  }

  /// A line with the passes without any one of which the program is right, or nothing.
  std::string passesToBlame(const Program &program, TrialOptions trial) const {
    llvm::StringSet<> tried;
    std::string list;
    for (const PipelineStep &step : pipelineSteps()) {
      if (!inTime() || !tried.insert(step.name).second)
        continue;
      trial.leftOut = {step.name};
      if (runGuarded(program, trial).outcome == Outcome::Right)
        list += " " + trial.leftOut.front();
    }
    return list.empty() ? list : "// right without one of:" + list + "\n";
  }

  void noisy(uint64_t seed) {
    std::string text = damaged(generate(seed, {}).text(), seed);
    Verdict verdict = runFrontendGuarded(text);
    if (verdict.failed()) {
      std::filesystem::create_directories(options.directory);
      std::string file = options.directory + "/noise-" + std::to_string(seed) + ".tk";
      std::ofstream(file) << text;
      std::printf("noise %llu: %s: %s (%s)\n", static_cast<unsigned long long>(seed),
                  verdict.kind.c_str(), verdict.message.c_str(), file.c_str());
    }
    if (verdict.outcome != Outcome::Rejected) // as it should be
      count(verdict);
  }

  void count(const Verdict &verdict) { ++outcomes[verdict.outcome]; }

  /// Programs by operation of the dialect of kernels, the frequent first.
  void printStats() const {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    std::multimap<int, std::string, std::greater<>> byCount;
    for (mlir::RegisteredOperationName op : context.getRegisteredOperations()) {
      if (op.getDialectNamespace() != "tkgpu")
        continue;
      const std::string name = op.getStringRef().str();
      const auto found = programsWith.find(name);
      byCount.emplace(found == programsWith.end() ? 0 : found->second, name);
    }
    for (const auto &[count, name] : byCount)
      std::printf("%7d %s\n", count, name.c_str());
  }

  int summary() {
    if (options.print)
      return 0;
    if (options.stats)
      printStats();
    int total = 0;
    for (auto &[outcome, number] : outcomes)
      total += number;
    std::printf("%d trials from seed %llu: %d right, %d rejected, %d marginal, %d wrong, %d "
                "crashed, %d timed out\n",
                total, static_cast<unsigned long long>(options.seed), outcomes[Outcome::Right],
                outcomes[Outcome::Rejected], outcomes[Outcome::Marginal], outcomes[Outcome::Wrong],
                outcomes[Outcome::Crashed], outcomes[Outcome::TimedOut]);
    bool failed =
        outcomes[Outcome::Wrong] || outcomes[Outcome::Crashed] || outcomes[Outcome::TimedOut];
    // A generator whose programs are refused tests nothing, nor does one of which no result is told
    // from another.
    const bool idle = outcomes[Outcome::Rejected] * 100 > options.maxRejected * total,
               vague = outcomes[Outcome::Marginal] * 100 > options.maxMarginal * total;
    if (idle)
      std::printf("more than %d %% were rejected\n", options.maxRejected);
    if (vague)
      std::printf("more than %d %% were marginal\n", options.maxMarginal);
    return failed || idle || vague;
  }

  RunOptions options;
  std::map<Outcome, int> outcomes;
  std::map<std::string, int> programsWith; ///< by operation
  std::chrono::steady_clock::time_point deadline;
};

} // namespace
} // namespace tk::fuzz

int main(int argc, char **argv) {
  CLI::App app{"tk-fuzz runs random programs against the reference interpreter."};
  tk::fuzz::RunOptions options;
  bool noShrink = false, noValidate = false;
  app.add_option("--seed", options.seed, "The seed of the first program");
  app.add_option("--count", options.count, "How many programs");
  app.add_option("--noise", options.noise, "How many damaged programs for the frontend alone");
  app.add_option("--targets", options.targets, "cpu, emu, or a GPU's")->delimiter(',');
  app.add_option("--time-limit", options.timeLimit, "Tell of what was run in that many seconds");
  app.add_option("--out", options.directory, "Where failing programs are written");
  app.add_option("--shrink-attempts", options.shrinkAttempts, "How often a failure is run again");
  app.add_option("--max-rejected", options.maxRejected, "Fail if more per cent are rejected");
  app.add_option("--max-marginal", options.maxMarginal, "Fail if more per cent are marginal");
  app.add_option("--fault", options.faulty, "Plant a fault behind this pass, to see it found")
      ->check([](const std::string &pass) {
        return tk::isKnownPass(pass) ? std::string() : tk::unknownPass(pass);
      });
  app.add_flag("--regroup", options.regroup,
               "Write the programs over other dimensions: reduced ones split and merged");
  app.add_flag("--forms", options.forms,
               "Begin the programs with forms that kernels of models have");
  app.add_flag("--named", options.named,
               "Compare, subtract and branch on named values, with results that hold exactly");
  app.add_flag("--gradients", options.gradients,
               "Compare gradients with differences, and run these instead of the programs");
  app.add_flag("--print", options.print, "Only print the programs");
  app.add_flag("--no-shrink", noShrink, "Write failures as they are");
  app.add_flag("--no-validate", noValidate, "Do not evaluate the IR after every pass");
  app.add_flag("--stats", options.stats, "List the operations of kernels that programs reached");
  app.add_flag("--verbose", options.verbose, "Say what was rejected, and why");
  CLI11_PARSE(app, argc, argv);
  options.shrink = !noShrink;
  options.validate = !noValidate;
  return tk::fuzz::Run(options).go();
}
