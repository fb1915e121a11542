#include "frontend/Lexer.h"
#include "tests/unit/catch.h"

using namespace tk;

namespace {

struct Lexed {
  SourceManager sources;
  Diagnostics diags{sources};
  LexedFile file;
  explicit Lexed(std::string text)
      : file(lex(sources.file(sources.add("x.tk", std::move(text))), diags)) {}
  std::string spellings() const {
    std::string out;
    for (const Token &token : file.tokens)
      if (token.kind != TokenKind::Eof)
        out += (token.newlineBefore ? "|" : " ") + std::string(sources.text(token.span));
    return out;
  }
};

} // namespace

TEST_CASE("tokens, comments and line starts") {
  Lexed lexed("a[i] = b // note\n\n  - 2.5e-3;c");
  CHECK(lexed.spellings() == "|a [ i ] = b|- 2.5e-3 ; c");
  REQUIRE(lexed.file.comments.size() == 1);
  CHECK(lexed.sources.text(lexed.file.comments[0]) == "// note");
  CHECK_FALSE(lexed.diags.hasErrors());
}

TEST_CASE("a range of integers is not a float") {
  CHECK(Lexed("0..n").spellings() == "|0 .. n");
  CHECK(Lexed("1.5..n").spellings() == "|1.5 .. n");
}

TEST_CASE("numbers have their values") {
  Lexed lexed("9223372036854775807 0.1 1e3");
  CHECK(lexed.file.tokens[0].integer == 9223372036854775807);
  CHECK(lexed.file.tokens[1].real == 0.1);
  CHECK(lexed.file.tokens[2].real == 1000.0);
}

TEST_CASE("byte-order mark and CRLF are accepted and take no column") {
  Lexed lexed("\xEF\xBB\xBF"
              "a\r\nb // c\r\n");
  CHECK(lexed.spellings() == "|a|b");
  CHECK(lexed.sources.describe(lexed.file.tokens[0].span) == "x.tk:1:1");
  CHECK(lexed.sources.describe(lexed.file.tokens[1].span) == "x.tk:2:1");
  CHECK(lexed.sources.text(lexed.file.comments.at(0)) == "// c");
}

TEST_CASE("columns count characters") {
  Lexed lexed("// \xC3\xA9\xE2\x82\xAC\n\"\xC3\xA9\" a");
  CHECK(lexed.sources.describe(lexed.file.tokens.at(1).span) == "x.tk:2:5");
}

TEST_CASE("invalid UTF-8 is named with its place") {
  auto message = [](std::string text) {
    Lexed lexed(std::move(text));
    auto all = lexed.diags.sorted();
    return all.empty() ? std::string() : all[0]->message;
  };
  CHECK(message("a\nb\nlet x = \xFF") == "invalid byte 0xFF at 3:9");
  CHECK(message(std::string("a\0b", 3)) == "invalid byte 0x00 at 1:2");
  CHECK(message("// \xC0\xAF overlong") == "invalid byte 0xC0 at 1:4");
  CHECK(message("// \xED\xA0\x80 surrogate") == "invalid byte 0xED at 1:4");
  CHECK(message("// \xF4\x90\x80\x80 beyond") == "invalid byte 0xF4 at 1:4");
  CHECK(message("// cut \xE2\x82") == "invalid byte 0xE2 at 1:8");
  CHECK(message("// \xC3\xA9 \xF0\x9F\x98\x80 fine").empty());
}
