//===- Program.cpp - a generated program, printed ------------------------===//
#include "tests/fuzz/Program.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>

namespace tk::fuzz {

NodePtr Node::clone() const {
  auto copy = std::make_unique<Node>(kind, sort);
  copy->name = name;
  copy->number = number;
  copy->ref = ref;
  copy->padded = padded;
  copy->binders = binders;
  copy->modifier = modifier;
  for (const NodePtr &kid : kids)
    copy->kids.push_back(kid->clone());
  return copy;
}

Sort Tensor::sort() const {
  return dtype == DType::boolean ? Sort::Bool : is_float(dtype) ? Sort::Float : Sort::Int;
}

Program Program::clone() const {
  Program copy;
  copy.name = name;
  copy.symbols = symbols;
  copy.indices = indices;
  copy.tensors = tensors;
  copy.scalars = scalars;
  copy.seed = seed;
  copy.disabledPasses = disabledPasses;
  copy.schedule = schedule;
  copy.constraints = constraints;
  copy.promises = promises;
  copy.variableScalars = variableScalars;
  for (const Statement &s : statements)
    copy.statements.push_back({s.tensor, s.indices, s.value->clone()});
  return copy;
}

int64_t Program::extentOf(const Extent &extent) const {
  if (extent.symbol < 0)
    return extent.add;
  int64_t value = extent.mul * symbols[extent.symbol].size + extent.add;
  return value >= 0 ? value / extent.div : -((-value + extent.div - 1) / extent.div);
}

int64_t Program::countOf(const Tensor &tensor) const {
  int64_t count = 1;
  for (const Extent &extent : tensor.shape)
    count *= std::max<int64_t>(extentOf(extent), 0);
  return count;
}

std::optional<int> Program::updateOf(int input) const {
  for (const Statement &s : statements)
    if (tensors[s.tensor].updates == input)
      return s.tensor;
  return std::nullopt;
}

double Program::cost() const {
  std::function<double(const Node &)> each = [&](const Node &node) {
    double sum = 1;
    for (const NodePtr &kid : node.kids)
      sum += each(*kid);
    for (int binder : node.binders)
      sum *= std::max<double>(1, extentOf(indices[binder].hi) - indices[binder].lo);
    return sum;
  };
  std::vector<bool> readPadded(tensors.size());
  std::function<void(const Node &)> visit = [&](const Node &node) {
    if (node.kind == Kind::Load && node.padded)
      readPadded[node.ref] = true;
    for (const NodePtr &kid : node.kids)
      visit(*kid);
  };
  for (const Statement &s : statements)
    visit(*s.value);
  double total = 0;
  for (const Statement &s : statements) {
    // Elements of an empty tensor may yet be computed, where a padded read is outside of it.
    double count = 1;
    for (const Extent &extent : tensors[s.tensor].shape)
      count *= std::max<double>(readPadded[s.tensor], static_cast<double>(extentOf(extent)));
    total += count * each(*s.value);
  }
  return total;
}

std::string Program::extentText(const Extent &e) const {
  if (e.symbol < 0)
    return std::to_string(e.add);
  std::string text = symbols[e.symbol].name;
  if (e.mul != 1)
    text = std::to_string(e.mul) + " * " + text;
  if (e.add)
    text += (e.add > 0 ? " + " : " - ") + std::to_string(std::abs(e.add));
  if (e.div == 1)
    return text;
  return (e.add || e.mul != 1 ? "(" + text + ")" : text) + " / " + std::to_string(e.div);
}

namespace {

class Printer {
public:
  explicit Printer(const Program &program) : program(program), uses(usesOf(program)) {}

  std::string run() {
    std::string results, inputs = binders();
    // A symbol is bound by the first tensor that has it alone, so those with expressions follow.
    for (bool plain : {true, false})
      for (size_t t = 0; t < program.tensors.size(); ++t) {
        const Tensor &tensor = program.tensors[t];
        if (tensor.role == Role::Input && uses.tensors[t] && isPlain(tensor) == plain)
          inputs += std::string(inputs.empty() ? "" : ", ") +
                    (program.updateOf(static_cast<int>(t)) ? "inout " : "") + declaration(tensor);
        if (tensor.role == Role::Result && uses.tensors[t] && plain)
          results += (results.empty() ? "" : ", ") + declaration(tensor);
      }
    for (size_t s = 0; s < program.scalars.size(); ++s)
      if (uses.scalars[s])
        inputs += (inputs.empty() ? "" : ", ") + ("a" + std::to_string(s)) + ": f32";
    std::string text =
        "kernel " + program.name + "(" + inputs + ")\n    -> (" + results + ")\n" + where() + "{\n";
    for (const Statement &s : program.statements)
      text += "  " + statement(s) + "\n";
    return text + "}\n" + scheduleBlock();
  }

private:
  static bool isBare(const Extent &e) { return e.symbol < 0 || e == Extent{e.symbol}; }
  static bool isPlain(const Tensor &tensor) {
    return std::all_of(tensor.shape.begin(), tensor.shape.end(), isBare);
  }

