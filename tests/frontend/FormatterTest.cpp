#include "frontend/Formatter.h"
#include "tests/frontend/Parse.h"
#include "tests/unit/catch.h"

#include <filesystem>

using namespace tk;

namespace {

std::string format(std::string text) {
  SourceManager sources;
  Diagnostics diags(sources);
  FileId file = sources.add("x.tk", std::move(text));
  return formatSource(sources, file, diags);
}

/// Formats, and checks what must hold for every text.
std::string checked(const std::string &text) {
  std::string once = format(text);
  CHECK(format(once) == once);
  ParseOptions options{.requireKernel = false, .followImports = false};
  CHECK(Parsed(text, options).tree() == Parsed(once, options).tree());
  return once;
}

} // namespace

TEST_CASE("spaces are the formatter's") {
  CHECK(checked(
            "kernel  k( x:f32 [M,N] ,n : i32=- 1)->(y:f32[M , N]){\n"
            "let t [ i,j in - 1 .. n ] :bf16=-x [i , j ] ^ 2+sum [k ;exact] ( x[i,k]*( n-1 ) )\n"
            "   y[i,j]=if not(t[i,j]<0)then - t[i,j]else max (t[i,j],-1.0)\n"
            "}") == "kernel k(x: f32[M, N], n: i32 = -1) -> (y: f32[M, N]) {\n"
                    "  let t[i, j in -1..n]: bf16 = -x[i, j]^2 + sum[k; exact](x[i, k] * (n - 1))\n"
                    "  y[i, j] = if not (t[i, j] < 0) then -t[i, j] else max(t[i, j], -1.0)\n"
                    "}\n");
}

TEST_CASE("lines, blank lines and comments are the writer's") {
  CHECK(checked("\n\n//first\n\n\n\nfn f(x)=x//second\n"
                "   // third\n"
                "kernel k(x: f32[N]) //fourth\n"
                "-> (y: f32[N])\n"
                "where N>0,\n"
                "N<10\n"
                "{\n"
                "\n"
                "   // fifth\n"
                "\n"
                "\n"
                "   y[i] = x[i]\n"
                " + 1;\n"
                "// sixth\n"
                "\n"
                "}\n\n\n") == "// first\n"
                              "\n"
                              "fn f(x) = x  // second\n"
                              "// third\n"
                              "kernel k(x: f32[N])  // fourth\n"
                              "    -> (y: f32[N])\n"
                              "where N > 0,\n"
                              "      N < 10\n"
                              "{\n"
                              "  // fifth\n"
                              "\n"
                              "  y[i] = x[i]\n"
                              "       + 1\n"
                              "  // sixth\n"
                              "}\n");
}

TEST_CASE("brackets over several lines") {
  CHECK(checked("kernel k(\n"
                "x: f32[N],\n"
                "// about z\n"
                "z: f32[N]\n"
                ") -> (y: f32[N]) {\n"
                "y[i] = exp(\n"
                "x[i]\n"
                ")\n"
                "}\n") == "kernel k(\n"
                          "    x: f32[N],\n"
                          "    // about z\n"
                          "    z: f32[N]\n"
                          ") -> (y: f32[N]) {\n"
                          "  y[i] = exp(\n"
                          "      x[i]\n"
                          "  )\n"
                          "}\n");
}

TEST_CASE("lines that go on stand under what they go on with") {
  CHECK(checked("kernel k(x: f32[N],\n"
                "y: f32[N])\n"
                "-> (z: f32[N]) {\n"
                "let a[i] = f(x[i],\n"
                "g(\n"
                "y[i]))\n"
                "z[i] = if a[i] < 0\n"
                "then a[i] *\n"
                "2\n"
                "else\n"
                "a[i]\n"
                "}\n") == "kernel k(x: f32[N],\n"
                          "         y: f32[N])\n"
                          "    -> (z: f32[N]) {\n"
                          "  let a[i] = f(x[i],\n"
                          "               g(\n"
                          "                   y[i]))\n"
                          "  z[i] = if a[i] < 0\n"
                          "         then a[i] *\n"
                          "         2\n"
                          "         else\n"
                          "         a[i]\n"
                          "}\n");
}

TEST_CASE("the definitions of successive lines are aligned where they are close") {
  CHECK(checked("kernel k(x: f32[N]) -> (z: f32[N]) {\n"
                "let a[i] = x[i]\n"
                "z[i] = x[i]\n"
                "let b = 1\n"
                "\n"
                "let c    = 1\n"
                "// between\n"
                "let dd[i]   = 1\n"
                "let eeeeeeeeeeeeee[i] = 2\n"
                "}\n"
                "schedule k {\nstages = 4\nconsumers = 2\n}\n") ==
        "kernel k(x: f32[N]) -> (z: f32[N]) {\n"
        "  let a[i] = x[i]\n"
        "  z[i]     = x[i]\n"
        "  let b    = 1\n"
        "\n"
        "  let c = 1\n"
        "  // between\n"
        "  let dd[i] = 1\n"
        "  let eeeeeeeeeeeeee[i] = 2\n"
        "}\n"
        "schedule k {\n  stages = 4\n  consumers = 2\n}\n");
}

