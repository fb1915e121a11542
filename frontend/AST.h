// The syntax tree of a `.tk` program, as parsed.
//
// Nodes are owned by their parents. Every expression has a span, a number that is dense within its
// program (so that later stages can keep side tables), and the slots that semantic analysis fills.
// The parser bounds the depth of every tree (Limits::depth), so recursion over one is safe.

#ifndef TK_FRONTEND_AST_H
#define TK_FRONTEND_AST_H

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

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

enum class StmtKind : std::uint8_t { LetScalar, LetTensor, Define, Assert };

struct Stmt {
  const StmtKind kind;
  Span span;     ///< the whole statement
  ExprPtr value; ///< the right side, or the condition; never null
  virtual ~Stmt() = default;

protected:
  explicit Stmt(StmtKind kind) : kind(kind) {}
};

using StmtPtr = std::unique_ptr<Stmt>;

/// `let n = expr`
struct LetScalar : Stmt, Decl {
  std::optional<DType> dtype; ///< `let n: f32 = expr`
  Span dtypeSpan;
  LetScalar() : Stmt(StmtKind::LetScalar), Decl(DeclKind::LetScalar) {}
  static bool classof(const Stmt *s) { return s->kind == StmtKind::LetScalar; }
  static bool classof(const Decl *d) { return d->declKind == DeclKind::LetScalar; }
};

/// `let t[i, j in lo..hi]: bf16 = expr`
struct LetTensor : Stmt, Decl {
  std::vector<IndexPtr> indices;
  std::optional<DType> dtype;
  Span dtypeSpan;
  Span lhsSpan; ///< name and brackets
  LetTensor() : Stmt(StmtKind::LetTensor), Decl(DeclKind::LetTensor) {}
  static bool classof(const Stmt *s) { return s->kind == StmtKind::LetTensor; }
  static bool classof(const Decl *d) { return d->declKind == DeclKind::LetTensor; }
};

/// `o[i, j] = expr`, or `loss = expr` (then `bracketed` is false).
struct Define : Stmt {
  std::string name;
  Span nameSpan;
  std::vector<IndexPtr> indices;
  bool bracketed = false;
  Span lhsSpan;         ///< name and brackets
  Decl *decl = nullptr; ///< the Result or `inout` Param; set by semantic analysis
  Define() : Stmt(StmtKind::Define) {}
  static bool classof(const Stmt *s) { return s->kind == StmtKind::Define; }
};

/// `assert cond`: `value` is the condition, which holds for all values of the indices in it.
struct Assert : Stmt {
  Assert() : Stmt(StmtKind::Assert) {}
  static bool classof(const Stmt *s) { return s->kind == StmtKind::Assert; }
};

template <typename T> T *as(Stmt *s) { return s && T::classof(s) ? static_cast<T *>(s) : nullptr; }
template <typename T> const T *as(const Stmt *s) {
  return s && T::classof(s) ? static_cast<const T *>(s) : nullptr;
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

enum class ItemKind : std::uint8_t { Kernel, Fn, Const, Import, Schedule, Grad, Mesh };

struct Item {
  const ItemKind kind;
  Span span; ///< the whole item
  virtual ~Item() = default;

protected:
  explicit Item(ItemKind kind) : kind(kind) {}
};

using ItemPtr = std::unique_ptr<Item>;

template <typename T> T *as(Item *i) { return i && T::classof(i) ? static_cast<T *>(i) : nullptr; }
template <typename T> const T *as(const Item *i) {
  return i && T::classof(i) ? static_cast<const T *>(i) : nullptr;
}

/// An axis of the mesh: of a `mesh` item, or behind an extent.
struct MeshAxis {
  std::string name; ///< empty behind an extent that is not sharded
  Span span;
};

/// `strided q: bf16[B, H, S, D]`, `inout w: f32[N @ tp]`, `eps: f32 = 1e-5`; also a result.
struct Param : Decl {
  DType dtype = DType::F32;
  Span dtypeSpan;
  bool isTensor = false;        ///< brackets were written, even empty ones
  std::vector<ExprPtr> dims;    ///< of a tensor, outermost first
  std::vector<MeshAxis> shards; ///< one an extent: the axis of the mesh that shards it
  bool strided = false;
  bool inout = false;
  ExprPtr defaultValue; ///< of a scalar; may be null
  Span span;            ///< the whole parameter

  explicit Param(DeclKind kind) : Decl(kind) {} // Param or Result
  static bool classof(const Decl *d) {
    return d->declKind == DeclKind::Param || d->declKind == DeclKind::Result;
  }
};

using ParamPtr = std::unique_ptr<Param>;

struct Kernel : Item, Decl {
  bool deterministic = false;
  bool batchInvariant = false; ///< which implies `deterministic`
  bool derived = false;        ///< from a `grad` item
  std::vector<ParamPtr> params;
  std::vector<ParamPtr> results;
  std::vector<ExprPtr> constraints; ///< of `where`
  std::vector<StmtPtr> statements;
  Span signatureSpan; ///< from `kernel` to the end of the results
  Kernel() : Item(ItemKind::Kernel), Decl(DeclKind::Kernel) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Kernel; }
  static bool classof(const Decl *d) { return d->declKind == DeclKind::Kernel; }
};

