// NCCL that is missing, too old or incomplete, on fake libraries.
#include "runtime/mesh/Nccl.h"
#include "tests/unit/catch.h"

using namespace tk;
using cuda::Nccl;

TEST_CASE("an NCCL is loaded by path, with its version", "[nccl]") {
  Expected<std::unique_ptr<Nccl>> nccl = Nccl::load(FAKE_NCCL_PATH);
  REQUIRE(nccl);
  CHECK((*nccl)->version_text() == "2.27.3");
  CHECK_NOTHROW((*nccl)->check(0, "ncclAllReduce"));
  try {
    (*nccl)->check(3, "ncclAllReduce");
    FAIL("a failed call is taken");
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::nccl_failed);
    CHECK(error.message() == "ncclAllReduce: planted error");
  }
}

TEST_CASE("an NCCL that is missing, old or incomplete is a typed error", "[nccl]") {
  const Error missing = Nccl::load("/nowhere/libnccl.so.2").error();
  CHECK(missing.code() == ErrorCode::no_nccl);
  CHECK(missing.message().find("/nowhere/libnccl.so.2") != std::string::npos);
  const Error old = Nccl::load(FAKE_OLD_NCCL_PATH).error();
  CHECK(old.code() == ErrorCode::nccl_too_old);
  CHECK(old.message().find("is version 2.17.1; tk needs 2.18.0 or newer") != std::string::npos);
  const Error incomplete = Nccl::load(FAKE_INCOMPLETE_NCCL_PATH).error();
  CHECK(incomplete.code() == ErrorCode::nccl_too_old);
  CHECK(incomplete.message().find("has no function ncclCommSplit") != std::string::npos);
}
