// The paged cache of keys and values.
//
// Each layer has a pool of pages for keys and one for values; a page holds P tokens of one
// sequence. The first pages of a pool, one a slot, are open: decoding writes its newest row there.
// A page that is full is copied to a closed page of the pool, and the slot's open page is used
// again. So a kernel only ever writes whole views: the open pages (decode), or pages in a row
// (prefill).
#pragma once

#include <cstdint>
#include <vector>

#include "config.h"
#include "device.h"
#include "kernels.h"

namespace llama {

struct CacheSizes {
  int64_t slots = 1;      ///< sequences at a time
  int64_t page = 16;      ///< tokens a page
  int64_t context = 1024; ///< tokens that a sequence may have
};

class Cache {
public:
  /// With pages for all slots at the full context.
  Cache(Device &device, const Kernels &kernels, const Config &config, CacheSizes sizes);

  const CacheSizes &sizes() const { return m_sizes; }
  int64_t pages_per_sequence() const { return m_table_width; }
  int64_t pages_for(int64_t tokens) const { return (tokens + m_sizes.page - 1) / m_sizes.page; }

  /// Keys and values of a layer as kernels take them.
  tk::TensorView keys(int64_t layer) const { return pages(2 * layer, 0, m_num_pages); }
  tk::TensorView values(int64_t layer) const { return pages(2 * layer + 1, 0, m_num_pages); }
  tk::TensorView open_keys(int64_t layer) const { return pages(2 * layer, 0, m_sizes.slots); }
  tk::TensorView open_values(int64_t layer) const { return pages(2 * layer + 1, 0, m_sizes.slots); }
  /// Pages [first, first + count) as rows of tokens, for the prefill to write and read.
  tk::TensorView key_rows(int64_t layer, int64_t first, int64_t count) const;
  tk::TensorView value_rows(int64_t layer, int64_t first, int64_t count) const;
  /// Which page each block of tokens of each slot lies in: i32[slots, pages_per_sequence()].
  const tk::TensorView &table() const { return m_table.view(); }

  /// Takes `count` neighbouring pages; throws `out_of_memory` if there are none.
  int64_t take(int64_t count);
  /// After a prefill wrote a prompt of `length` tokens to pages from `first` on: the table has
  /// them, and the last page is the open one if it is not full.
  void adopt(int64_t slot, int64_t first, int64_t length);
  /// Before a step writes at `position`: closes the open page if the position begins a new one.
  void make_room(int64_t slot, int64_t position);
  /// Gives back all pages of a slot.
  void clear(int64_t slot);
  /// Copies what changed in the table to the device.
  void upload_table();

private:
  tk::TensorView pages(int64_t pool, int64_t first, int64_t count) const;
  void copy_page(int64_t from, int64_t to) const;
  void set(int64_t slot, int64_t block, int64_t page);

  Device &m_device;
  CacheSizes m_sizes;
  int64_t m_pools, m_heads, m_head_size, m_table_width, m_num_pages;
  Tensor m_memory, m_table; ///< bf16[pools, pages, P, heads, head size]
  tk::BoundKernel m_copy;
  std::vector<int32_t> m_host_table;
  std::vector<bool> m_used;
  bool m_table_changed = true;
};

} // namespace llama
