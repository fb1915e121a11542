// Readable forms of the syntax tree.

#ifndef TK_FRONTEND_ASTPRINTER_H
#define TK_FRONTEND_ASTPRINTER_H

#include "frontend/AST.h"

#include <string>

namespace tk {

struct AstPrintOptions {
  const SourceManager *spans = nullptr; ///< with it, each line ends in the node's line:column
};

/// One node a line, children indented: what `--emit=ast` prints. Equal trees give equal texts.
std::string printAst(const ast::Program &program, AstPrintOptions options = {});
std::string printAst(const ast::File &file, AstPrintOptions options = {});

/// How tightly operators bind, from the loosest; parentheses stand around what is looser than its
/// place asks for.
enum Tightness : std::uint8_t {
  Loosest,
  OrTight,
  AndTight,
  NotTight,
  CompareTight,
  SumTight,
  ProductTight,
  UnaryTight,
  PowerTight,
  PrimaryTight
};
int tightness(ast::BinaryOp op);

/// The shortest literal that reads as this float.
std::string printFloat(double value);

/// An expression in the language's own syntax, on one line, with the parentheses it needs.
std::string printExpr(const ast::Expr &expr);

/// An extent of a tensor, with the axis of the mesh that shards it: `M @ tp`.
std::string printExtent(const ast::Param &param, std::size_t axis);

} // namespace tk

#endif // TK_FRONTEND_ASTPRINTER_H
