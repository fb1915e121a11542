#include "tests/unit/catch.h"

#include "runtime/Cache.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tk::detail;
namespace fs = std::filesystem;

namespace {

/// A directory that goes with its scope.
struct TemporaryDirectory {
  TemporaryDirectory() {
    char name[] = "/tmp/tk-cache-XXXXXX";
    REQUIRE(mkdtemp(name));
    path = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string path;
};

Digest key(int64_t number) { return CacheKey().add("n", number).digest(); }
const CacheEntry sample = {{"cubin", std::string("\0\1\2binary", 9)}, {"ptx", "text"}};

std::string only_file(const std::string &directory) {
  std::string found;
  for (const auto &entry : fs::directory_iterator(directory)) {
    REQUIRE(found.empty());
    found = entry.path().string();
  }
  return found;
}

std::string slurp(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void spill(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

} // namespace

TEST_CASE("an entry that belongs to someone else is a miss", "[cache]") {
  if (::geteuid() != 0)
    return; // only root can give files away
  TemporaryDirectory directory;
  Cache cache(directory.path);
  REQUIRE(cache.store(key(1), sample));
  REQUIRE(cache.load(key(1)));
  for (const auto &file : fs::directory_iterator(directory.path))
    REQUIRE(::chown(file.path().c_str(), 12345, 12345) == 0);
  CHECK(!cache.load(key(1)));
}

TEST_CASE("SHA-256 gives NIST's values", "[cache]") {
  CHECK(hex(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hex(sha256(std::string(1000000, 'a'))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  Sha256 parts;
  for (int i = 0; i < 1000; ++i)
    parts.update(std::string(1000, 'a'));
  CHECK(hex(parts.finish()) == hex(sha256(std::string(1000000, 'a'))));
}

TEST_CASE("fields of a key cannot trade bytes", "[cache]") {
  CHECK(CacheKey().add("ab", "c").digest() != CacheKey().add("a", "bc").digest());
  CHECK(CacheKey().add("a", "").add("b", "x").digest() !=
        CacheKey().add("a", "b").add("", "x").digest());
}

TEST_CASE("an entry comes back, from a private directory", "[cache]") {
  TemporaryDirectory temporary;
  std::string directory = temporary.path + "/deep/tk";
  Cache cache(directory);
  CHECK(!cache.load(key(1)));
  REQUIRE(cache.store(key(1), sample));
  CHECK(cache.load(key(1)) == sample);
  CHECK(!cache.load(key(2)));
  struct stat status;
  REQUIRE(::stat(directory.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  CHECK(cache.statistics().entries == 1);
  CHECK(cache.clear() == 1);
  CHECK(!cache.load(key(1)));
}

TEST_CASE("a cache that is off does nothing", "[cache]") {
  Cache cache("");
  CHECK(!cache.enabled());
  CHECK(!cache.store(key(1), sample));
  CHECK(!cache.load(key(1)));
}

TEST_CASE("truncated and flipped entries are misses and go away", "[cache]") {
  TemporaryDirectory temporary;
  Cache cache(temporary.path);
  REQUIRE(cache.store(key(1), sample));
  std::string path = only_file(temporary.path), good = slurp(path);
  for (size_t i = 0; i < good.size(); ++i) {
    spill(path, good.substr(0, i));
    CHECK(!cache.load(key(1)));
    CHECK(!fs::exists(path));
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    spill(path, flipped);
    CHECK(!cache.load(key(1)));
  }
  spill(path, good);
  CHECK(cache.load(key(1)) == sample);
}

TEST_CASE("an entry under another key's name is a miss", "[cache]") {
  TemporaryDirectory temporary;
  Cache cache(temporary.path);
  REQUIRE(cache.store(key(1), sample));
  std::string first = only_file(temporary.path);
  fs::rename(first, temporary.path + "/" + hex(key(2)) + ".tkc");
  CHECK(!cache.load(key(2)));
}

TEST_CASE("a directory that cannot be written costs time only", "[cache]") {
  Cache under_a_file("/dev/null/tk");
  CHECK(!under_a_file.store(key(1), sample));
  CHECK(!under_a_file.load(key(1)));
  CHECK(under_a_file.statistics().entries == 0);
  Cache in_proc("/proc/tk");
  CHECK(!in_proc.store(key(1), sample));
}

TEST_CASE("what is in the way of an entry is a miss", "[cache]") {
  TemporaryDirectory temporary;
  Cache cache(temporary.path);
  fs::create_directory(temporary.path + "/" + hex(key(1)) + ".tkc");
  CHECK(!cache.load(key(1)));
  CHECK(!cache.store(key(1), sample));
  fs::create_symlink("/dev/zero", temporary.path + "/" + hex(key(2)) + ".tkc");
  CHECK(!cache.load(key(2)));
}

TEST_CASE("the least recently used entries leave first", "[cache]") {
  TemporaryDirectory temporary;
  CacheEntry entry = {{"blob", std::string(1000, 'x')}};
  Cache cache(temporary.path, 10000);
  auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 8; ++i) {
    REQUIRE(cache.store(key(i), entry));
    fs::last_write_time(temporary.path + "/" + hex(key(i)) + ".tkc",
                        now - std::chrono::hours(100 - i));
  }
  CHECK(cache.load(key(0))); // used: no longer the oldest
  REQUIRE(cache.store(key(8), entry));
  REQUIRE(cache.store(key(9), entry));
  CHECK(cache.statistics().bytes <= 10000);
  CHECK(cache.load(key(0)));
  CHECK(!cache.load(key(1)));
  CHECK(cache.load(key(9)));
}

TEST_CASE("temporaries of dead writers are removed, those of live ones are not", "[cache]") {
  TemporaryDirectory temporary;
  spill(temporary.path + "/tmp.1.0.dead", "x");
  fs::last_write_time(temporary.path + "/tmp.1.0.dead",
                      fs::file_time_type::clock::now() - std::chrono::hours(5));
  spill(temporary.path + "/tmp.2.0.live", "x");
  Cache cache(temporary.path);
  REQUIRE(cache.store(key(1), sample));
  CHECK(!fs::exists(temporary.path + "/tmp.1.0.dead"));
  CHECK(fs::exists(temporary.path + "/tmp.2.0.live"));
}

TEST_CASE("64 processes and 32 threads on one key see an entry or a miss, nothing else",
          "[cache]") {
  TemporaryDirectory temporary;
  CacheEntry large = {{"cubin", std::string(50000, 'q')}};
  auto hammer = [&] {
    Cache cache(temporary.path);
    for (int i = 0; i < 10; ++i) {
      if (!cache.store(key(7), large))
        return false;
      auto entry = cache.load(key(7));
      if (!entry || *entry != large)
        return false;
    }
    return true;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 64; ++i) {
    pid_t child = ::fork();
    if (child == 0)
      ::_exit(hammer() ? 0 : 1);
    children.push_back(child);
  }
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 32; ++i)
    threads.emplace_back([&] { failures += !hammer(); });
  for (std::thread &thread : threads)
    thread.join();
  for (pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    failures += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  CHECK(failures == 0);
  CHECK(Cache(temporary.path).statistics().entries == 1);
  only_file(temporary.path);
}
