// Folders for files that other programs read or write, which vanish however the process ends.
#pragma once

#include <string>

#include <sys/types.h>

namespace tk::detail {

/// A folder below the directory for temporary files. Its scope's end removes it. If the process is
/// killed before, a guard removes it: a shell in a session of its own that waits for the end of a
/// pipe that this process alone holds open.
class TemporaryFolder {
public:
  explicit TemporaryFolder(const std::string &name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  bool ok() const { return !m_path.empty(); }
  /// "" where it could not be made; error() then says why.
  const std::string &path() const { return m_path; }
  const std::string &error() const { return m_error; }
  std::string file(const std::string &name) const { return m_path + "/" + name; }

private:
  void start_guard(const std::string &path);

  std::string m_path;
  std::string m_error;
  pid_t m_guard = -1;
  int m_pipe = -1; ///< the end that stays open as long as the process lives
};

} // namespace tk::detail
