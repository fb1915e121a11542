// The analysis of one kernel: from its syntax tree to a sema::Kernel. Internal to Sema*.cpp.

#ifndef TK_FRONTEND_SEMAKERNEL_H
#define TK_FRONTEND_SEMAKERNEL_H

#include "frontend/Bounds.h"
#include "frontend/Diagnostics.h"
#include "frontend/SemaTree.h"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tk::sema {

/// The items of a program by name.
struct Globals {
  std::map<std::string, const ast::Kernel *, std::less<>> kernels;
  std::map<std::string, const ast::Fn *, std::less<>> fns;
  std::map<std::string, const ast::Fn *, std::less<>> libraryFns; ///< they yield to all others
  std::map<std::string, const ast::Const *, std::less<>> consts;
  std::vector<std::string> meshAxes; ///< in the order of the program
};

struct Operand;
struct ProductTerm;

/// The indices in `n` that are not in the place of a table's entry: `c` and `f` of `w[e[m], c, f]`.
std::vector<IndexVar *> bareIndices(const Node *n);

class KernelSema {
public:
  KernelSema(const Globals &globals, Kernel &out, Diagnostics &diags)
      : globals(globals), out(out), diags(diags), prover(symbols) {}

  /// Analyses everything but schedules; errors go to the engine.
  void run(const ast::Kernel &kernel);
  void schedule(const ast::Schedule &schedule);
  /// Analyses the assertions, and what a checked kernel tests. After all that the kernel is made
  /// of, which does not depend on it.
  void checks();
  /// To be called last, as schedules use names, too.
  void warnOfUnused();

private:
  /// What a name stands for: exactly one of the pointers is set.
  struct Symbol {
    Node *node = nullptr; ///< dimension, scalar, argument of a function
    Tensor *tensor = nullptr;
    IndexVar *index = nullptr;
    Span span;
    std::vector<Node *> leading = {}; ///< indices that an argument gives a function's tensor
    Node *asIndex = nullptr; ///< the same number in the arithmetic of indices, where that differs

    std::size_t rank() const { return tensor->extents.size() - leading.size(); }
  };
  using Scope = std::map<std::string, Symbol, std::less<>>;

  // Dimensions and named extents (SemaExtents.cpp)
  /// `where P == e` of a P that no parameter binds.
  struct NamedExtent {
    const ast::Expr *value = nullptr;
    Span span;
    Node *node = nullptr; ///< once its symbols are known
    bool isDone = false;
    bool isUsed = false;
  };
  void dimensions(const ast::Kernel &kernel);
  void declareDimension(const ast::NameRef &ref);
  void collectDefinitions(const ast::Kernel &kernel, const ast::Expr &condition);
  bool isResolvable(const ast::Expr &e) const;
  void defineExtents(bool all);
  void defineExtent(const std::string &name, NamedExtent &extent);
  std::vector<const ast::Expr *> conditionsOf(const ast::Expr &constraint) const;

  // Sharding (SemaMesh.cpp)
  /// The axes of the mesh by which a tensor of the signature is sharded, one an extent.
  std::vector<std::string> shardingOf(const ast::Param &param);

  // Declarations (SemaKernel.cpp)
  Tensor *tensorOf(const ast::Param &param, int position);
  void parameters(const ast::Kernel &kernel);
  void results(const ast::Kernel &kernel);
  void constraints(const ast::Kernel &kernel);
  void assumeFact(const Node *condition);
  bool declare(const std::string &name, Span span, Symbol symbol);

  // Names (SemaNames.cpp)
  bool checkFresh(const std::string &name, Span span, bool index);
  std::string renamed(const std::string &name, Span whole) const;
  std::string unusedName(const std::string &name, bool isIndex, std::string_view text) const;
  bool mayReuse(const ast::Index &index) const;
  void warnOfReusedOnly(const std::vector<ast::IndexPtr> &left, const ast::Expr &value);

  Tensor *makeTensor(std::string name, Span span, ast::DType dtype, std::vector<Node *> extents);
  void checkSize(const Tensor &tensor);

