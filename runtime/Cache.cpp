#include "runtime/Cache.h"

#include "runtime/Environment.h"
#include "runtime/Files.h"
#include "runtime/Semantics.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tk::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "tkcache1";
constexpr std::string_view suffix = ".tkc";
constexpr uint64_t max_file_bytes = uint64_t{256} << 20;
/// A temporary older than this was left by a writer that died.
constexpr time_t stale_temporary_seconds = 3600;

void append_number(std::string &bytes, uint64_t value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
}

bool take_number(std::string_view &bytes, uint64_t &value) {
  if (bytes.size() < sizeof value)
    return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

bool take_text(std::string_view &bytes, std::string &text) {
  uint64_t size = 0;
  if (!take_number(bytes, size) || size > bytes.size())
    return false;
  text.assign(bytes.substr(0, size));
  bytes.remove_prefix(size);
  return true;
}

std::string_view view(const Digest &digest) {
  return {reinterpret_cast<const char *>(digest.data()), digest.size()};
}

/// An open file descriptor.
class File {
public:
  File(const std::string &path, int flags, mode_t mode = 0)
      : m_fd(::open(path.c_str(), flags, mode)) {}
  ~File() {
    if (m_fd >= 0)
      ::close(m_fd);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  bool ok() const { return m_fd >= 0; }
  int fd() const { return m_fd; }
  /// Whether the system kept what was written.
  bool close() {
    int fd = std::exchange(m_fd, -1);
    return ::close(fd) == 0;
  }

private:
  int m_fd;
};

std::optional<std::string> read_file(const std::string &path) {
  File file(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  struct stat status;
  // What someone else wrote is not run, even where the directory lets them.
  if (!file.ok() || ::fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid() || static_cast<uint64_t>(status.st_size) > max_file_bytes)
    return std::nullopt;
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t got = ::read(file.fd(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return std::nullopt;
    done += static_cast<size_t>(got);
  }
  // The time of the last use, which eviction sorts by; access times are often not kept.
  ::futimens(file.fd(), nullptr);
  return bytes;
}

bool write_entry(const std::string &path, std::string_view bytes) {
  File file(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  return file.ok() && write_all(file.fd(), bytes) && file.close();
}

/// Makes the cache's directory; the reason where it cannot be used, "" where it can.
std::string make_directory(const std::string &directory) {
  std::error_code error;
  fs::path path(directory);
  if (path.has_parent_path())
    fs::create_directories(path.parent_path(), error);
  if (::mkdir(directory.c_str(), 0700) == 0)
    return "";
  const int number = errno;
  struct stat status;
  if (::stat(directory.c_str(), &status) != 0)
    return std::strerror(number);
  if (!S_ISDIR(status.st_mode))
    return std::strerror(ENOTDIR);
  // Someone else's directory could feed us code to run.
  return status.st_uid == ::geteuid() ? "" : "it belongs to another user";
}

struct Listed {
  std::string path;
  uint64_t bytes;
  timespec used;
};

/// The directory's entries; removes temporaries of writers that died. Not by std::filesystem, whose
/// iterators end the process where memory runs out.
std::vector<Listed> list_entries(const std::string &directory) {
  std::vector<Listed> entries;
  std::unique_ptr<DIR, int (*)(DIR *)> listing(::opendir(directory.c_str()), ::closedir);
  while (const dirent *item = listing ? ::readdir(listing.get()) : nullptr) {
    std::string_view name = item->d_name;
    int folder = ::dirfd(listing.get());
    struct stat status;
    if (::fstatat(folder, item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
      continue;
    if (name.ends_with(suffix))
      entries.push_back(
          {directory + "/" + item->d_name, static_cast<uint64_t>(status.st_size), status.st_mtim});
    else if (name.starts_with("tmp.") &&
             ::time(nullptr) - status.st_mtim.tv_sec > stale_temporary_seconds)
      ::unlinkat(folder, item->d_name, 0);
  }
  return entries;
}

} // namespace

CacheKey::CacheKey() {
  m_hash.update_field(magic);
  m_hash.update_field(std::to_string(semantics_version));
}

CacheKey &CacheKey::add(std::string_view name, std::string_view value) {
  m_hash.update_field(name);
  m_hash.update_field(value);
  return *this;
}

std::string encode_entry(const Digest &key, const CacheEntry &entry) {
  std::string bytes(magic);
  bytes += view(key);
  append_number(bytes, entry.size());
  for (const auto &[name, blob] : entry) {
    append_number(bytes, name.size());
    bytes += name;
    append_number(bytes, blob.size());
    bytes += blob;
  }
  bytes += view(sha256(bytes));
  return bytes;
}

std::optional<CacheEntry> decode_entry(const Digest &key, std::string_view bytes) {
  size_t header = magic.size() + key.size();
  if (bytes.size() < header + key.size() || !bytes.starts_with(magic) ||
      bytes.substr(magic.size(), key.size()) != view(key))
    return std::nullopt;
  std::string_view body = bytes.substr(0, bytes.size() - key.size());
  if (view(sha256(body)) != bytes.substr(body.size()))
    return std::nullopt;
  body.remove_prefix(header);
  uint64_t count = 0;
  if (!take_number(body, count))
    return std::nullopt;
  CacheEntry entry;
  for (uint64_t i = 0; i < count; ++i) {
    std::string name, blob;
    if (!take_text(body, name) || !take_text(body, blob))
      return std::nullopt;
    entry.emplace(std::move(name), std::move(blob));
  }
  return body.empty() ? std::optional(std::move(entry)) : std::nullopt;
}

Cache Cache::from_environment() {
  if (cache_disabled_by_environment())
    return Cache("");
  return Cache(cache_directory().value_or(""));
}

std::string Cache::path_of(const Digest &key) const {
  return m_directory + "/" + hex(key) + std::string(suffix);
}

std::optional<CacheEntry> Cache::load(const Digest &key) const try {
  if (!enabled())
    return std::nullopt;
  std::string path = path_of(key);
  std::optional<std::string> bytes = read_file(path);
  if (!bytes)
    return std::nullopt;
  std::optional<CacheEntry> entry = decode_entry(key, *bytes);
  if (!entry) {
    log_message("cache: damaged entry " + path + " removed");
    ::unlink(path.c_str());
  }
  return entry;
} catch (const std::bad_alloc &) {
  return std::nullopt;
}

bool Cache::store(const Digest &key, const CacheEntry &entry) const try {
  if (!enabled())
    return false;
  if (std::string why = make_directory(m_directory); !why.empty()) {
    warn_unusable(why);
    return false;
  }
  std::string bytes = encode_entry(key, entry);
  if (bytes.size() > std::min(max_file_bytes, m_limit))
    return false;
  static std::atomic<uint64_t> counter{0};
  std::string path = path_of(key);
  std::string temporary = m_directory + "/tmp." + std::to_string(::getpid()) + "." +
                          std::to_string(counter++) + "." + hex(key).substr(0, 8);
  // No fsync: an entry torn by a power cut fails its checksum and is a miss. Nothing between the
  // two throws, so that no temporary is left behind.
  if (!write_entry(temporary, bytes) || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int number = errno;
    ::unlink(temporary.c_str());
    warn_unusable(std::strerror(number));
    return false;
  }
  evict();
  return true;
} catch (const std::bad_alloc &) {
  return false;
}

void Cache::warn_unusable(const std::string &why) const {
  warn_once(EnvVar::cache_dir, "the compilation cache '" + m_directory +
                                   "' cannot be written: " + why +
                                   "; set TK_CACHE_DIR to another directory, or TK_CACHE=off");
}

std::optional<std::string> Cache::problem() const {
  if (!enabled())
    return std::nullopt;
  if (std::string why = make_directory(m_directory); !why.empty())
    return why;
  std::string probe = m_directory + "/tmp." + std::to_string(::getpid()) + ".probe";
  bool written = write_entry(probe, "probe");
  const int number = errno;
  ::unlink(probe.c_str());
  return written ? std::nullopt : std::optional<std::string>(std::strerror(number));
}

void Cache::evict() const try {
  std::vector<Listed> entries = list_entries(m_directory);
  uint64_t total = 0;
  for (const Listed &entry : entries)
    total += entry.bytes;
  if (total <= m_limit)
    return;
  std::sort(entries.begin(), entries.end(), [](const Listed &a, const Listed &b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const Listed &entry : entries) {
    // Some room, so that the next store need not evict again.
    if (total <= m_limit - m_limit / 8)
      return;
    ::unlink(entry.path.c_str());
    total -= entry.bytes;
  }
} catch (const std::bad_alloc &) {
  return; // the next store makes room
}

CacheStatistics Cache::statistics() const {
  CacheStatistics result{m_directory};
  if (enabled())
    for (const Listed &entry : list_entries(m_directory)) {
      ++result.entries;
      result.bytes += entry.bytes;
    }
  return result;
}

uint64_t Cache::clear() const {
  uint64_t removed = 0;
  if (enabled())
    for (const Listed &entry : list_entries(m_directory))
      removed += ::unlink(entry.path.c_str()) == 0;
  return removed;
}

} // namespace tk::detail
