//===- Cost.cpp - what an editor shows of a kernel's time -----------------===//
#include "compiler/tkc/lsp/Cost.h"

#include "compiler/InspectReport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace tk::lsp {

static constexpr llvm::StringLiteral target = "sm_90a";

static std::string microseconds(double nanoseconds) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.4g", nanoseconds * 1e-3) << " µs";
  return text;
}

static std::string textOf(const PredictedCost &cost, const LaunchCost &launch) {
  std::string text = "launch `" + launch.symbol + "`: " + microseconds(launch.prediction.total) +
                     ", bound by " + nameOf(launch.prediction.bound).str();
  std::string tiles;
  if (auto of = cost.tiles.find(launch.symbol); of != cost.tiles.end())
    for (const auto &[name, size] : of->second)
      tiles += (tiles.empty() ? "; tile " : ", ") + name + " = " + std::to_string(size);
  return text + tiles;
}

namespace {
struct Compiled {
  std::shared_ptr<CompiledSource> source;
  size_t kernel; ///< its position
};
} // namespace

static std::optional<Compiled> compile(const std::string &path, const std::string &text,
                                       const std::string &kernel) {
  CompileOptions options;
  options.file_name = path;
  options.target = target.str();
  auto source = CompiledSource::create(text, options);
  if (!source)
    return std::nullopt;
  const std::vector<Signature> &signatures = (*source)->signatures();
  auto found = llvm::find_if(signatures, [&](const Signature &s) { return s.name == kernel; });
  if (found == signatures.end())
    return std::nullopt;
  return Compiled{*source, static_cast<size_t>(found - signatures.begin())};
}

ShownCost costOfKernel(const std::string &path, const std::string &text, const std::string &kernel,
                       const std::map<std::string, std::int64_t> &sizes) {
  std::optional<Compiled> compiled = compile(path, text, kernel);
  if (!compiled)
    return {};
  const auto &[source, number] = *compiled;
  const Signature *found = &source->signatures()[number];
  std::vector<std::optional<int64_t>> dims;
  GivenVariables given;
  for (const std::string &dim : found->dims) {
    auto size = sizes.find(dim);
    if (size == sizes.end())
      return {};
    dims.emplace_back(size->second);
    given.emplace_back(Scalar(size->second));
  }
  given.resize(dims.size() + found->num_scalars());
  auto cost = predictCost(*source, number, target, factsAt(*found, dims), given, {});
  if (!cost || !*cost)
    return {};
  ShownCost shown;
  shown.kernel =
      "predicted " + microseconds((*cost)->kernel.nanoseconds) + " on " + (*cost)->device;
  for (const LaunchCost &launch : (*cost)->kernel.launches) {
    const std::string line = textOf(**cost, launch);
    shown.kernel += "\n\n" + line;
    for (const TensorCost &tensor : launch.tensors)
      if (tensor.memoryWritten > 0)
        shown.stored[tensor.name] = line;
  }
  return shown;
}

std::optional<std::set<std::string>>
storedTensors(const std::string &path, const std::string &text, const std::string &kernel,
              const std::map<std::string, std::int64_t> &sizes) {
  std::optional<Compiled> compiled = compile(path, text, kernel);
  if (!compiled)
    return std::nullopt;
  const auto &[source, number] = *compiled;
  const Signature &signature = source->signatures()[number];
  std::vector<std::optional<int64_t>> dims;
  for (const std::string &dim : signature.dims) {
    auto size = sizes.find(dim);
    dims.push_back(size == sizes.end() ? std::nullopt : std::optional(size->second));
  }
  auto names = source->storedTensors(number, target, factsAt(signature, dims));
  if (!names)
    return std::nullopt;
  return std::set<std::string>(names->begin(), names->end());
}

} // namespace tk::lsp
