//===- Memo.cpp - values that the reference has computed before -----------===//
#include "compiler/interp/Evaluation.h"

#include <algorithm>

namespace tk::interp::detail {

void Memo::reset(int64_t count) {
  dense = count <= denseLimit;
  cells.assign(dense ? count : 0, Cell{});
  known.assign(dense ? count : 0, false);
  sparse.clear();
}

void Memo::clear() {
  std::fill(known.begin(), known.end(), false);
  sparse.clear();
}

bool Memo::find(int64_t position, Cell &cell) const {
  if (dense) {
    if (!known[position])
      return false;
    cell = cells[position];
    return true;
  }
  auto it = sparse.find(position);
  if (it == sparse.end())
    return false;
  cell = it->second;
  return true;
}

void Memo::set(int64_t position, Cell cell) {
  if (dense) {
    cells[position] = cell;
    known[position] = true;
  } else {
    sparse[position] = cell;
  }
}

} // namespace tk::interp::detail
