//===- GenerateUpdate.cpp - inputs that a statement overwrites -----------===//
//
// An inout parameter is two tensors here: the input, read by what comes before its statement and by
// the statement itself, and what it holds afterwards. They share their name.
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/Generating.h"

namespace tk::fuzz {

void Generating::makeUpdate() {
  std::vector<int> candidates;
  for (size_t t = 0; t < program.tensors.size(); ++t) {
    const Tensor &tensor = program.tensors[t];
    // Statements compute f32, i32 and bool; floats are rounded when they are stored.
    bool canHold =
        tensor.sort() == Sort::Int ? tensor.dtype == DType::i32 : tensor.dtype != DType::f64;
    if (tensor.role == Role::Input && !tensor.shape.empty() && canHold &&
        !program.updateOf(static_cast<int>(t)))
      candidates.push_back(static_cast<int>(t));
  }
  if (candidates.empty())
    return;
  const int input = random.of(candidates);
  Tensor updated = program.tensors[input];
  const Sort sort = updated.sort();
  Scope scope;
  NodePtr old = make(Kind::Load, sort);
  old->ref = input;
  for (const Extent &extent : updated.shape) {
    scope.push_back(newIndex(extent));
    old->kids.push_back(make(Kind::Index, Sort::Index));
    old->kids.back()->ref = scope.back();
  }
  NodePtr value = root(sort, scope);
  if (sort == Sort::Bool)
    value = random.percent(70) ? binary(sort, "or", std::move(value), std::move(old))
                               : std::move(value);
  else if (random.percent(70))
    value = binary(sort, random.percent(50) ? "+" : "-", std::move(old), std::move(value));
  if (sort == Sort::Int) // an expression of literals and indices alone is i64
    value = call(Sort::Int, "i32", std::move(value));
  updated.role = Role::Updated;
  updated.updates = input;
  updated.strided = false;
  updated.gap = 0;
  program.tensors.push_back(updated);
  program.statements.push_back(
      {static_cast<int>(program.tensors.size()) - 1, scope, std::move(value)});
}

} // namespace tk::fuzz
