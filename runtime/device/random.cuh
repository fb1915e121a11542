// Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#pragma once

namespace tk {

// Uniform in [0, 1): key `seed`, counter (n, 0), the upper 24 bits of the first output word.
TK_DEVICE float philox_uniform(i64 seed, i64 n) {
  u32 key0 = (u32)seed, key1 = (u32)((u64)seed >> 32);
  u32 c0 = (u32)n, c1 = (u32)((u64)n >> 32), c2 = 0, c3 = 0;
  for_each<10>([&](int) {
    u32 high0, high1;
    const u32 low0 = multiply_wide(0xD2511F53u, c0, high0);
    const u32 low1 = multiply_wide(0xCD9E8D57u, c2, high1);
    c0 = high1 ^ c1 ^ key0;
    c2 = high0 ^ c3 ^ key1;
    c1 = low1;
    c3 = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  });
  return (float)(c0 >> 8) * 5.9604644775390625e-8f;
}

} // namespace tk
