#include "frontend/Source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace tk {

Span join(Span a, Span b) {
  if (!a.valid())
    return b;
  if (!b.valid() || a.file != b.file)
    return a;
  return {a.file, std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

std::uint32_t utf8Length(std::string_view text, std::uint32_t pos) {
  auto byte = [&](std::uint32_t i) -> unsigned {
    return pos + i < text.size() ? static_cast<unsigned char>(text[pos + i]) : 0;
  };
  auto continues = [&](std::uint32_t i) { return (byte(i) & 0xC0) == 0x80; };
  unsigned lead = byte(0);
  if (lead < 0x80)
    return 1;
  if (lead >= 0xC2 && lead <= 0xDF)
    return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (!continues(1) || !continues(2) || (lead == 0xE0 && byte(1) < 0xA0) ||
        (lead == 0xED && byte(1) > 0x9F))
      return 0;
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3) || (lead == 0xF0 && byte(1) < 0x90) ||
        (lead == 0xF4 && byte(1) > 0x8F))
      return 0;
    return 4;
  }
  return 0;
}

SourceFile::SourceFile(FileId id, std::string name, std::string label, std::string text)
    : fileId(id), fileName(std::move(name)), fileLabel(std::move(label)), content(std::move(text)) {
  lineStarts.push_back(0);
  for (std::uint32_t i = 0; i < size(); ++i)
    if (content[i] == '\n')
      lineStarts.push_back(i + 1);
}

LineColumn SourceFile::lineColumn(std::uint32_t offset) const {
  offset = std::min(offset, size());
  auto next = std::upper_bound(lineStarts.begin(), lineStarts.end(), offset);
  auto line = static_cast<std::uint32_t>(next - lineStarts.begin());
  std::uint32_t column = 1;
  for (std::uint32_t i = lineStart(line); i < offset; ++i)
    if ((static_cast<unsigned char>(content[i]) & 0xC0) != 0x80) // not inside a code point
      ++column;
  // A byte-order mark takes no column.
  if (line == 1 && offset >= 3 && content.starts_with("\xEF\xBB\xBF"))
    --column;
  return {line, column};
}

std::uint32_t SourceFile::lineStart(std::uint32_t number) const {
  return number >= 1 && number <= lineCount() ? lineStarts[number - 1] : size();
}

std::string_view SourceFile::line(std::uint32_t number) const {
  if (number < 1 || number > lineCount())
    return {};
  std::uint32_t begin = lineStarts[number - 1];
  std::uint32_t end = number < lineCount() ? lineStarts[number] - 1 : size();
  if (end > begin && content[end - 1] == '\r')
    --end;
  return std::string_view(content).substr(begin, end - begin);
}

FileId SourceManager::labelled(std::string_view label) const {
  for (const std::unique_ptr<SourceFile> &file : files)
    if (file->label() == label)
      return file->id();
  return kNoFile;
}

std::string SourceManager::freeLabel(const std::string &name, FileId importer) const {
  namespace fs = std::filesystem;
  const fs::path path(name);
  fs::path label;
  if (importer != kNoFile) {
    fs::path way = path.lexically_relative(fs::path(file(importer).name()).parent_path());
    if (!way.empty())
      label = (fs::path(file(importer).label()).parent_path() / way).lexically_normal();
  }
  const bool isWay = !label.empty();
  auto part = path.end();
  while (!isWay && part != path.begin() && (label.empty() || labelled(label.string()) != kNoFile)) {
    --part;
    if (!part->has_root_directory())
      label = label.empty() ? *part : *part / label;
  }
  std::string free = label.string();
  for (unsigned n = 2; free.empty() ? false : labelled(free) != kNoFile; ++n)
    free = label.string() + " " + std::to_string(n);
  return free;
}

FileId SourceManager::add(std::string name, std::string text, FileId importer) {
  constexpr std::size_t limit = 0xFFFFFFF0u; // offsets are 32-bit
  if (text.size() > limit)
    text.resize(limit);
  auto id = static_cast<FileId>(files.size());
  std::string label = freeLabel(name, importer);
  files.push_back(
      std::make_unique<SourceFile>(id, std::move(name), std::move(label), std::move(text)));
  return id;
}

FileId SourceManager::load(const std::string &path, std::string *why, FileId importer) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::array<char, 65536> chunk;
  // Bounded, since a path may name a device without end. A directory opens but cannot be read.
  while (in && text.size() < kLargestLoad) {
    in.read(chunk.data(), chunk.size());
    text.append(chunk.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (!in.is_open() || in.bad()) {
    if (why)
      *why = std::generic_category().message(errno ? errno : EIO);
    return kNoFile;
  }
  return add(path, std::move(text), importer);
}

LineColumn SourceManager::lineColumn(Span span) const {
  return span.valid() ? file(span.file).lineColumn(span.begin) : LineColumn{};
}

std::string_view SourceManager::text(Span span) const {
  if (!span.valid())
    return {};
  std::string_view all = file(span.file).text();
  if (span.begin >= all.size() || span.end <= span.begin)
    return {};
  return all.substr(span.begin, span.end - span.begin);
}

std::string SourceManager::describe(Span span) const {
  if (!span.valid())
    return "<unknown>";
  LineColumn at = lineColumn(span);
  return file(span.file).name() + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

} // namespace tk
