#include "runtime/Sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tk::detail {
namespace {

constexpr uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

} // namespace

void Sha256::block(const uint8_t *data) {
  uint32_t w[64];
  for (int t = 0; t < 16; ++t)
    w[t] = uint32_t{data[4 * t]} << 24 | uint32_t{data[4 * t + 1]} << 16 |
           uint32_t{data[4 * t + 2]} << 8 | data[4 * t + 3];
  for (int t = 16; t < 64; ++t) {
    uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = m_state;
  for (int t = 0; t < 64; ++t) {
    uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + round_constants[t] + w[t];
    uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i)
    m_state[static_cast<size_t>(i)] += sums[i];
}

void Sha256::update(std::string_view bytes) {
  auto *data = reinterpret_cast<const uint8_t *>(bytes.data());
  size_t rest = bytes.size();
  while (rest > 0) {
    size_t used = m_length % 64, take = std::min(rest, 64 - used);
    std::memcpy(m_buffer.data() + used, data, take);
    m_length += take, data += take, rest -= take;
    if (m_length % 64 == 0)
      block(m_buffer.data());
  }
}

void Sha256::update_field(std::string_view bytes) {
  uint64_t size = bytes.size();
  update(std::string_view(reinterpret_cast<const char *>(&size), sizeof size));
  update(bytes);
}

Digest Sha256::finish() {
  uint64_t bits = m_length * 8;
  update(std::string_view("\x80", 1));
  while (m_length % 64 != 56)
    update(std::string_view("\0", 1));
  char tail[8];
  for (int i = 0; i < 8; ++i)
    tail[i] = static_cast<char>(bits >> (56 - 8 * i));
  update(std::string_view(tail, 8));
  Digest digest;
  for (size_t i = 0; i < 32; ++i)
    digest[i] = static_cast<uint8_t>(m_state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string hex(const Digest &digest) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

} // namespace tk::detail
