//===- DoctorCommand.cpp - tkc doctor: what this machine has --------------===//
#include "compiler/tkc/Commands.h"

#include "runtime/Cache.h"
#include "runtime/Environment.h"
#include "runtime/Files.h"
#include "runtime/cuda/Driver.h"
#include "runtime/cuda/Nvrtc.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/TargetParser/Host.h"
#include <CLI/CLI.hpp>

#include <cstdio>
#include <thread>

namespace tk::tkc {
namespace {

void line(const char *what, const std::string &value) {
  std::printf("%-10s %s\n", what, value.c_str());
}

void describeGpus() {
  Expected<int> count = cuda::DeviceContext::count();
  if (!count) {
    line("gpu", "none: " + count.error().message());
    return;
  }
  for (int i = 0; i < *count; ++i) {
    Expected<cuda::DeviceContext *> device = cuda::DeviceContext::get(i);
    if (!device) {
      line("gpu", std::to_string(i) + ": " + device.error().message());
      continue;
    }
    char text[256];
    std::snprintf(text, sizeof text, "%d: %s, %s, %d SMs, %.0f GiB, %d KiB shared a block", i,
                  (*device)->name.c_str(), (*device)->arch().c_str(), (*device)->num_sms,
                  static_cast<double>((*device)->memory_bytes) / (1 << 30),
                  (*device)->shared_optin / 1024);
    line("gpu", text);
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

int doctor() {
  line("tk", "0.1.0, LLVM " LLVM_VERSION_STRING);
  line("cpu", llvm::sys::getHostCPUName().str() + ", " + cpuFeatures() + ", " +
                  std::to_string(std::thread::hardware_concurrency()) + " threads");
  describeGpus();
  if (Expected<const cuda::Nvrtc *> nvrtc = cuda::Nvrtc::get())
    line("nvrtc", (*nvrtc)->version() + " at " + (*nvrtc)->path);
  else
    line("nvrtc", "none: " + nvrtc.error().message());
  line("cache", cacheText());
  if (std::optional<std::string> problem = detail::problem_of_cache_switch())
    line("cache", *problem);
  if (std::optional<std::string> directory = detail::environment(detail::EnvVar::dump)) {
    Status made = detail::make_writable_folder(*directory);
    line("dump", made ? *directory : *directory + ", not used: " + made.error().message());
  }
  for (const detail::EnvRow &row : detail::environment_table())
    if (std::optional<std::string> value = detail::environment(row.variable))
      line("env", std::string(row.name) + "=" + *value);
  std::puts("\nvariables that tk reads:");
  for (const detail::EnvRow &row : detail::environment_table())
    std::printf("  %-14s %s\n", row.name, row.meaning);
  return Done;
}

} // namespace

void addDoctor(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand("doctor", "Says what this machine has and lacks.");
  command->callback([&status] { status = doctor(); });
}

} // namespace tk::tkc
