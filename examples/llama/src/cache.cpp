#include "cache.h"

#include <algorithm>
#include <string>

#include <tk/error.h>

namespace llama {

Cache::Cache(Device &device, const Kernels &kernels, const Config &config, CacheSizes sizes)
    : m_device(device), m_sizes(sizes), m_pools(2 * config.layers), m_heads(config.key_heads),
      m_head_size(config.head_size), m_table_width(pages_for(sizes.context)),
      m_num_pages(sizes.slots * (1 + m_table_width)),
      m_memory(device, tk::DType::bf16,
               {m_pools, m_num_pages, sizes.page, config.key_heads, config.head_size}),
      m_table(device, tk::DType::i32, {sizes.slots, m_table_width}),
      m_host_table(sizes.slots * m_table_width), m_used(m_num_pages) {
  std::fill_n(m_used.begin(), sizes.slots, true); // the open pages
  for (int64_t slot = 0; slot < sizes.slots; ++slot)
    clear(slot);
  // One page of each pool: rows of a matrix whose stride is a pool. The addresses come with a
  // launch.
  int64_t elements = sizes.page * m_heads * m_head_size;
  tk::TensorView page(nullptr, tk::DType::bf16, {m_pools, elements}, {m_num_pages * elements, 1},
                      device.place());
  m_copy = kernels.copy_page.bind(page, page);
}

tk::TensorView Cache::pages(int64_t pool, int64_t first, int64_t count) const {
  int64_t bytes = m_sizes.page * m_heads * m_head_size * 2;
  auto *data = static_cast<char *>(m_memory.view().data) + (pool * m_num_pages + first) * bytes;
  return {data, tk::DType::bf16, {count, m_sizes.page, m_heads, m_head_size}, m_device.place()};
}

tk::TensorView Cache::key_rows(int64_t layer, int64_t first, int64_t count) const {
  return {pages(2 * layer, first, count).data,
          tk::DType::bf16,
          {count * m_sizes.page, m_heads, m_head_size},
          m_device.place()};
}

tk::TensorView Cache::value_rows(int64_t layer, int64_t first, int64_t count) const {
  return {pages(2 * layer + 1, first, count).data,
          tk::DType::bf16,
          {count * m_sizes.page, m_heads, m_head_size},
          m_device.place()};
}

void Cache::copy_page(int64_t from, int64_t to) const {
  m_copy.launch(m_device.stream(), {pages(0, from, 1).data, pages(0, to, 1).data});
}

int64_t Cache::take(int64_t count) {
  int64_t run = 0;
  for (int64_t page = 0; page < m_num_pages; ++page) {
    run = m_used[page] ? 0 : run + 1;
    if (run < count)
      continue;
    int64_t first = page + 1 - count;
    std::fill_n(m_used.begin() + first, count, true);
    return first;
  }
  throw tk::Error(tk::ErrorCode::out_of_memory,
                  "the cache has no " + std::to_string(count) + " neighbouring free pages");
}

void Cache::set(int64_t slot, int64_t block, int64_t page) {
  m_host_table[slot * m_table_width + block] = static_cast<int32_t>(page);
  m_table_changed = true;
}

void Cache::adopt(int64_t slot, int64_t first, int64_t length) {
  int64_t blocks = pages_for(length);
  for (int64_t block = 0; block < blocks; ++block)
    set(slot, block, first + block);
  if (length % m_sizes.page == 0)
    return; // the next row opens a page
  copy_page(first + blocks - 1, slot);
  m_used[first + blocks - 1] = false;
  set(slot, blocks - 1, slot);
}

void Cache::make_room(int64_t slot, int64_t position) {
  if (position >= m_sizes.context)
    throw tk::Error(tk::ErrorCode::invalid_argument, "a sequence is longer than the context of " +
                                                         std::to_string(m_sizes.context) +
                                                         " tokens");
  if (position % m_sizes.page != 0)
    return;
  int64_t block = position / m_sizes.page;
  if (block > 0 && m_host_table[slot * m_table_width + block - 1] == slot) {
    int64_t closed = take(1);
    copy_page(slot, closed);
    set(slot, block - 1, closed);
  }
  set(slot, block, slot);
}

void Cache::clear(int64_t slot) {
  for (int64_t block = 0; block < m_table_width; ++block) {
    int64_t page = m_host_table[slot * m_table_width + block];
    if (page >= m_sizes.slots)
      m_used[page] = false;
    set(slot, block, slot);
  }
}

void Cache::upload_table() {
  if (!m_table_changed)
    return;
  m_table.write(m_device, m_host_table.data(), m_host_table.size() * sizeof(int32_t));
  m_table_changed = false;
}

} // namespace llama
