// Columns of ones beside a product's operand. Included by warpgroup.cuh, the device's or its twin.
#pragma once

namespace tk {

// Ones in n elements of shared memory and at `count` - 1 more places, each `apart` elements further
// on, by the block's first `threads` threads; products may read them behind its next barrier.
template <int n, int threads, class T>
TK_DEVICE void put_ones(T *to, int count, int apart, Place place = {}) {
  if (thread_index() < threads)
    for (int i = thread_index(); i < n * count; i += threads)
      put(to + i / n * apart + i % n, from_float<T>(1.0f), place);
  fence_async_proxy(place);
}

} // namespace tk
