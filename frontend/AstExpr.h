// The syntax tree of a `.tk` program: types, declarations and expressions (AST.h has the rest).
//
// Nodes are owned by their parents. Every expression has a span, a number that is dense within its
// program (so that later stages can keep side tables), and the slots that semantic analysis fills.
// The parser bounds the depth of every tree (Limits::depth), so recursion over one is safe.

#ifndef TK_FRONTEND_ASTEXPR_H
#define TK_FRONTEND_ASTEXPR_H

#include "frontend/Source.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tk::sema {
/// What semantic analysis knows of an expression; the syntax library only carries the pointer.
struct ExprType;
} // namespace tk::sema

namespace tk::ast {

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

enum class DType : std::uint8_t {
  F64,
  F32,
  F16,
  BF16,
  F8E4M3,
  F8E5M2,
  I64,
  I32,
  I16,
  I8,
  U8,
  Bool,
};

/// "bf16"; the spelling of the language.
std::string_view spelling(DType type);
std::optional<DType> parseDType(std::string_view name);
/// The type that other languages and libraries call `name` (`float32`, `half`).
std::optional<DType> parseForeignDType(std::string_view name);

//===----------------------------------------------------------------------===//
// Declarations: whatever a name can stand for
//===----------------------------------------------------------------------===//

enum class DeclKind : std::uint8_t {
  Kernel,
  Fn,
  Const,
  Schedule,
  Grad, // items
  Param,
  Result,
  FnParam, // of a kernel or function
  LetScalar,
  LetTensor, // statements
  Index,     // on a left side or in a binder
  Dim,       // a dimension symbol; made by semantic analysis
};

struct Decl {
  const DeclKind declKind;
  std::string name;
  Span nameSpan;

  Decl(DeclKind kind, std::string name = {}, Span span = {})
      : declKind(kind), name(std::move(name)), nameSpan(span) {}
  virtual ~Decl() = default;
};

struct Kernel;
struct Fn;

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

enum class ExprKind : std::uint8_t {
  IntLit,
  FloatLit,
  BoolLit,
  NameRef,
  Unary,
  Binary,
  If,
  Call,
  Access,
  Reduce,
  Error, // stands where an expression could not be parsed; an error has been reported
};

struct Expr {
  const ExprKind kind;
  Span span;               ///< with surrounding parentheses left out
  std::uint32_t id = 0;    ///< dense within the program, from 0
  std::uint32_t depth = 1; ///< height of the tree below, at most Limits::depth
  bool parenthesised = false;

  const sema::ExprType *type = nullptr; ///< set by semantic analysis

  virtual ~Expr() = default;

protected:
  Expr(ExprKind kind, Span span) : kind(kind), span(span) {}
};

using ExprPtr = std::unique_ptr<Expr>;

struct IntLit : Expr {
  std::int64_t value;
  IntLit(Span span, std::int64_t value) : Expr(ExprKind::IntLit, span), value(value) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::IntLit; }
};

struct FloatLit : Expr {
  double value;
  FloatLit(Span span, double value) : Expr(ExprKind::FloatLit, span), value(value) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::FloatLit; }
};

struct BoolLit : Expr {
  bool value;
  BoolLit(Span span, bool value) : Expr(ExprKind::BoolLit, span), value(value) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::BoolLit; }
};

/// A name without brackets: dimension, scalar, index, constant (`inf`, `nan`, `pi`, `const`),
/// function parameter, or a tensor of rank 0.
struct NameRef : Expr {
  std::string name;
  Decl *decl = nullptr; ///< set by semantic analysis
  NameRef(Span span, std::string name) : Expr(ExprKind::NameRef, span), name(std::move(name)) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::NameRef; }
};

enum class UnaryOp : std::uint8_t { Neg, Not };

struct Unary : Expr {
  UnaryOp op;
  Span opSpan;
  ExprPtr operand;
  Unary(Span span, UnaryOp op, Span opSpan, ExprPtr operand)
      : Expr(ExprKind::Unary, span), op(op), opSpan(opSpan), operand(std::move(operand)) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::Unary; }
};

enum class BinaryOp : std::uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  Rem,
  Pow,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  And,
  Or
};

std::string_view spelling(UnaryOp op);
std::string_view spelling(BinaryOp op);
inline bool isComparison(BinaryOp op) { return op >= BinaryOp::Eq && op <= BinaryOp::Ge; }
inline bool isLogical(BinaryOp op) { return op == BinaryOp::And || op == BinaryOp::Or; }
inline bool isArithmetic(BinaryOp op) { return op <= BinaryOp::Pow; }

