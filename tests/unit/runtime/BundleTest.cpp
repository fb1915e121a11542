// The file format of bundles, what is refused of it, and which variant covers which call.
#include "tests/unit/catch.h"
#include "tests/unit/runtime/SampleBundle.h"

#include "runtime/Sha256.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

using namespace tk;

namespace {

std::string file() {
  return encode(test::sample_bundle(
      {test::sample_variant("sm_90a", 64, 4096), test::sample_variant("sm_80", 1, -1)}));
}

/// The message of a refusal, as `bad_file`.
std::string refusal(const std::string &bytes) {
  Expected<Bundle> bundle = decode_bundle(bytes, "x.tkb");
  REQUIRE(!bundle);
  CHECK(bundle.error().code() == ErrorCode::bad_file);
  return bundle.error().message();
}

/// The bytes with a checksum that fits them, so that the checks behind it are reached.
std::string with_checksum(std::string bytes) {
  bytes.resize(bytes.size() - 32);
  detail::Digest digest = detail::sha256(bytes);
  return bytes + std::string(digest.begin(), digest.end());
}

} // namespace

TEST_CASE("a bundle is read as it was written", "[bundle]") {
  Bundle bundle = test::sample_bundle(
      {test::sample_variant("sm_90a", 64, 4096), test::sample_variant("sm_80", 1, -1)});
  Expected<Bundle> read = decode_bundle(encode(bundle));
  REQUIRE(read);
  CHECK(*read == bundle);
  CHECK(decode_bundle(encode(Bundle{})).value().kernels.empty());
}

TEST_CASE("bundles are read from files", "[bundle]") {
  std::string path = std::tmpnam(nullptr);
  std::ofstream(path, std::ios::binary) << file();
  CHECK(read_bundle(path).value().kernels.at(0).variants.size() == 2);
  std::remove(path.c_str());
  Expected<Bundle> missing = read_bundle(path);
  REQUIRE(!missing);
  CHECK(missing.error().code() == ErrorCode::io);
}

TEST_CASE("what is no bundle is refused with a reason", "[bundle]") {
  std::string good = file();
  CHECK(refusal("") == "'x.tkb' is not a bundle");
  CHECK(refusal("\x7f"
                "ELF") == "'x.tkb' is not a bundle");
  CHECK(refusal(good.substr(0, 20)) == "'x.tkb' is a truncated bundle");
  CHECK(refusal(good.substr(0, good.size() / 2)).find("checksum") != std::string::npos);
  CHECK(refusal(good + "x").find("checksum") != std::string::npos);
  std::string newer = good;
  newer[8] = 10;
  CHECK(refusal(newer) == "'x.tkb' is a bundle of format 10; this runtime reads format 9");
  std::string other = good;
  other[12] = 1;
  CHECK(refusal(other) ==
        "'x.tkb' was compiled for version 1 of the language's semantics; this runtime has "
        "version 2: build the bundle again");
}

TEST_CASE("every changed byte of a bundle is noticed", "[bundle]") {
  std::string good = file();
  for (size_t i = 0; i < good.size(); i += 7) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x41);
    CHECK_FALSE(decode_bundle(bad).has_value());
  }
}

TEST_CASE("forged contents behind a right checksum are refused or harmless", "[bundle]") {
  std::string good = file();
  size_t refused = 0;
  for (size_t i = 16; i + 32 < good.size(); ++i) {
    std::string forged = good;
    forged[i] = static_cast<char>(forged[i] ^ 0xff);
    Expected<Bundle> bundle = decode_bundle(with_checksum(forged));
    refused += !bundle;
    if (bundle)
      for (const BundleKernel &kernel : bundle->kernels)
        for (const BundleVariant &variant : kernel.variants)
          CHECK(well_formed(variant.plan, kernel.signature));
  }
  CHECK(refused > 100);
  // A plan of another kernel.
  Bundle mixed = test::sample_bundle({test::sample_variant("sm_90a", 1, -1)});
  mixed.kernels[0].variants[0].plan.launches[0].args[0].index = 7;
  CHECK(refusal(encode(mixed)).find("does not fit its kernel") != std::string::npos);
  mixed.kernels[0].variants[0] = test::sample_variant("sm_90a", 3, -1);
  CHECK(refusal(encode(mixed)).find("damaged") != std::string::npos);
}

