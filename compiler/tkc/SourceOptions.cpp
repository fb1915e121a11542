//===- SourceOptions.cpp - what build and run share -----------------------===//
#include "compiler/tkc/Commands.h"

#include "compiler/tkc/Inputs.h"
#include "frontend/Diagnostics.h"
#include "frontend/Source.h"
#include "passes/machine/Machine.h"
#include "runtime/Files.h"
#include "tk/module.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

namespace tk::tkc {

ExitCode exitCodeFor(ErrorCode code) {
  switch (code) {
  case ErrorCode::no_driver:
  case ErrorCode::driver_too_old:
  case ErrorCode::no_device:
  case ErrorCode::no_nvrtc:
  case ErrorCode::nvrtc_too_old:
  case ErrorCode::out_of_memory:
  case ErrorCode::module_load:
  case ErrorCode::launch_failed:
  case ErrorCode::context_poisoned:
  case ErrorCode::write_failed:
    return MachineCannot;
  case ErrorCode::internal:
  case ErrorCode::nvrtc_failed:
    return InternalError;
  default:
    return WrongInput;
  }
}

std::vector<std::pair<int, const char *>> exitCodes() {
  return {{Done, "done"},
          {WrongInput, "the program, its sizes or its data are wrong"},
          {WrongUsage, "the command line is wrong"},
          {MachineCannot, "the machine cannot: no GPU, no NVRTC, out of memory, a file that cannot "
                          "be written"},
          {InternalError, "a bug of tk: a wrong result, or text that NVRTC rejects"}};
}

std::string nearestOf(std::string_view word, const std::vector<std::string> &known) {
  std::string nearest;
  unsigned least = 3; // more edits than that are another word
  for (const std::string &name : known) {
    const unsigned distance = llvm::StringRef(word).edit_distance_insensitive(name, true, least);
    if (distance < least)
      least = distance, nearest = name;
  }
  return nearest;
}

static std::string jsonString(std::string_view text) {
  std::string out;
  quoteJson(text, out);
  return out;
}

int report(const Error &error, bool json) {
  // Diagnostics of the compiler come rendered, one or several, with their places.
  if (error.code() == ErrorCode::compile_failed) {
    std::fputs(error.message().c_str(), stderr);
    if (!error.message().empty() && error.message().back() != '\n')
      std::fputc('\n', stderr);
  } else if (json) {
    std::fprintf(stderr, "{\"severity\":\"error\",\"code\":%s,\"message\":%s,\"place\":%s}\n",
                 jsonString(name(error.code())).c_str(), jsonString(error.message()).c_str(),
                 jsonString(error.span().str()).c_str());
  } else {
    std::string place = error.span().str();
    std::fprintf(stderr, "%s%serror[%s]: %s\n", place.c_str(), place.empty() ? "" : ": ",
                 std::string(name(error.code())).c_str(), error.message().c_str());
    if (error.code() == ErrorCode::no_driver || error.code() == ErrorCode::no_device)
      std::fputs("  help: the targets cpu and emu run without a GPU: --target emu\n", stderr);
  }
  return exitCodeFor(error.code());
}

bool wantsColour() {
  const char *no = std::getenv("NO_COLOR");
  return isatty(STDERR_FILENO) && !(no && *no);
}

std::string nameOfSource(const std::string &path) { return path == "-" ? "<stdin>" : path; }

FileId loadSource(SourceManager &sources, const std::string &path, std::string *why) {
  if (path != "-")
    return sources.load(path, why);
  std::string text;
  std::array<char, 65536> chunk;
  while (text.size() < kLargestLoad) {
    const size_t got = std::fread(chunk.data(), 1, chunk.size(), stdin);
    text.append(chunk.data(), got);
    if (got == 0)
      break;
  }
  return sources.add(nameOfSource(path), std::move(text));
}

Expected<std::string> readFile(const std::string &path) {
  SourceManager sources;
  std::string why;
  FileId file = loadSource(sources, path, &why);
  if (file == kNoFile)
    return Error(ErrorCode::io, "cannot read '" + path + "': " + why);
  return std::string(sources.file(file).text());
}

Status writeFile(const std::string &path, std::string_view contents) {
  if (path != "-")
    return detail::write_file(path, contents);
  std::fwrite(contents.data(), 1, contents.size(), stdout);
  return {};
}

Status SourceOptions::write(const std::string &path, std::string_view contents) const {
  std::error_code none;
  std::vector<std::string> inputs = readFiles;
  inputs.push_back(file);
  inputs.push_back(scheduleFile);
  if (path != "-")
    for (const std::string &input : inputs)
      if (std::filesystem::equivalent(path, input, none))
        return Error(ErrorCode::invalid_argument,
                     "-o would replace '" + input + "', which the program is read from");
  return writeFile(path, contents);
}

Status SourceOptions::checkGiven(const Signature &signature) const {
  auto given = givenVariables(signature);
  if (!given)
    return given.error();
  const size_t numDims = signature.dims.size();
  std::vector<int64_t> dims;
  for (const std::optional<Scalar> &dim : llvm::ArrayRef(*given).take_front(numDims))
    if (dim)
      dims.push_back(dim->i);
  if (dims.size() != numDims)
    return {};
  auto variables = complete_variables(signature, dims, llvm::ArrayRef(*given).drop_front(numDims));
  return variables ? run_checks(signature, *variables) : Status();
}

std::string notABound(const std::string &text) {
  double value = 0;
  return !llvm::StringRef(text).getAsDouble(value) && value >= 0 && std::isfinite(value)
             ? ""
             : "expected a number from 0 on, got '" + text + "'";
}

Expected<std::map<std::string, int64_t>> parseDims(const std::vector<std::string> &texts,
                                                   const std::string &usage) {
  std::map<std::string, int64_t> values;
  for (const std::string &text : texts) {
    const size_t equals = std::min(text.find('='), text.size());
    int64_t value = 0;
    const char *begin = text.c_str() + equals + 1, *end = text.c_str() + text.size();
    if (equals == text.size() || equals == 0 ||
        std::from_chars(begin, end, value) != std::from_chars_result{end, std::errc()} || value < 0)
      return Error(ErrorCode::invalid_argument,
                   "expected " + usage + " with a size of at least 0, got '" + text + "'");
    auto [given, isNew] = values.try_emplace(text.substr(0, equals), value);
    if (!isNew && given->second != value)
      return Error(ErrorCode::invalid_argument, "dimension '" + given->first + "' is given as " +
                                                    std::to_string(given->second) + " and as " +
                                                    std::to_string(value));
  }
  return values;
}

Expected<std::map<std::string, int64_t>> SourceOptions::dimValues() const {
  return parseDims(dims, "--dim NAME=INT");
}

Expected<Facts> SourceOptions::factsFor(const Signature &signature, bool general) const {
  Expected<std::map<std::string, int64_t>> values = dimValues();
  if (!values)
    return values.error();
  std::vector<std::optional<int64_t>> known;
  Facts nothingElse;
  for (const std::string &dim : signature.dims) {
    auto it = values->find(dim);
    bool given = it != values->end();
    known.push_back(given ? std::optional(it->second) : std::nullopt);
    nothingElse.dims.push_back(given ? fact_for(it->second) : DimFact{1, -1, {}});
    if (given)
      values->erase(it);
  }
  if (!values->empty()) {
    const std::string &name = values->begin()->first;
    return Error(ErrorCode::invalid_argument,
                 signature.find_scalar(name)
                     ? "kernel '" + signature.name + "' has no dimension '" + name +
                           "'; it is a scalar: give --arg " + name + "=VALUE"
                     : unknownArgument(signature, "dimension", name, signature.dims));
  }
  return general ? nothingElse : usual_facts(signature, known);
}

Expected<std::vector<std::optional<Scalar>>>
SourceOptions::givenVariables(const Signature &signature) const {
  Expected<std::map<std::string, int64_t>> sizes = dimValues();
  if (!sizes)
    return sizes.error();
  std::vector<std::optional<Scalar>> given;
  for (const std::string &dim : signature.dims)
    given.push_back(sizes->contains(dim) ? std::optional(Scalar(sizes->at(dim))) : std::nullopt);
  Expected<std::vector<std::optional<Scalar>>> values = readScalars(signature, scalars);
  if (!values)
    return values.error();
  given.insert(given.end(), values->begin(), values->end());
  return given;
}

/// The architecture of a device; of several rows of its capability the last, which has all of its
/// instructions.
static const Architecture *architectureOf(const DeviceSpec &device) {
  const Architecture *found = nullptr;
  for (const Architecture &row : allArchitectures())
    if (row.arch == device.arch)
      found = &row;
  return found;
}

Expected<std::string> targetOfCode(const SourceOptions &options) {
  if (options.target.empty() && !options.device.empty())
    if (const DeviceSpec *device = findDevice(options.device))
      return architectureOf(*device)->name.str();
  Expected<std::string> target = resolve_target(options.target);
  return target && options.target.empty() && *target == "cpu" ? std::string("sm_90a") : target;
}

std::string nothingSaid(const std::string &file, const Signature &signature,
                        const std::string &target, unsigned line) {
  const std::string kernel = "kernel '" + signature.name + "' on " + target;
  return line > 0 ? file + ":" + std::to_string(line) + ": no pass says anything of this line of " +
                        kernel + "\n"
                  : file + ": nothing to report: no pass derived or declined anything for " +
                        kernel + "\n";
}

Expected<std::shared_ptr<CompiledSource>> SourceOptions::compile() {
  Expected<std::string> text = readFile(file);
  if (!text)
    return text.error();
  CompileOptions options;
  options.file_name = nameOfSource(file);
  options.target = target;
  options.checked = checked;
  options.disabled_passes = disabledPasses;
  Expected<std::map<std::string, int64_t>> values = dimValues();
  if (!values)
    return values.error();
  options.dims = *values;
  Expected<std::map<std::string, int64_t>> planned = parseDims(planDims, "--plan-dim NAME=INT");
  if (!planned)
    return planned.error();
  options.plan_dims = *planned;
  if (!scheduleText.empty()) {
    options.schedule = scheduleText;
  } else if (!scheduleFile.empty()) {
    Expected<std::string> schedule = readFile(scheduleFile);
    if (!schedule)
      return schedule.error();
    options.schedule = *schedule;
    options.schedule_name = scheduleFile;
  }
  DriverOptions driver;
  driver.json = json;
  driver.device = device;
  driver.sizeClasses = sizeClasses;
  driver.colour = !json && wantsColour();
  driver.lineDirectives = !noLines;
  driver.pipeline.afterPass = afterPass;
  driver.pipeline.inlined = inlined;
  driver.pipeline.stored = stored;
  driver.pipeline.merged = merged;
  driver.pipeline.apart = apart;
  for (const std::string &pass : disabledPasses)
    driver.pipeline.disabled.insert(pass);
  for (const std::string &pass : printAfter) {
    if (!isPrintablePass(pass))
      return Error(ErrorCode::invalid_argument, unknownPass(pass));
    driver.pipeline.printAfter.insert(pass);
  }
  Expected<std::shared_ptr<CompiledSource>> source = CompiledSource::create(*text, options, driver);
  if (source && !quiet && !(*source)->diagnostics().empty())
    std::fputs((*source)->diagnostics().c_str(), stderr);
  if (source)
    readFiles = (*source)->fileNames();
  return source;
}

Expected<size_t> SourceOptions::kernelOf(const CompiledSource &source) const {
  std::string names;
  const std::vector<Signature> &signatures = source.signatures();
  for (size_t k = 0; k < signatures.size(); ++k) {
    if (signatures[k].name == kernel)
      return k;
    names += (k ? ", " : "") + signatures[k].name;
  }
  if (kernel.empty() && signatures.size() == 1)
    return size_t{0};
  return Error(ErrorCode::invalid_argument,
               kernel.empty()
                   ? "'" + file + "' has several kernels; name one with --kernel: " + names
                   : "no kernel '" + kernel + "' in '" + file + "'; it has " + names);
}

Expected<ChosenKernel> SourceOptions::compileKernel() {
  Expected<std::shared_ptr<CompiledSource>> source = compile();
  if (!source)
    return source.error();
  Expected<size_t> position = kernelOf(**source);
  if (!position)
    return position.error();
  return ChosenKernel{*source, *position};
}

} // namespace tk::tkc