  // Statements (SemaStmt.cpp)
  void statement(const ast::Stmt &stmt);
  void letScalar(const ast::LetScalar &stmt);
  void letTensor(const ast::LetTensor &stmt);
  void define(const ast::Define &stmt);
  // Assertions (SemaAssert.cpp)
  /// An assertion, with the names that it sees.
  struct Assertion {
    const ast::Assert *source;
    Scope scope;
  };
  std::vector<Assertion> assertions;
  void assertion(const ast::Assert &stmt);
  std::vector<ast::IndexPtr> indicesOf(const ast::Expr &condition) const;
  void addAssertion(Node *condition, const std::vector<IndexVar *> &vars, const ast::Assert &stmt);
  std::vector<Node *> assertedValues(Node *condition) const;
  /// The value of a statement's right side, which is stored into `dtype` if that is declared.
  Node *rightSide(const ast::Expr &value, std::optional<ast::DType> dtype);
  bool declareLeft(const std::vector<ast::IndexPtr> &indices, const ast::Expr &value,
                   const Tensor *result, std::vector<IndexVar *> &vars);
  /// Where the axes of a local begin, if not all at 0.
  void setLows(Tensor &tensor, const std::vector<IndexVar *> &vars);
  void finish(Tensor *tensor, std::vector<IndexVar *> vars, Node *value, Span span);
  /// The value as it may be stored into `dtype`; null and an error if it may not.
  Node *forStore(Node *value, ast::DType dtype, Span span, const std::string &name);

  // Ranges of indices (SemaRange.cpp)
  struct Use {
    const ast::Access *access;
    unsigned axis;
    Node *low, *extent; ///< where the axis begins (null: at 0) and ends
    bool padded;
    bool ofIntegers; ///< an element of an integer tensor
    bool wrongRank;  ///< the access has too many or too few indices, which is an error of its own
    Span span;
  };
  struct Uses {
    std::vector<Use> known;
    bool broken = false; ///< also at an axis that an error has left without an extent
    std::set<std::pair<const ast::FnParam *, std::vector<const Tensor *>>> calls; ///< looked into
  };
  void bareUses(const ast::Expr &e, const std::string &name, bool padded, Uses &uses);
  IndexVar *declareIndex(const ast::Index &index, const std::vector<const ast::Expr *> &in,
                         Node *resultExtent, const Tensor *result);
  IndexVar *enterIndex(const ast::Index &index, Node *lo, Node *hi);
  bool isOfOffsets(const Use &use, Node *low, Node *extent);
  const Use *rangeGiving(const Uses &uses);
  bool conflicting(const ast::Index &index, const Uses &uses, Node *low, Node *extent,
                   const std::string &what, Span where, bool isOfResult);
  enum class Sizes : std::uint8_t { FirstIsSmaller, SecondIsSmaller, MayBeEqual, Differ };
  Sizes compareExtents(const bounds::Poly &a, const bounds::Poly &b);
  std::string conflictHelp(const ast::Index &index, const Use &use, Node *extent, bool isOfResult);
  std::string rangeOf(Node *low, Node *extent);
  std::string rangeHelp(const ast::Index &index, const std::vector<const ast::Expr *> &in);
  void undeclare(const std::vector<ast::IndexPtr> &indices);

  // Reductions whose bounds are loaded, or are indices (SemaBounded.cpp)
  IndexVar *declareBounded(const ast::Index &index, const Uses &uses, Node *lo, Node *hi);
  bool staticRange(const ast::Index &index, const Uses &uses, Node *&lo, Node *&hi);
  std::optional<bounds::Poly> extremeOf(const Node *n, bool isLower);
  void checkBound(const ast::Expr &bound, const IndexVar &var, Node *position, Node *isNotEmpty);
  Node *whereBounded(Node *condition, ast::ReduceKind kind, Node *body);
  Node *countOf(const std::vector<IndexVar *> &vars, Node *condition, Span span);

