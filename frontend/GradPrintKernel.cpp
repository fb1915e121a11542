// The derived kernel as text.

#include "frontend/AstPrinter.h"
#include "frontend/GradKernel.h"

#include <algorithm>
#include <cctype>

namespace tk::grad {

/// The expression by which `where` defines a symbol that no parameter binds, or null.
static const ast::Expr *definitionOf(const ast::Expr &condition, const std::string &name) {
  const auto *e = ast::as<ast::Binary>(&condition);
  if (e && e->op == ast::BinaryOp::And) {
    const ast::Expr *found = definitionOf(*e->lhs, name);
    return found ? found : definitionOf(*e->rhs, name);
  }
  const auto *symbol =
      e && e->op == ast::BinaryOp::Eq ? ast::as<ast::NameRef>(e->lhs.get()) : nullptr;
  return symbol && symbol->name == name ? e->rhs.get() : nullptr;
}

/// The type of a tensor or scalar; a named extent that the shape is to define, not to bind, is
/// written out.
static std::string typeOf(const ast::Param &param, const sema::Kernel &primal) {
  std::string text(ast::spelling(param.dtype));
  if (!param.isTensor)
    return text;
  text += "[";
  for (std::size_t i = 0; i < param.dims.size(); ++i) {
    const ast::Expr *dim = param.dims[i].get();
    const auto *symbol = ast::as<ast::NameRef>(dim);
    if (symbol &&
        std::find(primal.dims.begin(), primal.dims.end(), symbol->name) == primal.dims.end())
      for (const ast::ExprPtr &constraint : primal.source->constraints)
        if (const ast::Expr *value = definitionOf(*constraint, symbol->name)) {
          dim = value;
          break;
        }
    text += (i ? ", " : "") + printExpr(*dim);
    if (const std::string &axis = param.shards[i].name; !axis.empty())
      text += " @ " + axis;
  }
  return text + "]";
}

static std::string qualifier(const ast::Param &param) { return param.strided ? "strided " : ""; }

/// kernel NAME(inputs, results, cotangents) -> (gradients) where constraints
std::string GradKernel::header() const {
  const ast::Kernel &kernel = *primal.source;
  std::string text = kernel.batchInvariant  ? "@batch_invariant "
                     : kernel.deterministic ? "@deterministic "
                                            : "";
  text += "kernel " + grad.name + "(";
  for (std::size_t i = 0; i < kernel.params.size(); ++i) {
    const ast::Param &p = *kernel.params[i];
    text += (i ? ", " : "") + qualifier(p) + p.name + ": " + typeOf(p, primal);
    if (p.defaultValue)
      text += " = " + printExpr(*p.defaultValue);
  }
  text += ",\n    ";
  for (std::size_t i = 0; i < kernel.results.size(); ++i)
    text += (i ? ", " : "") + qualifier(*kernel.results[i]) + kernel.results[i]->name + ": " +
            typeOf(*kernel.results[i], primal);
  for (const ast::ParamPtr &result : kernel.results)
    if (sema::isFloat(result->dtype))
      text += ", " + qualifier(*result) + "d_" + result->name + ": " + typeOf(*result, primal);
  text += ")\n    -> (";
  for (std::size_t i = 0; i < grad.wrt.size(); ++i)
    for (const ast::ParamPtr &p : kernel.params)
      if (p->name == grad.wrt[i].name)
        text +=
            (i ? ", d_" : "d_") + p->name + ": " + typeOf(*p, primal) + (p->isTensor ? "" : "[]");
  text += ")\n";
  for (std::size_t i = 0; i < kernel.constraints.size(); ++i)
    text += (i ? ", " : "where ") + printExpr(*kernel.constraints[i]);
  return text + (kernel.constraints.empty() ? "" : "\n") + "{\n";
}

/// A sum that one other statement reads, element by element, becomes part of that: what is stored
/// of a row is then what loops over it read.
void GradKernel::joinRows(std::vector<Statement> &lines) {
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const Statement &sum = lines[at];
    if (sum.isResult || sum.dtype || !sum.conditions.empty() ||
        sum.value->kind != TermKind::Reduce || sum.value->reduce != ast::ReduceKind::Sum)
      continue;
    Statement *reader = nullptr;
    TermPtr element;
    unsigned reads = 0;
    for (Statement &line : lines) {
      bool inReduction = line.value->kind == TermKind::Reduce;
      auto find = [&](auto &self, const TermPtr &term) -> void {
        if (term->kind == TermKind::Access && term->name == sum.name) {
          ++reads;
          reader = inReduction ? nullptr : &line;
          element = term;
        }
        for (const TermPtr &arg : term->args)
          self(self, arg);
      };
      find(find, line.value);
    }
    // Only what is linear in it: a condition on a sum, or a function of it, reads better by name.
    if (reads != 1 || !reader || reader->isResult || reader->dtype ||
        reader->indices.size() != sum.indices.size() ||
        !(reader->value->is(ast::BinaryOp::Add) || reader->value->is(ast::BinaryOp::Sub)))
      continue;
    auto side = std::find_if(reader->value->args.begin(), reader->value->args.end(),
                             [&](const TermPtr &arg) { return arg == element; });
    Substitution by;
    std::set<IndexRef> seen;
    for (std::size_t i = 0; i < sum.indices.size(); ++i)
      if (element->args[i]->kind == TermKind::Index && seen.insert(element->args[i]->index).second)
        by[sum.indices[i]] = element->args[i];
    if (side == reader->value->args.end() || by.size() != sum.indices.size())
      continue;
    std::vector<TermPtr> args = reader->value->args;
    args[static_cast<std::size_t>(side - reader->value->args.begin())] = substitute(sum.value, by);
    reader->value = withArgs(reader->value, std::move(args));
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
    --at;
  }
}