struct Binary : Expr {
  BinaryOp op;
  Span opSpan;
  ExprPtr lhs, rhs;
  Binary(Span span, BinaryOp op, Span opSpan, ExprPtr lhs, ExprPtr rhs)
      : Expr(ExprKind::Binary, span), op(op), opSpan(opSpan), lhs(std::move(lhs)),
        rhs(std::move(rhs)) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::Binary; }
};

struct If : Expr {
  ExprPtr condition, thenExpr, elseExpr;
  If(Span span, ExprPtr condition, ExprPtr thenExpr, ExprPtr elseExpr)
      : Expr(ExprKind::If, span), condition(std::move(condition)), thenExpr(std::move(thenExpr)),
        elseExpr(std::move(elseExpr)) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::If; }
};

/// `exp(x)`, `f32(x)`, `rand(seed, n)`, `pad(x[i], 0.0)`, `max(a, b)`, `elu(x, alpha)`.
struct Call : Expr {
  std::string name;
  Span nameSpan;
  std::vector<ExprPtr> args;
  Decl *decl = nullptr; ///< the Fn, if it is one; set by semantic analysis
  Call(Span span, std::string name, Span nameSpan, std::vector<ExprPtr> args)
      : Expr(ExprKind::Call, span), name(std::move(name)), nameSpan(nameSpan),
        args(std::move(args)) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::Call; }
};

/// `x[i, k + 1]`
struct Access : Expr {
  std::string name;
  Span nameSpan;
  std::vector<ExprPtr> indices;
  Decl *decl = nullptr; ///< set by semantic analysis
  Access(Span span, std::string name, Span nameSpan, std::vector<ExprPtr> indices)
      : Expr(ExprKind::Access, span), name(std::move(name)), nameSpan(nameSpan),
        indices(std::move(indices)) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::Access; }
};

/// An index that a left side or a binder introduces: `i`, or `i in lo..hi` (half open).
struct Index : Decl {
  ExprPtr lo, hi; ///< both or neither
  Span span;      ///< with the range
  bool hasRange() const { return lo != nullptr; }
  Index(std::string name, Span span) : Decl(DeclKind::Index, std::move(name), span), span(span) {}
};

using IndexPtr = std::unique_ptr<Index>;

enum class ReduceKind : std::uint8_t {
  Sum,
  Prod,
  Max,
  Min,
  Mean,
  Any,
  All,
  LogSumExp,
  ArgMax,
  ArgMin, // bind their indices
  Softmax,
  LogSoftmax,
  CumSum,
  CumProd,
  CumMax, // keep their index
};

std::string_view spelling(ReduceKind kind);
std::optional<ReduceKind> parseReduceKind(std::string_view name);
/// Normalisers and scans: the index stays, ranged over by the left side or an enclosing binder.
inline bool keepsIndex(ReduceKind kind) { return kind >= ReduceKind::Softmax; }

enum class ReduceModifier : std::uint8_t { None, Exact, Tf32, Fast };
std::string_view spelling(ReduceModifier modifier);

/// `sum[k, l in 0..n; exact, wire = bf16](body)`. For kinds that keep their index, `binders` holds
/// the uses of the index, which declare nothing; `resolved` then says what they refer to.
struct Reduce : Expr {
  ReduceKind reduceKind;
  Span nameSpan;
  std::vector<IndexPtr> binders;
  ReduceModifier modifier = ReduceModifier::None;
  Span modifierSpan;
  std::optional<DType> wire; ///< `wire = bf16`: of partial sums that ranks of a mesh exchange
  Span wireSpan;
  ExprPtr body;
  std::vector<Index *> resolved; ///< set by semantic analysis where keepsIndex(reduceKind)
  Reduce(Span span, ReduceKind reduceKind, Span nameSpan, std::vector<IndexPtr> binders,
         ExprPtr body)
      : Expr(ExprKind::Reduce, span), reduceKind(reduceKind), nameSpan(nameSpan),
        binders(std::move(binders)), body(std::move(body)) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::Reduce; }
};

/// Whether the reduction declares an index of this name, which is another than one outside of it.
bool binds(const Reduce &reduce, std::string_view name);

struct ErrorExpr : Expr {
  explicit ErrorExpr(Span span) : Expr(ExprKind::Error, span) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::Error; }
};

/// A checked downcast without LLVM; null if `e` is another kind. (llvm::dyn_cast works as well.)
template <typename T> T *as(Expr *e) { return e && T::classof(e) ? static_cast<T *>(e) : nullptr; }
template <typename T> const T *as(const Expr *e) {
  return e && T::classof(e) ? static_cast<const T *>(e) : nullptr;
}

} // namespace tk::ast

#endif // TK_FRONTEND_ASTEXPR_H
