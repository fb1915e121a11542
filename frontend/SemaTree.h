// What semantic analysis makes of a program: kernels with names resolved, functions inlined, every
// value typed, every index with its range, and every access proven or turned into a launch check.
//
// Expressions are a graph: an argument of an inlined function is one node however often it is used.

#ifndef TK_FRONTEND_SEMATREE_H
#define TK_FRONTEND_SEMATREE_H

#include "frontend/Types.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tk::sema {

enum class Op : std::uint8_t {
  Add,
  Sub,
  Mul,
  Div,      // real
  FloorDiv, // integers
  Rem,      // floor remainder
  Pow,      // integer exponent: args[1] is an IntConst
  Neg,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  And,
  Or,
  Not,
  Select, // condition, then, else
  ExpDiff,
  DivOrZero,
#define TK_BUILTIN(NAME, SPELLING, ARITY, CLASS) NAME,
#include "frontend/Builtins.def"
};

enum class NodeKind : std::uint8_t {
  IntConst,
  FloatConst,
  BoolConst,
  Dim,     // number
  Scalar,  // number of the parameter
  Index,   // index
  Load,    // tensor, args: indices; pad
  Op,      // op, args
  Convert, // args[0] to `type`
  Round,   // args[0] through the stored type `stored`
  Reduce,  // reduce, indices, args[0]
  Scan,    // reduce, indices[0] is both the position and what runs
};

struct Node;

/// An index of a left side or a binder: it runs over lo .. hi - 1.
struct IndexVar {
  std::string name;
  Span span;
  Node *lo = nullptr, *hi = nullptr;
  unsigned atom = ~0u;                 ///< its number in the symbolic arithmetic of bounds
  std::vector<const ast::Call *> path; ///< of the functions that it was declared in
  /// The bounds of a reduction that are loaded or indices; lo and hi are those of all its terms.
  Node *boundLo = nullptr, *boundHi = nullptr;
  bool isLeft = false; ///< of a left side: a reduction may reuse its name
  bool startsAtZero() const;
};

/// A parameter, a local or a result at one time (an `inout` one is two).
struct Tensor {
  std::string name;
  Span span;
  ast::DType dtype = ast::DType::F32;
  std::vector<Node *> extents;     ///< where each axis ends
  std::vector<Node *> lows;        ///< where each axis begins; empty: all at 0 (only locals differ)
  int param = -1;                  ///< position among the parameters, -1 for a computed one
  bool broken = false;             ///< its definition was in error: say nothing more of it
  bool declared = false;           ///< the type was written: reads see rounded values
  std::vector<std::string> shards; ///< of the signature: the axis of the mesh of each extent
  bool fromLiterals = false;       ///< its elements are, as of Node::fromLiterals
};

struct Node {
  NodeKind kind;
  Type type = Type::Index;
  Span span;
  bool literal = false;      ///< made of literals only: takes the type that it meets
  bool fromLiterals = false; ///< an integer that choices and sums make of literals only: it may
                             ///< be stored into any integer type
  bool quotient = false;     ///< an integer whose value comes out of a `/`
  Span quotientSpan;
  bool kernelLevel = false; ///< depends on dimensions and scalar parameters only
  std::int64_t intValue = 0;
  double floatValue = 0;
  unsigned number = 0;
  Op op = Op::Add;
  ast::DType stored = ast::DType::F32;
  bool roundsToOdd = false; ///< a Convert of 64 bits to f64, which is then rounded to fewer bits
  bool ofFactor = false;    ///< a Round that no declared type asks for: of a contraction's factor
  Tensor *tensor = nullptr;
  Node *pad = nullptr;
  ast::ReduceKind reduce = ast::ReduceKind::Sum;
  ast::ReduceModifier modifier = ast::ReduceModifier::None;
  std::optional<ast::DType> wire; ///< see ast::Reduce
  std::vector<IndexVar *> indices;
  std::vector<Node *> args;
};

inline bool IndexVar::startsAtZero() const {
  return lo->kind == NodeKind::IntConst && lo->intValue == 0;
}

/// A tensor defined element by element.
struct Statement {
  Tensor *tensor = nullptr;
  std::vector<IndexVar *> indices;
  Node *value = nullptr; ///< of the tensor's compute type; rounding to the stored type remains
  Span span;
};

/// A condition that is checked at launch.
struct Assumption {
  Node *condition = nullptr;
  std::string text;
  bool bounds = false; ///< it makes an access legal, rather than being a `where` constraint
  Span span;
};

struct ScheduleValue {
  std::string axis; ///< empty if there is none
  std::string word; ///< `grouped` in `grouped(8)`; empty for a plain integer
  std::int64_t value = 0;
};
struct ScheduleEntry {
  std::string key;
  Span keySpan;
  std::vector<ScheduleValue> values;
};
struct Schedule {
  Span span;            ///< of the kernel's name in it
  std::string arch;     ///< empty: any
  Node *when = nullptr; ///< null: always
  std::string whenText;
  Span whenSpan;
  std::vector<ScheduleEntry> entries;
};

/// An index that an integer tensor gives, which a checked kernel tests: `index` must lie in
/// low .. high - 1 where the guards hold, conditions of the `if`s around it or their opposites.
struct Gather {
  Node *index = nullptr;
  Node *low = nullptr, *high = nullptr;
  std::vector<std::pair<Node *, bool>> guards;
  std::string text;
  Span span;
};

struct Scalar {
  std::string name;
  ast::DType dtype = ast::DType::F32;
  Node *defaultValue = nullptr;
};

struct Kernel {
  const ast::Kernel *source = nullptr;
  std::vector<std::string> dims;
  std::vector<Span> dimSpans;
  std::vector<std::string> meshAxes; ///< of the program
  /// One a parameter, in order: exactly one of the two is set.
  struct Param {
    Tensor *tensor = nullptr;
    std::unique_ptr<Scalar> scalar;
    const ast::Param *source = nullptr;
  };
  std::vector<Param> params;
  std::vector<Tensor *> results; ///< then the new values of the inout parameters
  std::vector<Assumption> assumptions;
  std::vector<Statement> statements;
  std::vector<Gather> gathers;
  /// For each gather the lowest and the highest index, and where the axis begins and ends. Then for
  /// each assertion what runtime/GatherChecks.cpp says.
  std::vector<Statement> gatherChecks;
  /// What assertions alone rest on: only the kernel that checks has it.
  std::vector<Statement> assertedStatements;
  std::vector<Assumption> assertedAssumptions;
  std::vector<Schedule> schedules;

  std::deque<Node> nodes;
  std::deque<Tensor> tensors;
  std::deque<IndexVar> indices;
};

struct Module {
  std::vector<std::unique_ptr<Kernel>> kernels;
};

} // namespace tk::sema

#endif // TK_FRONTEND_SEMATREE_H
