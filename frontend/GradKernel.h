// The gradient of one kernel, derived as text of the language. Internal to Grad*.cpp.
//
// 1. Resolve: statements become terms over objects for indices, functions inlined. What depends on
//    the parameters that are differentiated by is active. In active statements a reduction stands
//    at the root or is taken out as a local of its own, so that all else is element by element.
// 2. Reverse: from the last statement to the first, the adjoint of its tensor is what later
//    statements contributed, and for results the cotangent. The rules of the statement's value turn
//    it into contributions to what is read there: at an access x[e…], within loops, a value.
// 3. Combine: x's adjoint at [X…] is the sum over all loops where e… == X…. Equations are solved
//    for loops, which then go away; what cannot be solved stays as a condition.
// 4. Print: what of the kernel's own statements is needed, then the adjoints, then the results.

#ifndef TK_FRONTEND_GRADKERNEL_H
#define TK_FRONTEND_GRADKERNEL_H

#include "frontend/Diagnostics.h"
#include "frontend/GradTerm.h"
#include "frontend/SemaTree.h"

#include <deque>
#include <optional>

namespace tk::grad {

/// The functions of a program; those of the library yield to the others, and do not see them.
struct Fns {
  using Map = std::map<std::string, const ast::Fn *, std::less<>>;
  Map program, library;
};

class GradKernel {
public:
  /// `names` are those of the program's items, which nothing may repeat.
  GradKernel(const ast::Grad &grad, const sema::Kernel &primal, const Fns &fns,
             std::set<std::string> names, Diagnostics &diags)
      : grad(grad), primal(primal), fns(fns), diags(diags), taken(std::move(names)) {}

  /// The derived kernel's text; nothing after an error, which was reported.
  std::optional<std::string> run();

private:
  /// Thrown after an error was reported; leaves the class nowhere.
  struct Refused {};

  struct Tensor {
    bool isInput = false;
    bool isResult = false;
    bool isActive = false;
    std::optional<ast::DType> dtype; ///< if it was declared, so that values are rounded to it
  };

  struct Statement {
    std::string name;
    std::vector<IndexRef> indices;
    TermPtr value;
    std::vector<TermPtr> conditions; ///< where they do not hold the value is 0
    std::optional<ast::DType> dtype;
    Span span;
    bool isResult = false;
    bool isActive = false;
  };

  /// For all values of the loops: `factor * value` is added to the adjoint at `at`, where the
  /// conditions hold.
  struct Contribution {
    std::vector<IndexRef> loops;
    std::vector<TermPtr> conditions;
    std::vector<TermPtr> at;
    TermPtr value;
    TermPtr factor; ///< null: 1. Contributions with equal factors are added up first.
    ast::ReduceModifier modifier = ast::ReduceModifier::None;
    const Statement *from = nullptr;
    bool isPiece = false; ///< of an index of several pieces, whose bounds are sums of many terms
  };

  /// Where the rules are in a statement.
  struct Place {
    const Statement *statement = nullptr;
    std::vector<IndexRef> loops;
    std::vector<TermPtr> conditions;
    ast::ReduceModifier modifier = ast::ReduceModifier::None;
    TermPtr factor;
  };

  /// An equation solved for a loop, which is in its range only where the bounds hold.
  struct Solved {
    IndexRef loop;
    TermPtr value;
    std::vector<TermPtr> bounds;
  };
  struct Solution {
    Substitution by;
    std::vector<Solved> solved;
    std::vector<TermPtr> conditions;
    std::vector<IndexRef> rest;        ///< loops that remain
    bool isSplit = false;              ///< into the digits of a loop
    std::vector<std::size_t> unsolved; ///< axes whose equations are among the conditions
  };

