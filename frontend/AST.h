// The syntax tree of a `.tk` program, as parsed: statements and items, on the expressions of
// AstExpr.h, whose rules hold here too.

#ifndef TK_FRONTEND_AST_H
#define TK_FRONTEND_AST_H

#include "frontend/AstExpr.h"

namespace tk::ast {

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
