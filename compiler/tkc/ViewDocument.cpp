//===- ViewDocument.cpp - a kernel's view as JSON -------------------------===//
#include "compiler/tkc/ViewDocument.h"

#include "compiler/CostReport.h"
#include "tk/bundle.h"

#include "llvm/ADT/STLExtras.h"

namespace json = llvm::json;

namespace tk::tkc {
namespace {

/// Text as JSON has it: bytes that are not UTF-8 become U+FFFD.
std::string fixed(llvm::StringRef text) { return json::fixUTF8(text); }

json::Value numberOf(const DimExpr &expr, std::span<const Scalar> variables) {
  if (Expected<int64_t> value = expr.evaluate_integer(variables))
    return *value;
  return nullptr;
}

class Document {
public:
  Document(const KernelView &view, const ViewSubject &subject)
      : view(view), subject(subject), names(subject.signature.variable_names()) {
    for (const std::string &dim : subject.signature.dims) {
      auto given = subject.dims.find(dim);
      if (given == subject.dims.end())
        return;
      variables.emplace_back(given->second);
    }
  }

  json::Value make() const {
    json::Object dims;
    for (const auto &[name, size] : subject.dims)
      dims[name] = size;
    json::Object document{
        {"format", "tk-view 1"},
        {"kernel", subject.signature.name},
        {"signature", fixed(subject.signature.str())},
        {"target", subject.target},
        {"dims", std::move(dims)},
        {"assumptions", fixed(describe(subject.facts, subject.signature))},
        {"files", files()},
        {"places", places()},
        {"stages", stages()},
        {"launches", launches()},
        {"schedule", fixed(view.scheduleBlock)},
        {"scratch", scratch()},
        {"remarks", remarks()},
        {"instructions", instructions()},
        {"changes", changes()},
    };
    document["total"] = view.cost ? parsed("{" + totalJson(*view.cost) + "}") : nullptr;
    json::Array checks;
    for (const Check &check : subject.signature.checks)
      checks.push_back(fixed(check.text));
    document["checks"] = std::move(checks);
    return document;
  }

private:
  /// What `tkc inspect` prints, as values.
  static json::Value parsed(const std::string &text) {
    llvm::Expected<json::Value> value = json::parse(text);
    if (value)
      return std::move(*value);
    llvm::consumeError(value.takeError());
    return nullptr;
  }

  json::Array files() const {
    json::Array array;
    for (const KernelView::File &file : view.files)
      array.push_back(json::Object{{"name", fixed(file.name)}, {"text", fixed(file.text)}});
    return array;
  }

  json::Array places() const {
    json::Array array;
    for (const SourcePlace &place : view.places)
      array.push_back(json::Object{{"file", place.file}, {"line", place.line}});
    return array;
  }

  json::Array stages() const {
    json::Array array;
    for (const StageText &stage : view.stages) {
      json::Array lines;
      for (const std::vector<unsigned> &from : stage.lines)
        lines.push_back(json::Array(from));
      array.push_back(json::Object{{"name", stage.name},
                                   {"text", fixed(stage.text)},
                                   {"missing", fixed(stage.missing)},
                                   {"lines", std::move(lines)}});
    }
    return array;
  }

  std::string addressText(bool ofScratch, uint32_t index) const {
    return ofScratch ? "scratch " + std::to_string(index) : subject.signature.tensor(index).name;
  }

  std::string argumentText(const Arg &arg) const {
    switch (arg.kind) {
    case ArgKind::tensor:
    case ArgKind::scratch:
      return "address of " + addressText(arg.kind == ArgKind::scratch, arg.index);
    case ArgKind::integer:
      return arg.value.str(names);
    case ArgKind::stride:
      return "stride of axis " + std::to_string(arg.axis) + " of " +
             subject.signature.tensor(arg.index).name;
    case ArgKind::scalar:
      return "scalar " + subject.signature.scalar(arg.index).name;
    case ArgKind::tensor_map:
      break;
    }
    const TensorMap &map = view.executable.plan.tensor_maps[arg.index];
    std::string box;
    for (uint32_t side : map.box)
      box += (box.empty() ? "" : "x") + std::to_string(side);
    static constexpr llvm::StringLiteral swizzles[] = {"none", "32 bytes", "64 bytes", "128 bytes"};
    return "TMA map of " + addressText(map.of_scratch, map.index) + ", box " + box + ", swizzle " +
           swizzles[std::min<size_t>(map.swizzle, 3)].str();
  }

  json::Array arguments(const Launch &launch) const {
    auto found = view.arguments.find(launch.symbol);
    json::Array array;
    for (auto [i, arg] : llvm::enumerate(launch.args)) {
      const bool isNamed = found != view.arguments.end() && i < found->second.size();
      array.push_back(
          json::Object{{"name", isNamed ? fixed(found->second[i]) : ""},
                       {"is", fixed(argumentText(arg))},
                       {"value", arg.kind == ArgKind::integer ? numberOf(arg.value, variables)
                                                              : json::Value(nullptr)}});
    }
    return array;
  }

  const LaunchCost *costOf(const std::string &symbol) const {
    if (view.cost)
      for (const LaunchCost &cost : view.cost->kernel.launches)
        if (cost.symbol == symbol)
          return &cost;
    return nullptr;
  }