  // Resolving (GradResolve.cpp)
  using Scope = std::map<std::string, TermPtr, std::less<>>;
  void declare();
  void resolveStatement(const ast::Stmt &stmt);
  TermPtr resolve(const ast::Expr &e, const Scope &scope, bool inFunction);
  TermPtr resolveName(const std::string &name, const Scope &scope);
  TermPtr resolveReduce(const ast::Reduce &e, const Scope &scope, bool inFunction);
  TermPtr resolveCall(const ast::Call &e, const Scope &scope, bool inFunction);
  const sema::IndexVar *varOf(const ast::Index &index) const;
  IndexRef indexAt(const ast::Index &index);
  TermPtr withinBounds(const ast::Index &index, IndexRef symbol, const Scope &scope,
                       bool inFunction);
  TermPtr resolveBounded(const ast::Reduce &e, std::vector<IndexRef> binders, const TermPtr &body,
                         const TermPtr &condition);
  TermPtr sizeTerm(const sema::Node *n);
  bool isActive(const TermPtr &term) const;
  TermPtr extract(const TermPtr &term, std::vector<TermPtr> &conditions, const Statement &owner,
                  bool isRoot);
  TermPtr local(const std::string &base, const TermPtr &value,
                const std::vector<TermPtr> &conditions, const Statement &owner,
                const std::vector<IndexRef> &over = {});
  /// Factors of a product whose indices are among those of one of them.
  struct Operand {
    Product factors;
    std::set<IndexRef> indices;
    bool isActive = false;
  };
  std::vector<Operand> group(const Product &product, Product &rest) const;
  bool sharesAdjoint(const TermPtr &operand) const;
  TermPtr nameOperand(const TermPtr &operand, const std::vector<TermPtr> &conditions,
                      const Statement &owner);
  /// A sum's body with locals for operands that are expressions (GradOperands.cpp).
  TermPtr nameOperands(const TermPtr &body, const std::set<IndexRef> &all,
                       const std::vector<TermPtr> &conditions, const Statement &owner);
  void enter(Statement statement);
  void declareAxes(const std::string &name, const std::vector<IndexRef> &list);

  // Rules (GradRules.cpp)
  void differentiate(const Statement &s, const TermPtr &adjoint);
  void visit(const TermPtr &e, const TermPtr &adjoint, const Place &place);
  void visitBinary(const Term &e, const TermPtr &self, const TermPtr &adjoint, const Place &place);
  void visitCall(const Term &e, const TermPtr &self, const TermPtr &adjoint, const Place &place);
  void visitPower(const TermPtr &x, const TermPtr &y, const TermPtr &self, const TermPtr &adjoint,
                  const Place &place);
  void contribute(const TermPtr &access, const TermPtr &value, const Place &place);
  /// `e`, or the element of the statement's local if `e` is all of what that holds.
  TermPtr valueOf(const TermPtr &e, const Place &place) const;

  // Rules of reductions (GradReduce.cpp)
  void visitReduce(const Term &e, const TermPtr &adjoint, Place place);
  void visitSoftmax(const Term &e, const TermPtr &adjoint, Place place);
  void visitExtreme(const Term &e, const TermPtr &adjoint, Place place);
  void visitProduct(const Term &e, const TermPtr &adjoint, Place place);
  void visitScan(const Term &e, const TermPtr &adjoint, const Place &place);
  void visitRunningProduct(const Term &e, const TermPtr &adjoint, const Place &place);
  TermPtr runningSumBack(const std::string &base, IndexRef along, const TermPtr &body,
                         const Place &place);
  TermPtr dotOfRows(const Contribution &c, const Statement &p) const;
  TermPtr lengthOf(const std::vector<IndexRef> &indices) const;

  // Weights of rows (GradWeights.cpp)
  /// A value where conditions hold; elsewhere it is -inf.
  struct Masked {
    std::vector<TermPtr> conditions;
    TermPtr value;
  };
  /// exp(x - logsumexp(x)), over the reduction's indices.
  TermPtr weights(const Term &reduce, bool maySoftmax = true);
  TermPtr stored(const Term &reduce, ast::ReduceKind kind, bool anyType);
  const Statement *definitionOf(const std::string &name) const;
  TermPtr valueAt(const Term &read) const;
  Masked maskedBy(TermPtr x) const;
  bool isNeverInfinite(const TermPtr &term) const;

  // Adding up (GradCombine.cpp)
  void reverse();
  std::optional<ast::DType> roundingOf(const Statement &s, const TermPtr &adjoint) const;
  TermPtr combine(const std::string &name, const std::vector<IndexRef> &at,
                  const std::vector<Contribution> &list);
  Solution solve(const Contribution &c, const std::vector<IndexRef> &at);
  // Sums along diagonals (GradDiagonals.cpp)
  /// The diagonals of the pairs of two loops whose distance an axis of a tensor is a function of.
  struct Diagonals {
    std::size_t axis = 0;
    IndexRef a, b;
    std::vector<IndexRef> rest; ///< loops that are summed over, those two among them
    TermPtr key;                ///< the index of the axis, of the loops
    TermPtr last, extent;
    bool isSum = false, isLater = false;

