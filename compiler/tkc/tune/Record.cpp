//===- Record.cpp - what tkc tune has measured so far ---------------------===//
#include "compiler/tkc/tune/Record.h"

#include "compiler/tkc/Commands.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>

namespace json = llvm::json;

namespace tk::tkc {

/// Reads a line into `measured` if it is of this context. False: the line is no measurement.
static bool readLine(llvm::StringRef line, llvm::StringRef context,
                     std::map<std::string, Measurement> &measured) {
  llvm::Expected<json::Value> value = json::parse(line);
  if (!value) {
    llvm::consumeError(value.takeError());
    return false;
  }
  const json::Object *object = value->getAsObject();
  if (!object)
    return false;
  auto of = object->getString("context"), block = object->getString("schedule");
  auto milliseconds = object->getNumber("ms"), ratio = object->getNumber("ratio");
  auto right = object->getBoolean("right");
  if (!of || !block || !milliseconds || !ratio || !right)
    return false;
  if (*of == context)
    measured[block->str()] = {.milliseconds = *milliseconds,
                              .ratio = *ratio,
                              .right = *right,
                              .spilled = object->getInteger("spilled").value_or(0)};
  return true;
}

Expected<TuneRecord> TuneRecord::open(const std::string &path, const std::string &context) {
  TuneRecord record;
  record.path = path;
  record.context = context;
  if (path.empty() || !std::filesystem::exists(path))
    return record;
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.error();
  record.text = *text;
  unsigned number = 0;
  for (llvm::StringRef line : llvm::split(*text, '\n')) {
    ++number;
    if (!line.trim().empty() && !readLine(line, context, record.measured))
      return Error(ErrorCode::invalid_argument, "line " + std::to_string(number) + " of '" + path +
                                                    "' is no measurement of tkc tune");
  }
  return record;
}

const Measurement *TuneRecord::find(const std::string &block) const {
  auto found = measured.find(block);
  return found == measured.end() ? nullptr : &found->second;
}

Status TuneRecord::add(const std::string &block, const Measurement &measurement) {
  measured[block] = measurement;
  if (path.empty())
    return {};
  json::Value line = json::Object{{"context", context},
                                  {"schedule", block},
                                  {"ms", measurement.milliseconds},
                                  {"ratio", measurement.ratio},
                                  {"right", measurement.right}};
  if (measurement.spilled > 0)
    line.getAsObject()->insert({"spilled", measurement.spilled});
  if (!text.empty() && text.back() != '\n')
    text += '\n';
  llvm::raw_string_ostream(text) << line << '\n';
  return writeFile(path, text);
}

} // namespace tk::tkc
