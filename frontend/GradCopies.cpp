// Values that are cheaper to compute again than to store.
//
// Where a kernel normalises products by a softmax and contracts the weights with another tensor, no
// tensor of it has as many elements as there are weights: they come and go in a loop. So they
// should in the gradient, where several loops need them, along different indices: the gradient by
// queries runs over keys, that by keys over queries. What several loops share would be stored for
// all of them. So each kind of loop gets copies of its own of what has the weights' shape:
//
// 1. Find the shapes of such weights.
// 2. The statements that read tensors of these shapes are of one kind if their results have the
//    same axes and they run over the same axes of what they read.
//    Of two statements of one kind, one may need what the other one computes, as the gradient by
//    queries needs the sums of weights times values. No loop has both: they are of two kinds.
// 3. The first kind keeps the tensors. For each other one those that it needs are copied, at the
//    indices at which it reads them: `p[b, g * R + r, i, j]` becomes `p2[b, g, r, i, j]`. A read
//    along a diagonal, `pad(p[b, h, i + j, j], 0.0)`, keeps its indices and reads `p2`.

#include "frontend/GradKernel.h"

#include <algorithm>

namespace tk::grad {

static bool haveSameAxes(const std::vector<Axis> &a, const std::vector<Axis> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Axis &x, const Axis &y) {
    return equal(x.lo, y.lo) && equal(x.hi, y.hi);
  });
}

/// Whether a statement sums the weights over what they are normalised over, times something that
/// has indices of its own.
bool GradKernel::contracts(const Statement &t, const Statement &weights,
                           const Term &softmax) const {
  if (t.value->kind != TermKind::Reduce || t.value->reduce != ast::ReduceKind::Sum ||
      !t.value->args[0]->is(ast::BinaryOp::Mul))
    return false;
  for (unsigned i : {0U, 1U}) {
    const TermPtr &p = t.value->args[0]->args[i], &other = t.value->args[0]->args[1 - i];
    if (p->kind != TermKind::Access || p->name != weights.name)
      continue;
    bool isOver = true;
    for (std::size_t axis = 0; axis < p->args.size(); ++axis)
      if (std::find(softmax.binders.begin(), softmax.binders.end(), weights.indices[axis]) !=
          softmax.binders.end())
        isOver &= std::find(t.value->binders.begin(), t.value->binders.end(),
                            p->args[axis]->index) != t.value->binders.end();
    std::set<IndexRef> used = freeIndices(p);
    for (IndexRef index : freeIndices(other))
      if (isOver && !used.count(index))
        return true;
  }
  return false;
}

std::vector<std::vector<Axis>> GradKernel::shapesOfWeights() const {
  std::vector<std::vector<Axis>> shapes;
  for (const auto &[s, softmax] : softmaxes)
    if (std::any_of(statements.begin(), statements.end(),
                    [&, s = s, &softmax = softmax](const Statement &t) {
                      return contracts(t, *s, *softmax);
                    }))
      shapes.push_back(axes.at(s->name));
  // What is stored in any case need not be computed twice.
  std::erase_if(shapes, [&](const std::vector<Axis> &shape) {
    return std::any_of(tensors.begin(), tensors.end(), [&](const auto &tensor) {
      bool isStored = tensor.second.isResult || tensor.second.isInput;
      return isStored && haveSameAxes(axes.at(tensor.first), shape);
    });
  });
  return shapes;
}

/// The indices of a term in the order in which they stand in it.
static std::vector<IndexRef> inOrder(const TermPtr &term) {
  std::vector<IndexRef> list;
  walk(term, [&](const Term &t) {
    if (t.kind == TermKind::Index && std::find(list.begin(), list.end(), t.index) == list.end())
      list.push_back(t.index);
    return true;
  });
  return list;
}

namespace {
/// Reads of marked tensors in a statement, and their kind.
struct Reads {
  std::vector<TermPtr> list;
  std::string kind;
  bool areDiagonal = false; ///< an index stands on two axes, or places outside are read
};
} // namespace

/// Does an index stand on two axes of what is read?
static bool isDiagonal(const Term &read) {
  std::set<IndexRef> seen;
  for (const TermPtr &arg : read.args)
    for (IndexRef index : inOrder(arg))
      if (!seen.insert(index).second)
        return true;
  return false;
}

/// Empty if there are none, or they are of several kinds.
static Reads readsOf(const TermPtr &value, const std::vector<IndexRef> &left,
                     const std::set<std::string> &marked) {
  Reads reads;
  bool isOne = true;
  auto visit = [&](auto &self, const TermPtr &term, bool isPadded) -> void {
    if (term->kind == TermKind::Access && marked.count(term->name)) {
      std::string kind;
      for (const TermPtr &arg : term->args) {
        kind += arg->kind == TermKind::Index ? " " : " *";
        for (IndexRef index : inOrder(arg))
          kind += std::find(left.begin(), left.end(), index) != left.end() ? "o" : "s";
      }
      if (isPadded || isDiagonal(*term))
        kind += " diagonal", reads.areDiagonal = true;
      isOne &= reads.list.empty() || reads.kind == kind;
      reads.kind = kind;
      reads.list.push_back(term);
    }
    for (const TermPtr &arg : term->args)
      self(self, arg, term->kind == TermKind::Call && term->name == "pad");
  };
  visit(visit, value, false);
  if (!isOne)
    reads.list.clear();
  for (IndexRef index : left)
    reads.kind += "; " + printTerm(index->lo) + ".." + printTerm(index->hi);
  return reads;
}

