// Random bytes, random tokens and damaged programs: nothing may crash, and what parses must survive
// the formatter. Seeds are fixed, so a failure repeats.

#include "frontend/Formatter.h"
#include "tests/frontend/Parse.h"
#include "tests/unit/catch.h"

#include <random>

using namespace tk;

namespace {

constexpr std::string_view program =
    "import \"o.tk\"\n"
    "const A = 1.5e-3 // c\n"
    "fn f(x, y) = if x < 0 then y * (exp(x) - 1) else x\n"
    "@deterministic kernel k(strided q: bf16[B, H, 2 * S], n: i32, eps: f32 = rsqrt(S))\n"
    "    -> (o: bf16[B, H, S], l: f32[])\n"
    "where H % 2 == 0, S <= H\n"
    "{\n"
    "  let m[b, h in 0..n]: f32 = max[s](q[b, h, s]) + pad(q[b, h - 1, 0], -inf)\n"
    "  o[b, h, s] = sum[k; exact](f(q[b, h, k], eps))^2 / softmax[s](-m[b, h])\n"
    "    + 1; l = 0.0\n"
    "}\n"
    "grad g = k wrt (q)\n"
    "schedule k for sm_90a when S >= 1024 {\n  tile s = 128, b = 2\n  persistent\n}\n";

constexpr std::string_view pieces[] = {
    "kernel ",  "fn ",    "const ",  "schedule ", "grad ", "import ", "let ", "if ",
    " then ",   " else ", " and ",   " or ",      "not ",  "true",    "x",    "y",
    "sum",      "max",    "softmax", "f32",       "bf16",  "where ",  " in ", "exact",
    "strided ", "inout ", "wrt ",    "for ",      "when ", "1",       "2.5",  "\"a.tk\"",
    "(",        ")",      "[",       "]",         "{",     "}",       ",",    ";",
    ":",        "@",      "->",      "..",        "=",     "+",       "-",    "*",
    "/",        "%",      "^",       "==",        "<",     ">=",      "\n",   "\n",
    " ",        "// c\n", "tile "};

void survives(const std::string &text) {
  ParseOptions options{.requireKernel = true, .followImports = false};
  Parsed parsed(text, options);
  std::string errors = parsed.errors(); // rendering must survive as well
  CHECK(parsed.diags.hasErrors() == !errors.empty());
  CHECK(parsed.diags.text({.json = true}).empty() == errors.empty());
  if (parsed.diags.hasErrors())
    return;
  SourceManager sources;
  Diagnostics diags(sources);
  std::string once = formatSource(sources, sources.add("x.tk", text), diags);
  std::string twice = formatSource(sources, sources.add("x.tk", once), diags);
  INFO(text);
  CHECK(once == twice);
  CHECK(Parsed(once, options).tree() == parsed.tree());
}

class Random {
public:
  explicit Random(unsigned seed) : engine(seed) {}
  std::size_t below(std::size_t bound) { return engine() % bound; }

private:
  std::mt19937 engine;
};

} // namespace

TEST_CASE("random bytes") {
  Random random(1);
  for (int run = 0; run < 2000; ++run) {
    std::string text(random.below(200), ' ');
    bool ascii = run % 2;
    for (char &c : text)
      c = static_cast<char>(ascii ? 32 + random.below(96) : random.below(256));
    survives(text);
  }
}

TEST_CASE("random tokens") {
  Random random(2);
  for (int run = 0; run < 4000; ++run) {
    std::string text = run % 2 ? "kernel k(x: f32[N]) -> (y: f32[N]) {\n" : "";
    for (std::size_t i = random.below(120); i > 0; --i)
      text += pieces[random.below(std::size(pieces))];
    survives(text);
  }
}

TEST_CASE("damaged programs") {
  Random random(3);
  survives(std::string(program));
  REQUIRE(Parsed(std::string(program), {.followImports = false}).errors() == "");
  for (int run = 0; run < 6000; ++run) {
    std::string text(program);
    for (std::size_t edits = 1 + random.below(4); edits > 0; --edits) {
      std::size_t at = random.below(text.size());
      switch (random.below(4)) {
      case 0:
        text.erase(at, 1 + random.below(12));
        break;
      case 1:
        text.insert(at, pieces[random.below(std::size(pieces))]);
        break;
      case 2:
        text.insert(at, text.substr(random.below(text.size()), random.below(60)));
        break;
      default:
        text[at] = static_cast<char>(32 + random.below(96));
        break;
      }
      if (text.empty())
        text = "x";
    }
    survives(text);
  }
}

TEST_CASE("every prefix of a program") {
  for (std::size_t length = 0; length <= program.size(); ++length)
    survives(std::string(program.substr(0, length)));
}
