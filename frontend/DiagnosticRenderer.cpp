// Renders diagnostics.
//
//   gemm.tk:2:27: error[TK0302]: dimension 'K' is 64 in 'a' and 32 in 'b'
//     2 |   c[i, j] = sum[k](a[i, k] * b[k, j])
//       |                      ^^^^^^^ ------- 'K' is 32 here
//       |                      'K' is 64 here
//     expected: …
//     found: …
//     help: …
//
// 1. All spans are cut to lines; a span over several lines is underlined up to its first line's
// end.
// 2. The spans of one line share rows of underlines, as long as they do not overlap.
// 3. In a row the rightmost label stands beside its underline, the others below theirs.

#include "frontend/Diagnostics.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tk {
namespace {

constexpr std::uint32_t windowColumns = 160; ///< of a longer line only this much is shown

struct Colours {
  std::string_view bold, error, warning, note, gutter, secondary, reset;
};
constexpr Colours plain = {"", "", "", "", "", "", ""};
constexpr Colours ansi = {"\033[1m",  "\033[1;31m", "\033[1;35m", "\033[1;36m",
                          "\033[34m", "\033[1;34m", "\033[0m"};

std::string_view severityName(Severity severity) {
  return severity == Severity::Error ? "error" : severity == Severity::Warning ? "warning" : "note";
}

/// An underline: columns from 0, half open, within one line.
struct Mark {
  std::uint32_t begin, end;
  bool primary;
  std::string label;
};

using LineKey = std::tuple<bool, FileId, std::uint32_t>; // primary's file first

class TextRenderer {
public:
  TextRenderer(const Diagnostic &diagnostic, const SourceManager &sources, bool colour,
               std::string &out)
      : diagnostic(diagnostic), sources(sources), colours(colour ? ansi : plain), out(out) {}

  void run() {
    header();
    addMark(diagnostic.span, true, diagnostic.label);
    for (const DiagLabel &label : diagnostic.labels)
      addMark(label.span, false, label.text);
    snippets();
    if (!diagnostic.expected.empty())
      remark("expected", diagnostic.expected);
    if (!diagnostic.found.empty())
      remark("found", diagnostic.found);
    for (const std::string &note : diagnostic.notes)
      remark("note", note);
    for (const std::string &help : diagnostic.help)
      remark("help", help);
  }

private:
  void header();
  void addMark(Span span, bool primary, const std::string &label);
  void snippets();
  void snippet(const SourceFile &file, std::uint32_t line, std::vector<Mark> marks);
  void underlines(std::vector<Mark> row, std::size_t shift);
  void gutter(std::string_view number);

  void remark(std::string_view what, std::string_view text) {
    out.append(2, ' ').append(colours.bold).append(what).append(":").append(colours.reset);
    out.append(" ").append(text).append("\n");
  }
  std::string_view primaryColour() const {
    return diagnostic.severity == Severity::Error     ? colours.error
           : diagnostic.severity == Severity::Warning ? colours.warning
                                                      : colours.note;
  }

  const Diagnostic &diagnostic;
  const SourceManager &sources;
  const Colours &colours;
  std::string &out;
  std::map<LineKey, std::vector<Mark>> lines;
  std::size_t gutterWidth = 1;
};

void TextRenderer::header() {
  out.append(colours.bold);
  if (diagnostic.span.valid())
    out.append(sources.describe(diagnostic.span)).append(": ");
  else
    out.append("tkc: ");
  out.append(primaryColour()).append(severityName(diagnostic.severity));
  out.append("[").append(info(diagnostic.id).code()).append("]");
  out.append(colours.reset).append(colours.bold).append(": ");
  out.append(diagnostic.message).append(colours.reset).append("\n");
}

void TextRenderer::addMark(Span span, bool primary, const std::string &label) {
  if (!span.valid())
    return;
  const SourceFile &file = sources.file(span.file);
  LineColumn first = file.lineColumn(span.begin);
  LineColumn last = file.lineColumn(std::max(span.end, span.begin));
  std::uint32_t end = last.column - 1;
  if (last.line != first.line) {
    auto length = static_cast<std::uint32_t>(file.line(first.line).size());
    end = file.lineColumn(file.lineStart(first.line) + length).column - 1;
  }
  Mark mark{first.column - 1, std::max(end, first.column), primary, label};
  lines[{span.file != diagnostic.span.file, span.file, first.line}].push_back(std::move(mark));
  gutterWidth = std::max(gutterWidth, std::to_string(first.line).size());
}

void TextRenderer::snippets() {
  FileId shown = diagnostic.span.file;
  for (auto &[key, marks] : lines) {
    auto [other, fileId, line] = key;
    const SourceFile &file = sources.file(fileId);
    if (fileId != shown)
      out.append(2, ' ').append("in ").append(file.name()).append(":\n");
    shown = fileId;
    snippet(file, line, marks);
  }
}

void TextRenderer::gutter(std::string_view number) {
  out.append(colours.gutter).append(2 + gutterWidth - number.size(), ' ').append(number);
  out.append(" |").append(colours.reset);
}

void TextRenderer::snippet(const SourceFile &file, std::uint32_t line, std::vector<Mark> marks) {
  // One string per column, so that multi-byte characters count once.
  std::vector<std::string> cells;
  std::string_view text = file.line(line);
  if (line == 1 && text.starts_with("\xEF\xBB\xBF"))
    text.remove_prefix(3);
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80 && !cells.empty() &&
        static_cast<unsigned char>(cells.back()[0]) >= 0xC0)
      cells.back() += c;
    else if (byte < 0x20 || byte == 0x7F)
      cells.emplace_back(" ");
    else
      cells.emplace_back(1, c);
  }
  // A lone byte of noise must not reach the terminal.
  for (std::string &cell : cells)
    if (cell.size() == 1 && static_cast<unsigned char>(cell[0]) >= 0x80)
      cell = "?";

  std::sort(marks.begin(), marks.end(),
            [](const Mark &a, const Mark &b) { return a.begin < b.begin; });
  std::uint32_t from = 0;
  if (cells.size() > windowColumns) {
    auto primary = std::find_if(marks.begin(), marks.end(), [](auto &m) { return m.primary; });
    std::uint32_t centre = (primary == marks.end() ? marks.front() : *primary).begin;
    from = centre > windowColumns / 2 ? centre - windowColumns / 2 : 0;
  }
  std::size_t to = std::min<std::size_t>(cells.size(), from + windowColumns);
  gutter(std::to_string(line));
  std::string shown;
  for (std::size_t i = from; i < to; ++i)
    shown += cells[i];
  if (!shown.empty())
    out.append(" ").append(from ? "..." : "").append(shown).append(to < cells.size() ? "..." : "");
  out.append("\n");

  std::vector<std::vector<Mark>> rows;
  for (Mark &mark : marks) {
    if (mark.begin < from || mark.begin > to)
      continue; // outside the window
    mark.begin -= from;
    mark.end =
        std::max<std::uint32_t>(std::min<std::uint32_t>(mark.end, to + 1) - from, mark.begin + 1);
    auto row =
        std::find_if(rows.begin(), rows.end(), [&](auto &r) { return r.back().end < mark.begin; });
    if (row == rows.end())
      row = rows.emplace(rows.end());
    row->push_back(mark);
  }
  for (auto &row : rows)
    underlines(std::move(row), from ? 3 : 0);
}

