//===- GenerateIntegers.cpp - integers of 8 and 16 bits in arithmetic -----===//
//
// Arithmetic on integers narrower than 32 bits is done in i32, and what is stored into such a type
// wraps. Expressions read these by way of a cast to i32, so that their type is one throughout; here
// the cast is left out where arithmetic or a comparison makes the value an i32 by itself, and some
// results of integers become narrow. The choices are drawn apart from the program's own.
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/Generating.h"

#include <algorithm>

namespace tk::fuzz {

static bool isNarrow(DType type) {
  return type == DType::i8 || type == DType::u8 || type == DType::i16;
}

/// Does the operation take a narrow integer for the i32 of the same value?
static bool takesNarrow(const Node &node) {
  switch (node.kind) {
  case Kind::Binary:
    return node.name != "^" && node.name != "and" && node.name != "or";
  case Kind::Unary:
    return node.sort == Sort::Int;
  case Kind::Call:
    return node.name == "abs" || node.name == "f32";
  case Kind::Reduce:
    return node.name == "sum" && node.sort == Sort::Int;
  default:
    return false;
  }
}

static bool isCastToInt(const Node &node) { return node.kind == Kind::Call && node.name == "i32"; }

void Generating::narrowIntegers() {
  Random choice(program.seed * 1000003 + program.indices.size());
  if (choice.percent(40))
    return;
  static constexpr DType types[] = {DType::i8, DType::u8, DType::i16};
  std::vector<bool> isNarrowed(program.tensors.size());
  for (size_t t = 0; t < program.tensors.size(); ++t) {
    Tensor &tensor = program.tensors[t];
    if (tensor.role != Role::Result || tensor.dtype != DType::i32 || !choice.percent(30))
      continue;
    tensor.dtype = choice.of(types);
    isNarrowed[t] = true;
  }
  auto castReads = [&](auto &self, NodePtr &node) -> void {
    for (NodePtr &kid : node->kids)
      self(self, kid);
    if (node->kind == Kind::Load && isNarrowed[node->ref])
      node = call(Sort::Int, "i32", std::move(node));
  };
  auto dropCasts = [&](auto &self, Node &node) -> void {
    for (NodePtr &kid : node.kids) {
      self(self, *kid);
      if (!takesNarrow(node) || !isCastToInt(*kid))
        continue;
      const Node *read = kid.get();
      while (isCastToInt(*read))
        read = read->kids[0].get();
      if (read->kind == Kind::Load && isNarrow(program.tensors[read->ref].dtype) &&
          choice.percent(60))
        kid = read->clone();
    }
  };
  for (Statement &statement : program.statements) {
    castReads(castReads, statement.value);
    dropCasts(dropCasts, *statement.value);
  }
}

} // namespace tk::fuzz
