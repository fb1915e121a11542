// Names: which may be declared, what to write for one that may not, and reductions that reuse the
// name of an index of the left side.

#include "frontend/SemaKernel.h"

#include <algorithm>
#include <array>

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
          << "index '" << index->name << "' is used only in reductions that bind a '" << index->name
          << "' of their own, so that the value repeats along it";
  }
}

} // namespace tk::sema