static TermPtr replace(const TermPtr &term, const std::function<TermPtr(const TermPtr &)> &by) {
  if (TermPtr other = by(term))
    return other;
  if (term->args.empty())
    return term;
  std::vector<TermPtr> args;
  for (const TermPtr &arg : term->args)
    args.push_back(replace(arg, by));
  return withArgs(term, std::move(args));
}

/// The same tensor, read at the indices of the statement among `lines` that computes it.
template <typename Statements> static Term atOwnIndices(const Term &read, const Statements &lines) {
  auto line =
      std::find_if(lines.begin(), lines.end(), [&](const auto &s) { return s.name == read.name; });
  Term own = read;
  for (std::size_t i = 0; i < own.args.size(); ++i)
    own.args[i] = indexTerm(line->indices[i]);
  return own;
}

namespace {
/// How many readers of one kind a statement needs, one after the other.
struct Turns {
  std::map<std::string, std::map<std::string, unsigned>> needed; ///< by statement, by kind

  /// The turn of a statement; counts it if it reads marked tensors in the way of `kind`.
  unsigned take(const std::string &name, const TermPtr &value, const std::string &kind) {
    std::map<std::string, unsigned> all;
    walk(value, [&](const Term &t) {
      if (t.kind == TermKind::Access)
        for (const auto &[other, turns] : needed[t.name])
          all[other] = std::max(all[other], turns);
      return true;
    });
    const unsigned turn = kind.empty() ? 0 : all[kind]++;
    needed[name] = std::move(all);
    return turn;
  }
};
} // namespace

void GradKernel::copyWeights(std::vector<Statement> &lines) {
  for (const std::vector<Axis> &shape : shapesOfWeights()) {
    std::set<std::string> marked;
    for (const Statement &line : lines)
      if (!line.isResult && haveSameAxes(axes.at(line.name), shape))
        marked.insert(line.name);
    std::string firstKind;
    std::map<std::string, std::map<std::string, std::string>> copies; // by kind, by name
    std::vector<Statement> out;
    Turns turns;
    for (const Statement &line : lines) {
      out.push_back(line);
      Reads reads;
      if (!marked.count(line.name))
        reads = readsOf(line.value, line.indices, marked);
      const unsigned turn = turns.take(line.name, line.value, reads.list.empty() ? "" : reads.kind);
      if (reads.list.empty())
        continue;
      if (turn > 0)
        reads.kind += "; turn " + std::to_string(turn);
      if (firstKind.empty())
        firstKind = reads.kind;
      if (reads.kind == firstKind)
        continue;
      std::vector<Statement> made;
      std::map<std::string, std::string> &names = copies[reads.kind];
      for (const TermPtr &read : reads.list)
        copyFor(reads.areDiagonal ? atOwnIndices(*read, lines) : *read, lines, marked, names, made);
      out.back().value = replace(line.value, [&](const TermPtr &term) -> TermPtr {
        auto name = term->kind == TermKind::Access ? names.find(term->name) : names.end();
        if (name == names.end())
          return nullptr;
        if (reads.areDiagonal)
          return access(name->second, term->args);
        std::vector<IndexRef> at;
        for (const TermPtr &arg : term->args)
          for (IndexRef index : inOrder(arg))
            at.push_back(index);
        return elementAt(name->second, at);
      });
      out.insert(out.end() - 1, made.begin(), made.end());
    }
    lines = std::move(out);
  }
}

/// Copies the tensor that is read, and those of its shape that it is computed from.
void GradKernel::copyFor(const Term &read, const std::vector<Statement> &lines,
                         const std::set<std::string> &marked,
                         std::map<std::string, std::string> &names, std::vector<Statement> &made) {
  if (names.count(read.name))
    return;
  auto line = std::find_if(lines.begin(), lines.end(),
                           [&](const Statement &s) { return s.name == read.name; });
  // Those that it reads at other indices than its own stay shared.
  auto isOwn = [&](const Term &t) {
    bool same =
        t.kind == TermKind::Access && marked.count(t.name) && t.args.size() == line->indices.size();
    for (std::size_t i = 0; same && i < t.args.size(); ++i)
      same = t.args[i]->kind == TermKind::Index && t.args[i]->index == line->indices[i];
    return same;
  };
  Term below = read;
  walk(line->value, [&](const Term &t) {
    if (isOwn(t)) {
      below.name = t.name;
      copyFor(below, lines, marked, names, made);
    }
    return true;
  });
  Statement copy = *line;
  copy.name = names[read.name] = fresh(read.name);
  copy.indices.clear();
  Substitution toCopies, by;
  for (std::size_t i = 0; i < read.args.size(); ++i) {
    for (IndexRef index : inOrder(read.args[i])) {
      copy.indices.push_back(makeIndex(index->name, index->lo, index->hi));
      toCopies[index] = indexTerm(copy.indices.back());
    }
    by[line->indices[i]] = substitute(read.args[i], toCopies);
  }
  declareAxes(copy.name, copy.indices);
  TermPtr value = replace(line->value, [&](const TermPtr &t) {
    return isOwn(*t) ? elementAt(names.at(t->name), copy.indices) : nullptr;
  });
  copy.value = substitute(value, by);
  made.push_back(copy);
}

} // namespace tk::grad
