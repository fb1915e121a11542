// Calls: built-in functions, casts, pad.

#include "frontend/SemaKernel.h"
#include "frontend/StdLibrary.h"

namespace tk::sema {

namespace {
enum Family { Float, Number, Arithmetic, Predicate, Bits, Shift, Random };
struct Builtin {
  const char *name;
  Op op;
  unsigned arity;
  Family family;
};
constexpr Builtin builtins[] = {
#define TK_BUILTIN(NAME, SPELLING, ARITY, CLASS) {SPELLING, Op::NAME, ARITY, CLASS},
#include "frontend/Builtins.def"
};
} // namespace

/// The library's functions yield to the program's, which they themselves do not see.
const ast::Fn *KernelSema::findFn(const std::string &name, bool fromLibrary) const {
  if (auto it = globals.fns.find(name); it != globals.fns.end() && !fromLibrary)
    return it->second;
  auto it = globals.libraryFns.find(name);
  return it == globals.libraryFns.end() ? nullptr : it->second;
}

Node *KernelSema::call(const ast::Call &e) {
  if (const ast::Fn *fn = findFn(e.name, inLibrary))
    return inlineFn(*fn, e);
  if (e.name == "pad")
    return padded(e);
  if (std::optional<ast::DType> to = ast::parseDType(e.name))
    return cast(e, *to);
  std::vector<std::string_view> candidates{"pad"};
  for (const Builtin &b : builtins) {
    if (b.name == e.name)
      return builtin(e, b.op, b.arity, b.family);
    candidates.push_back(b.name);
  }
  for (const auto *fns : {&globals.fns, &globals.libraryFns})
    for (auto &[name, fn] : *fns)
      candidates.push_back(name);
  auto d = diags.error(Diag::UnknownFunction, e.nameSpan);
  d << "unknown function '" << e.name << "'";
  if (ast::parseReduceKind(e.name))
    d.help("a reduction names its index: " + e.name + "[k](…)");
  else if (stdLibrary().find("\nfn " + e.name + "(") != std::string_view::npos)
    d.help("the library has it: write `import std` at the beginning");
  else if (auto type = ast::parseForeignDType(e.name))
    d.help("did you mean '" + std::string(ast::spelling(*type)) + "'?");
  else if (std::string hint = didYouMean(e.name, candidates); !hint.empty())
    d.help(hint);
  return nullptr;
}

bool checkArity(const ast::Call &e, std::size_t arity, Diagnostics &diags) {
  if (e.args.size() == arity)
    return true;
  bool isReduction = e.args.size() == 1 && ast::parseReduceKind(e.name);
  diags.error(Diag::WrongArity, e.span)
          .expected(std::to_string(arity) + (arity == 1 ? " argument" : " arguments"))
          .found(std::to_string(e.args.size()))
          .help(isReduction ? "the reduction names its index: " + e.name + "[k](…)" : "")
      << "wrong number of arguments to '" << e.name << "'";
  return false;
}

Node *KernelSema::builtin(const ast::Call &e, Op o, unsigned arity, unsigned family) {
  if (!checkArity(e, arity, diags))
    return nullptr;
  std::vector<Node *> args;
  for (const ast::ExprPtr &arg : e.args) {
    Node *n = expr(*arg);
    if (!n)
      return nullptr;
    if (n->type == Type::Bool)
      return typeError(arg->span, "'" + e.name + "' takes numbers", "a number", n);
    if ((family == Bits || family == Shift || family == Random) && !isInteger(n->type))
      return typeError(arg->span, "'" + e.name + "' takes integers", "an integer", n);
    args.push_back(n);
  }
  if (family == Random) {
    for (Node *&arg : args)
      arg = convert(arg, Type::I64, true);
    return op(o, Type::F32, std::move(args), e.span);
  }
  if (family == Shift && !args[0]->literal) {
    args[1] = convert(args[1], args[0]->type);
    const Type type = args[0]->type;
    return args[1] ? op(o, type, std::move(args), e.span) : nullptr;
  }
  bool wantsFloat = family == Float || family == Predicate;
  if (!meet(args, e.span, wantsFloat ? std::optional(Type::F32) : std::nullopt,
            family == Arithmetic ? NarrowIntegers::Widen : NarrowIntegers::Keep))
    return nullptr;
  if (family == Bits || family == Shift) {
    // Literals take the type that they meet; among themselves they are i64.
    Type common = Type::I64;
    for (Node *arg : args)
      if (!arg->literal)
        common = arg->type;
    for (Node *&arg : args)
      if (arg = convert(arg, common, true); !arg)
        return nullptr;
  }
  Type type = family == Predicate ? Type::Bool : args[0]->type;
  if (wantsFloat && isFloat(args[0]->type))
    return op(o, type, std::move(args), e.span);
  Node *n = op(o, type, std::move(args), e.span);
  if (isInteger(type))
    n->literal = false;
  return n;
}

Node *KernelSema::cast(const ast::Call &e, ast::DType to) {
  if (!checkArity(e, 1, diags))
    return nullptr;
  Node *n = expr(*e.args[0]);
  if (!n)
    return nullptr;
  if (to == ast::DType::Bool && n->type != Type::Bool) {
    std::vector<Node *> args{n, intConst(0, e.span, Type::Index, true)};
    return meet(args, e.span) ? op(Op::Ne, Type::Bool, std::move(args), e.span) : nullptr;
  }
  Type type = computeType(to);
  if (isNarrowFloat(to)) {
    n = forRounding(n, to, true);
    Node *r = make(NodeKind::Round, type, e.span);
    r->stored = to;
    r->args = {n};
    r->kernelLevel = n->kernelLevel;
    return r;
  }
  if (n->literal && n->kind == NodeKind::FloatConst && isInteger(type))
    n = convert(n, Type::F32);
  n = convert(n, type, true);
  return indexMode && n && isInteger(type) ? convert(n, Type::Index) : n;
}

Node *KernelSema::padded(const ast::Call &e) {
  if (!checkArity(e, 2, diags))
    return nullptr;
  const auto *inner = ast::as<ast::Access>(e.args[0].get());
  if (!inner) {
    diags.error(Diag::BadPad, e.args[0]->span).expected("an access such as x[i - 1]")
        << "the first argument of pad must be an access to a tensor";
    return nullptr;
  }
  bool outer = indexMode;
  indexMode = false;
  Node *value = expr(*e.args[1]);
  indexMode = outer;
  return value ? access(*inner, value) : nullptr;
}

} // namespace tk::sema
