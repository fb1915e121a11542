// Factors of contractions: the types that they are stored in, and the indices that each of them has
// for itself. An index is bare in a factor if the factor reads it otherwise than in the place of an
// access through a table.
#include "frontend/FactorIndices.h"
#include "frontend/SemaKernel.h"

#include <algorithm>
#include <map>
#include <set>

namespace tk::sema {

std::optional<ast::DType> storedTypeOf(const Node *n) {
  const bool isConverted = n->kind == NodeKind::Convert && n->type == Type::F32;
  const Node *load = isConverted ? n->args[0] : n;
  if (load->kind != NodeKind::Load)
    return std::nullopt;
  const ast::DType type = load->tensor->dtype;
  const bool isByteInteger = type == ast::DType::I8 || type == ast::DType::U8;
  return (isConverted ? isByteInteger : isNarrowFloat(type)) ? std::optional(type) : std::nullopt;
}

bool isByte(ast::DType type) {
  return type == ast::DType::F8E4M3 || type == ast::DType::F8E5M2 || type == ast::DType::I8 ||
         type == ast::DType::U8;
}

std::optional<ast::DType> narrowTypeOf(const Node *n) {
  if (std::optional<ast::DType> type = storedTypeOf(n))
    return type;
  return n->kind == NodeKind::Round ? std::optional(n->stored) : std::nullopt;
}

bool contains(const Indices &indices, const IndexVar *index) {
  return std::find(indices.begin(), indices.end(), index) != indices.end();
}

bool meets(const Indices &a, const Indices &b) {
  return std::any_of(a.begin(), a.end(), [&](const IndexVar *i) { return contains(b, i); });
}

Indices without(const Indices &a, const Indices &b) {
  Indices rest;
  for (IndexVar *index : a)
    if (!contains(b, index))
      rest.push_back(index);
  return rest;
}

Indices ownIndices(const Node *n) {
  enum Place : unsigned { Whole = 1, Quotient = 2, Remainder = 4 };
  std::map<IndexVar *, unsigned> places;
  std::set<std::pair<const Node *, unsigned>> seen;
  std::vector<std::pair<const Node *, unsigned>> work = {{n, 0}}; // in which place; 0: in none
  while (!work.empty()) {
    const auto [part, place] = work.back();
    work.pop_back();
    if (!seen.insert({part, place}).second || (place != 0 && part->kind == NodeKind::Load))
      continue;
    if (part->kind == NodeKind::Index || part->kind == NodeKind::Scan)
      for (IndexVar *index : part->indices)
        places[index] |= place == 0 ? Whole : place;
    for (std::size_t i = 0; i < part->args.size(); ++i) {
      unsigned inner = place;
      if (part->kind == NodeKind::Load)
        inner = Whole;
      else if (place == Whole && i == 0 && (isOp(part, Op::FloorDiv) || isOp(part, Op::Rem)))
        inner = part->op == Op::FloorDiv ? Quotient : Remainder;
      work.emplace_back(part->args[i], inner);
    }
    if (part->pad)
      work.emplace_back(part->pad, place);
  }
  Indices indices;
  for (const auto &[index, place] : places)
    if (place != Quotient && place != Remainder)
      indices.push_back(index);
  return indices;
}

Indices bareIndices(const Node *n) {
  Indices indices;
  std::set<std::pair<const Node *, bool>> seen;
  std::vector<std::pair<const Node *, bool>> work = {{n, false}}; // is it in a place?
  while (!work.empty()) {
    const auto [part, isPlace] = work.back();
    work.pop_back();
    if (!seen.insert({part, isPlace}).second || (isPlace && part->kind == NodeKind::Load))
      continue;
    if (part->kind == NodeKind::Index || part->kind == NodeKind::Scan)
      indices.insert(indices.end(), part->indices.begin(), part->indices.end());
    for (const Node *arg : part->args)
      work.emplace_back(arg, isPlace || part->kind == NodeKind::Load);
    if (part->pad)
      work.emplace_back(part->pad, isPlace);
  }
  return indices;
}

} // namespace tk::sema