  // Expressions (SemaExpr.cpp)
  Node *expr(const ast::Expr &e);
  Node *exprOf(const ast::Expr &e);
  Node *indexExpr(const ast::Expr &e);
  Node *nameRef(const ast::NameRef &e);
  Node *unknownName(const std::string &name, Span span);
  std::string unboundIn(const ast::Expr &e, const ast::Reduce &around) const;
  Node *unboundIndex(const std::string &name, Span span);
  Node *unknownSize(const std::string &name, Span span, const std::string &hint);
  std::string wholeTensorHelp(const ast::Define &stmt, const Tensor &result) const;
  Node *unary(const ast::Unary &e);
  Node *binary(const ast::Binary &e);
  Node *conditional(const ast::If &e);
  Node *arithmetic(Op op, Node *l, Node *r, Span span, Span opSpan);
  Node *foldInts(Op op, Node *l, Node *r, Span span, Span opSpan);
  Node *compare(Op op, Node *l, Node *r, Span span);
  Node *power(Node *base, Node *exponent, Span span);
  Node *symbolValue(const Symbol &symbol, Span span, const std::string &name);

  // Calls (SemaCall.cpp)
  Node *call(const ast::Call &e);
  const ast::Fn *findFn(const std::string &name, bool fromLibrary) const;

  // Functions of the program (SemaFn.cpp)
  Node *inlineFn(const ast::Fn &fn, const ast::Call &e);
  bool indexes(const ast::Fn &fn, const std::string &param,
               std::set<std::pair<const ast::Fn *, std::string>> &seen) const;
  bool isOfTensors(const ast::Fn &fn, const ast::FnParam &param);
  std::optional<Symbol> tensorArgument(const ast::Fn &fn, const ast::FnParam &param,
                                       const ast::Expr &arg);
  const Symbol *tensorNamed(const ast::Expr &arg, std::size_t &leading) const;
  void bareUsesOfCall(const ast::Call &e, const std::string &name, bool padded, Uses &uses);

  // Calls (SemaCall.cpp)
  Node *builtin(const ast::Call &e, Op op, unsigned arity, unsigned family);
  Node *cast(const ast::Call &e, ast::DType to);
  Node *padded(const ast::Call &e);

  // Reductions, normalisers, scans (SemaReduce.cpp)
  Node *reduce(const ast::Reduce &e);
  Node *place(ast::ReduceKind kind, const std::vector<IndexVar *> &vars, Node *body, Span span,
              Type type);
  bool checkWire(const ast::Reduce &e);
  void requireNarrowPlaces(const ast::Reduce &e, const std::vector<IndexVar *> &vars);
  /// Under `condition`, if there is one, the indices are within bounds that are loaded or indices.
  Node *reduceOver(const ast::Reduce &e, std::vector<IndexVar *> vars, Node *body, Node *condition);
  Node *literalTerm(Node *body);
  Node *contraction(const ast::Reduce &e, const std::vector<IndexVar *> &vars, Node *body,
                    Node *condition);
  /// The operands of contractions (SemaFactors.cpp)
  Node *groupFactors(const std::vector<IndexVar *> &vars, Node *term);
  Node *withFactorsOfOneType(Node *product);
  Node *withRoundedFactor(Node *product);
  Node *withRoundings(Node *term);
  Node *underConditions(const std::vector<Node *> &conditions, Node *n);
  std::optional<std::array<Operand, 2>> findSeeds(const std::vector<Node *> &factors,
                                                  const std::vector<IndexVar *> &vars);
  bool assignFactors(const ProductTerm &parts, const std::vector<IndexVar *> &vars,
                     std::array<Operand, 2> &operands, ProductTerm &outside);
  Node *operandNode(const Operand &operand, Node *condition, ast::DType to, Span span);
  bool hasTwoOperands(const Node *n, const std::vector<IndexVar *> &vars);
  Node *lengthOf(const IndexVar *var, Span span);
  Node *mean(const std::vector<IndexVar *> &vars, Node *body, Span span, Node *condition);
  Node *logSumExp(const std::vector<IndexVar *> &vars, Node *body, Span span);
  Node *keeping(const ast::Reduce &e);
  Node *scan(const ast::Reduce &e, IndexVar *var, Node *body);
  Node *normalise(const ast::Reduce &e, const std::vector<IndexVar *> &vars, Node *body);
  void requireNonEmpty(const ast::Reduce &e, const IndexVar *var);

