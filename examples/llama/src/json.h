// A reader of JSON for the two kinds of files that a checkpoint has: config.json, and the head of a
// safetensors file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace llama {

class Json;
using JsonArray = std::vector<Json>;
using JsonObject = std::map<std::string, Json, std::less<>>;

/// A value of JSON. Numbers are kept as their text, so that 64-bit integers stay exact.
class Json {
public:
  /// Reads a whole text. Throws `tk::Error` with `bad_file`; `name` stands in the message.
  static Json parse(std::string_view text, std::string_view name);

  /// The member of an object; null if the value is no object, has no such member, or has null
  /// there.
  const Json *find(std::string_view key) const;

  /// Empty if the value is of another type, or does not fit.
  std::optional<int64_t> integer() const;
  std::optional<double> number() const;
  std::optional<bool> boolean() const;
  const std::string *string() const { return std::get_if<std::string>(&m_value); }
  const JsonArray *array() const { return std::get_if<JsonArray>(&m_value); }
  const JsonObject *object() const { return std::get_if<JsonObject>(&m_value); }

private:
  friend class JsonReader;
  struct Number {
    std::string text;
  };
  std::variant<std::nullptr_t, bool, Number, std::string, JsonArray, JsonObject> m_value = nullptr;
};

} // namespace llama
