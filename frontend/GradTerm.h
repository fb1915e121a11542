// Terms: the expressions that gradients are derived with, immutable and shared.
//
// A term is a tree of the language's expressions with functions inlined, names resolved and indices
// as objects of their own, so that indices can be replaced without regard to what they are called.
// Names are chosen again as a statement is printed.

#ifndef TK_FRONTEND_GRADTERM_H
#define TK_FRONTEND_GRADTERM_H

#include "frontend/AST.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace tk::grad {

struct Term;
using TermPtr = std::shared_ptr<const Term>;

/// Trees beyond this many nodes are refused.
inline constexpr std::size_t kMaxTermSize = 20000;

/// An index: it runs over lo .. hi - 1, which are made of dimensions and scalars.
struct IndexSym {
  std::string name; ///< what it is called if nothing else is
  TermPtr lo, hi;
  unsigned order = 0; ///< in which it was made
};
using IndexRef = const IndexSym *;

enum class TermKind : std::uint8_t {
  Int,
  Float,
  Bool,
  Name,  ///< dimension, integer scalar, constant
  Index, ///< index
  Neg,
  Not,
  Binary,
  If,     ///< condition, then, else
  Call,   ///< a built-in function, a cast or pad
  Access, ///< an element of a tensor; without arguments also a scalar
  Reduce, ///< of args[0]
};

struct Term {
  TermKind kind = TermKind::Int;
  std::int64_t intValue = 0; ///< also of Bool
  double floatValue = 0;
  std::string name;
  IndexRef index = nullptr;
  ast::BinaryOp op = ast::BinaryOp::Add;
  ast::ReduceKind reduce = ast::ReduceKind::Sum;
  ast::ReduceModifier modifier = ast::ReduceModifier::None;
  std::vector<IndexRef> binders; ///< of kinds that keep their index: the ones that are kept
  std::vector<TermPtr> args;
  std::size_t size = 1; ///< of the tree, shared parts counted each time; saturates

  bool isInt(std::int64_t value) const { return kind == TermKind::Int && intValue == value; }
  bool isFloat(double value) const { return kind == TermKind::Float && floatValue == value; }
  bool isNumber(std::int64_t value) const {
    return isInt(value) || isFloat(static_cast<double>(value));
  }
  bool is(ast::BinaryOp o) const { return kind == TermKind::Binary && op == o; }
};

// Making terms. Sums and products leave neutral elements out; integers are folded.
TermPtr integer(std::int64_t value);
TermPtr real(double value);
TermPtr truth(bool value);
TermPtr named(std::string name);
TermPtr indexTerm(IndexRef index);
TermPtr access(std::string name, std::vector<TermPtr> args);
TermPtr elementAt(std::string name, const std::vector<IndexRef> &indices);
TermPtr call(std::string name, std::vector<TermPtr> args);
TermPtr binary(ast::BinaryOp op, TermPtr a, TermPtr b);
TermPtr add(TermPtr a, TermPtr b);
TermPtr sub(TermPtr a, TermPtr b);
TermPtr mul(TermPtr a, TermPtr b);
TermPtr div(TermPtr a, TermPtr b);
TermPtr neg(TermPtr a);
TermPtr power(TermPtr base, std::int64_t exponent);
TermPtr negation(TermPtr condition);
TermPtr choose(TermPtr condition, TermPtr a, TermPtr b);
TermPtr reduction(ast::ReduceKind kind, std::vector<IndexRef> binders, TermPtr body,
                  ast::ReduceModifier modifier = ast::ReduceModifier::None);
/// `value` where all conditions hold, else 0.0.
TermPtr where(const std::vector<TermPtr> &conditions, TermPtr value);
/// The same term with other arguments.
TermPtr withArgs(const TermPtr &term, std::vector<TermPtr> args);

/// A product taken apart; a sign goes along.
struct Product {
  std::vector<TermPtr> above, below;
  bool isNegative = false;

  void take(const TermPtr &term);
};
TermPtr productOf(const std::vector<TermPtr> &above, const std::vector<TermPtr> &below);

bool equal(const TermPtr &a, const TermPtr &b);
/// What stands in the place of indices.
using Substitution = std::map<IndexRef, TermPtr>;
TermPtr substitute(const TermPtr &term, const Substitution &by);
/// The indices that a term needs from outside.
std::set<IndexRef> freeIndices(const TermPtr &term);
/// Calls `see` on the term and all below it; stops going down where `see` gives false.
void walk(const TermPtr &term, const std::function<bool(const Term &)> &see);
bool mentions(const TermPtr &term, IndexRef index);
/// Whether all elements that a term reads stand at bare indices, so that it may be read under any
/// condition.
bool readsBare(const TermPtr &term);
/// Whether a condition is on sizes and indices, so that the proof of an access may rest on it.
bool isOfIndices(const TermPtr &condition);

/// What printing has to know: where the axes of tensors begin and end, and which names are taken.
struct Axis {
  TermPtr lo, hi;
};
struct PrintContext {
  const std::map<std::string, std::vector<Axis>> &axes;
  const std::set<std::string> &taken;
};

/// Prints one statement, whose indices get names that are free in the kernel and differ from one
/// another; ranges are written where neither a bare use nor a result's shape gives them.
std::string printStatement(const PrintContext &context, const std::string &name, bool ofResult,
                           const std::vector<IndexRef> &indices, const std::string &type,
                           const TermPtr &value);
/// A term without indices, as in the dimension of a tensor.
std::string printTerm(const TermPtr &term);

/// `coefficient * loop + rest`, neither of which depends on the loop; false if the term is none.
bool decompose(const TermPtr &term, IndexRef loop, TermPtr &coefficient, TermPtr &rest);

/// The same term with the constants of each sum of names, indices and integers added up, and what
/// cancels left out: `h - -1 + -1` is `h`.
TermPtr withShortSums(const TermPtr &term);

} // namespace tk::grad

#endif // TK_FRONTEND_GRADTERM_H
