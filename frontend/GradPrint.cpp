// Terms as text of the language.

#include "frontend/AstPrinter.h"
#include "frontend/GradTerm.h"

#include <cmath>

namespace tk::grad {
namespace {

using ast::BinaryOp;

int tightnessOf(const Term &term) {
  switch (term.kind) {
  case TermKind::Binary:
    return tightness(term.op);
  case TermKind::Neg:
    return UnaryTight;
  case TermKind::Int:
    return term.intValue < 0 ? UnaryTight : PrimaryTight;
  case TermKind::Float:
    return std::signbit(term.floatValue) ? UnaryTight : PrimaryTight;
  case TermKind::Not:
    return NotTight;
  case TermKind::If:
    return Loosest;
  default:
    return PrimaryTight;
  }
}

class Printer {
public:
  explicit Printer(const PrintContext *context) : context(context) {}

  std::string out;

  void print(const Term &term, int around);
  /// Enters an index under a name that is not taken; `body` shows how it is used.
  void introduce(IndexRef index, const TermPtr &body, bool ofResult = false);
  void leave(IndexRef index) {
    inUse.erase(names[index]);
    names.erase(index);
  }

private:
  void bare(const Term &term);
  void list(const std::vector<TermPtr> &terms) {
    for (std::size_t i = 0; i < terms.size(); ++i) {
      out += i ? ", " : "";
      print(*terms[i], Loosest);
    }
  }
  bool needsRange(IndexRef index, const TermPtr &body, bool isGiven) const;

  const PrintContext *context;
  std::map<IndexRef, std::string> names;
  std::set<std::string> inUse;
};

/// Whether nothing gives the index its range, or a bare use gives it another.
bool Printer::needsRange(IndexRef index, const TermPtr &body, bool isGiven) const {
  bool isOther = false;
  walk(body, [&](const Term &term) {
    if (term.kind != TermKind::Access)
      return true;
    auto axes = context->axes.find(term.name);
    for (std::size_t i = 0; i < term.args.size(); ++i) {
      if (term.args[i]->kind != TermKind::Index || term.args[i]->index != index)
        continue;
      bool isSame = axes != context->axes.end() && i < axes->second.size() &&
                    equal(axes->second[i].lo, index->lo) && equal(axes->second[i].hi, index->hi);
      (isSame ? isGiven : isOther) = true;
    }
    return true;
  });
  return !isGiven || isOther;
}

void Printer::introduce(IndexRef index, const TermPtr &body, bool ofResult) {
  std::string name = index->name;
  for (unsigned n = 2; inUse.count(name) || context->taken.count(name); ++n)
    name = index->name + std::to_string(n);
  out += name;
  if (needsRange(index, body, ofResult)) {
    out += " in ";
    print(*index->lo, Loosest);
    out += "..";
    print(*index->hi, Loosest);
  }
  inUse.insert(name);
  names[index] = name;
}

void Printer::print(const Term &term, int around) {
  bool parentheses = tightnessOf(term) < around;
  out += parentheses ? "(" : "";
  bare(term);
  out += parentheses ? ")" : "";
}

void Printer::bare(const Term &term) {
  switch (term.kind) {
  case TermKind::Int:
    out += std::to_string(term.intValue);
    return;
  case TermKind::Float:
    out += printFloat(term.floatValue);
    return;
  case TermKind::Bool:
    out += term.intValue ? "true" : "false";
    return;
  case TermKind::Name:
    out += term.name;
    return;
  case TermKind::Index:
    out += names.at(term.index);
    return;
  case TermKind::Neg:
    out += "-";
    return print(*term.args[0], UnaryTight);
  case TermKind::Not:
    out += "not ";
    return print(*term.args[0], NotTight);
  case TermKind::Binary: {
    int own = tightness(term.op);
    bool isPower = term.op == BinaryOp::Pow, isCompare = own == CompareTight;
    print(*term.args[0], isPower || isCompare ? own + 1 : own);
    out += isPower ? "" : " ";
    out += ast::spelling(term.op);
    out += isPower ? "" : " ";
    return print(*term.args[1], isPower ? UnaryTight : own + 1);
  }
  case TermKind::If:
    out += "if ";
    print(*term.args[0], Loosest);
    out += " then ";
    print(*term.args[1], Loosest);
    out += " else ";
    return print(*term.args[2], Loosest);
  case TermKind::Call:
    out += term.name + "(";
    list(term.args);
    out += ")";
    return;
  case TermKind::Access:
    out += term.name;
    if (term.args.empty())
      return;
    out += "[";
    list(term.args);
    out += "]";
    return;
  case TermKind::Reduce: {
    bool isKept = ast::keepsIndex(term.reduce);
    out.append(ast::spelling(term.reduce)).append("[");
    for (std::size_t i = 0; i < term.binders.size(); ++i) {
      out += i ? ", " : "";
      if (isKept)
        out += names.at(term.binders[i]);
      else
        introduce(term.binders[i], term.args[0]);
    }
    if (term.modifier != ast::ReduceModifier::None)
      out.append("; ").append(ast::spelling(term.modifier));
    out += "](";
    print(*term.args[0], Loosest);
    out += ")";
    if (!isKept)
      for (IndexRef binder : term.binders)
        leave(binder);
    return;
  }
  }
}

} // namespace

std::string printStatement(const PrintContext &context, const std::string &name, bool ofResult,
                           const std::vector<IndexRef> &indices, const std::string &type,
                           const TermPtr &value) {
  Printer printer(&context);
  printer.out = (ofResult ? "" : "let ") + name;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    printer.out += i ? ", " : "[";
    printer.introduce(indices[i], value, ofResult);
  }
  printer.out += indices.empty() ? "" : "]";
  printer.out += type.empty() ? " = " : ": " + type + " = ";
  printer.print(*value, Loosest);
  return std::move(printer.out);
}

std::string printTerm(const TermPtr &term) {
  Printer printer(nullptr);
  printer.print(*term, Loosest);
  return std::move(printer.out);
}

} // namespace tk::grad
