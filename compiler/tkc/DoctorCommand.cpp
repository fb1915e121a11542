//===- DoctorCommand.cpp - tkc doctor: what this machine has --------------===//
#include "compiler/tkc/Commands.h"

#include "compiler/CudaBackend.h"
#include "runtime/Cache.h"
#include "runtime/Environment.h"
#include "runtime/Files.h"
#include "runtime/cuda/Driver.h"
#include "runtime/cuda/Nvrtc.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/JSON.h"
#include "llvm/TargetParser/Host.h"
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <thread>

namespace tk::tkc {
namespace {

/// What doctor found, in order; a name may stand several times.
using Findings = std::vector<std::pair<std::string, std::string>>;

void describeGpus(Findings &found) {
  Expected<int> count = cuda::DeviceContext::count();
  if (!count) {
    found.emplace_back("gpu", "none: " + count.error().message());
    return;
  }
  for (int i = 0; i < *count; ++i) {
    Expected<cuda::DeviceContext *> device = cuda::DeviceContext::get(i);
    if (!device) {
      found.emplace_back("gpu", std::to_string(i) + ": " + device.error().message());
      continue;
    }
    char text[256];
    std::snprintf(text, sizeof text, "%d: %s, %s, %d SMs, %.0f GiB, %d KiB shared a block", i,
                  (*device)->name.c_str(), (*device)->arch().c_str(), (*device)->num_sms,
                  static_cast<double>((*device)->memory_bytes) / (1 << 30),
                  (*device)->shared_optin / 1024);
    found.emplace_back("gpu", text);
  }
}

std::string cpuFeatures() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  if (features.lookup("avx512f"))
    return features.lookup("avx512bf16") ? "AVX-512 with bf16" : "AVX-512";
  return features.lookup("avx2") ? "AVX2" : "no AVX2";
}

std::string cacheText() {
  detail::Cache cache = detail::Cache::from_environment();
  if (!cache.enabled())
    return detail::cache_disabled_by_environment()
               ? "off"
               : "off: none of TK_CACHE_DIR, XDG_CACHE_HOME and HOME is set";
  std::optional<std::string> problem = cache.problem();
  return problem ? cache.directory() + ", not used: " + *problem : cache.directory();
}

Findings findings() {
  Findings found;
  found.emplace_back("tk", "0.1.0, LLVM " LLVM_VERSION_STRING);
  found.emplace_back("cpu", llvm::sys::getHostCPUName().str() + ", " + cpuFeatures() + ", " +
                                std::to_string(std::thread::hardware_concurrency()) + " threads");
  describeGpus(found);
  if (Expected<const cuda::Nvrtc *> nvrtc = cuda::Nvrtc::get())
    found.emplace_back("nvrtc", (*nvrtc)->version() + " at " + (*nvrtc)->path);
  else
    found.emplace_back("nvrtc", "none: " + nvrtc.error().message());
  const std::string disassembler = findDisassembler();
  found.emplace_back("nvdisasm", disassembler.empty()
                                     ? "none: SASS is not shown; the CUDA toolkit and the Python "
                                       "package nvidia-cuda-nvdisasm have it"
                                     : disassembler);
  found.emplace_back("cache", cacheText());
  if (std::optional<std::string> problem = detail::problem_of_cache_switch())
    found.emplace_back("cache", *problem);
  if (std::optional<std::string> directory = detail::environment(detail::EnvVar::dump)) {
    Status made = detail::make_writable_folder(*directory);
    found.emplace_back("dump",
                       made ? *directory : *directory + ", not used: " + made.error().message());
  }
  for (const detail::EnvRow &row : detail::environment_table())
    if (std::optional<std::string> value = detail::environment(row.variable))
      found.emplace_back("env", std::string(row.name) + "=" + *value);
  return found;
}

int printJson(const Findings &found) {
  llvm::json::Object object, variables;
  for (const auto &[name, value] : found) {
    const std::string text = llvm::json::fixUTF8(value);
    if (name == "env") {
      auto [variable, setting] = llvm::StringRef(text).split('=');
      variables[variable.str()] = setting.str();
      continue;
    }
    if (!object.get(name))
      object[name] = llvm::json::Array();
    object.getArray(name)->push_back(text);
  }
  object["env"] = std::move(variables);
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(object));
  std::puts(text.c_str());
  return Done;
}

int doctor(bool json) {
  const Findings found = findings();
  if (json)
    return printJson(found);
  for (const auto &[name, value] : found)
    std::printf("%-10s %s\n", name.c_str(), value.c_str());
  std::puts("\nvariables that tk reads:");
  for (const detail::EnvRow &row : detail::environment_table())
    std::printf("  %-14s %s\n", row.name, row.meaning);
  return Done;
}

} // namespace

void addDoctor(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand("doctor", "Says what this machine has and lacks.");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "As JSON: lists of texts by name, and the variables as set");
  command->callback([json, &status] { status = doctor(*json); });
}

} // namespace tk::tkc
