// Names: which may be declared, what to write for one that may not or that stands for nothing, and
// reductions that reuse the name of an index of the left side.

#include "frontend/SemaKernel.h"

#include <algorithm>
#include <array>
#include <functional>

namespace tk::sema {

static bool isNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Where `name` stands in a text as a name of its own, after `from`; npos if nowhere.
static std::size_t findName(std::string_view text, std::string_view name, std::size_t from) {
  for (std::size_t at = text.find(name, from); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    std::size_t end = at + name.size();
    if ((at == 0 || !isNameChar(text[at - 1])) && (end == text.size() || !isNameChar(text[end])))
      return at;
  }
  return std::string_view::npos;
}

/// A name that neither the kernel nor the text has.
std::string KernelSema::unusedName(const std::string &name, bool isIndex,
                                   std::string_view text) const {
  auto isFree = [&](const std::string &candidate) {
    return !scope.count(candidate) && !kernelNames.count(candidate) &&
           !globals.fns.count(candidate) && !globals.consts.count(candidate) &&
           findName(text, candidate, 0) == std::string_view::npos;
  };
  static constexpr std::array<const char *, 8> usual{"k", "j", "i", "l", "m", "n", "p", "q"};
  if (isIndex)
    for (const char *candidate : usual)
      if (isFree(candidate))
        return candidate;
  for (unsigned n = 2;; ++n)
    if (std::string candidate = name + std::to_string(n); isFree(candidate))
      return candidate;
}

/// The text of `whole` with another index in the place of `name`; empty if it is too long to show.
std::string KernelSema::renamed(const std::string &name, Span whole) const {
  std::string_view text = diags.sources().text(whole);
  constexpr std::size_t longest = 100;
  if (text.empty() || text.size() > longest || text.find('\n') != std::string_view::npos)
    return {};
  const std::string other = unusedName(name, true, text);
  std::string result;
  std::size_t done = 0;
  for (std::size_t at = findName(text, name, 0); at != std::string_view::npos;
       at = findName(text, name, at + 1)) {
    std::size_t next = text.find_first_not_of(' ', at + name.size());
    if (next != std::string_view::npos && (text[next] == '[' || text[next] == '('))
      continue; // a tensor or a function
    result += std::string(text.substr(done, at - done)) + other;
    done = at + name.size();
  }
  return done == 0 ? std::string() : result + std::string(text.substr(done));
}

Node *KernelSema::unknownName(const std::string &name, Span span) {
  if (withoutLet.contains(name))
    return nullptr;
  if (auto it = kernelNames.find(name); it != kernelNames.end()) {
    auto d = diags.error(Diag::UsedBeforeDefinition, span);
    d.label(it->second, "defined here");
    d << "'" << name << "' is used before it is defined";
    if (name == statementName)
      d.help("a statement does not read what it defines; running results are cumsum, cumprod and "
             "cummax, as in cumsum[i](x[i])");
    return nullptr;
  }
  std::vector<std::string_view> candidates;
  for (auto &[known, symbol] : scope)
    candidates.push_back(known);
  for (auto &[known, constant] : globals.consts)
    candidates.push_back(known);
  std::string hint = didYouMean(name, candidates);
  if (signature || !current)
    return unknownSize(name, span, hint);
  if (indexMode && (!activeIndices.empty() || (subscript && hint.empty())))
    return unboundIndex(name, span);
  auto d = diags.error(Diag::UnknownName, span);
  d << "unknown name '" << name << "'";
  if (!hint.empty())
    d.help(hint);
  return nullptr;
}

/// The first name in an index of an access that neither stands for something nor is an index of
/// `around`; empty if there is none.
std::string KernelSema::unboundIn(const ast::Expr &e, const ast::Reduce &around) const {
  std::set<std::string> bound;
  for (const ast::IndexPtr &binder : around.binders)
    bound.insert(binder->name);
  std::string found;
  auto walk = [&](auto &self, const ast::Expr &e, bool inIndex) -> void {
    switch (e.kind) {
    case ast::ExprKind::NameRef: {
      const std::string &name = static_cast<const ast::NameRef &>(e).name;
      if (inIndex && found.empty() && !bound.contains(name) && !scope.contains(name) &&
          !globals.consts.contains(name) && !kernelNames.contains(name))
        found = name;
      return;
    }
    case ast::ExprKind::Unary:
      return self(self, *static_cast<const ast::Unary &>(e).operand, inIndex);
    case ast::ExprKind::Binary:
      self(self, *static_cast<const ast::Binary &>(e).lhs, inIndex);
      return self(self, *static_cast<const ast::Binary &>(e).rhs, inIndex);
    case ast::ExprKind::Call:
      for (const ast::ExprPtr &arg : static_cast<const ast::Call &>(e).args)
        self(self, *arg, inIndex);
      return;
    case ast::ExprKind::Access:
      for (const ast::ExprPtr &index : static_cast<const ast::Access &>(e).indices)
        self(self, *index, true);
      return;
    default: // a reduction may bind the name
      return;
    }
  };
  walk(walk, e, false);
  return found;
}

/// Reports a name in an extent or a constraint that stands for nothing, once.
Node *KernelSema::unknownSize(const std::string &name, Span span, const std::string &hint) {
  if (!unknownSizes.insert(name).second)
    return nullptr;
  for (const ast::ParamPtr &param : out.source->params)
    if (param->name == name && !param->isTensor) {
      diags.error(Diag::BadDimension, span)
              .label(param->nameSpan, "declared here")
              .help("a scalar is declared before what uses it: move '" + name + "' to the front")
          << "'" << name << "' is used before it is declared";
      return nullptr;
    }
  auto d = diags.error(signature ? Diag::BadDimension : Diag::UnknownName, span);
  d << (signature ? "no parameter binds the dimension '" : "unknown name '") << name << "'";
  d.help(hint.empty() ? "a dimension is bound where it stands alone as an axis of a parameter, or "
                        "defined by `where " +
                            name + " == …`"
                      : hint);
  return nullptr;
}

/// Reports an index that nothing introduces: it may be missing in the reduction around it, or on
/// the left side of a local.
Node *KernelSema::unboundIndex(const std::string &name, Span span) {
  auto d = diags.error(Diag::FreeIndex, span);
  d << "index '" << name << "' is neither on the left side nor bound by a reduction";
  if (reducing && inlining.empty()) {
    std::string binders;
    for (const ast::IndexPtr &binder : reducing->binders)
      binders += std::string(diags.sources().text(binder->span)) + ", ";
    d.help("to reduce over it, too, write " + std::string(ast::spelling(reducing->reduceKind)) +
           "[" + binders + name + "](…)");
  } else {
    d.help("did you mean sum[" + name + "](…)?");
  }
  if (!inlining.empty() || !current || current->kind == ast::StmtKind::Define ||
      current->kind == ast::StmtKind::Assert)
    return nullptr;
  const bool isScalar = current->kind == ast::StmtKind::LetScalar;
  std::string indices;
  if (!isScalar)
    for (const ast::IndexPtr &index : static_cast<const ast::LetTensor *>(current)->indices)
      indices += index->name + ", ";
  d.help("for a value of each " + name + ", write let " + statementName + "[" + indices + name +
         "] = …");
  return nullptr;
}

/// The first tensor that an expression names as a whole, or null.
static const ast::NameRef *wholeTensorIn(const ast::Expr &e,
                                         const std::function<bool(const std::string &)> &isTensor) {
  switch (e.kind) {
  case ast::ExprKind::NameRef: {
    const auto &name = static_cast<const ast::NameRef &>(e);
    return isTensor(name.name) ? &name : nullptr;
  }
  case ast::ExprKind::Unary:
    return wholeTensorIn(*static_cast<const ast::Unary &>(e).operand, isTensor);
  case ast::ExprKind::Binary: {
    const auto &binary = static_cast<const ast::Binary &>(e);
    const ast::NameRef *found = wholeTensorIn(*binary.lhs, isTensor);
    return found ? found : wholeTensorIn(*binary.rhs, isTensor);
  }
  case ast::ExprKind::Call:
    for (const ast::ExprPtr &arg : static_cast<const ast::Call &>(e).args)
      if (const ast::NameRef *found = wholeTensorIn(*arg, isTensor))
        return found;
    return nullptr;
  default:
    return nullptr;
  }
}

/// `y[i, j] = …` for a result that is defined without indices; and its tensors, which have them,
/// too.
std::string KernelSema::wholeTensorHelp(const ast::Define &stmt, const Tensor &result) const {
  std::string indices;
  std::size_t count = 0;
  for (const char *name : {"i", "j", "k", "l", "m", "n", "p", "q"})
    if (count < result.extents.size() && !scope.contains(name) && !kernelNames.contains(name)) {
      indices += (count ? ", " : "") + std::string(name);
      ++count;
    }
  if (count < result.extents.size())
    return {};
  std::string help = "a statement defines each element: " + stmt.name + "[" + indices + "] = …";
  const ast::NameRef *whole = wholeTensorIn(*stmt.value, [&](const std::string &name) {
    auto it = scope.find(name);
    return it != scope.end() && it->second.tensor && it->second.rank() == count;
  });
  return whole ? help + ", and reads " + whole->name + "[" + indices + "]" : help;
}

bool KernelSema::checkFresh(const std::string &name, Span span, bool index) {
  Span earlier;
  if (auto it = scope.find(name); it != scope.end())
    earlier = it->second.span;
  else if (auto known = kernelNames.find(name);
           index && inlining.empty() && known != kernelNames.end())
    earlier = known->second;
  else if (auto fn = globals.fns.find(name); fn != globals.fns.end() && !inLibrary)
    earlier = fn->second->nameSpan;
  else if (auto constant = globals.consts.find(name);
           constant != globals.consts.end() && !inLibrary)
    earlier = constant->second->nameSpan;
  else if (name != "inf" && name != "nan" && name != "pi")
    return true;
  auto d = diags.error(Diag::Redeclared, span);
  d << "'" << name << "' is declared twice";
  if (earlier.valid())
    d.label(earlier, "declared here");
  std::string text = index ? renamed(name, declaring) : std::string();
  if (!text.empty())
    d.help((binding ? "rename the inner one: " : "rename this one: ") + text);
  else
    d.help("rename this one, for example to '" + unusedName(name, index, {}) + "'");
  return false;
}

/// Whether a reduction's index may have this name although it stands for something: for an index of
/// the left side. Nested reductions may not repeat each other's.
bool KernelSema::mayReuse(const ast::Index &index) const {
  auto it = scope.find(index.name);
  return binding && it != scope.end() && it->second.index && it->second.index->isLeft;
}

namespace {
struct NameUses {
  bool own = false;    ///< of what the name stands for outside of reductions that bind it
  bool reused = false; ///< a reduction binds it
};
} // namespace

static void collectUses(const ast::Expr &e, const std::string &name, NameUses &uses) {
  auto walk = [&](const ast::ExprPtr &inner) {
    if (inner)
      collectUses(*inner, name, uses);
  };
  switch (e.kind) {
  case ast::ExprKind::NameRef:
    uses.own |= static_cast<const ast::NameRef &>(e).name == name;
    return;
  case ast::ExprKind::Unary:
    return walk(static_cast<const ast::Unary &>(e).operand);
  case ast::ExprKind::Binary:
    walk(static_cast<const ast::Binary &>(e).lhs);
    return walk(static_cast<const ast::Binary &>(e).rhs);
  case ast::ExprKind::If:
    walk(static_cast<const ast::If &>(e).condition);
    walk(static_cast<const ast::If &>(e).thenExpr);
    return walk(static_cast<const ast::If &>(e).elseExpr);
  case ast::ExprKind::Call:
    for (const ast::ExprPtr &arg : static_cast<const ast::Call &>(e).args)
      walk(arg);
    return;
  case ast::ExprKind::Access:
    for (const ast::ExprPtr &index : static_cast<const ast::Access &>(e).indices)
      walk(index);
    return;
  case ast::ExprKind::Reduce: {
    const auto &reduce = static_cast<const ast::Reduce &>(e);
    for (const ast::IndexPtr &binder : reduce.binders) {
      walk(binder->lo);
      walk(binder->hi);
      uses.own |= ast::keepsIndex(reduce.reduceKind) && binder->name == name;
    }
    if (!ast::binds(reduce, name))
      return walk(reduce.body);
    uses.reused = true;
    return;
  }
  default:
    return;
  }
}

/// A left index that only reductions of its name seem to use repeats the value, which is rarely
/// what was meant.
void KernelSema::warnOfReusedOnly(const std::vector<ast::IndexPtr> &left, const ast::Expr &value) {
  if (out.source->derived)
    return;
  for (const ast::IndexPtr &index : left) {
    NameUses uses;
    collectUses(value, index->name, uses);
    if (uses.reused && !uses.own)
      diags.warning(Diag::LeftIndexReused, index->nameSpan)
              .help("leave it out on the left, or use it outside of the reduction")
          << "index '" << index->name
          << "' of the left side is used only in reductions that bind a '" << index->name
          << "' of their own: the value repeats along it";
  }
}

} // namespace tk::sema
