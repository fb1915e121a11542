#include "frontend/Diagnostics.h"

#include <algorithm>
#include <exception>
#include <ostream>
#include <tuple>
#include <utility>

namespace tk {
namespace {

constexpr DiagInfo registry[] = {
#define TK_DIAGNOSTIC(NAME, CODE, SEVERITY, TITLE)                                                 \
  {Diag::NAME, CODE, Severity::SEVERITY, #NAME, TITLE},
#include "frontend/Diagnostics.def"
};

auto position(const Diagnostic &d) {
  return std::tuple(d.span.file, d.span.begin, d.span.end, d.severity, info(d.id).number);
}

bool same(const Diagnostic &a, const Diagnostic &b) {
  return a.id == b.id && a.span == b.span && a.message == b.message;
}

/// Optimal string alignment distance (a swap of neighbours counts one), both words short.
std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j)
    d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + cost});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

} // namespace

std::string DiagInfo::code() const {
  std::string digits = std::to_string(number);
  return "TK" + std::string(4 - std::min<std::size_t>(4, digits.size()), '0') + digits;
}

const DiagInfo &info(Diag id) { return registry[static_cast<std::size_t>(id)]; }
std::span<const DiagInfo> allDiagnostics() { return registry; }

DiagBuilder::DiagBuilder(Diagnostics &engine, Diag id, Severity severity, Span span)
    : engine(&engine), exceptionsBefore(std::uncaught_exceptions()) {
  diagnostic.id = id;
  diagnostic.severity = severity;
  diagnostic.span = span;
}

DiagBuilder::DiagBuilder(DiagBuilder &&other) noexcept
    : engine(std::exchange(other.engine, nullptr)), exceptionsBefore(other.exceptionsBefore),
      diagnostic(std::move(other.diagnostic)) {}

DiagBuilder::~DiagBuilder() noexcept(false) {
  if (engine && std::uncaught_exceptions() == exceptionsBefore)
    engine->add(std::move(diagnostic));
}

DiagBuilder &DiagBuilder::operator<<(std::string_view text) {
  diagnostic.message += text;
  return *this;
}
DiagBuilder &DiagBuilder::operator<<(char c) {
  diagnostic.message += c;
  return *this;
}
DiagBuilder &DiagBuilder::label(std::string text) {
  diagnostic.label = std::move(text);
  return *this;
}
DiagBuilder &DiagBuilder::label(Span span, std::string text) {
  if (span.valid())
    diagnostic.labels.push_back({span, std::move(text)});
  return *this;
}
DiagBuilder &DiagBuilder::expected(std::string text) {
  diagnostic.expected = std::move(text);
  return *this;
}
DiagBuilder &DiagBuilder::found(std::string text) {
  diagnostic.found = std::move(text);
  return *this;
}
DiagBuilder &DiagBuilder::help(std::string text) {
  if (!text.empty())
    diagnostic.help.push_back(std::move(text));
  return *this;
}
DiagBuilder &DiagBuilder::note(std::string text) {
  if (!text.empty())
    diagnostic.notes.push_back(std::move(text));
  return *this;
}
DiagBuilder &DiagBuilder::fix(Span span, std::string replacement) {
  if (span.valid())
    diagnostic.fixes.push_back({span, std::move(replacement)});
  return *this;
}

DiagBuilder Diagnostics::report(Diag id, Span span) { return {*this, id, info(id).severity, span}; }
DiagBuilder Diagnostics::error(Diag id, Span span) { return {*this, id, Severity::Error, span}; }
DiagBuilder Diagnostics::warning(Diag id, Span span) {
  return {*this, id, Severity::Warning, span};
}

void Diagnostics::add(Diagnostic diagnostic) {
  if (diagnostic.message.empty())
    diagnostic.message = info(diagnostic.id).title;
  if (std::any_of(list.begin(), list.end(), [&](auto &d) { return same(d, diagnostic); }))
    return;
  // Warnings have a cap of their own, lest they push the errors out.
  unsigned &count = diagnostic.severity == Severity::Error ? errors : others;
  if (count++ >= options.maxErrors) {
    ++dropped;
    return;
  }
  list.push_back(std::move(diagnostic));
}

std::vector<const Diagnostic *> Diagnostics::sorted() const {
  std::vector<const Diagnostic *> result;
  for (const Diagnostic &d : list)
    result.push_back(&d);
  std::sort(result.begin(), result.end(), [](auto *a, auto *b) {
    auto x = position(*a), y = position(*b);
    return x != y ? x < y : a < b; // in the order of reporting
  });
  return result;
}

void Diagnostics::clear() {
  list.clear();
  errors = others = dropped = 0;
}

std::string Diagnostics::text(RenderOptions render) const {
  std::string out;
  for (const Diagnostic *d : sorted()) {
    if (render.json)
      renderJson(*d, sourceManager, out);
    else
      renderText(*d, sourceManager, render.colour, out);
  }
  if (dropped != 0 && !render.json)
    out += "and " + std::to_string(dropped) + " more\n";
  return out;
}

void Diagnostics::render(std::ostream &out, RenderOptions render) const { out << text(render); }

/// Whether two words differ in the case of their letters alone.
static bool isSameButForCase(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  // One slip in a short word, two in a longer one; a one-letter name resembles every other.
  constexpr std::size_t longest = 64;
  if (word.size() < 2 || word.size() > longest)
    return {};
  std::size_t bound = word.size() <= 4 ? 1 : word.size() <= 8 ? 2 : 3;
  std::string_view best;
  for (std::string_view candidate : candidates) {
    if (candidate.size() > longest || candidate == word)
      continue;
    if (isSameButForCase(word, candidate))
      return candidate;
    std::size_t distance = editDistance(word, candidate);
    if (distance <= bound) {
      if (distance < bound || best.empty())
        best = candidate;
      if (distance == 0)
        break;
      bound = std::min(bound, distance);
    }
  }
  return best;
}

std::string didYouMean(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best = nearest(word, candidates);
  return best.empty() ? std::string() : "did you mean '" + std::string(best) + "'?";
}

} // namespace tk
