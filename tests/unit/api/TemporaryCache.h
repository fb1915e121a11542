// A cache directory of a test's own.
#ifndef TK_TESTS_UNIT_API_TEMPORARYCACHE_H
#define TK_TESTS_UNIT_API_TEMPORARYCACHE_H

#include "runtime/Cache.h"

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tk {

class TemporaryCache {
public:
  TemporaryCache() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tk-api-XXXXXX").string();
    directory = ::mkdtemp(pattern.data());
    ::setenv("TK_CACHE_DIR", directory.c_str(), 1);
    ::unsetenv("TK_CACHE");
  }
  ~TemporaryCache() {
    ::unsetenv("TK_CACHE_DIR");
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }
  TemporaryCache(const TemporaryCache &) = delete;
  TemporaryCache &operator=(const TemporaryCache &) = delete;

  uint64_t entries() const { return detail::Cache(directory).statistics().entries; }

  std::string directory;
};

} // namespace tk

#endif // TK_TESTS_UNIT_API_TEMPORARYCACHE_H
