// The on-disk cache: one self-contained checksummed file an entry, written to a temporary and
// renamed. It can only cost time: whatever goes wrong is a miss and one warning, never an error.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/Sha256.h"

namespace tk::detail {

/// Collects all that an entry depends on. Names keep fields apart; order matters.
class CacheKey {
public:
  CacheKey();
  CacheKey &add(std::string_view name, std::string_view value);
  CacheKey &add(std::string_view name, int64_t value) { return add(name, std::to_string(value)); }
  Digest digest() const {
    Sha256 copy = m_hash;
    return copy.finish();
  }

private:
  Sha256 m_hash;
};

/// An entry: named blobs, such as "ptx" and "cubin".
using CacheEntry = std::map<std::string, std::string, std::less<>>;

struct CacheStatistics {
  std::string directory; ///< empty: off
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

class Cache {
public:
  static constexpr uint64_t default_limit = uint64_t{1} << 30;

  /// The cache that the environment names; off where it says so.
  static Cache from_environment();
  /// A cache in a directory, which is made on the first write; "" is a cache that is off.
  explicit Cache(std::string directory, uint64_t limit_bytes = default_limit)
      : m_directory(std::move(directory)), m_limit(limit_bytes) {}

  bool enabled() const { return !m_directory.empty(); }
  /// The entry, verified; damaged files are removed and count as a miss.
  std::optional<CacheEntry> load(const Digest &key) const;
  /// Stores an entry, then removes the least recently used ones above the limit. False where it
  /// could not.
  bool store(const Digest &key, const CacheEntry &entry) const;
  /// Why entries cannot be stored; nullopt where they can, or the cache is off.
  std::optional<std::string> problem() const;
  CacheStatistics statistics() const;
  /// Removes every entry; returns how many.
  uint64_t clear() const;
  const std::string &directory() const { return m_directory; }

private:
  std::string path_of(const Digest &key) const;
  void evict() const;
  void warn_unusable(const std::string &why) const;

  std::string m_directory;
  uint64_t m_limit;
};

/// The bytes of an entry's file, and back; nullopt for anything damaged or stored under another
/// key.
std::string encode_entry(const Digest &key, const CacheEntry &entry);
std::optional<CacheEntry> decode_entry(const Digest &key, std::string_view bytes);

} // namespace tk::detail