  // Parts of a statement that become tensors of their own (SemaHidden.cpp)
  Node *hidden(const std::string &suffix, std::vector<IndexVar *> vars, Node *value, Span span);
  std::vector<IndexVar *> freeIndices(const std::vector<Node *> &roots);
  void padOutside(Node *value, const std::vector<IndexVar *> &vars);
  /// Whether a load is inside its tensor, given that the ranges of the `active` are not empty.
  bool isInside(const Node *load, const std::vector<bounds::Atom> &active);

  // Accesses and bounds (SemaAccess.cpp)
  Node *access(const ast::Access &e, Node *pad);
  Node *loadOf(Tensor *tensor, std::vector<Node *> indices, Span span);
  void addGathers(const ast::Access &e, const Tensor &tensor, const std::vector<Node *> &indices);
  void checkGathers();
  /// Whether the access, bound by bound, is in bounds for all sizes or by a check at launch, or
  /// only where the conditions of the `if`s around it hold (the result is true then: it is read as
  /// a padded one, since the branch that is not taken may be computed, too).
  bool prove(const ast::Access &e, const Tensor &tensor, const std::vector<Node *> &indices);
  /// What is known under the conditions around an access, and whether a bound follows from that.
  struct Guarded {
    bounds::Prover prover;
    std::vector<bounds::Poly> facts;   ///< none is negative
    std::vector<bounds::Poly> nonZero; ///< none is zero, either sign is possible
    bool isNeeded;
  };
  void sharpen(Guarded &around);
  bool holdsUnder(const std::vector<bounds::Poly> &clause, const Guarded &around,
                  std::size_t firstCase = 0) const;
  bool proveComponent(const ast::Access &e, unsigned axis, Node *index, const Tensor &tensor,
                      Guarded &around);
  /// What it takes that an index is at least (`isLower`), or at most, a bound: of each clause one
  /// value that is not negative.
  using Clauses = std::vector<std::vector<bounds::Poly>>;
  Clauses clausesOf(const Node *n, bool isLower, const bounds::Poly &bound);
  std::optional<bounds::Poly> greatestRemainder(const Node *n);
  void addGuardFacts(const Node *condition, bool holds, Guarded &into);
  enum class Proof : std::uint8_t { Holds, Never, Unknown };
  Proof proveClause(const std::vector<bounds::Poly> &clause, Span span, const std::string &text);
  std::vector<bounds::Poly> minimumOf(const std::vector<bounds::Poly> &clause, bool &isExact) const;
  bool isCheckedAtLaunch(const std::vector<bounds::Poly> &clause) const;
  void checkAtLaunch(Span span, const std::vector<bounds::Poly> &minimum, const std::string &text);
  bool checkDivisors(const Node *n, Span span);
  void assumeDivisor(const bounds::Poly &num, const bounds::Poly &den, Span span, bool guarded,
                     const std::vector<bounds::Atom> &active);
  std::optional<bounds::Poly> polyOf(const Node *n);
  std::optional<bounds::Poly> computePoly(const Node *n);
  Node *nodeOf(const bounds::Poly &p, Span span);
  /// The one node that stands for all expressions equal to `n`.
  Node *canonical(Node *n);
  std::vector<bounds::Atom> activeAtoms() const;
  std::string textOf(const Node *n);
  std::string shapeOf(const Tensor &t);
  std::string indicesFor(const Tensor &t);

