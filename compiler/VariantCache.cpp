//===- VariantCache.cpp - compiled variants on disk -----------------------===//
#include "compiler/VariantCache.h"

#include "llvm/Support/raw_ostream.h"

#include <cstring>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

using namespace mlir;

namespace tk {
namespace {

/// What dl_iterate_phdr is asked for: the build id of the object that holds `address`.
struct BuildIdSearch {
  uintptr_t address = 0;
  std::string id;
};

std::string findBuildId(const char *notes, size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    size_t name = (note.n_namesz + 3) & ~size_t{3}, payload = (note.n_descsz + 3) & ~size_t{3};
    size_t total = sizeof note + name + payload;
    if (total > size)
      break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + sizeof note, "GNU", 4) == 0)
      return std::string(notes + sizeof note + name, note.n_descsz);
    notes += total;
    size -= total;
  }
  return {};
}

int visitObject(dl_phdr_info *info, size_t, void *data) {
  auto &search = *static_cast<BuildIdSearch *>(data);
  bool holds = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = info->dlpi_phdr[i];
    uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    holds |= header.p_type == PT_LOAD && search.address >= begin &&
             search.address < begin + header.p_memsz;
  }
  for (int i = 0; holds && search.id.empty() && i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = info->dlpi_phdr[i];
    if (header.p_type == PT_NOTE)
      search.id = findBuildId(reinterpret_cast<const char *>(info->dlpi_addr + header.p_vaddr),
                              header.p_memsz);
  }
  return holds;
}

std::string describeFile() {
  Dl_info info;
  struct stat status;
  if (!dladdr(reinterpret_cast<void *>(&visitObject), &info) || !info.dli_fname)
    return "unknown";
  // A program started by a relative path may have changed its directory since.
  if (::stat(info.dli_fname, &status) != 0 && ::stat("/proc/self/exe", &status) != 0)
    return "unknown";
  return std::string(info.dli_fname) + "/" + std::to_string(status.st_size) + "/" +
         std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
}

} // namespace

const std::string &compilerBuild() {
  static const std::string build = [] {
    BuildIdSearch search;
    search.address = reinterpret_cast<uintptr_t>(&visitObject);
    dl_iterate_phdr(visitObject, &search);
    return search.id.empty() ? describeFile() : search.id;
  }();
  return build;
}

detail::Digest variantKey(ModuleOp module, std::string_view target, const std::string &lines,
                          bool lineDirectives, const std::set<std::string> &disabledPasses,
                          const CompileOptions &options) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, OpPrintingFlags().enableDebugInfo());
  detail::CacheKey key;
  key.add("entry", "variant");
  key.add("build", compilerBuild());
  key.add("target", target);
  for (const std::string &pass : disabledPasses)
    key.add("without", pass);
  key.add("lines", lines);
  key.add("directives", int64_t{lineDirectives});
  key.add("checked", int64_t{options.checked});
  key.add("kernel", text);
  return key.digest();
}

std::optional<detail::Executable> loadEmitted(const detail::Cache &cache, const detail::Digest &key,
                                              const Signature &signature) {
  std::optional<detail::CacheEntry> entry = cache.load(key);
  if (!entry)
    return std::nullopt;
  std::optional<LaunchPlan> plan = decode_plan((*entry)["plan"]);
  if (!plan || !well_formed(*plan, signature))
    return std::nullopt;
  detail::Executable executable;
  executable.kind = detail::Executable::Kind::cuda;
  executable.plan = std::move(*plan);
  executable.cuda = std::move((*entry)["cuda"]);
  return executable;
}

void storeEmitted(const detail::Cache &cache, const detail::Digest &key,
                  const detail::Executable &executable) {
  cache.store(key, {{"plan", encode(executable.plan)}, {"cuda", executable.cuda}});
}

} // namespace tk