/// `mesh (dp, tp)`
struct Mesh : Item {
  std::vector<MeshAxis> axes;
  Mesh() : Item(ItemKind::Mesh) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Mesh; }
};

struct FnParam : Decl {
  FnParam(std::string name, Span span) : Decl(DeclKind::FnParam, std::move(name), span) {}
  static bool classof(const Decl *d) { return d->declKind == DeclKind::FnParam; }
};

/// `fn elu(x, alpha) = expr`
struct Fn : Item, Decl {
  std::vector<std::unique_ptr<FnParam>> params;
  ExprPtr body;
  bool ofLibrary = false; ///< it yields to what a file declares, and sees nothing of that
  Fn() : Item(ItemKind::Fn), Decl(DeclKind::Fn) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Fn; }
  static bool classof(const Decl *d) { return d->declKind == DeclKind::Fn; }
};

/// `const NAME = expr`
struct Const : Item, Decl {
  ExprPtr value;
  Const() : Item(ItemKind::Const), Decl(DeclKind::Const) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Const; }
  static bool classof(const Decl *d) { return d->declKind == DeclKind::Const; }
};

/// `import "other.tk"`, or `import std`
struct Import : Item {
  std::string path;       ///< as written
  bool ofLibrary = false; ///< without quotes: what ships with the compiler
  Span pathSpan;
  FileId file = kNoFile; ///< the file it names; kNoFile if it could not be read
  Import() : Item(ItemKind::Import) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Import; }
};

/// One value of an entry: `i = 128` in `tile i = 128, j = 256`; without `axis` in `stages = 4`.
struct ScheduleValue {
  std::string axis; ///< empty if there is none
  Span axisSpan;
  ExprPtr value; ///< integer, name, or call such as grouped(8); null for a bare key
  Span span;
};

struct ScheduleEntry {
  std::string key;
  Span keySpan;
  std::vector<ScheduleValue> values;
  Span span;
};

/// `schedule gemm for sm_90a when M >= 1024 { … }`
struct Schedule : Item, Decl { // `name` is the kernel's
  std::string arch;            ///< empty: any
  Span archSpan;
  ExprPtr when; ///< may be null
  std::vector<ScheduleEntry> entries;
  Schedule() : Item(ItemKind::Schedule), Decl(DeclKind::Schedule) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Schedule; }
  static bool classof(const Decl *d) { return d->declKind == DeclKind::Schedule; }
};

struct GradArgument {
  std::string name;
  Span span;
};

/// `grad attention_backward = attention wrt (q, k, v)`
struct Grad : Item, Decl {
  std::string primal;
  Span primalSpan;
  std::vector<GradArgument> wrt;
  std::string derived; ///< the text of the kernel that was derived, which follows the item
  Grad() : Item(ItemKind::Grad), Decl(DeclKind::Grad) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Grad; }
  static bool classof(const Decl *d) { return d->declKind == DeclKind::Grad; }
};

/// One parsed file.
struct File {
  FileId id = kNoFile;
  std::vector<ItemPtr> items;
};

/// A file and all that it imports. Files come in the order of their dependence (an imported file
/// before the one that imports it), so the main file is the last.
struct Program {
  std::vector<std::unique_ptr<File>> files;
  std::unique_ptr<File> schedules; ///< blocks in place of the program's own; null: those count
  std::uint32_t exprCount = 0;     ///< Expr::id is below this
  File &main() { return *files.back(); }
  const File &main() const { return *files.back(); }
};

} // namespace tk::ast

#endif // TK_FRONTEND_AST_H
