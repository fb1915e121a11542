//===- Dump.cpp - files that show what a compilation did ------------------===//
#include "compiler/Dump.h"

#include "runtime/Environment.h"
#include "runtime/Files.h"
#include "runtime/Sha256.h"
#include "tk/backend.h"

#include <filesystem>
#include <sstream>

namespace fs = std::filesystem;

namespace tk {
namespace {

std::string shortDigest(std::string_view text) {
  return detail::hex(detail::sha256(text)).substr(0, 12);
}

Status writeTo(const fs::path &path, std::string_view text) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  if (failed)
    return detail::write_error(path.parent_path().string(), failed.value());
  return detail::write_file(path.string(), text);
}

/// Where a reproducer's schedule blocks go.
std::string schedulePath(const std::string &path) { return path + ".schedule"; }

/// A size that has the fact; nullopt where nothing is known of it.
std::optional<int64_t> sizeWith(const DimFact &fact) {
  if (fact.exact)
    return fact.exact;
  if (fact.upper < 0)
    return std::nullopt;
  int64_t below = fact.upper - static_cast<int64_t>(fact.divisor);
  return below > 0 && fact_for(below).divisor == fact.divisor && 2 * below > fact.upper
             ? below
             : fact.upper;
}

/// The dimensions as options: of those of which nothing is known a run needs some size.
std::string sizesOf(const Reproducer &reproducer, bool isRun) {
  constexpr int64_t someSize = 4099;
  std::string options;
  for (size_t d = 0; d < reproducer.signature.dims.size(); ++d) {
    std::optional<int64_t> size;
    if (d < reproducer.facts.dims.size())
      size = sizeWith(reproducer.facts.dims[d]);
    if (!size && isRun)
      size = someSize;
    if (size)
      options += " --dim " + reproducer.signature.dims[d] + "=" + std::to_string(*size);
  }
  return options;
}

std::string commandOf(const Reproducer &reproducer, const std::string &path) {
  std::string command = "tkc build " + path + " --kernel " + reproducer.kernel + " --target " +
                        reproducer.target + " --emit " +
                        (reproducer.stage == "code" ? "cubin" : reproducer.stage) + " -o -";
  bool isRun = reproducer.stage == "code" &&
               (reproducer.target == "cpu" || detail::is_emulated(reproducer.target));
  if (isRun)
    command =
        "tkc run " + path + " --kernel " + reproducer.kernel + " --target " + reproducer.target;
  command += sizesOf(reproducer, isRun);
  if (reproducer.schedule)
    command += " --schedule " + schedulePath(path);
  if (reproducer.sizeClasses)
    command += " --size-classes";
  for (const std::string &pass : reproducer.disabledPasses)
    command += " --disable-pass " + pass;
  for (const std::string &flag : reproducer.fusionFlags)
    command += " " + flag;
  return command;
}

} // namespace

Dump::Dump(std::string_view kernel, std::string_view target, const Facts &facts) {
  std::optional<std::string> directory = detail::environment(detail::EnvVar::dump);
  if (!directory)
    return;
  prefix = *directory + "/" + std::string(kernel) + "." + std::string(target) + "." +
           shortDigest(facts.key()).substr(0, 6) + ".";
}

void Dump::write(std::string_view stage, std::string_view text) const {
  if (!enabled())
    return;
  if (Status written = writeTo(prefix + std::string(stage), text); !written)
    detail::warn_once(detail::EnvVar::dump, "TK_DUMP: " + written.error().message());
}

std::string writeReproducer(const Reproducer &reproducer) {
  std::error_code failed;
  fs::path directory = fs::temp_directory_path(failed);
  if (std::optional<std::string> dump = detail::environment(detail::EnvVar::dump))
    directory = *dump;
  std::string facts = reproducer.facts.key();
  fs::path path = directory / ("tk-reproducer-" +
                               shortDigest(reproducer.source + reproducer.kernel +
                                           reproducer.target + reproducer.stage + facts) +
                               ".tk");
  std::ostringstream text;
  text << "// An internal error of tk " << "0.1.0" << ", from '" << reproducer.file << "'.\n";
  text << "// Run: " << commandOf(reproducer, path.string()) << "\n";
  text << "// Assumed of the dimensions and addresses: " << (facts.empty() ? "nothing" : facts)
       << "\n";
  std::istringstream lines(reproducer.error);
  for (std::string line; std::getline(lines, line);)
    text << "//   " << line << "\n";
  text << reproducer.source;
  if (reproducer.schedule && !writeTo(schedulePath(path.string()), *reproducer.schedule))
    return {};
  return writeTo(path, text.str()).has_value() ? path.string() : std::string();
}

} // namespace tk
