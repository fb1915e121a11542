#include "frontend/GradTerm.h"

#include <algorithm>

namespace tk::grad {

using ast::BinaryOp;

static TermPtr make(Term term) {
  constexpr std::size_t most = std::size_t{1} << 40;
  term.size = 1;
  for (const TermPtr &arg : term.args)
    term.size = std::min(most, term.size + arg->size);
  return std::make_shared<const Term>(std::move(term));
}

static Term blank(TermKind kind, std::string name = {}, std::vector<TermPtr> args = {}) {
  Term term;
  term.kind = kind;
  term.name = std::move(name);
  term.args = std::move(args);
  return term;
}

TermPtr integer(std::int64_t value) {
  Term t = blank(TermKind::Int);
  t.intValue = value;
  return make(std::move(t));
}

TermPtr real(double value) {
  Term t = blank(TermKind::Float);
  t.floatValue = value;
  return make(std::move(t));
}

TermPtr truth(bool value) {
  Term t = blank(TermKind::Bool);
  t.intValue = value;
  return make(std::move(t));
}

TermPtr named(std::string name) { return make(blank(TermKind::Name, std::move(name))); }

TermPtr indexTerm(IndexRef index) {
  Term t = blank(TermKind::Index);
  t.index = index;
  return make(std::move(t));
}

TermPtr access(std::string name, std::vector<TermPtr> args) {
  return make(blank(TermKind::Access, std::move(name), std::move(args)));
}

TermPtr elementAt(std::string name, const std::vector<IndexRef> &indices) {
  std::vector<TermPtr> args;
  for (IndexRef index : indices)
    args.push_back(indexTerm(index));
  return access(std::move(name), std::move(args));
}

TermPtr call(std::string name, std::vector<TermPtr> args) {
  return make(blank(TermKind::Call, std::move(name), std::move(args)));
}

static TermPtr plain(BinaryOp op, TermPtr a, TermPtr b) {
  Term t = blank(TermKind::Binary, {}, {std::move(a), std::move(b)});
  t.op = op;
  return make(std::move(t));
}

/// Of `a * c + r` with r in 0..c the a; null if the term is no such sum.
static const Term *quotientPart(const TermPtr &term, const TermPtr &c, TermPtr &quotient,
                                TermPtr &remainder) {
  if (!term->is(BinaryOp::Add))
    return nullptr;
  for (unsigned i : {0U, 1U}) {
    const TermPtr &product = term->args[i], &rest = term->args[1 - i];
    if (rest->kind != TermKind::Index || !rest->index->lo->isInt(0) || !equal(rest->index->hi, c) ||
        !product->is(BinaryOp::Mul))
      continue;
    for (unsigned j : {0U, 1U})
      if (equal(product->args[j], c)) {
        quotient = product->args[1 - j];
        remainder = rest;
        return product.get();
      }
  }
  return nullptr;
}

TermPtr binary(BinaryOp op, TermPtr a, TermPtr b) {
  switch (op) {
  case BinaryOp::Add:
    return add(std::move(a), std::move(b));
  case BinaryOp::Sub:
    return sub(std::move(a), std::move(b));
  case BinaryOp::Mul:
    return mul(std::move(a), std::move(b));
  case BinaryOp::Div:
  case BinaryOp::Rem: {
    TermPtr quotient, remainder;
    if (quotientPart(a, b, quotient, remainder))
      return op == BinaryOp::Div ? quotient : remainder;
    return plain(op, std::move(a), std::move(b));
  }
  default:
    return plain(op, std::move(a), std::move(b));
  }
}

TermPtr add(TermPtr a, TermPtr b) {
  if (a->isNumber(0))
    return b;
  if (b->isNumber(0))
    return a;
  std::int64_t value = 0;
  if (a->kind == TermKind::Int && b->kind == TermKind::Int &&
      !__builtin_add_overflow(a->intValue, b->intValue, &value))
    return integer(value);
  if (b->kind == TermKind::Neg)
    return sub(std::move(a), b->args[0]);
  if (a->kind == TermKind::Neg)
    return sub(std::move(b), a->args[0]);
  return plain(BinaryOp::Add, std::move(a), std::move(b));
}

TermPtr sub(TermPtr a, TermPtr b) {
  if (b->isNumber(0))
    return a;
  std::int64_t value = 0;
  if (a->kind == TermKind::Int && b->kind == TermKind::Int &&
      !__builtin_sub_overflow(a->intValue, b->intValue, &value))
    return integer(value);
  if (a->isNumber(0))
    return neg(std::move(b));
  if (b->kind == TermKind::Neg)
    return add(std::move(a), b->args[0]);
  return plain(BinaryOp::Sub, std::move(a), std::move(b));
}

TermPtr mul(TermPtr a, TermPtr b) {
  if (a->isNumber(1))
    return b;
  if (b->isNumber(1))
    return a;
  if (a->kind == TermKind::Neg)
    return neg(mul(a->args[0], std::move(b)));
  if (b->kind == TermKind::Neg)
    return neg(mul(std::move(a), b->args[0]));
  return plain(BinaryOp::Mul, std::move(a), std::move(b));
}

TermPtr div(TermPtr a, TermPtr b) {
  if (b->isNumber(1))
    return a;
  if (a->kind == TermKind::Neg)
    return neg(div(a->args[0], std::move(b)));
  return plain(BinaryOp::Div, std::move(a), std::move(b));
}

TermPtr neg(TermPtr a) {
  if (a->kind == TermKind::Neg)
    return a->args[0];
  return make(blank(TermKind::Neg, {}, {std::move(a)}));
}

TermPtr power(TermPtr base, std::int64_t exponent) {
  if (exponent == 1)
    return base;
  return plain(BinaryOp::Pow, std::move(base), integer(exponent));
}

TermPtr negation(TermPtr condition) {
  if (condition->kind == TermKind::Not)
    return condition->args[0];
  return make(blank(TermKind::Not, {}, {std::move(condition)}));
}

TermPtr choose(TermPtr condition, TermPtr a, TermPtr b) {
  return make(blank(TermKind::If, {}, {std::move(condition), std::move(a), std::move(b)}));
}

TermPtr reduction(ast::ReduceKind kind, std::vector<IndexRef> binders, TermPtr body,
                  ast::ReduceModifier modifier) {
  Term t = blank(TermKind::Reduce, {}, {std::move(body)});
  t.reduce = kind;
  t.modifier = modifier;
  t.binders = std::move(binders);
  return make(std::move(t));
}

bool readsBare(const TermPtr &term) {
  bool result = true;
  walk(term, [&](const Term &t) {
    if (t.kind == TermKind::Access)
      for (const TermPtr &arg : t.args)
        result &= arg->kind == TermKind::Index;
    return result;
  });
  return result;
}

bool isOfIndices(const TermPtr &condition) {
  bool result = true;
  walk(condition, [&](const Term &t) {
    result &= t.kind != TermKind::Reduce && (t.kind != TermKind::Access || t.args.empty());
    return result;
  });
  return result;
}

TermPtr where(const std::vector<TermPtr> &conditions, TermPtr value) {
  // Conditions that read elements stand inside the others, which say that they may.
  TermPtr outer, inner;
  for (const TermPtr &condition : conditions) {
    TermPtr &all = readsBare(condition) ? outer : inner;
    all = all ? plain(BinaryOp::And, all, condition) : condition;
  }
  if (inner)
    value = choose(inner, std::move(value), real(0));
  return outer ? choose(outer, std::move(value), real(0)) : value;
}

TermPtr withArgs(const TermPtr &term, std::vector<TermPtr> args) {
  switch (term->kind) {
  case TermKind::Binary:
    return binary(term->op, args[0], args[1]);
  case TermKind::Neg:
    return neg(args[0]);
  default: {
    Term t = *term;
    t.args = std::move(args);
    return make(std::move(t));
  }
  }
}

void Product::take(const TermPtr &term) {
  if (term->kind == TermKind::Neg) {
    isNegative = !isNegative;
    return take(term->args[0]);
  }
  if (term->is(BinaryOp::Mul)) {
    take(term->args[0]);
    return take(term->args[1]);
  }
  if (term->is(BinaryOp::Div)) {
    take(term->args[0]);
    below.push_back(term->args[1]);
    return;
  }
  above.push_back(term);
}

TermPtr productOf(const std::vector<TermPtr> &above, const std::vector<TermPtr> &below) {
  TermPtr product = real(1);
  for (const TermPtr &factor : above)
    product = mul(product, factor);
  for (const TermPtr &factor : below)
    product = div(product, factor);
  return product;
}

bool equal(const TermPtr &a, const TermPtr &b) {
  if (a == b)
    return true;
  if (a->kind != b->kind || a->intValue != b->intValue || a->floatValue != b->floatValue ||
      a->name != b->name || a->index != b->index || a->op != b->op || a->reduce != b->reduce ||
      a->modifier != b->modifier || a->binders != b->binders || a->args.size() != b->args.size())
    return false;
  for (std::size_t i = 0; i < a->args.size(); ++i)
    if (!equal(a->args[i], b->args[i]))
      return false;
  return true;
}

TermPtr substitute(const TermPtr &term, const Substitution &by) {
  if (term->kind == TermKind::Index) {
    auto it = by.find(term->index);
    return it == by.end() ? term : it->second;
  }
  std::vector<TermPtr> args;
  bool isSame = true;
  for (const TermPtr &arg : term->args) {
    args.push_back(substitute(arg, by));
    isSame &= args.back() == arg;
  }
  Term kept;
  if (term->kind == TermKind::Reduce)
    for (IndexRef binder : term->binders)
      if (auto it = by.find(binder); it != by.end() && it->second->kind == TermKind::Index) {
        // Only normalisers and scans mention an index that something else introduces.
        kept = *term;
        for (IndexRef &mine : kept.binders)
          if (mine == binder)
            mine = it->second->index;
        kept.args = args;
        return substitute(make(std::move(kept)), {});
      }
  return isSame ? term : withArgs(term, std::move(args));
}

void walk(const TermPtr &term, const std::function<bool(const Term &)> &see) {
  if (!see(*term))
    return;
  for (const TermPtr &arg : term->args)
    walk(arg, see);
}

std::set<IndexRef> freeIndices(const TermPtr &term) {
  std::set<IndexRef> used;
  if (term->kind == TermKind::Index)
    used.insert(term->index);
  for (const TermPtr &arg : term->args)
    used.merge(freeIndices(arg));
  if (term->kind == TermKind::Reduce)
    for (IndexRef binder : term->binders) {
      if (ast::keepsIndex(term->reduce))
        used.insert(binder);
      else
        used.erase(binder);
    }
  return used;
}

bool mentions(const TermPtr &term, IndexRef index) { return freeIndices(term).count(index) != 0; }

} // namespace tk::grad