  // Making nodes (SemaNode.cpp)
  Node *make(NodeKind kind, Type type, Span span);
  Node *intConst(std::int64_t value, Span span, Type type = Type::Index, bool literal = false);
  Node *floatConst(double value, Span span, Type type, bool literal = false);
  Node *zero(Type type, Span span);
  Node *op(Op op, Type type, std::vector<Node *> args, Span span);
  Node *indexNode(IndexVar *var, Span span);
  Node *convert(Node *n, Type type, bool explicitly = false);
  /// A number as the float that is rounded to `stored`, a float of 16 or 8 bits, so that what is
  /// stored is rounded once.
  Node *forRounding(Node *n, ast::DType stored, bool explicitly = false);
  /// What becomes of integers of fewer than 32 bits that meet.
  enum class NarrowIntegers : std::uint8_t {
    Keep,        ///< their type, which literals take, too
    Widen,       ///< i32
    HoldLiterals ///< their type if it holds the literals, else i32
  };
  bool meet(std::vector<Node *> &args, Span span, std::optional<Type> at_least = {},
            NarrowIntegers narrow = NarrowIntegers::Keep);
  Node *reduceNode(ast::ReduceKind kind, Type type, std::vector<IndexVar *> vars, Node *body,
                   Span span);
  Node *typeError(Span span, const std::string &what, const std::string &expected,
                  const Node *found, const std::string &help = {});

  const Globals &globals;
  Kernel &out;
  Diagnostics &diags;
  bounds::Symbols symbols;
  bounds::Prover prover;

  Scope scope;
  std::map<std::string, Span, std::less<>> kernelNames; ///< all that the kernel will declare
  std::map<std::string, NamedExtent, std::less<>> namedExtents;
  std::set<const ast::Expr *> definitions; ///< the conjuncts that define them
  std::set<const ast::Fn *> inlining;
  std::map<const ast::FnParam *, bool> tensorParams; ///< what isOfTensors found
  std::vector<const ast::Call *> callPath; ///< of the functions being inlined, outermost first
  bool inLibrary = false;                  ///< inside a function of the library
  std::map<bounds::Poly, Node *> canonicalNodes;
  std::map<bounds::Atom, Node *> atomNodes;
  std::map<const Node *, std::optional<bounds::Poly>> polys;
  std::set<const Node *> checkedNodes;                     ///< whose divisors were looked at
  std::map<std::pair<const Node *, Type>, Node *> adopted; ///< literals, by the type they met
  /// A clause that the launch checks unless one of `ranges` is empty.
  struct CheckedClause {
    std::vector<bounds::Poly> minimum;
    std::vector<std::pair<bounds::Poly, bounds::Poly>> ranges;
  };
  bool isCheckedAlready(const std::vector<bounds::Poly> &minimum) const;
  std::vector<CheckedClause> checkedBounds;
  std::set<std::pair<bounds::Poly, bounds::Poly>> checkedDivisors;
  std::vector<IndexVar *> activeIndices;
  std::map<const IndexVar *, Symbol> reused; ///< what the name of an index stands for around it
  std::map<const IndexVar *, Node *> boundConditions; ///< under which an index is in its range
  const ast::Reduce *binding = nullptr;        ///< the reduction whose indices are being declared
  Span declaring;                              ///< the reduction or statement that declares indices
  std::vector<std::pair<Node *, bool>> guards; ///< the conditions around, and what they must be
  std::map<const Tensor *, Span> defined;
  std::string statementName;             ///< what hidden tensors are named after
  const ast::Stmt *current = nullptr;    ///< the statement
  const ast::Reduce *reducing = nullptr; ///< the innermost reduction
  std::set<std::string> unknownSizes;    ///< that were reported
  std::set<std::string> withoutLet;      ///< locals whose missing `let` was reported
  std::map<std::string, unsigned> hiddenNames;
  /// The `argmax` or `argmin` that is the whole right side of an i64 result or local: it is i64.
  const ast::Expr *widePlace = nullptr;
  bool indexMode = false; ///< inside an index or a range: integer scalars are of type Index
  bool subscript = false; ///< inside an index of an access
  bool signature = false; ///< inside the dimensions of a parameter or result
  unsigned kernelDepth = 0;
  unsigned exprDepth = 0;
};

/// Reports a call with another number of arguments.
bool checkArity(const ast::Call &e, std::size_t arity, Diagnostics &diags);

/// Operations that one kernel may come to after inlining.
inline constexpr std::size_t kMaxNodes = 40000;

} // namespace tk::sema

#endif // TK_FRONTEND_SEMAKERNEL_H