  /// An input for each symbol that no other input binds.
  std::string binders() {
    std::string text;
    for (size_t s = 0; s < program.symbols.size(); ++s) {
      bool bound = !uses.symbols[s];
      for (size_t t = 0; t < program.tensors.size(); ++t)
        for (const Extent &e : program.tensors[t].shape)
          bound |= program.tensors[t].role == Role::Input && uses.tensors[t] &&
                   isPlain(program.tensors[t]) && e == Extent{static_cast<int>(s)};
      const std::string &name = program.symbols[s].name;
      if (!bound)
        text += (text.empty() ? "" : ", ") + ("size" + name) + ": f32[" + name + "]";
    }
    return text;
  }

  std::string where() {
    std::string text;
    for (auto [large, small] : program.constraints)
      if (uses.symbols[large] && uses.symbols[small])
        text += (text.empty() ? "where " : ", ") + program.symbols[large].name +
                " >= " + program.symbols[small].name;
    return text.empty() ? "" : text + "\n";
  }

  std::string scheduleBlock() {
    std::string text;
    for (const std::string &entry : program.schedule)
      text += "  " + entry + "\n";
    return text.empty() ? "" : "schedule " + program.name + " {\n" + text + "}\n";
  }

  std::string declaration(const Tensor &tensor) {
    std::string text = (tensor.strided ? "strided " : "") + tensor.name + ": " +
                       std::string(name(tensor.dtype)) + "[";
    for (size_t axis = 0; axis < tensor.shape.size(); ++axis)
      text += (axis ? ", " : "") + program.extentText(tensor.shape[axis]);
    return text + "]";
  }

  std::string indexName(int index) {
    auto reused = reusedNames.find(index);
    return "i" + std::to_string(reused == reusedNames.end() ? index : reused->second);
  }

  static bool mentions(const Node &node, int index) {
    return (node.kind == Kind::Index && node.ref == index) ||
           std::find(node.binders.begin(), node.binders.end(), index) != node.binders.end() ||
           std::any_of(node.kids.begin(), node.kids.end(),
                       [&](const NodePtr &kid) { return mentions(*kid, index); });
  }

  /// Now and then an outermost reduction takes the name of an index of the left side that it does
  /// not use. Schedules name indices, so that programs with one keep all names.
  void reuseName(const Node &reduce) {
    const int own = reduce.binders[0];
    if (reductions != 0 || !left || !program.schedule.empty() ||
        (program.seed + static_cast<uint64_t>(own)) % 3 != 0)
      return;
    for (int index : *left)
      if (!mentions(reduce, index)) {
        reusedNames[own] = index;
        return;
      }
  }

  /// Whether some access has the index bare, and all such have its extent.
  void findBare(const Node &node, int index, bool &found, bool &agree) {
    if (node.kind == Kind::Load) {
      const Tensor &tensor = program.tensors[node.ref];
      for (size_t axis = 0; axis < tensor.shape.size(); ++axis)
        if (node.kids[axis]->kind == Kind::Index && node.kids[axis]->ref == index) {
          found = true;
          agree &= tensor.shape[axis] == program.indices[index].hi;
        }
    }
    for (const NodePtr &kid : node.kids)
      findBare(*kid, index, found, agree);
  }

  std::string binder(int index, const Node &body, bool implied) {
    const IndexVar &var = program.indices[index];
    bool found = implied, agree = true;
    findBare(body, index, found, agree);
    if (found && agree && var.lo == 0 && !var.spelled)
      return indexName(index);
    return indexName(index) + " in " + std::to_string(var.lo) + ".." + program.extentText(var.hi);
  }

  std::string statement(const Statement &s) {
    const Tensor &tensor = program.tensors[s.tensor];
    bool local = tensor.role == Role::Local;
    std::string text = (local ? "let " : "") + tensor.name;
    if (!s.indices.empty()) {
      text += "[";
      for (size_t n = 0; n < s.indices.size(); ++n)
        text += (n ? ", " : "") + binder(s.indices[n], *s.value, !local);
      text += "]";
    }
    if (local && tensor.declared)
      text += ": " + std::string(name(tensor.dtype));
    left = &s.indices;
    return text + " = " + expr(*s.value);
  }

