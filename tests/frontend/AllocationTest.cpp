// Memory that runs out at any allocation of the syntax library: std::bad_alloc, nothing lost, and
// the next text is read as ever.
#include "frontend/Formatter.h"
#include "tests/frontend/Parse.h"
#include "tests/unit/FailingAllocation.h"
#include "tests/unit/catch.h"

#include <fstream>
#include <functional>
#include <sstream>

using namespace tk;
using test::Failing;
using test::FailingAllocation;

namespace {

std::string example(const std::string &name) {
  std::ifstream file(TK_EXAMPLES_DIR "/" + name);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// `call` with each of its allocations failing in turn gives std::bad_alloc or what it always
/// gives.
void failEachAllocation(const std::function<std::string()> &call) {
  std::string expected = call();
  for (Failing failing : {Failing::once, Failing::from_there_on}) {
    long failed = 0;
    for (long n = 0;; ++n) {
      INFO("allocation " << n);
      std::string result;
      FailingAllocation fault(n, failing);
      try {
        result = call();
      } catch (const std::bad_alloc &) {
        REQUIRE(fault.stop());
        ++failed;
        continue;
      }
      bool reached = fault.stop();
      REQUIRE(result == expected);
      if (!reached)
        break;
    }
    CHECK(failed > 100);
  }
}

} // namespace

TEST_CASE("memory runs out while a program is parsed and printed", "[fault]") {
  std::string text = example("attention.tk");
  failEachAllocation([&] { return Parsed(text).tree(); });
}

TEST_CASE("memory runs out while errors are reported", "[fault]") {
  std::string text = "kernel k(x: f33[N) -> (y: f32[N]) { y[i] = (x[i] + \n @ }\nlet let\n";
  failEachAllocation([&] {
    Parsed parsed(text);
    return parsed.codes() + parsed.errors();
  });
}

TEST_CASE("memory runs out while a program is formatted", "[fault]") {
  std::string text = example("layernorm.tk");
  failEachAllocation([&] {
    SourceManager sources;
    Diagnostics diags(sources);
    FileId file = sources.add("x.tk", text);
    return formatSource(sources, file, diags);
  });
}