void TextRenderer::underlines(std::vector<Mark> row, std::size_t shift) {
  gutter("");
  out.append(1 + shift, ' ');
  std::size_t column = 0;
  for (const Mark &mark : row) {
    out.append(mark.begin - column, ' ');
    out.append(mark.primary ? primaryColour() : colours.secondary);
    out.append(mark.end - mark.begin, mark.primary ? '^' : '-').append(colours.reset);
    column = mark.end;
  }
  if (!row.back().label.empty())
    out.append(" ").append(row.back().label);
  out.append("\n");
  row.pop_back();
  for (; !row.empty(); row.pop_back()) {
    if (row.back().label.empty())
      continue;
    gutter("");
    out.append(1 + shift + row.back().begin, ' ').append(row.back().label).append("\n");
  }
}

void jsonSpan(Span span, const SourceManager &sources, std::string &out) {
  const SourceFile &file = sources.file(span.file);
  LineColumn begin = file.lineColumn(span.begin), end = file.lineColumn(span.end);
  out += "\"file\":";
  quoteJson(file.name(), out);
  out += ",\"line\":" + std::to_string(begin.line) + ",\"column\":" + std::to_string(begin.column) +
         ",\"endLine\":" + std::to_string(end.line) +
         ",\"endColumn\":" + std::to_string(end.column);
}

void jsonField(std::string_view name, std::string_view value, std::string &out) {
  if (value.empty())
    return;
  out.append(",\"").append(name).append("\":");
  quoteJson(value, out);
}

void jsonList(std::string_view name, const std::vector<std::string> &values, std::string &out) {
  if (values.empty())
    return;
  out.append(",\"").append(name).append("\":[");
  for (std::size_t i = 0; i < values.size(); ++i) {
    out += i ? "," : "";
    quoteJson(values[i], out);
  }
  out += "]";
}

template <typename Part>
void jsonSpans(std::string_view name, std::string_view field, const std::vector<Part> &parts,
               std::string Part::*text, const SourceManager &sources, std::string &out) {
  if (parts.empty())
    return;
  out.append(",\"").append(name).append("\":[");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out += i ? ",{" : "{";
    jsonSpan(parts[i].span, sources, out);
    out.append(",\"").append(field).append("\":");
    quoteJson(parts[i].*text, out);
    out += "}";
  }
  out += "]";
}

} // namespace

void renderText(const Diagnostic &diagnostic, const SourceManager &sources, bool colour,
                std::string &out) {
  TextRenderer(diagnostic, sources, colour, out).run();
}

void quoteJson(std::string_view text, std::string &out) {
  constexpr std::string_view digits = "0123456789abcdef";
  out += '"';
  for (std::uint32_t i = 0, length = 0; i < text.size(); i += std::max(length, 1u)) {
    char c = text[i];
    auto byte = static_cast<unsigned char>(c);
    length = utf8Length(text, i);
    if (length == 0)
      out += "\\ufffd";
    else if (c == '"' || c == '\\')
      out.append(1, '\\').append(1, c);
    else if (c == '\n')
      out += "\\n";
    else if (byte < 0x20 || byte == 0x7F)
      out.append("\\u00").append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
    else
      out += text.substr(i, length);
  }
  out += '"';
}

void renderJson(const Diagnostic &d, const SourceManager &sources, std::string &out) {
  out.append("{\"severity\":\"").append(severityName(d.severity)).append("\",\"code\":\"");
  out.append(info(d.id).code()).append("\",\"message\":");
  quoteJson(d.message, out);
  if (d.span.valid()) {
    out += ",";
    jsonSpan(d.span, sources, out);
  }
  jsonField("label", d.label, out);
  jsonSpans("labels", "text", d.labels, &DiagLabel::text, sources, out);
  jsonField("expected", d.expected, out);
  jsonField("found", d.found, out);
  jsonList("notes", d.notes, out);
  jsonList("help", d.help, out);
  jsonSpans("fixes", "replacement", d.fixes, &DiagFix::replacement, sources, out);
  out += "}\n";
}

} // namespace tk