  std::string list(const Node &node, size_t count) {
    std::string text;
    for (size_t n = 0; n < count; ++n)
      text += (n ? ", " : "") + expr(*node.kids[n]);
    return text;
  }

  std::string number(const Node &node) {
    char buffer[40];
    double magnitude = std::fabs(node.number);
    if (std::isinf(node.number))
      return node.number < 0 ? "(-inf)" : "inf";
    if (node.sort == Sort::Float)
      std::snprintf(buffer, sizeof buffer, "%.4f", magnitude);
    else
      std::snprintf(buffer, sizeof buffer, "%lld", static_cast<long long>(magnitude));
    return node.number < 0 ? "(-" + std::string(buffer) + ")" : buffer;
  }

  std::string expr(const Node &node) {
    switch (node.kind) {
    case Kind::Number:
      return number(node);
    case Kind::Truth:
      return node.number != 0 ? "true" : "false";
    case Kind::Index:
      return indexName(node.ref);
    case Kind::Dim:
      return program.symbols[node.ref].name;
    case Kind::Scalar:
      return "a" + std::to_string(node.ref);
    case Kind::Load: {
      size_t rank = program.tensors[node.ref].shape.size();
      std::string text = program.tensors[node.ref].name;
      if (rank || program.tensors[node.ref].role == Role::Input)
        text += "[" + list(node, rank) + "]";
      return node.padded ? "pad(" + text + ", " + expr(*node.kids[rank]) + ")" : text;
    }
    case Kind::Call:
      return node.name + "(" + list(node, node.kids.size()) + ")";
    case Kind::Unary:
      return "(" + node.name + expr(*node.kids[0]) + ")";
    case Kind::Binary:
      return "(" + expr(*node.kids[0]) + " " + node.name + " " + expr(*node.kids[1]) + ")";
    case Kind::If:
      return "(if " + expr(*node.kids[0]) + " then " + expr(*node.kids[1]) + " else " +
             expr(*node.kids[2]) + ")";
    case Kind::Reduce: {
      std::string text = node.name + "[";
      reuseName(node);
      ++reductions;
      for (size_t n = 0; n < node.binders.size(); ++n)
        text += (n ? ", " : "") + binder(node.binders[n], *node.kids[0], false);
      if (!node.modifier.empty())
        text += "; " + node.modifier;
      text += "](" + expr(*node.kids[0]) + ")";
      --reductions;
      return text;
    }
    case Kind::Keep:
      return node.name + "[" + indexName(node.binders[0]) + "](" + expr(*node.kids[0]) + ")";
    }
    return "";
  }

