// Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#pragma once

namespace tk {

// The four words of the block with key `seed` and counter (n, 0). In the first round the upper half
// of the counter is 0, and so is its product.
TK_DEVICE void philox_block(u32 (&word)[4], i64 seed, i64 n) {
  u32 key0 = (u32)seed, key1 = (u32)((u64)seed >> 32);
  u32 high;
  const u32 low = multiply_wide(0xD2511F53u, (u32)n, high);
  u32 c0 = (u32)((u64)n >> 32) ^ key0, c1 = 0, c2 = high ^ key1, c3 = low;
  for_each<9>([&](int) {
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
    u32 high0, high1;
    const u32 low0 = multiply_wide(0xD2511F53u, c0, high0);
    const u32 low1 = multiply_wide(0xCD9E8D57u, c2, high1);
    c0 = high1 ^ c1 ^ key0;
    c2 = high0 ^ c3 ^ key1;
    c1 = low1;
    c3 = low0;
  });
  word[0] = c0;
  word[1] = c1;
  word[2] = c2;
  word[3] = c3;
}

// Uniform in [0, 1): the upper 24 bits of a word.
TK_DEVICE float uniform_of(u32 word) { return (float)(word >> 8) * 5.9604644775390625e-8f; }

// Word n % 4 of block n / 4, both rounded down.
TK_DEVICE float philox_uniform(i64 seed, i64 n) {
  u32 word[4];
  philox_block(word, seed, n >> 2);
  const u32 even = n & 2 ? word[2] : word[0], odd = n & 2 ? word[3] : word[1];
  return uniform_of(n & 1 ? odd : even);
}

// The words of n, n + 1, ..., which one block has: n is a multiple of `count`, 2 or 4.
template <int count> TK_DEVICE void philox_words(u32 *y, i64 seed, i64 n) {
  u32 word[4];
  philox_block(word, seed, n >> 2);
  const bool second = count == 2 && n & 2;
  for_each<count>([&](int i) { y[i] = second ? word[(i + 2) % 4] : word[i]; });
}

template <int count> TK_DEVICE void philox_neighbours(float *y, i64 seed, i64 n) {
  u32 word[count];
  philox_words<count>(word, seed, n);
  for_each<count>([&](int i) { y[i] = uniform_of(word[i]); });
}

// uniform_of(word) < limit, by integers: of the least number of 24 bits that is not below the limit
// follows the last word that is. That is computed once where the limit is the same for many words,
// which then take one comparison each. NaN becomes 0, which none is below.
TK_DEVICE bool drawn_below(u32 word, float limit) {
  const int least = round_up_to_i32(limit * 16777216.0f);
  const u32 last = ((u32)(least < 0x1000000 ? least : 0x1000000) << 8) - 1;
  return least > 0 && word <= last;
}

} // namespace tk
