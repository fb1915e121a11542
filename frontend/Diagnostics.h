// The diagnostics engine: typed codes, several labelled spans, what was expected and found, a fix.
//
//   diags.error(Diag::UnknownName, span) << "unknown name '" << name << "'"
//       .help("did you mean 'alpha'?");                         // operator<< returns the builder
//
// A builder hands its diagnostic over when it is destroyed, at the end of the full expression.

#ifndef TK_FRONTEND_DIAGNOSTICS_H
#define TK_FRONTEND_DIAGNOSTICS_H

#include "frontend/Source.h"

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tk {

enum class Severity : std::uint8_t { Error, Warning, Note };

/// One enumerator for each row of Diagnostics.def.
enum class Diag : std::uint16_t {
#define TK_DIAGNOSTIC(NAME, CODE, SEVERITY, TITLE) NAME,
#include "frontend/Diagnostics.def"
};

/// A row of the registry.
struct DiagInfo {
  Diag id;
  std::uint16_t number; ///< 302 for TK0302
  Severity severity;
  const char *name;  ///< the enumerator's name
  const char *title; ///< what the code stands for, in general
  std::string code() const;
};

const DiagInfo &info(Diag id);
std::span<const DiagInfo> allDiagnostics();

/// A span that is involved, and what is to be said of it.
struct DiagLabel {
  Span span;
  std::string text; ///< may be empty: the span is underlined only
};

/// A replacement that would make the program right. An empty span inserts.
struct DiagFix {
  Span span;
  std::string replacement;
};

struct Diagnostic {
  Diag id;
  Severity severity;
  Span span;           ///< the primary span; may be invalid (then no source is shown)
  std::string message; ///< the registry's title if nothing was streamed
  std::string label;   ///< text beside the caret of the primary span
  std::vector<DiagLabel> labels;
  std::string expected;
  std::string found;
  std::vector<std::string> help;
  std::vector<std::string> notes;
  std::vector<DiagFix> fixes;
};

class Diagnostics;

/// Builds one diagnostic and reports it on destruction, unless an exception ends its building.
/// Reporting takes memory, hence the destructor may throw std::bad_alloc.
class DiagBuilder {
public:
  DiagBuilder(Diagnostics &engine, Diag id, Severity severity, Span span);
  DiagBuilder(DiagBuilder &&other) noexcept;
  DiagBuilder(const DiagBuilder &) = delete;
  DiagBuilder &operator=(const DiagBuilder &) = delete;
  DiagBuilder &operator=(DiagBuilder &&) = delete;
  ~DiagBuilder() noexcept(false);

  DiagBuilder &operator<<(std::string_view text);
  DiagBuilder &operator<<(char c);
  template <typename Int>
    requires(std::is_integral_v<Int> && !std::is_same_v<Int, char>)
  DiagBuilder &operator<<(Int value) {
    return *this << std::string_view(std::to_string(value));
  }

  /// Text beside the caret of the primary span.
  DiagBuilder &label(std::string text);
  /// One more span to underline.
  DiagBuilder &label(Span span, std::string text = {});
  DiagBuilder &expected(std::string text);
  DiagBuilder &found(std::string text);
  DiagBuilder &help(std::string text);
  /// A remark on a line of its own (`note: …`), such as the ranges a proof started from.
  DiagBuilder &note(std::string text);
  DiagBuilder &fix(Span span, std::string replacement);

private:
  Diagnostics *engine;
  int exceptionsBefore; ///< that were under way when the building began
  Diagnostic diagnostic;
};

struct DiagOptions {
  unsigned maxErrors = 50; ///< later ones are counted, not kept; as many warnings
};

struct RenderOptions {
  bool colour = false;
  bool json = false; ///< one JSON object a line
};

/// Collects diagnostics. Not safe for concurrent use.
class Diagnostics {
public:
  explicit Diagnostics(const SourceManager &sources, DiagOptions options = {})
      : sourceManager(sources), options(options) {}

  /// Reports with the severity of the registry's row.
  DiagBuilder report(Diag id, Span span);
  DiagBuilder error(Diag id, Span span);
  DiagBuilder warning(Diag id, Span span);

  bool hasErrors() const { return errors != 0; }
  unsigned errorCount() const { return errors; }
  const SourceManager &sources() const { return sourceManager; }

  /// What was reported, by file and position, without repetitions.
  std::vector<const Diagnostic *> sorted() const;
  /// Writes all of them, by position.
  void render(std::ostream &out, RenderOptions options = {}) const;
  std::string text(RenderOptions options = {}) const;
  /// Forgets everything (an editor's server reuses one engine).
  void clear();

private:
  friend class DiagBuilder;
  void add(Diagnostic diagnostic);

  const SourceManager &sourceManager;
  DiagOptions options;
  std::vector<Diagnostic> list;
  unsigned errors = 0;
  unsigned others = 0; ///< warnings and notes
  unsigned dropped = 0;
};

/// Writes one diagnostic in the form that the language reference shows.
void renderText(const Diagnostic &diagnostic, const SourceManager &sources, bool colour,
                std::string &out);
/// Writes a text as a string of JSON. Bytes that are not UTF-8, which the names of files may have,
/// become U+FFFD.
void quoteJson(std::string_view text, std::string &out);
/// Writes one diagnostic as a line of JSON.
void renderJson(const Diagnostic &diagnostic, const SourceManager &sources, std::string &out);

/// The candidate nearest to `word`, if it is near enough to be what was meant; else empty.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);
/// "did you mean 'x'?", or empty.
std::string didYouMean(std::string_view word, std::span<const std::string_view> candidates);

} // namespace tk

#endif // TK_FRONTEND_DIAGNOSTICS_H
