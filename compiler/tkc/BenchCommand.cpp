//===- BenchCommand.cpp - tkc bench: a kernel over sizes ------------------===//
//
// Times a kernel at each of several sizes, next to another program or itself without some passes.
// The two are timed in alternation, so that a clock that drifts moves both.
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/Commands.h"

#include "compiler/plan/WorkCount.h"
#include "compiler/tkc/Inputs.h"
#include "compiler/tkc/Session.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

namespace tk::tkc {
namespace {

struct BenchOptions {
  SourceOptions source;
  ArgumentTexts texts;
  std::string against;              ///< another .tk file
  std::vector<std::string> without; ///< passes
  int rounds = 3;
};

using Sizes = std::map<std::string, int64_t>;

/// One kernel that is timed.
struct Contender {
  std::shared_ptr<CompiledSource> source;
  size_t kernel = 0;
  std::string target;

  const Signature &signature() const { return source->signatures()[kernel]; }
};

/// What was measured at one point.
struct Point {
  double milliseconds = 0, other = 0; ///< 0: there is no other
  WorkCount work;
};

Expected<std::vector<int64_t>> parseSizes(llvm::StringRef text) {
  std::vector<int64_t> sizes;
  for (llvm::StringRef part : llvm::split(text, ',')) {
    int64_t size = 0;
    if (part.getAsInteger(10, size) || size < 0)
      return Error(ErrorCode::invalid_argument,
                   "expected --dim NAME=INT[,INT…] with sizes of at least 0, got '" + part.str() +
                       "'");
    sizes.push_back(size);
  }
  return sizes;
}

/// `M=1,2,3 N=4,5,6 K=7` is three points: lists go side by side, and single sizes serve them all.
Expected<std::vector<Sizes>> parsePoints(const std::vector<std::string> &texts) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> lists;
  size_t count = 1;
  for (const std::string &text : texts) {
    auto [name, sizes] = llvm::StringRef(text).split('=');
    Expected<std::vector<int64_t>> parsed = parseSizes(sizes);
    if (!parsed)
      return parsed.error();
    if (parsed->size() > 1 && count > 1 && parsed->size() != count)
      return Error(ErrorCode::invalid_argument, "expected lists of " + std::to_string(count) +
                                                    " sizes or one, got '" + text + "'");
    count = std::max(count, parsed->size());
    lists.emplace_back(name.str(), std::move(*parsed));
  }
  std::vector<Sizes> points(count);
  for (const auto &[name, sizes] : lists)
    for (size_t i = 0; i < count; ++i)
      points[i][name] = sizes[sizes.size() == 1 ? 0 : i];
  return points;
}

Expected<Contender> prepare(SourceOptions options) {
  options.dims.clear(); // the points say them
  Expected<ChosenKernel> chosen = options.compileKernel();
  if (!chosen)
    return chosen.error();
  return Contender{chosen->source, chosen->kernel, options.target};
}

/// A kernel bound to random inputs of a point.
Expected<std::unique_ptr<Session>> bind(const Contender &contender, const BenchOptions &options,
                                        const Sizes &sizes, WorkCount *work) {
  ArgumentTexts texts = options.texts;
  texts.dims = sizes;
  Expected<RunArguments> inputs = gatherArguments(contender.signature(), texts);
  if (!inputs)
    return inputs.error();
  Expected<std::unique_ptr<Session>> session =
      Session::create(contender.source, contender.kernel, contender.target, *inputs);
  if (!session)
    return session;
  // Once: the CPU's tensors come with a run.
  Expected<std::vector<HostTensor>> ran = (*session)->run(*inputs, 0xFF);
  if (!ran)
    return ran.error();
  if (work)
    *work = countWork(contender.source->kernelOp(contender.kernel), contender.signature(),
                      inputs->variables);
  return session;
}

/// The median time of each session in the best of several rounds.
Expected<Point> measure(const std::vector<Contender> &contenders, const BenchOptions &options,
                        const Sizes &sizes) {
  Point point;
  std::vector<std::unique_ptr<Session>> sessions;
  for (const Contender &contender : contenders) {
    auto session = bind(contender, options, sizes, sessions.empty() ? &point.work : nullptr);
    if (!session)
      return session.error();
    sessions.push_back(std::move(*session));
  }
  for (int round = 0; round < options.rounds; ++round)
    for (size_t i = 0; i < sessions.size(); ++i) {
      Expected<double> time = sessions[i]->time();
      if (!time)
        return time.error();
      double &best = i == 0 ? point.milliseconds : point.other;
      best = round == 0 ? *time : std::min(best, *time);
    }
  return point;
}

void printPoint(const Sizes &sizes, const Point &point, double copyRate) {
  double seconds = point.milliseconds * 1e-3, rate = point.work.bytes / seconds;
  for (const auto &[name, size] : sizes)
    std::printf("%10lld", static_cast<long long>(size));
  std::printf("%12.4g%12.4g%12.4g", point.milliseconds, point.work.flops / seconds * 1e-12,
              rate * 1e-9);
  if (copyRate > 0)
    std::printf("%9.0f %%", 100 * rate / copyRate);
  if (point.other > 0)
    std::printf("%12.4g%9.3f", point.other, point.other / point.milliseconds);
  std::printf("\n");
  std::fflush(stdout);
}

void printHeader(const Sizes &sizes, double copyRate, bool compares) {
  for (const auto &size : sizes)
    std::printf("%10s", size.first.c_str());
  std::printf("%12s%12s%12s", "ms", "TFLOP/s", "GB/s");
  if (copyRate > 0)
    std::printf("%11s", "of copy");
  if (compares)
    std::printf("%12s%9s", "other ms", "ratio");
  std::printf("\n");
}

void printJson(const Contender &contender, const Sizes &sizes, const Point &point,
               double copyRate) {
  std::printf("{\"kernel\":\"%s\",\"dims\":{", contender.signature().name.c_str());
  const char *separator = "";
  for (const auto &[name, size] : sizes) {
    std::printf("%s\"%s\":%lld", separator, name.c_str(), static_cast<long long>(size));
    separator = ",";
  }
  std::printf("},\"ms\":%.6g,\"flops\":%.9g,\"bytes\":%.9g", point.milliseconds, point.work.flops,
              point.work.bytes);
  if (copyRate > 0)
    std::printf(",\"copy_bytes_per_second\":%.6g", copyRate);
  if (point.other > 0)
    std::printf(",\"other_ms\":%.6g,\"ratio\":%.6g", point.other, point.other / point.milliseconds);
  std::puts("}");
  std::fflush(stdout);
}

Expected<std::vector<Contender>> contendersOf(const BenchOptions &options) {
  std::vector<Contender> contenders;
  std::vector<SourceOptions> sources = {options.source};
  if (!options.against.empty() || !options.without.empty()) {
    sources.push_back(options.source);
    if (!options.against.empty())
      sources.back().file = options.against;
    for (const std::string &pass : options.without)
      sources.back().disabledPasses.push_back(pass);
  }
  for (const SourceOptions &source : sources) {
    Expected<Contender> contender = prepare(source);
    if (!contender)
      return contender.error();
    contenders.push_back(std::move(*contender));
  }
  return contenders;
}

int bench(const BenchOptions &options) {
  bool json = options.source.json;
  Expected<std::vector<Sizes>> points = parsePoints(options.source.dims);
  if (!points)
    return report(points.error(), json);
  Expected<std::vector<Contender>> contenders = contendersOf(options);
  if (!contenders)
    return report(contenders.error(), json);
  Expected<std::string> target = resolve_target(options.source.target);
  if (!target)
    return report(target.error(), json);
  double copyRate = Session::copyRate(*target);
  bool first = true;
  for (const Sizes &sizes : *points) {
    Expected<Point> point = measure(*contenders, options, sizes);
    if (!point)
      return report(point.error(), json);
    if (json) {
      printJson(contenders->front(), sizes, *point, copyRate);
      continue;
    }
    if (first) {
      std::printf("%s on %s\n", contenders->front().signature().str().c_str(), target->c_str());
      printHeader(sizes, copyRate, contenders->size() > 1);
    }
    first = false;
    printPoint(sizes, *point, copyRate);
  }
  return Done;
}

} // namespace

