//===- ViewDiff.cpp - two views of a kernel compared ----------------------===//
//
// Launches are compared by their symbols. What only one of the documents has is named; it counts in
// the kernel's time alone.
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/ViewDocument.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace json = llvm::json;

namespace tk::tkc {
namespace {

/// A number inside objects, or nothing.
std::optional<double> numberAt(const json::Object &object, llvm::StringRef inner,
                               llvm::StringRef key) {
  const json::Object *found = object.getObject(inner);
  return found ? found->getNumber(key) : std::nullopt;
}

class Comparison {
public:
  Comparison(double tolerance) : tolerance(tolerance), out(text) {}

  void compare(llvm::StringRef what, std::optional<double> before, std::optional<double> after,
               llvm::StringRef unit, bool decides) {
    if (!before || !after || *before == *after)
      return;
    const double change = *before != 0 ? 100 * (*after - *before) / *before : 100;
    const bool isWorse = decides && change > tolerance;
    grown |= isWorse;
    changes.push_back(json::Object{
        {"what", what.str()}, {"before", *before}, {"after", *after}, {"grew", isWorse}});
    out << what << ": " << llvm::format("%.6g", *before) << " -> " << llvm::format("%.6g", *after)
        << unit << llvm::format(" (%+.1f %%)", change) << (isWorse ? ", grew" : "") << "\n";
  }

  void compareLaunch(llvm::StringRef symbol, const json::Object &before,
                     const json::Object &after) {
    auto row = [&](llvm::StringRef what, llvm::StringRef inner, llvm::StringRef key,
                   llvm::StringRef unit, bool decides) {
      compare((symbol + ": " + what).str(), numberAt(before, inner, key),
              numberAt(after, inner, key), unit, decides);
    };
    row("predicted time", "cost", "predicted_us", " us", true);
    row("bytes read", "cost", "read_bytes", "", false);
    row("bytes written", "cost", "written_bytes", "", false);
    row("operations", "cost", "operations", "", false);
    row("registers", "code", "registers", "", false);
    row("spilled bytes stored", "code", "spill_stores", "", false);
    if (before.getString("plan") == after.getString("plan"))
      return;
    changes.push_back(json::Object{{"what", (symbol + ": plan").str()},
                                   {"before", before.getString("plan").value_or("").str()},
                                   {"after", after.getString("plan").value_or("").str()},
                                   {"grew", false}});
    out << symbol << ": plan: " << before.getString("plan").value_or("") << "\n"
        << symbol << ":    -> " << after.getString("plan").value_or("") << "\n";
  }

  void only(llvm::StringRef symbol, llvm::StringRef where) {
    changes.push_back(
        json::Object{{"what", (symbol + ": only in the " + where).str()}, {"grew", false}});
    out << symbol << ": only in the " << where << "\n";
  }

  double tolerance;
  bool grown = false;
  json::Array changes;
  std::string text;
  llvm::raw_string_ostream out;
};

const json::Object *launchOf(const json::Object &document, llvm::StringRef symbol) {
  if (const json::Array *launches = document.getArray("launches"))
    for (const json::Value &launch : *launches)
      if (const json::Object *object = launch.getAsObject();
          object && object->getString("symbol") == symbol)
        return object;
  return nullptr;
}

bool isDocument(const json::Value &value) {
  const json::Object *object = value.getAsObject();
  return object && object->getString("format") == llvm::StringRef("tk-view 1") &&
         object->getArray("launches");
}

} // namespace

/// Measured times, where both documents have them: the launches of equal symbols in order.
static void compareProfiles(Comparison &comparison, const json::Object &a, const json::Object &b) {
  const json::Object *before = a.getObject("profile"), *after = b.getObject("profile");
  if (!before || !after || !before->getArray("launches") || !after->getArray("launches"))
    return;
  std::map<std::string, std::vector<double>> first;
  auto each = [](const json::Object &profile, auto use) {
    for (const json::Value &value : *profile.getArray("launches"))
      if (const json::Object *launch = value.getAsObject();
          launch && launch->getString("symbol") && launch->getNumber("us"))
        use(launch->getString("symbol")->str(), *launch->getNumber("us"));
  };
  each(*before, [&](const std::string &symbol, double time) { first[symbol].push_back(time); });
  std::map<std::string, size_t> seen;
  each(*after, [&](const std::string &symbol, double time) {
    const std::vector<double> &times = first[symbol];
    if (const size_t number = seen[symbol]++; number < times.size())
      comparison.compare(symbol + ": measured time", times[number], time, " us", true);
  });
  comparison.compare("kernel: measured time", before->getNumber("total_us"),
                     after->getNumber("total_us"), " us", true);
}

Expected<ComparedDocuments> compareDocuments(const json::Value &before, const json::Value &after,
                                             double tolerance) {
  for (const json::Value *document : {&before, &after})
    if (!isDocument(*document))
      return Error(ErrorCode::invalid_argument,
                   std::string(document == &before ? "the first" : "the second") +
                       " file is no document of tkc view --json");
  const json::Object &a = *before.getAsObject(), &b = *after.getAsObject();
  for (llvm::StringRef key : {"kernel", "target"})
    if (a.getString(key) != b.getString(key))
      return Error(ErrorCode::invalid_argument, "the documents are of different " + key.str() +
                                                    "s: '" + a.getString(key).value_or("").str() +
                                                    "' and '" +
                                                    b.getString(key).value_or("").str() + "'");
  if (a.getObject("dims") && b.getObject("dims") && *a.getObject("dims") != *b.getObject("dims"))
    return Error(ErrorCode::invalid_argument, "the documents are of different sizes");
  for (const json::Object *document : {&a, &b})
    if (!numberAt(*document, "total", "predicted_us"))
      return Error(ErrorCode::invalid_argument,
                   std::string(document == &a ? "the first" : "the second") +
                       " document has no predicted time: write it with all dimensions given");
  Comparison comparison(tolerance);
  for (const json::Value &launch : *a.getArray("launches")) {
    const json::Object *object = launch.getAsObject();
    llvm::StringRef symbol = object ? object->getString("symbol").value_or("") : "";
    if (const json::Object *other = launchOf(b, symbol); object && other)
      comparison.compareLaunch(symbol, *object, *other);
    else
      comparison.only(symbol, "first");
  }
  for (const json::Value &launch : *b.getArray("launches"))
    if (const json::Object *object = launch.getAsObject();
        object && !launchOf(a, object->getString("symbol").value_or("")))
      comparison.only(object->getString("symbol").value_or(""), "second");
  compareProfiles(comparison, a, b);
  comparison.compare("kernel: predicted time", numberAt(a, "total", "predicted_us"),
                     numberAt(b, "total", "predicted_us"), " us", true);
  return ComparedDocuments{comparison.text, std::move(comparison.changes), comparison.grown};
}

} // namespace tk::tkc
