// Files that are written whole or not at all, and temporary folders that vanish.
#include "tests/unit/catch.h"

#include "runtime/Files.h"
#include "runtime/TemporaryFolder.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tk;
using namespace tk::detail;
namespace fs = std::filesystem;

namespace {

std::string contents(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

size_t count_files(const std::string &folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

} // namespace

TEST_CASE("a file is written whole, or what was there stays", "[files]") {
  TemporaryFolder folder("tk-files-test");
  REQUIRE(folder.ok());
  const std::string path = folder.file("out"), large(100'000, 'x');
  REQUIRE(write_file(path, "first"));
  ::chmod(path.c_str(), 0600);
  REQUIRE(write_file(path, large, FileKind::source));
  CHECK(contents(path) == large);
  struct stat status;
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);

  rlimit before;
  ::getrlimit(RLIMIT_FSIZE, &before);
  auto *handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full = {1000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &full);
  Status failed = write_file(path, std::string(50'000, 'y'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  REQUIRE(!failed);
  CHECK(failed.error().code() == ErrorCode::write_failed);
  CHECK(failed.error().message() == "cannot write '" + path + "': File too large");
  CHECK(contents(path) == large);
  CHECK(count_files(folder.path()) == 1);
}

TEST_CASE("what is no regular file is written in place", "[files]") {
  CHECK(write_file("/dev/null", "text"));
  Status full = write_file("/dev/full", "text");
  REQUIRE(!full);
  CHECK(full.error().message() == "cannot write '/dev/full': No space left on device");
  TemporaryFolder folder("tk-files-test");
  CHECK(!write_file(folder.path(), "text"));
  fs::create_symlink("named", folder.file("link"));
  CHECK(write_file(folder.file("link"), "text"));
  CHECK(fs::is_symlink(folder.file("link")));
  CHECK(contents(folder.file("named")) == "text");
}

TEST_CASE("a temporary folder vanishes with its scope, and where its process is killed",
          "[files]") {
  std::string path;
  {
    TemporaryFolder folder("tk-files-test");
    REQUIRE(folder.ok());
    path = folder.path();
    REQUIRE(write_file(folder.file("file"), "text"));
  }
  CHECK(!fs::exists(path));

  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    TemporaryFolder folder("tk-files-test");
    (void)write_file(folder.file("file"), "text");
    (void)write_all(ends[1], folder.path() + "\n");
    ::raise(SIGKILL);
  }
  ::close(ends[1]);
  char buffer[1000];
  const ssize_t size = ::read(ends[0], buffer, sizeof buffer);
  ::close(ends[0]);
  REQUIRE(size > 1);
  ::waitpid(child, nullptr, 0);
  path.assign(buffer, static_cast<size_t>(size) - 1);
  for (int i = 0; i < 500 && fs::exists(path); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(!fs::exists(path));
}

TEST_CASE("a temporary folder that cannot be made says why", "[files]") {
  const char *before = std::getenv("TMPDIR");
  const std::string old = before ? before : "";
  ::setenv("TMPDIR", "/nowhere", 1);
  TemporaryFolder folder("tk-files-test");
  before ? ::setenv("TMPDIR", old.c_str(), 1) : ::unsetenv("TMPDIR");
  CHECK(!folder.ok());
  CHECK(folder.error().find("'/nowhere': No such file or directory") != std::string::npos);
}