  json::Value launch(const LaunchReport &report) const {
    const Launch &launch = *report.launch;
    json::Array grid, gridText;
    for (const DimExpr &axis : launch.grid) {
      grid.push_back(numberOf(axis, variables));
      gridText.push_back(fixed(axis.str(names)));
    }
    auto triple = [](const uint32_t (&of)[3]) { return json::Array{of[0], of[1], of[2]}; };
    json::Object object{{"symbol", launch.symbol},
                        {"line", launch.span.line},
                        {"grid", std::move(grid)},
                        {"grid_text", std::move(gridText)},
                        {"block", triple(launch.block)},
                        {"cluster", triple(launch.cluster)},
                        {"threads", launch.block[0] * launch.block[1] * launch.block[2]},
                        {"resident", launch.resident},
                        {"dynamic_shared", numberOf(launch.shared_bytes, variables)},
                        {"arguments", arguments(launch)}};
    auto plan = view.plans.find(launch.symbol);
    object["plan"] = plan == view.plans.end() ? "" : fixed(plan->second);
    auto fused = view.fused.find(launch.symbol);
    object["prologue"] = fused == view.fused.end() ? "" : fixed(fused->second.prologue);
    object["epilogue"] = fused == view.fused.end() ? "" : fixed(fused->second.epilogue);
    auto pipeline = view.pipelines.find(launch.symbol);
    object["pipeline"] = pipeline == view.pipelines.end() ? "" : fixed(pipeline->second);
    const bool isCompiled = report.code.registers > 0;
    object["code"] =
        isCompiled ? json::Value(json::Object{{"registers", report.code.registers},
                                              {"static_shared", report.code.staticShared},
                                              {"spill_stores", report.code.spillStores},
                                              {"spill_loads", report.code.spillLoads},
                                              {"stack", report.code.stackBytes},
                                              {"blocks_per_sm", report.occupancy.blocks},
                                              {"occupancy", report.occupancy.fraction},
                                              {"limiter", std::string(report.occupancy.limiter)}})
                   : nullptr;
    auto shares = view.timeShares.find(launch.symbol);
    object["time_shares"] =
        shares == view.timeShares.end() ? json::Value(nullptr) : json::Array(shares->second);
    const LaunchCost *cost = costOf(launch.symbol);
    object["cost"] = cost ? parsed("{" + costJson(*cost) + "}") : nullptr;
    return object;
  }

  json::Array launches() const {
    json::Array array;
    for (const LaunchReport &report : view.launches)
      array.push_back(launch(report));
    return array;
  }

  json::Array scratch() const {
    json::Array array;
    for (const Scratch &scratch : view.executable.plan.scratch)
      array.push_back(json::Object{{"purpose", fixed(scratch.purpose)},
                                   {"bytes", numberOf(scratch.bytes, variables)},
                                   {"bytes_text", fixed(scratch.bytes.str(names))}});
    return array;
  }

  /// The line that defines a tensor, or the statement of which a pass made it, as `p.max` of `p`;
  /// of two, as in `o+lse`, the first one's. Null where the program has no such tensor.
  json::Value definitionOf(llvm::StringRef tensor) const {
    auto found =
        view.definitions.find(tensor.take_until([](char c) { return c == '.' || c == '+'; }).str());
    return tensor.empty() || found == view.definitions.end() ? json::Value(nullptr)
                                                             : json::Value(found->second);
  }

  json::Array remarks() const {
    json::Array array;
    std::vector<std::pair<std::string, unsigned>> said;
    for (const CompiledSource::Remark &remark : view.remarks) {
      std::pair<std::string, unsigned> fact(remark.file + ":" + remark.text, remark.line);
      if (llvm::is_contained(said, fact))
        continue;
      said.push_back(fact);
      json::Object made{{"verdict", remark.declined ? "declined" : "derived"},
                        {"pass", remark.pass},
                        {"text", fixed(remark.text)},
                        {"file", fixed(remark.file)},
                        {"line", remark.line},
                        {"tensor", fixed(remark.tensor)}};
      made["defined_line"] = definitionOf(remark.tensor);
      array.push_back(std::move(made));
    }
    return array;
  }

  json::Object changes() const {
    json::Array texts, passes;
    for (const std::string &text : view.changes.texts)
      texts.push_back(fixed(text));
    for (const PassChange &change : view.changes.passes) {
      json::Array lines;
      for (const LineChange &line : change.lines)
        lines.push_back(json::Object{{"place", line.place},
                                     {"removed", json::Array(line.removed)},
                                     {"added", json::Array(line.added)}});
      passes.push_back(json::Object{{"pass", change.pass}, {"lines", std::move(lines)}});
    }
    return json::Object{{"texts", std::move(texts)}, {"passes", std::move(passes)}};
  }

  json::Value instructions() const {
    if (view.countedStage.empty())
      return nullptr;
    json::Array kinds, rows;
    for (size_t kind = 0; kind < numInstructionKinds; ++kind)
      kinds.push_back(nameOf(static_cast<InstructionKind>(kind)).str());
    for (const InstructionCounts &counts : view.instructions)
      rows.push_back(json::Array(counts));
    return json::Object{
        {"stage", view.countedStage}, {"kinds", std::move(kinds)}, {"by_place", std::move(rows)}};
  }

  const KernelView &view;
  const ViewSubject &subject;
  std::vector<std::string> names;
  std::vector<Scalar> variables; ///< the dimensions up to the first that is not given
};

} // namespace

json::Value documentOf(const KernelView &view, const ViewSubject &subject) {
  return Document(view, subject).make();
}

} // namespace tk::tkc
