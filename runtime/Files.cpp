#include "runtime/Files.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tk::detail {
namespace {

/// As many links as Linux itself follows.
constexpr int max_links = 40;

/// The temporary file of a write in progress, for remove_unfinished_file().
std::atomic<const char *> unfinished{nullptr};

std::string folder_of(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

/// Where the path's links lead; the last one may name nothing yet. "" with errno set for a cycle.
std::string follow_links(std::string path) {
  for (int link = 0; link < max_links; ++link) {
    char target[PATH_MAX];
    ssize_t size = ::readlink(path.c_str(), target, sizeof target);
    if (size < 0)
      return path;
    std::string to(target, static_cast<size_t>(size));
    path = to.starts_with('/') ? to : folder_of(path) + to;
  }
  errno = ELOOP;
  return "";
}

/// A file that is open for writing, and closed with its scope.
class Output {
public:
  Output(const std::string &path, int flags, mode_t mode = 0666)
      : m_fd(::open(path.c_str(), flags | O_WRONLY | O_CLOEXEC | O_NOCTTY, mode)) {}
  ~Output() {
    if (m_fd >= 0)
      ::close(m_fd);
  }
  Output(const Output &) = delete;
  Output &operator=(const Output &) = delete;
  bool ok() const { return m_fd >= 0; }
  int fd() const { return m_fd; }
  /// Network file systems report here what they could not keep.
  bool close() {
    int fd = m_fd;
    m_fd = -1;
    return ::close(fd) == 0 || errno == EINTR;
  }

private:
  int m_fd;
};

/// A temporary file in the folder of what it replaces; removed with its scope if it was not
/// renamed.
class Temporary {
public:
  explicit Temporary(const std::string &folder) {
    static std::atomic<unsigned> counter{0};
    do
      m_path =
          folder + ".tk-" + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp";
    while (::access(m_path.c_str(), F_OK) == 0);
    unfinished = m_path.c_str();
  }
  ~Temporary() {
    const char *mine = m_path.c_str();
    unfinished.compare_exchange_strong(mine, nullptr);
    if (!m_renamed)
      ::unlink(m_path.c_str());
  }
  Temporary(const Temporary &) = delete;
  Temporary &operator=(const Temporary &) = delete;
  const std::string &path() const { return m_path; }
  bool rename_to(const std::string &path) {
    m_renamed = ::rename(m_path.c_str(), path.c_str()) == 0;
    return m_renamed;
  }

private:
  std::string m_path;
  bool m_renamed = false;
};

Status write_in_place(const std::string &path, std::string_view bytes) {
  Output output(path, O_CREAT | O_TRUNC);
  if (!output.ok() || !write_all(output.fd(), bytes) || !output.close())
    return write_error(path, errno);
  return {};
}

/// Gives the new file the mode of the old one, and its owner; false with errno set.
bool keep_attributes(int fd, const struct stat &old, FileKind kind) {
  struct stat made;
  if (::fstat(fd, &made) != 0)
    return false;
  bool same = made.st_uid == old.st_uid && made.st_gid == old.st_gid;
  if (!same && ::fchown(fd, old.st_uid, old.st_gid) != 0 && kind == FileKind::source)
    return false;
  // Behind fchown, which takes the set-user-ID bits away.
  return ::fchmod(fd, old.st_mode & 07777) == 0;
}

Status replace(const std::string &path, const std::string &target, std::string_view bytes,
               const struct stat *old, FileKind kind) {
  Temporary temporary(folder_of(target));
  // Nobody reads contents that were private before the old mode is set.
  Output output(temporary.path(), O_CREAT | O_EXCL, old ? 0600 : 0666);
  if (!output.ok())
    return write_error(path, errno);
  if (!write_all(output.fd(), bytes) || (old && !keep_attributes(output.fd(), *old, kind)) ||
      (kind == FileKind::source && ::fsync(output.fd()) != 0) || !output.close() ||
      !temporary.rename_to(target))
    return write_error(path, errno);
  return {};
}

} // namespace

bool write_all(int descriptor, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR)
      continue;
    if (put == 0)
      errno = ENOSPC;
    if (put <= 0)
      return false;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

Error write_error(const std::string &path, int number) {
  return Error(ErrorCode::write_failed, "cannot write '" + path + "': " + std::strerror(number));
}

Status make_writable_folder(const std::string &path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed)
    return write_error(path, failed.value());
  Temporary probe(path + "/");
  Output output(probe.path(), O_CREAT | O_EXCL, 0600);
  if (!output.ok())
    return write_error(path, errno);
  return {};
}

void remove_unfinished_file() noexcept {
  if (const char *path = unfinished.exchange(nullptr))
    ::unlink(path);
}

Status write_file(const std::string &path, std::string_view bytes, FileKind kind) {
  struct stat old;
  bool exists = ::stat(path.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode))
    return write_error(path, EISDIR);
  // /dev/stdout leads to a file that another process has open: a renamed file would not be that.
  if ((exists && !S_ISREG(old.st_mode)) || path.starts_with("/dev/") || path.starts_with("/proc/"))
    return write_in_place(path, bytes);
  std::string target = follow_links(path);
  if (target.empty())
    return write_error(path, errno);
  // A rename would also replace a file that may not be written.
  if (exists && ::faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0)
    return write_error(path, errno);
  return replace(path, target, bytes, exists ? &old : nullptr, kind);
}

} // namespace tk::detail
