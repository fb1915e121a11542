#include "frontend/Diagnostics.h"
#include "tests/unit/catch.h"

using namespace tk;

namespace {

struct Fixture {
  SourceManager sources;
  Diagnostics diags{sources};
  FileId file =
      sources.add("gemm.tk", "kernel gemm(a, b)\n  c[i, j] = sum[k](a[i, k] * b[k, j])\n");
  Span at(std::string_view piece) {
    auto begin = static_cast<std::uint32_t>(sources.file(file).text().find(piece));
    return {file, begin, begin + static_cast<std::uint32_t>(piece.size())};
  }
};

} // namespace

TEST_CASE_METHOD(Fixture, "each span is underlined, with its label") {
  diags.error(Diag::ExpectedToken, at("a[i, k]"))
          .label("'K' is 64 here")
          .label(at("b[k, j]"), "'K' is 32 here")
          .label(at("a, b"), "declared here")
          .expected("K = 64")
          .found("K = 32")
          .note("both are dimensions")
          .help("make them equal")
      << "dimension '" << 'K' << "' is " << 64 << " and " << 32u;
  CHECK(diags.text() == "gemm.tk:2:20: error[TK0101]: dimension 'K' is 64 and 32\n"
                        "  1 | kernel gemm(a, b)\n"
                        "    |             ---- declared here\n"
                        "  2 |   c[i, j] = sum[k](a[i, k] * b[k, j])\n"
                        "    |                    ^^^^^^^   ------- 'K' is 32 here\n"
                        "    |                    'K' is 64 here\n"
                        "  expected: K = 64\n"
                        "  found: K = 32\n"
                        "  note: both are dimensions\n"
                        "  help: make them equal\n");
}

TEST_CASE_METHOD(Fixture, "overlapping spans get rows of their own") {
  diags.error(Diag::ExpectedToken, at("k] *")).label(at("sum[k](a[i, k] * b[k, j])"), "in this");
  CHECK(diags.text() == "gemm.tk:2:25: error[TK0101]: unexpected token\n"
                        "  2 |   c[i, j] = sum[k](a[i, k] * b[k, j])\n"
                        "    |             ------------------------- in this\n"
                        "    |                         ^^^^\n");
}

TEST_CASE_METHOD(Fixture, "JSON lines") {
  diags.error(Diag::ExpectedToken, at("gemm")).label(at("j"), "x").help("say \"hi\"\n\x01");
  CHECK(diags.text({.json = true}) ==
        "{\"severity\":\"error\",\"code\":\"TK0101\",\"message\":\"unexpected token\","
        "\"file\":\"gemm.tk\",\"line\":1,\"column\":8,\"endLine\":1,\"endColumn\":12,"
        "\"labels\":[{\"file\":\"gemm.tk\",\"line\":2,\"column\":8,\"endLine\":2,\"endColumn\":9,"
        "\"text\":\"x\"}],\"help\":[\"say \\\"hi\\\"\\n\\u0001\"]}\n");
}

TEST_CASE_METHOD(Fixture, "sorted by position, without repetitions, capped") {
  diags.error(Diag::ExpectedToken, at("sum")) << "second";
  diags.error(Diag::ExpectedToken, at("gemm")) << "first";
  diags.error(Diag::ExpectedToken, at("sum")) << "second";
  REQUIRE(diags.sorted().size() == 2);
  CHECK(diags.errorCount() == 2);
  CHECK(diags.sorted()[0]->message == "first");
  for (int i = 0; i < 100; ++i)
    diags.error(Diag::ExpectedToken, at("sum")) << i;
  CHECK(diags.sorted().size() == 50);
  CHECK(diags.errorCount() == 102);
  CHECK(diags.text().ends_with("and 52 more\n"));
}

TEST_CASE_METHOD(Fixture, "warnings are no errors") {
  diags.warning(Diag::ExpectedToken, at("sum"));
  CHECK_FALSE(diags.hasErrors());
  CHECK(diags.text().find("warning[TK0101]") != std::string::npos);
}

TEST_CASE("a long line is shown around its caret") {
  SourceManager sources;
  Diagnostics diags(sources);
  FileId file = sources.add("x.tk", std::string(1000, 'a') + "!" + std::string(1000, 'b'));
  diags.error(Diag::UnexpectedCharacter, {file, 1000, 1001}).label("here");
  std::string text = diags.text();
  CHECK(text.find(std::string(80, 'a') + "!" + std::string(79, 'b') + "...") != std::string::npos);
  CHECK(text.find("    |    " + std::string(80, ' ') + "^ here\n") != std::string::npos);
}

TEST_CASE("noise does not reach the terminal") {
  SourceManager sources;
  Diagnostics diags(sources);
  FileId file = sources.add("x.tk", "a\x1B\x07\xFF");
  diags.error(Diag::InvalidByte, {file, 3, 4});
  CHECK(diags.text().find("  1 | a  ?\n    |    ^\n") != std::string::npos);
}

TEST_CASE("a span over several lines is underlined on its first") {
  SourceManager sources;
  Diagnostics diags(sources);
  FileId file = sources.add("x.tk", "ab cd\nef\n");
  diags.error(Diag::ExpectedToken, {file, 3, 8});
  CHECK(diags.text().find("  1 | ab cd\n    |    ^^\n") != std::string::npos);
}

TEST_CASE("did you mean") {
  static constexpr std::string_view names[] = {"gamma", "beta", "eps", "softmax", "x"};
  CHECK(didYouMean("gama", names) == "did you mean 'gamma'?");
  CHECK(didYouMean("sotfmax", names) == "did you mean 'softmax'?");
  CHECK(didYouMean("esp", names) == "did you mean 'eps'?");
  CHECK(didYouMean("delta", names).empty() == false); // beta is two letters away
  CHECK(didYouMean("alpha", names).empty());
  CHECK(didYouMean("y", names).empty());
}

TEST_CASE("codes are unique and ordered") {
  std::uint16_t last = 0;
  for (const DiagInfo &row : allDiagnostics()) {
    INFO(row.name);
    CHECK(row.number > last);
    CHECK(&info(row.id) == &row);
    last = row.number;
  }
  CHECK(info(Diag::ExpectedToken).code() == "TK0101");
}