TEST_CASE("the output's size is bounded by the input's lines") {
  std::string text = "fn f(x) = " + std::string(20000, 'g') + "(x";
  for (int i = 0; i < 2000; ++i)
    text += ",\nx";
  CHECK(format(text + ")").size() < 20000 + 2001 * 80);
}

TEST_CASE("schedules, grads, attributes, semicolons") {
  CHECK(checked("@batch_invariant  kernel k()->(y:f32[]){y=1;}\n") ==
        "@batch_invariant kernel k() -> (y: f32[]) { y = 1; }\n");
  CHECK(checked("@ deterministic kernel k()->(y:f32[]){y=1;}\n"
                "grad g=k wrt(a,b)\n"
                "schedule k for sm_90a when(M>=2){tile i=128,j=64;raster=grouped (8)\n}\n") ==
        "@deterministic kernel k() -> (y: f32[]) { y = 1; }\n"
        "grad g = k wrt (a, b)\n"
        "schedule k for sm_90a when (M >= 2) { tile i = 128, j = 64; raster = grouped(8)\n"
        "}\n");
  CHECK(checked("kernel k() -> (y: f32[]) {;;; ;\n  y = 1 ;;\n}\n") ==
        "kernel k() -> (y: f32[]) {\n  y = 1\n}\n");
}

TEST_CASE("a mesh and the axes behind extents") {
  CHECK(checked("mesh(dp,tp)\n"
                "kernel k(x:f32[2*N@tp,M],mesh:f32)->(y:f32[2*N@tp , M@dp]){\n"
                "y[i,j]=sum[k;wire=bf16](x[i,k])*mesh\n"
                "}") ==
        "mesh (dp, tp)\n"
        "kernel k(x: f32[2 * N @ tp, M], mesh: f32) -> (y: f32[2 * N @ tp, M @ dp]) {\n"
        "  y[i, j] = sum[k; wire = bf16](x[i, k]) * mesh\n"
        "}\n");
}

TEST_CASE("CRLF and a byte-order mark go") {
  CHECK(checked("\xEF\xBB\xBF"
                "const A = 1 // a\r\n\r\n\r\nconst B = 2\r\n") ==
        "const A = 1  // a\n\nconst B = 2\n");
}

TEST_CASE("a text with errors stays as it is") {
  CHECK(format("kernel  k(") == "kernel  k(");
  CHECK(format("").empty());
}

TEST_CASE("the programs of the language reference parse") {
  SourceManager sources;
  FileId page = sources.load(TK_DOCS_DIR "/reference/language.md");
  REQUIRE(page != kNoFile);
  std::string_view text = sources.file(page).text();
  constexpr std::string_view open = "```tk\n", close = "```\n";
  int programs = 0;
  for (auto at = text.find(open); at != text.npos; at = text.find(open, at + 1), ++programs) {
    auto begin = at + open.size();
    std::string program(text.substr(begin, text.find(close, begin) - begin));
    INFO(program);
    Parsed parsed(program, {.requireKernel = false});
    CHECK(parsed.errors() == "");
    checked(program);
  }
  CHECK(programs > 3);
}

TEST_CASE("every example is formatted without change of its tree") {
  for (auto &entry : std::filesystem::directory_iterator(TK_EXAMPLES_DIR)) {
    if (entry.path().extension() != ".tk")
      continue;
    INFO(entry.path());
    SourceManager sources;
    FileId file = sources.load(entry.path().string());
    REQUIRE(file != kNoFile);
    checked(std::string(sources.file(file).text()));
  }
}

TEST_CASE("assert is a word where a condition follows") {
  CHECK(checked("kernel k(x: f32[N], assert: f32[N])->(y: f32[N]) {\n"
                "  assert   x[i]>=0.0;assert (x[i]<3)\n"
                "  assert -x[i]<=0.0 and\n"
                "  assert (x[i])\n"
                "  let q[i]=assert[i]\n"
                "  y[i] = assert [i]+q[i]\n"
                "}\n") == "kernel k(x: f32[N], assert: f32[N]) -> (y: f32[N]) {\n"
                          "  assert x[i] >= 0.0; assert (x[i] < 3)\n"
                          "  assert -x[i] <= 0.0 and\n"
                          "      assert(x[i])\n"
                          "  let q[i] = assert[i]\n"
                          "  y[i]     = assert[i] + q[i]\n"
                          "}\n");
}