TEST_CASE("code runs on its architecture and what is compatible with it", "[bundle]") {
  CHECK(runs_on("sm_80", 8, 0));
  CHECK(runs_on("sm_80", 8, 9));
  CHECK_FALSE(runs_on("sm_86", 8, 0));
  CHECK_FALSE(runs_on("sm_80", 9, 0));
  CHECK(runs_on("sm_90a", 9, 0));
  CHECK_FALSE(runs_on("sm_100a", 10, 3));
  CHECK(runs_on("sm_100", 10, 3));
  CHECK_FALSE(runs_on("cpu", 9, 0));
  CHECK_FALSE(runs_on("sm_", 9, 0));
  CHECK_FALSE(runs_on("sm_90b", 9, 0));
}

TEST_CASE("code covers calls of which at least as much is known", "[bundle]") {
  Facts assumed = test::sample_variant("sm_90a", 16, 1024).facts;
  // Of dense tensors the compiler takes strides for granted; `b` is strided.
  assumed.tensors[0].stride_divisor = assumed.tensors[2].stride_divisor = 16;
  Signature signature = test::gemm_signature();
  auto call = [](int64_t size, uint32_t alignment) {
    Facts facts = facts_for(std::vector<int64_t>(3, size));
    facts.tensors.assign(3, {alignment, 1});
    return facts;
  };
  CHECK(covers(assumed, call(1024, 16), signature));
  CHECK(covers(assumed, call(48, 16), signature));
  CHECK(covers(assumed, call(0, 16), signature));
  CHECK_FALSE(covers(assumed, call(1040, 16), signature));
  CHECK_FALSE(covers(assumed, call(24, 16), signature));
  CHECK_FALSE(covers(assumed, call(1024, 4), signature));
  Facts one_size = assumed;
  one_size.dims[2] = {1024, 1024, {}};
  CHECK(covers(one_size, call(1024, 16), signature));
  CHECK_FALSE(covers(one_size, call(0, 16), signature));
  CHECK_FALSE(covers(one_size, call(512, 16), signature));
  Facts unknown = call(1024, 16);
  unknown.dims[1] = {128, -1, {}};
  CHECK_FALSE(covers(assumed, unknown, signature));
  CHECK(covers(test::sample_variant("sm_90a", 1, -1).facts, unknown, signature));
  assumed.tensors[1].stride_divisor = 8;
  CHECK_FALSE(covers(assumed, call(1024, 16), signature));
  assumed.tensors[1].stride_divisor = 1;
  // Code for one unit axis serves that axis alone; code for none, and code that assumes no density,
  // serve all.
  Facts transposed = call(1024, 16), dense = call(1024, 16);
  transposed.tensors[1].unit_axis = 0;
  dense.tensors[1].dense = true;
  CHECK_FALSE(covers(assumed, transposed, signature));
  CHECK(covers(assumed, dense, signature));
  Facts any = assumed, packed = assumed;
  any.tensors[1].unit_axis = no_axis;
  packed.tensors[1].dense = true;
  CHECK(covers(any, transposed, signature));
  CHECK(covers(any, call(1024, 16), signature));
  CHECK(covers(packed, dense, signature));
  CHECK_FALSE(covers(packed, call(1024, 16), signature));
  assumed.small_tensors = true;
  Facts small = call(1024, 16), large = small;
  small.small_tensors = true;
  large.small_tensors = false;
  CHECK(covers(assumed, small, signature));
  CHECK_FALSE(covers(assumed, large, signature));
  assumed.small_tensors = false;
  CHECK(describe(assumed, signature) ==
        "M % 16 == 0, M <= 1024, K % 16 == 0, K <= 1024, N % 16 == 0, N <= 1024, addresses "
        "aligned to 16");
  CHECK(describe({}, signature) == "any sizes");
}
