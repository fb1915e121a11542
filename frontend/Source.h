// Source texts, and positions in them.

#ifndef TK_FRONTEND_SOURCE_H
#define TK_FRONTEND_SOURCE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tk {

using FileId = std::uint32_t;
inline constexpr FileId kNoFile = ~FileId{0};

/// A half-open range of bytes in one source file.
struct Span {
  FileId file = kNoFile;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  bool valid() const { return file != kNoFile; }
  std::uint32_t size() const { return end - begin; }
  friend bool operator==(const Span &, const Span &) = default;
};

/// The smallest span that holds both; the first one if they lie in different files.
Span join(Span a, Span b);

/// Length of the UTF-8 sequence at `pos` (RFC 3629: no overlong form, no surrogate), 0 if invalid.
std::uint32_t utf8Length(std::string_view text, std::uint32_t pos);

/// Line and column, both from 1. A column is a character (UTF-8 code point), not a byte.
struct LineColumn {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  friend bool operator==(const LineColumn &, const LineColumn &) = default;
};

/// One text, with the starts of its lines. Offsets count from the file's first byte, byte-order
/// mark included.
class SourceFile {
public:
  SourceFile(FileId id, std::string name, std::string label, std::string text);

  FileId id() const { return fileId; }
  /// The name as the user gave it; diagnostics print it.
  const std::string &name() const { return fileName; }
  /// The name that outputs have, the same wherever the file lies: see SourceManager::add.
  const std::string &label() const { return fileLabel; }
  std::string_view text() const { return content; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(content.size()); }

  std::uint32_t lineCount() const { return static_cast<std::uint32_t>(lineStarts.size()); }
  LineColumn lineColumn(std::uint32_t offset) const;
  /// The text of a line (from 1) without its line end; empty if there is no such line.
  std::string_view line(std::uint32_t number) const;
  /// Offset of the first byte of a line (from 1).
  std::uint32_t lineStart(std::uint32_t number) const;
  /// A span over the whole text.
  Span all() const { return {fileId, 0, size()}; }

private:
  FileId fileId;
  std::string fileName;
  std::string fileLabel;
  std::string content;
  std::vector<std::uint32_t> lineStarts;
};

/// Well above what a source file may have.
inline constexpr std::size_t kLargestLoad = std::size_t{1} << 24;

/// Owns all source files of one compilation. References stay valid as files are added.
class SourceManager {
public:
  /// Adds a text under a name. Texts of 4 GiB and more are cut (the lexer refuses far smaller
  /// ones).
  ///
  /// A file that `importer` imports is labelled by the path from the first importer's folder to it;
  /// other files are labelled by the last part of their names. Of a label that another file has,
  /// more parts of the name are taken.
  FileId add(std::string name, std::string text, FileId importer = kNoFile);
  /// Reads a file, but no more than kLargestLoad bytes of it (give or take a chunk), which the
  /// lexer refuses. kNoFile if it cannot be read; `why` then says what the system answered.
  FileId load(const std::string &path, std::string *why = nullptr, FileId importer = kNoFile);

  std::size_t size() const { return files.size(); }
  const SourceFile &file(FileId id) const { return *files[id]; }
  /// The file with a label; kNoFile if there is none.
  FileId labelled(std::string_view label) const;

  LineColumn lineColumn(Span span) const;
  /// The text that a span covers; empty for an invalid span.
  std::string_view text(Span span) const;
  /// "file:line:column"; "<unknown>" for an invalid span.
  std::string describe(Span span) const;

private:
  std::string freeLabel(const std::string &name, FileId importer) const;

  std::vector<std::unique_ptr<SourceFile>> files;
};

} // namespace tk

#endif // TK_FRONTEND_SOURCE_H