  const Program &program;
  Uses uses;
  std::map<int, int> reusedNames;         ///< indices of reductions that are printed as others
  const std::vector<int> *left = nullptr; ///< of the statement that is printed
  int reductions = 0;                     ///< around the node that is printed
};

} // namespace

std::string Program::kernelText() const { return Printer(*this).run(); }

std::string Program::text() const {
  std::string names;
  for (const std::string &variable : variables())
    names += (names.empty() ? "" : ", ") + variable;
  return kernelText() +
         (names.empty() ? "" : "grad " + name + "_gradient = " + name + " wrt (" + names + ")\n");
}

std::vector<std::string> Program::variables() const {
  Uses uses = usesOf(*this);
  std::vector<std::string> names;
  bool hasResult = false;
  for (size_t t = 0; t < tensors.size(); ++t) {
    hasResult |= tensors[t].role == Role::Result && uses.tensors[t] && is_float(tensors[t].dtype);
    if (tensors[t].isVariable && uses.tensors[t])
      names.push_back(tensors[t].name);
  }
  for (int scalar : variableScalars)
    if (uses.scalars[scalar])
      names.push_back("a" + std::to_string(scalar));
  return hasResult ? names : std::vector<std::string>();
}

Uses usesOf(const Program &program) {
  Uses uses;
  uses.tensors.resize(program.tensors.size());
  uses.scalars.resize(program.scalars.size());
  uses.symbols.resize(program.symbols.size());
  auto extent = [&](const Extent &e) {
    if (e.symbol >= 0)
      uses.symbols[e.symbol] = true;
  };
  auto tensor = [&](int t) {
    uses.tensors[t] = true;
    for (const Extent &e : program.tensors[t].shape)
      extent(e);
  };
  std::function<void(const Node &)> visit = [&](const Node &node) {
    if (node.kind == Kind::Load)
      tensor(node.ref);
    if (node.kind == Kind::Scalar)
      uses.scalars[node.ref] = true;
    if (node.kind == Kind::Dim)
      uses.symbols[node.ref] = true;
    for (int binder : node.binders)
      extent(program.indices[binder].hi);
    for (const NodePtr &kid : node.kids)
      visit(*kid);
  };
  for (const Statement &s : program.statements) {
    tensor(s.tensor);
    if (int input = program.tensors[s.tensor].updates; input >= 0)
      tensor(input);
    for (int index : s.indices)
      extent(program.indices[index].hi);
    visit(*s.value);
  }
  return uses;
}

std::vector<std::string> Program::dimOptions() const {
  std::vector<std::string> options;
  Uses uses = usesOf(*this);
  for (size_t s = 0; s < symbols.size(); ++s)
    if (uses.symbols[s])
      options.push_back(symbols[s].name + "=" + std::to_string(symbols[s].size));
  return options;
}

std::vector<std::string> Program::inputOptions() const {
  std::vector<std::string> options;
  Uses uses = usesOf(*this);
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].role != Role::Input || !uses.tensors[t])
      continue;
    std::string text = tensors[t].name + "=random:" + std::to_string(seed);
    if (tensors[t].hasNaN)
      text = tensors[t].name + "=special:" + std::to_string(seed);
    else if (tensors[t].low != tensors[t].high)
      text += ":" + std::to_string(tensors[t].low) + ":" + std::to_string(tensors[t].high);
    options.push_back(text);
  }
  // A gradient takes results, too. What a run of it by hand gets is not what the kernel computes.
  if (hasGradient())
    for (size_t t = 0; t < tensors.size(); ++t)
      if (tensors[t].role == Role::Result && uses.tensors[t] && !is_float(tensors[t].dtype))
        options.push_back(tensors[t].name + "=zeros");
  return options;
}

std::vector<std::string> Program::scalarOptions() const {
  std::vector<std::string> options;
  Uses uses = usesOf(*this);
  for (size_t s = 0; s < scalars.size(); ++s)
    if (uses.scalars[s]) {
      char buffer[40];
      std::snprintf(buffer, sizeof buffer, "a%zu=%.6g", s, scalars[s]);
      options.push_back(buffer);
    }
  return options;
}

std::vector<std::string> Program::gapOptions() const {
  std::vector<std::string> options;
  Uses uses = usesOf(*this);
  for (size_t t = 0; t < tensors.size(); ++t)
    if (uses.tensors[t] && tensors[t].gap > 0)
      options.push_back(tensors[t].name + "=" + std::to_string(tensors[t].gap));
  return options;
}

/// Two of three strided inputs have their axes reversed or rotated in memory, some of them with
/// elements apart. It follows from the tensor, so that a smaller program keeps it.
std::vector<std::string> Program::axesOptions() const {
  std::vector<std::string> options;
  Uses uses = usesOf(*this);
  for (size_t t = 0; t < tensors.size(); ++t) {
    const int rank = static_cast<int>(tensors[t].shape.size());
    const int form = (tensors[t].name.back() + rank + tensors[t].gap) % 3;
    if (!uses.tensors[t] || !tensors[t].strided || tensors[t].role != Role::Input || rank < 2 ||
        form == 0)
      continue;
    std::string axes;
    for (int n = 0; n < rank; ++n)
      axes += (n ? "," : "") + std::to_string(form == 1 ? rank - 1 - n : (n + 1) % rank);
    options.push_back(tensors[t].name + "=" + axes + (tensors[t].gap % 3 == 1 ? ":2" : ""));
  }
  return options;
}

std::string Program::command(const std::string &file, const std::string &target) const {
  std::string text = "tkc run " + file + " --target " + target + " --check";
  if (hasGradient())
    text += " --kernel " + name + "_gradient";
  for (const std::string &option : dimOptions())
    text += " --dim " + option;
  for (const std::string &option : inputOptions())
    text += " --in " + option;
  for (const std::string &option : scalarOptions())
    text += " --arg " + option;
  for (const std::string &option : gapOptions())
    text += " --gap " + option;
  for (const std::string &option : axesOptions())
    text += " --axes " + option;
  if (!disabledPasses.empty())
    text += " --disable-pass " + disabledPasses;
  return text;
}

} // namespace tk::fuzz