/// Puts what a line reads in front of it: the norm of weights may be a later statement's.
template <typename Statement> static void defineBeforeReads(std::vector<Statement> &lines) {
  std::map<std::string, std::size_t> definitions;
  for (std::size_t i = 0; i < lines.size(); ++i)
    definitions[lines[i].name] = i;
  std::vector<Statement> ordered;
  std::vector<bool> isPlaced(lines.size(), false);
  auto place = [&](auto &self, std::size_t at) -> void {
    if (isPlaced[at])
      return;
    isPlaced[at] = true;
    walk(lines[at].value, [&](const Term &t) {
      auto read = t.kind == TermKind::Access || t.kind == TermKind::Name ? definitions.find(t.name)
                                                                         : definitions.end();
      if (read != definitions.end())
        self(self, read->second);
      return true;
    });
    ordered.push_back(lines[at]);
  };
  for (std::size_t i = 0; i < lines.size(); ++i)
    place(place, i);
  lines = std::move(ordered);
}

std::vector<IndexRef> GradKernel::indicesOf(const std::string &argument) {
  std::vector<IndexRef> indices;
  unsigned axis = 0;
  for (const Axis &a : axes.at(argument)) {
    std::string name = a.hi->kind == TermKind::Name
                           ? std::string(1, static_cast<char>(std::tolower(a.hi->name[0])))
                           : "i";
    // The name that the kernel's own statements have for it.
    for (const Contribution &c : contributions[argument])
      if (IndexRef index = c.at[axis]->index) {
        name = index->name;
        break;
      }
    indices.push_back(makeIndex(name, a.lo, a.hi));
    ++axis;
  }
  return indices;
}

std::string GradKernel::print() {
  // 1. What the kernel itself computes. Weights of a softmax are computed anew from a row's norm.
  for (Statement &s : statements) {
    const Term *reduce = s.value->kind == TermKind::Reduce ? s.value.get() : nullptr;
    if (reduce && reduce->reduce == ast::ReduceKind::Softmax && s.isActive && !s.isResult) {
      softmaxes[&s] = s.value;
      s.value = weights(*reduce, false);
    }
  }
  std::vector<Statement> lines = first;
  for (const Statement &s : statements) {
    if (!s.isResult) {
      lines.push_back(s);
      Statement &line = lines.back();
      if (!line.conditions.empty()) {
        TermPtr value = where(line.conditions, line.value);
        line.value = choose(value->args[0], line.value, integer(0)); // of whatever type
      }
    }
    if (auto it = after.find(&s); it != after.end())
      lines.insert(lines.end(), it->second.begin(), it->second.end());
  }
  defineBeforeReads(lines);

  // 2. Adjoints, then the gradients that are asked for.
  lines.insert(lines.end(), adjoints.begin(), adjoints.end());
  for (const ast::GradArgument &arg : grad.wrt) {
    Statement s;
    s.name = arg.name;
    s.indices = indicesOf(arg.name);
    s.isResult = true;
    std::size_t before = adjoints.size();
    s.name = "d_" + arg.name;
    s.value = combine(s.name, s.indices, contributions[arg.name]);
    lines.insert(lines.end(), adjoints.begin() + static_cast<std::ptrdiff_t>(before),
                 adjoints.end());
    lines.push_back(s);
  }

  copyWeights(lines);
  joinRows(lines);

  // 3. Only what something needs.
  std::set<std::string> needed;
  std::vector<bool> isNeeded(lines.size(), false);
  for (std::size_t i = lines.size(); i-- > 0;) {
    if (!lines[i].isResult && !needed.count(lines[i].name))
      continue;
    isNeeded[i] = true;
    walk(lines[i].value, [&](const Term &t) {
      if (t.kind == TermKind::Access || t.kind == TermKind::Name)
        needed.insert(t.name);
      return true;
    });
  }

  std::string text = header();
  PrintContext context{axes, taken};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!isNeeded[i])
      continue;
    const Statement &s = lines[i];
    std::string type = s.dtype ? std::string(ast::spelling(*s.dtype)) : "";
    text += "  " + printStatement(context, s.name, s.isResult, s.indices, type, s.value) + "\n";
  }
  return text + "}\n";
}

std::optional<std::string> GradKernel::run() {
  try {
    declare();
    for (const ast::StmtPtr &stmt : primal.source->statements)
      if (stmt->kind != ast::StmtKind::Assert)
        resolveStatement(*stmt);
    reverse();
    return print();
  } catch (const Refused &) {
    return std::nullopt;
  }
}

} // namespace tk::grad
