// SHA-256 (FIPS 180-4): keys of the cache and digests of its entries.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tk::detail {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
public:
  void update(std::string_view bytes);
  /// Adds a length before the bytes, so that neighbouring fields cannot trade bytes.
  void update_field(std::string_view bytes);
  Digest finish();

private:
  void block(const uint8_t *data);
  std::array<uint32_t, 8> m_state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> m_buffer{};
  uint64_t m_length = 0;
};

Digest sha256(std::string_view bytes);
/// 64 lower-case hexadecimal digits.
std::string hex(const Digest &digest);

} // namespace tk::detail