void addBench(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand(
      "bench", "Times a kernel over sizes (--dim NAME=INT,INT,…; lists go side by side), and its "
               "ratio to another program or to itself without some passes.");
  auto options = std::make_shared<BenchOptions>();
  options->source.addTo(*command);
  command
      ->add_option("--in", options->texts.inputs,
                   "An input tensor: PATH.npy, random[:SEED[:LOW:HIGH]], zeros or iota; default: "
                   "standard normal numbers")
      ->type_name("NAME=SOURCE")
      ->allow_extra_args(false);
  command->add_option("--arg", options->texts.scalars, "A scalar argument")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--against", options->against,
                   "Also time the kernel of another file with the same signature; the ratio is its "
                   "time over this one's")
      ->type_name("FILE");
  command
      ->add_option("--without", options->without,
                   "Also time this kernel without these passes or groups; the ratio is that time "
                   "over this one's")
      ->type_name("NAME")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--rounds", options->rounds, "How often each is timed; the best counts")
      ->check(CLI::Range(1, 1000));
  command->footer("Examples:\n"
                  "  tkc bench norm.tk --dim R=1024,4096 --dim C=1024,4096\n"
                  "  tkc bench norm.tk --dim R=4096 --dim C=4096 --without fusion");
  command->callback([options, &status] { status = bench(*options); });
}

} // namespace tk::tkc
