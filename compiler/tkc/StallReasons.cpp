//===- StallReasons.cpp - Nsight Compute's samples by line ----------------===//
//
// Nsight Compute's source page, as CSV, has a table for each launch: a row for each instruction in
// the order of the machine code, and a column for each reason for which a warp waited there. The
// rows are counted through, and the instruction of that number in the view's machine code says
// which line of the source a row is of.
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/Profile.h"

#include "llvm/ADT/STLExtras.h"

namespace json = llvm::json;

namespace tk::tkc {
namespace {

constexpr llvm::StringLiteral reasonPrefix = "stall_";

/// The fields of a line of CSV. A quote inside a field is written twice.
std::vector<std::string> fieldsOf(llvm::StringRef line) {
  std::vector<std::string> fields(1);
  bool isQuoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && isQuoted && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[++i];
    else if (line[i] == '"')
      isQuoted = !isQuoted;
    else if (line[i] == ',' && !isQuoted)
      fields.emplace_back();
    else
      fields.back() += line[i];
  }
  return fields;
}

/// A number, which may have separators between thousands; 0 for anything else.
double numberOf(llvm::StringRef field) {
  std::string digits;
  for (char c : field)
    if (c != ',' && c != ' ')
      digits += c;
  double value = 0;
  return llvm::StringRef(digits).getAsDouble(value) ? 0 : value;
}

/// For each function its instructions in order, each with its place or the number of places.
std::map<std::string, std::vector<unsigned>> instructionPlaces(const KernelView &view) {
  std::map<std::string, std::vector<unsigned>> places;
  auto sass = llvm::find_if(view.stages, [](const StageText &s) { return s.name == "sass"; });
  if (sass == view.stages.end())
    return places;
  std::vector<unsigned> *current = nullptr;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(sass->text).split(lines, '\n');
  for (auto [line, from] : llvm::zip(lines, sass->lines)) {
    const llvm::StringRef text = line.trim();
    if (text.contains(".text."))
      for (const LaunchReport &launch : view.launches)
        if (text.contains(".text." + launch.launch->symbol))
          current = &places[launch.launch->symbol];
    if (current && text.starts_with("/*") && text.contains(';'))
      current->push_back(from.empty() ? static_cast<unsigned>(view.places.size()) : from.front());
  }
  return places;
}

class Samples {
public:
  Samples(const KernelView &view) : view(view), places(instructionPlaces(view)) {}

  void read(llvm::StringRef csv) {
    llvm::SmallVector<llvm::StringRef> lines;
    csv.split(lines, '\n');
    for (llvm::StringRef line : lines) {
      std::vector<std::string> fields = fieldsOf(line.trim());
      if (llvm::is_contained(fields, "Source"))
        begin(fields);
      else if (fields.size() == columns.size() && fields.size() > 1)
        add(fields);
      else
        findSymbol(line);
    }
  }

  /// Reasons that were seen, and the samples of each by place; those without a place come last.
  Expected<json::Object> result() const {
    if (places.empty())
      return Error(ErrorCode::unsupported,
                   "samples need the machine code as text, and so nvdisasm, "
                   "to tell which line an instruction is of");
    if (total == 0)
      return Error(ErrorCode::invalid_argument,
                   "the report has no samples of this kernel's machine code; expected what ncu "
                   "--section SourceCounters --page source --csv writes");
    json::Array names, rows;
    for (const auto &[name, number] : reasons)
      names.push_back(name);
    for (size_t place = 0; place <= view.places.size(); ++place) {
      json::Array row;
      for (const auto &[name, samples] : reasons)
        row.push_back(place < samples.size() ? samples[place] : 0.0);
      rows.push_back(std::move(row));
    }
    return json::Object{
        {"samples", total}, {"reasons", std::move(names)}, {"by_place", std::move(rows)}};
  }

private:
  void begin(const std::vector<std::string> &fields) {
    columns = fields;
    row = 0;
  }

  /// A line between tables may name the function of the next one.
  void findSymbol(llvm::StringRef line) {
    for (const auto &[name, of] : places)
      if (line.contains(name) && (symbol.empty() || name.size() > symbol.size() || name != symbol))
        symbol = name;
    columns.clear();
  }

  void add(const std::vector<std::string> &fields) {
    auto of = places.size() == 1 ? places.begin() : places.find(symbol);
    if (of == places.end() || row >= of->second.size())
      return;
    const unsigned place = of->second[row++];
    for (auto [column, field] : llvm::zip(columns, fields)) {
      llvm::StringRef name(column);
      // Each reason stands there twice: of all samples, and of those at which nothing was issued.
      if (!name.consume_front(reasonPrefix) || name.contains("not_issued") || name.contains('('))
        continue;
      const double count = numberOf(field);
      std::vector<double> &samples = reasons[name.str()];
      samples.resize(view.places.size() + 1);
      samples[place] += count;
      total += count;
    }
  }

  const KernelView &view;
  std::map<std::string, std::vector<unsigned>> places;
  std::map<std::string, std::vector<double>> reasons;
  std::vector<std::string> columns;
  std::string symbol;
  size_t row = 0;
  double total = 0;
};

} // namespace

Expected<json::Object> readStalls(llvm::StringRef csv, const KernelView &view) {
  Samples samples(view);
  samples.read(csv);
  return samples.result();
}

} // namespace tk::tkc
