// What the tests of the syntax library share: parse a text, keep everything it produced.

#ifndef TK_TESTS_FRONTEND_PARSE_H
#define TK_TESTS_FRONTEND_PARSE_H

#include "frontend/AstPrinter.h"
#include "frontend/Program.h"

#include <string>

struct Parsed {
  tk::SourceManager sources;
  tk::Diagnostics diags{sources};
  tk::FileId file;
  std::unique_ptr<tk::ast::Program> program;

  explicit Parsed(std::string text, tk::ParseOptions options = {})
      : file(sources.add("x.tk", std::move(text))),
        program(tk::parseProgram(sources, file, diags, options)) {}

  std::string errors() const { return diags.text(); }
  std::string tree() const { return tk::printAst(*program); }
  /// Codes in the order of their positions: "TK0101 TK0105".
  std::string codes() const {
    std::string out;
    for (const tk::Diagnostic *d : diags.sorted())
      out += (out.empty() ? "" : " ") + tk::info(d->id).code();
    return out;
  }
  const tk::ast::Kernel &kernel() const {
    for (auto &item : program->main().items)
      if (auto *kernel = tk::ast::as<tk::ast::Kernel>(item.get()))
        return *kernel;
    throw "no kernel was parsed";
  }
};

/// The text of a kernel with these statements.
inline std::string kernelOf(std::string statements) {
  return "kernel k(x: f32[M, N], n: i32) -> (y: f32[M, N]) {\n" + statements + "\n}\n";
}

/// The right side of `y[i, j] = …`, printed with the parentheses that its tree needs.
inline std::string reprint(std::string expr) {
  Parsed parsed(kernelOf("y[i, j] = " + expr));
  if (parsed.diags.hasErrors())
    return parsed.errors();
  return tk::printExpr(*parsed.kernel().statements.at(0)->value);
}

#endif // TK_TESTS_FRONTEND_PARSE_H
