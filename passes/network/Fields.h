//===- Fields.h - the fields of a description, checked ----------*- C++ -*-===//
//
// Networks, meshes and transformer blocks are described by JSON files. An ObjectReader takes the
// fields of one object by name, checks their types and ranges, and refuses fields that nobody took,
// so that a misspelt field is an error and not a default. The first fault is kept; values that are
// read after it are defaults.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_NETWORK_FIELDS_H
#define TK_PASSES_NETWORK_FIELDS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <optional>
#include <string>
#include <vector>

namespace tk::network {

/// What is wrong with a description.
enum class Fault : uint8_t {
  NotJson,      ///< the text is no JSON, or no object
  Missing,      ///< a field that has no default
  Unknown,      ///< a field or a name that nothing has
  WrongType,    ///< text where a number is expected, and the like
  OutOfRange,   ///< a number that is too small or too large
  Inconsistent, ///< fields that contradict each other
};
llvm::StringRef nameOf(Fault fault);

/// The error of every function that reads a description.
class DescriptionError : public llvm::ErrorInfo<DescriptionError> {
public:
  static char ID; // NOLINT: the name that llvm::ErrorInfo asks for

  DescriptionError(Fault fault, std::string place, std::string message)
      : fault(fault), place(std::move(place)), message(std::move(message)) {}

  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;

  Fault fault;
  std::string place; ///< "levels[1].links"; empty for the whole
  std::string message;
};

llvm::Error faultAt(Fault fault, const llvm::Twine &place, const llvm::Twine &message);

/// The first fault of several readers.
class FaultLog {
public:
  void add(Fault fault, const llvm::Twine &place, const llvm::Twine &message);
  bool any() const { return first.has_value(); }
  llvm::Error take();

private:
  struct Entry {
    Fault fault;
    std::string place, message;
  };
  std::optional<Entry> first;
};

/// The range of a number. Bounds are part of the range.
struct Range {
  double least, most;
};

class ObjectReader {
public:
  /// `value` is the object at `place`. A value that is no object is a fault.
  ObjectReader(const llvm::json::Value &value, std::string place, FaultLog &faults);
  /// Reports the fields that nobody took.
  ~ObjectReader();
  ObjectReader(const ObjectReader &) = delete;
  ObjectReader &operator=(const ObjectReader &) = delete;

  std::string text(llvm::StringRef name, std::optional<llvm::StringRef> otherwise = {});
  int64_t integer(llvm::StringRef name, Range range, std::optional<int64_t> otherwise = {});
  double number(llvm::StringRef name, Range range, std::optional<double> otherwise = {});
  bool flag(llvm::StringRef name, bool otherwise);
  /// One of `names`: its position.
  size_t choice(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> names, size_t otherwise);
  /// Null where the field is missing; that is a fault if it is needed.
  const llvm::json::Value *value(llvm::StringRef name, bool isNeeded);
  const llvm::json::Array *array(llvm::StringRef name, bool isNeeded);

  bool has(llvm::StringRef name) const;
  std::string placeOf(llvm::StringRef name) const;
  /// The names of all fields, none of which is reported as unknown any more.
  std::vector<std::string> takeNames();
  FaultLog &faults() { return log; }

private:
  const llvm::json::Object *object;
  std::string place;
  FaultLog &log;
  std::vector<std::string> taken;
};

/// Parses a text as JSON; `what` names it in the message, such as "the network".
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text, llvm::StringRef what);

/// "; near it is 'other'", or empty if no known word is near.
std::string nearestHint(llvm::StringRef word, llvm::ArrayRef<std::string> known);

} // namespace tk::network

#endif // TK_PASSES_NETWORK_FIELDS_H
