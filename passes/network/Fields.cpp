//===- Fields.cpp - the fields of a description, checked ------------------===//
#include "passes/network/Fields.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

using namespace llvm;

namespace tk::network {

char DescriptionError::ID = 0;

StringRef nameOf(Fault fault) {
  static constexpr StringLiteral names[] = {"not JSON",   "missing",      "unknown",
                                            "wrong type", "out of range", "inconsistent"};
  return names[static_cast<size_t>(fault)];
}

void DescriptionError::log(raw_ostream &os) const {
  if (!place.empty())
    os << "`" << place << "`: ";
  os << message;
}

std::error_code DescriptionError::convertToErrorCode() const { return inconvertibleErrorCode(); }

Error faultAt(Fault fault, const Twine &place, const Twine &message) {
  return make_error<DescriptionError>(fault, place.str(), message.str());
}

void FaultLog::add(Fault fault, const Twine &place, const Twine &message) {
  if (!first)
    first = {fault, place.str(), message.str()};
}

Error FaultLog::take() {
  if (!first)
    return Error::success();
  return faultAt(first->fault, first->place, first->message);
}

static StringRef kindOf(const json::Value &value) {
  switch (value.kind()) {
  case json::Value::Null:
    return "null";
  case json::Value::Boolean:
    return "a boolean";
  case json::Value::Number:
    return "a number";
  case json::Value::String:
    return "a string";
  case json::Value::Array:
    return "an array";
  case json::Value::Object:
    return "an object";
  }
  return "";
}

ObjectReader::ObjectReader(const json::Value &value, std::string place, FaultLog &faults)
    : object(value.getAsObject()), place(std::move(place)), log(faults) {
  if (!object)
    log.add(Fault::WrongType, this->place, "expected an object, got " + kindOf(value));
}

ObjectReader::~ObjectReader() {
  if (!object)
    return;
  for (const auto &[key, value] : *object) {
    const StringRef name = key;
    if (!is_contained(taken, name))
      log.add(Fault::Unknown, placeOf(name), "unknown field" + nearestHint(name, taken));
  }
}

std::string ObjectReader::placeOf(StringRef name) const {
  return place.empty() ? name.str() : place + "." + name.str();
}

bool ObjectReader::has(StringRef name) const { return object && object->get(name); }

std::vector<std::string> ObjectReader::takeNames() {
  std::vector<std::string> names;
  if (object)
    for (const auto &[key, value] : *object)
      names.push_back(StringRef(key).str());
  llvm::sort(names);
  append_range(taken, names);
  return names;
}

const json::Value *ObjectReader::value(StringRef name, bool isNeeded) {
  taken.push_back(name.str());
  const json::Value *found = object ? object->get(name) : nullptr;
  if (!found && isNeeded && object) {
    std::vector<std::string> others;
    for (const auto &[key, value] : *object)
      others.push_back(StringRef(key).str());
    log.add(Fault::Missing, placeOf(name), "the field is missing" + nearestHint(name, others));
  }
  return found;
}

const json::Array *ObjectReader::array(StringRef name, bool isNeeded) {
  const json::Value *found = value(name, isNeeded);
  if (!found)
    return nullptr;
  const json::Array *array = found->getAsArray();
  if (!array)
    log.add(Fault::WrongType, placeOf(name), "expected an array, got " + kindOf(*found));
  return array;
}

std::string ObjectReader::text(StringRef name, std::optional<StringRef> otherwise) {
  const json::Value *found = value(name, !otherwise);
  if (!found)
    return otherwise.value_or("").str();
  std::optional<StringRef> text = found->getAsString();
  if (!text)
    log.add(Fault::WrongType, placeOf(name), "expected a string, got " + kindOf(*found));
  return text.value_or("").str();
}

static std::string textOf(double number) {
  std::string text;
  raw_string_ostream(text) << format("%g", number);
  return text;
}

double ObjectReader::number(StringRef name, Range range, std::optional<double> otherwise) {
  const json::Value *found = value(name, !otherwise);
  if (!found)
    return otherwise.value_or(range.least);
  std::optional<double> number = found->getAsNumber();
  if (!number) {
    log.add(Fault::WrongType, placeOf(name), "expected a number, got " + kindOf(*found));
    return range.least;
  }
  if (!std::isfinite(*number) || *number < range.least || *number > range.most) {
    log.add(Fault::OutOfRange, placeOf(name),
            "expected a number from " + textOf(range.least) + " to " + textOf(range.most) +
                ", got " + textOf(*number));
    return range.least;
  }
  return *number;
}

int64_t ObjectReader::integer(StringRef name, Range range, std::optional<int64_t> otherwise) {
  std::optional<double> usual;
  if (otherwise)
    usual = static_cast<double>(*otherwise);
  const double value = number(name, range, usual);
  if (value != std::floor(value)) {
    log.add(Fault::WrongType, placeOf(name), "expected an integer, got " + textOf(value));
    return static_cast<int64_t>(range.least);
  }
  return static_cast<int64_t>(value);
}

bool ObjectReader::flag(StringRef name, bool otherwise) {
  const json::Value *found = value(name, false);
  if (!found)
    return otherwise;
  std::optional<bool> flag = found->getAsBoolean();
  if (!flag)
    log.add(Fault::WrongType, placeOf(name), "expected true or false, got " + kindOf(*found));
  return flag.value_or(otherwise);
}

size_t ObjectReader::choice(StringRef name, ArrayRef<StringRef> names, size_t otherwise) {
  if (!has(name)) {
    taken.push_back(name.str());
    return otherwise;
  }
  const std::string chosen = text(name, "");
  const auto *found = llvm::find(names, chosen);
  if (found == names.end()) {
    log.add(Fault::Unknown, placeOf(name),
            "expected one of " + join(names, ", ") + ", got '" + chosen + "'");
    return otherwise;
  }
  return static_cast<size_t>(found - names.begin());
}

/// The depth of brackets outside of strings. LLVM's parser calls itself for each.
static size_t depthOf(StringRef text) {
  size_t depth = 0, most = 0;
  bool isString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (isString) {
      i += c == '\\'; // skips the escaped character
      isString = c != '"';
    } else if (c == '"') {
      isString = true;
    } else if (c == '[' || c == '{') {
      most = std::max(most, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return most;
}

Expected<json::Value> parseJson(StringRef text, StringRef what) {
  constexpr size_t mostDepth = 32;
  if (depthOf(text) > mostDepth)
    return faultAt(Fault::NotJson, "",
                   what + " has more than " + Twine(mostDepth) + " brackets in each other");
  Expected<json::Value> value = json::parse(text);
  if (!value)
    return faultAt(Fault::NotJson, "", what + " is no JSON: " + toString(value.takeError()));
  return value;
}

std::string nearestHint(StringRef word, ArrayRef<std::string> known) {
  const std::string *best = nullptr;
  unsigned least = std::max<unsigned>(static_cast<unsigned>(word.size()) / 3, 1) + 1;
  for (const std::string &candidate : known)
    if (unsigned distance = word.edit_distance(candidate, true, least); distance < least) {
      least = distance;
      best = &candidate;
    }
  return best ? "; near it is '" + *best + "'" : "";
}

} // namespace tk::network
