#include "json.h"

#include <charconv>

#include <tk/error.h>

namespace llama {

/// Recursive descent over a text. A failure throws with the offset in the text.
class JsonReader {
public:
  JsonReader(std::string_view text, std::string_view name) : m_text(text), m_name(name) {}

  Json document() {
    Json value = read();
    skipSpace();
    if (m_at != m_text.size())
      fail("expected the end of the text");
    return value;
  }

private:
  /// Deeper texts are refused: the reader calls itself for each level.
  static constexpr int max_depth = 64;

  [[noreturn]] void fail(std::string_view what) const {
    throw tk::Error(tk::ErrorCode::bad_file, std::string(m_name) + ": JSON, byte " +
                                                 std::to_string(m_at) + ": " + std::string(what));
  }

  void skipSpace() {
    while (m_at < m_text.size() && std::string_view(" \t\r\n").find(m_text[m_at]) != m_text.npos)
      ++m_at;
  }

  char peek() const { return m_at < m_text.size() ? m_text[m_at] : '\0'; }

  /// Takes a character after spaces, if it is the next one.
  bool take(char expected) {
    skipSpace();
    if (peek() != expected || m_at == m_text.size())
      return false;
    ++m_at;
    return true;
  }

  void expect(char expected) {
    if (!take(expected))
      fail(std::string("expected '") + expected + "'");
  }

  bool takeWord(std::string_view word) {
    if (m_text.substr(m_at, word.size()) != word)
      return false;
    m_at += word.size();
    return true;
  }

  Json read() {
    if (++m_depth > max_depth)
      fail("more than 64 levels");
    skipSpace();
    Json value;
    if (peek() == '{')
      value.m_value = readObject();
    else if (peek() == '[')
      value.m_value = readArray();
    else if (peek() == '"')
      value.m_value = readString();
    else if (takeWord("true"))
      value.m_value = true;
    else if (takeWord("false"))
      value.m_value = false;
    else if (!takeWord("null"))
      value.m_value = readNumber();
    --m_depth;
    return value;
  }

  JsonObject readObject() {
    JsonObject object;
    expect('{');
    if (take('}'))
      return object;
    do {
      skipSpace();
      std::string key = readString();
      expect(':');
      if (!object.emplace(key, read()).second)
        fail("the key '" + key + "' is there twice");
    } while (take(','));
    expect('}');
    return object;
  }

  JsonArray readArray() {
    JsonArray array;
    expect('[');
    if (take(']'))
      return array;
    do
      array.push_back(read());
    while (take(','));
    expect(']');
    return array;
  }

  Json::Number readNumber() {
    size_t from = m_at;
    while (m_at < m_text.size() &&
           std::string_view("+-.eE0123456789").find(m_text[m_at]) != m_text.npos)
      ++m_at;
    std::string text(m_text.substr(from, m_at - from));
    double value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
      m_at = from;
      fail("expected a value");
    }
    return {text};
  }

  std::string readString() {
    if (peek() != '"')
      fail("expected a string");
    ++m_at;
    std::string result;
    while (m_at < m_text.size() && m_text[m_at] != '"') {
      if (static_cast<unsigned char>(m_text[m_at]) < 0x20)
        fail("a control character in a string");
      if (m_text[m_at] == '\\')
        readEscape(result);
      else
        result += m_text[m_at++];
    }
    if (m_at == m_text.size())
      fail("a string without its end");
    ++m_at;
    return result;
  }

  void readEscape(std::string &result) {
    constexpr std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
    ++m_at;
    if (size_t index = names.find(peek()); index != names.npos && m_at < m_text.size()) {
      result += values[index];
      ++m_at;
      return;
    }
    unsigned code = 0;
    if (peek() != 'u' || m_at + 5 > m_text.size() ||
        std::from_chars(&m_text[m_at + 1], &m_text[m_at] + 5, code, 16).ptr != &m_text[m_at] + 5)
      fail("an unknown escape");
    // Names of tensors and settings are ASCII; other characters only have to differ from these.
    result += code < 0x80 ? static_cast<char>(code) : '?';
    m_at += 5;
  }

  std::string_view m_text, m_name;
  size_t m_at = 0;
  int m_depth = 0;
};

Json Json::parse(std::string_view text, std::string_view name) {
  return JsonReader(text, name).document();
}

const Json *Json::find(std::string_view key) const {
  const JsonObject *members = object();
  if (!members)
    return nullptr;
  auto found = members->find(key);
  if (found == members->end() || std::holds_alternative<std::nullptr_t>(found->second.m_value))
    return nullptr;
  return &found->second;
}

std::optional<int64_t> Json::integer() const {
  const Number *number = std::get_if<Number>(&m_value);
  int64_t value = 0;
  if (!number)
    return {};
  const char *last = number->text.data() + number->text.size();
  auto [end, error] = std::from_chars(number->text.data(), last, value);
  return error == std::errc() && end == last ? std::optional(value) : std::nullopt;
}

std::optional<double> Json::number() const {
  const Number *number = std::get_if<Number>(&m_value);
  double value = 0;
  if (!number)
    return {};
  std::from_chars(number->text.data(), number->text.data() + number->text.size(), value);
  return value;
}

std::optional<bool> Json::boolean() const {
  const bool *value = std::get_if<bool>(&m_value);
  return value ? std::optional(*value) : std::nullopt;
}

} // namespace llama