    TermPtr place(const TermPtr &number) const;
  };
  struct StoredDiagonals {
    Contribution of;
    std::string name;
  };
  std::optional<Diagonals> diagonalsOf(const std::vector<IndexRef> &at, const Contribution &c);
  std::string storeDiagonals(const std::string &name, const std::vector<IndexRef> &at,
                             const Contribution &c, const Diagonals &diagonals);
  TermPtr sumOverDistances(const std::vector<IndexRef> &at, const Contribution &c);
  /// The indices of the gradient by an argument.
  std::vector<IndexRef> indicesOf(const std::string &argument);
  /// The contribution from sums along diagonals; null if its index is solved for, or is no function
  /// of a distance, and no table that receives the same is read at one.
  TermPtr sumOfDiagonals(const std::string &name, const std::vector<IndexRef> &at,
                         const Contribution &c);
  TermPtr build(const Contribution &c, const Solution &solution, bool withFactor,
                bool mayPad = true);
  bool isDeviation(const TermPtr &term, std::vector<IndexRef> loops) const;
  /// A statement among the adjoints.
  void emit(const std::string &name, const std::vector<IndexRef> &indices, TermPtr value);
  /// The same under a name of its own; its element.
  TermPtr define(const std::string &base, const std::vector<IndexRef> &indices, TermPtr value);
  std::vector<IndexRef> copies(const std::vector<IndexRef> &indices);

  // Solving (GradSolve.cpp)
  void solveBare(const Contribution &c, const std::vector<IndexRef> &at, std::vector<bool> &isDone,
                 Solution &out);
  bool solveAxis(const Contribution &c, const TermPtr &index, IndexRef at, Solution &out);
  bool solveShifted(const TermPtr &index, IndexRef at, IndexRef loop, Solution &out);
  bool solveLinear(const TermPtr &index, IndexRef at, IndexRef loop, Solution &out);
  bool solveDigits(const TermPtr &index, IndexRef at, Solution &out);
  bool splitLoops(std::vector<TermPtr> &open, Solution &out);
  void solveOpen(const Contribution &c, const std::vector<IndexRef> &at, std::vector<TermPtr> &open,
                 Solution &out);
  // Axes of several pieces (GradPieces.cpp)
  std::vector<Contribution> piecesOf(const Contribution &c, const std::vector<IndexRef> &at);
  bool narrow(Contribution &piece, const Solution &solution);
  void settle(IndexRef loop, TermPtr value, std::vector<TermPtr> bounds, Solution &out);

  // What is computed again (GradCopies.cpp)
  bool contracts(const Statement &t, const Statement &weights, const Term &softmax) const;
  std::vector<std::vector<Axis>> shapesOfWeights() const;
  void copyWeights(std::vector<Statement> &lines);
  void copyFor(const Term &read, const std::vector<Statement> &lines,
               const std::set<std::string> &marked, std::map<std::string, std::string> &names,
               std::vector<Statement> &made);

  // Printing (GradPrintKernel.cpp)
  static void joinRows(std::vector<Statement> &lines);
  std::string print();
  std::string header() const;

  IndexRef makeIndex(std::string name, TermPtr lo, TermPtr hi);
  std::string fresh(const std::string &base);
  [[noreturn]] void refuse(Span span, const std::string &why);

  const ast::Grad &grad;
  const sema::Kernel &primal;
  const Fns &fns;
  Diagnostics &diags;
  std::set<std::string> taken;
  std::vector<const ast::Call *> callPath; ///< of the functions that are being resolved
  bool inLibrary = false;                  ///< inside a function of the library

  std::deque<IndexSym> indices;
  std::map<std::string, std::vector<Axis>> axes; ///< of every tensor
  std::map<std::string, Tensor> tensors;         ///< and scalars that may be active
  std::map<std::string, std::string> renamed;    ///< locals whose names the gradient needs
  std::deque<Statement> statements;              ///< the kernel's own, taken apart
  std::deque<Statement> adjoints;                ///< then these
  std::vector<StoredDiagonals> storedDiagonals;
  std::map<std::string, std::vector<Contribution>> contributions; ///< by tensor
  std::map<std::string, std::string> adjointNames;
  std::map<const Statement *, std::vector<Statement>> after; ///< of what is printed behind others
  std::vector<Statement> first;                              ///< and before all
  std::map<std::string, std::string> norms;                  ///< by what they normalise
  std::map<const Statement *, TermPtr> softmaxes;            ///< as they were written
  std::vector<Contribution> received;                        ///< of the statement that is looked at
};

} // namespace tk::grad

#endif // TK_FRONTEND_GRADKERNEL_H
