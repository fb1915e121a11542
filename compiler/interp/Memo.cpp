//===- Memo.cpp - values that the reference has computed before -----------===//
#include "compiler/interp/Evaluation.h"

namespace tk::interp::detail {

void Memo::reset(int64_t count, int64_t &sum) {
  if (total)
    *total -= bytes;
  total = &sum;
  bytes = 0;
  sparse.clear();
  pages.clear();
  if (count <= mostElements)
    pages.resize(static_cast<size_t>((count + pageCells - 1) / pageCells));
}

void Memo::clear() {
  for (std::unique_ptr<Page> &page : pages)
    page.reset();
  sparse.clear();
  if (total)
    *total -= bytes;
  bytes = 0;
}

bool Memo::find(int64_t position, Cell &cell) const {
  if (!pages.empty()) {
    const Page *page = pages[position / pageCells].get();
    if (!page || !page->known[position % pageCells])
      return false;
    cell = page->cells[position % pageCells];
    return true;
  }
  auto it = sparse.find(position);
  if (it == sparse.end())
    return false;
  cell = it->second;
  return true;
}

void Memo::set(int64_t position, Cell cell) {
  // An entry of a hash map has two pointers and its place in the table beside it.
  int64_t grown = 0;
  if (!pages.empty()) {
    std::unique_ptr<Page> &page = pages[position / pageCells];
    if (!page) {
      page = std::make_unique<Page>();
      grown = sizeof(Page);
    }
    page->cells[position % pageCells] = cell;
    page->known.set(position % pageCells);
  } else if (sparse.insert_or_assign(position, cell).second) {
    grown = 2 * sizeof(Cell) + 3 * sizeof(void *);
  }
  bytes += grown;
  *total += grown;
}

} // namespace tk::interp::detail
