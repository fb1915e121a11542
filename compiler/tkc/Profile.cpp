//===- Profile.cpp - what a kernel's launches take when they run ----------===//
//
// 1. The kernel runs with random inputs. An event before and one after each launch give its time
//    alone: launches that overlap in a call do not while they are measured.
// 2. The whole call is timed as `tkc run --time` times it.
// 3. Nsight Compute runs `tkc run` with the same options once, and samples each launch.
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/Profile.h"

#include "compiler/arch/Architecture.h"
#include "compiler/tkc/Session.h"
#include "runtime/TemporaryFolder.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

namespace json = llvm::json;

namespace tk::tkc {

/// Nsight Compute's command line tool; empty where there is none.
static std::string findNsightCompute() {
  if (auto tool = llvm::sys::findProgramByName("ncu"))
    return *tool;
  if (auto tool = llvm::sys::findProgramByName("ncu", {"/usr/local/cuda/bin"}))
    return *tool;
  return "";
}

/// The words behind `tkc` that run a kernel once as it was profiled.
static std::vector<std::string> wordsOfRun(const SourceOptions &options, const ArgumentTexts &texts,
                                           const std::string &kernel, const std::string &target) {
  std::vector<std::string> words = {"run",      options.file, "--kernel",   kernel,
                                    "--target", target,       "--launches", "1"};
  auto add = [&](const char *name, llvm::ArrayRef<std::string> values) {
    for (const std::string &value : values) {
      words.emplace_back(name);
      words.push_back(value);
    }
  };
  add("--dim", options.dims);
  add("--arg", texts.scalars);
  add("--in", texts.inputs);
  add("--disable-pass", options.disabledPasses);
  add("--inline", options.inlined);
  add("--store", options.stored);
  add("--merge", options.merged);
  add("--apart", options.apart);
  if (!options.scheduleFile.empty())
    add("--schedule", options.scheduleFile);
  if (options.checked)
    words.emplace_back("--checked");
  return words;
}

/// What Nsight Compute samples in one call of the kernel, as the CSV of its source page.
static Expected<std::string> sampledByNsight(const std::vector<std::string> &run) {
  const std::string tool = findNsightCompute();
  if (tool.empty())
    return Error(ErrorCode::unsupported,
                 "Nsight Compute (ncu) is not installed, so that there are no reasons of stalls");
  detail::TemporaryFolder folder("tk-ncu");
  if (!folder.ok())
    return Error(ErrorCode::write_failed, "ncu needs a temporary folder: " + folder.error());
  const std::string csv = folder.file("stalls.csv"), said = folder.file("said.txt");
  const std::string self = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  std::vector<std::string> words = {
      tool,         "--section", "SourceCounters", "--page", "source", "--csv",
      "--log-file", csv,         "--print-source", "sass",   self};
  words.insert(words.end(), run.begin(), run.end());
  std::optional<llvm::StringRef> redirects[] = {std::nullopt, llvm::StringRef(said),
                                                llvm::StringRef(said)};
  llvm::SmallVector<llvm::StringRef> arguments(words.begin(), words.end());
  std::string message;
  const int status =
      llvm::sys::ExecuteAndWait(tool, arguments, std::nullopt, redirects, 300, 0, &message);
  auto text = llvm::MemoryBuffer::getFile(csv);
  if (status == 0 && text)
    return (*text)->getBuffer().str();
  auto output = llvm::MemoryBuffer::getFile(said);
  return Error(ErrorCode::unsupported,
               "ncu failed" + (message.empty() ? "" : ": " + message) +
                   (output ? ": " + (*output)->getBuffer().trim().take_back(500).str() : ""));
}

Expected<json::Object> profileKernel(const ChosenKernel &chosen, const SourceOptions &options,
                                     const ArgumentTexts &texts, const std::string &target,
                                     const KernelView &view) {
  if (target == "cpu")
    return Error(ErrorCode::invalid_argument,
                 "--profile measures launches of a GPU; target 'cpu' has none");
  const Signature &signature = chosen.source->signatures()[chosen.kernel];
  Expected<RunArguments> inputs = gatherArguments(signature, texts);
  if (!inputs)
    return inputs.error();
  auto session = Session::create(chosen.source, chosen.kernel, target, *inputs);
  if (!session)
    return session.error();
  Expected<std::vector<HostTensor>> ran = (*session)->run(*inputs, 0xFF);
  if (!ran)
    return ran.error();
  Expected<std::vector<LaunchTime>> times = (*session)->timeOfLaunches();
  if (!times)
    return times.error();
  Expected<double> whole = (*session)->time();
  if (!whole)
    return whole.error();
  json::Array launches;
  for (const LaunchTime &time : *times)
    launches.push_back(json::Object{{"symbol", time.symbol}, {"us", time.milliseconds * 1e3}});
  // The emulator is no device: its times say nothing of one.
  const bool isEmulated = llvm::StringRef(target).starts_with("emu");
  json::Object profile{{"device", isEmulated ? "the emulator" : (*session)->deviceName()},
                       {"total_us", *whole * 1e3},
                       {"launches", std::move(launches)},
                       {"copy_bytes_per_s", Session::copyRate(target)}};
  Expected<std::string> csv =
      isEmulated ? Expected<std::string>(
                       Error(ErrorCode::unsupported, "the emulator has no machine code to sample"))
                 : sampledByNsight(wordsOfRun(options, texts, signature.name, target));
  Expected<json::Object> stalls =
      csv ? readStalls(*csv, view) : Expected<json::Object>(csv.error());
  if (stalls)
    profile["stalls"] = std::move(*stalls);
  else
    profile["stalls_missing"] = stalls.error().message();
  return profile;
}

Expected<json::Object> readProfile(const std::string &path, const std::string &kernel,
                                   const std::string &target, const json::Object &dims) {
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.error();
  llvm::Expected<json::Value> value = json::parse(*text);
  if (!value)
    return Error(ErrorCode::invalid_argument,
                 "'" + path + "' is no JSON: " + llvm::toString(value.takeError()));
  json::Object *document = value->getAsObject();
  json::Object *profile = document ? document->getObject("profile") : nullptr;
  if (!profile || !profile->getArray("launches") || !profile->getNumber("total_us"))
    return Error(ErrorCode::invalid_argument,
                 "'" + path + "' has no profile: tkc view --profile --json writes one");
  for (const auto &[key, wanted] : {std::pair("kernel", kernel), std::pair("target", target)})
    if (document->getString(key) != llvm::StringRef(wanted))
      return Error(ErrorCode::invalid_argument,
                   "the profile in '" + path + "' is of " + key + " '" +
                       document->getString(key).value_or("").str() + "', not '" + wanted + "'");
  if (json::Object *sizes = document->getObject("dims"); !sizes || *sizes != dims)
    return Error(ErrorCode::invalid_argument, "the profile in '" + path + "' is of other sizes");
  return std::move(*profile);
}

} // namespace tk::tkc
