//===- Fragments.cpp - what matrix instructions compute -------------------===//
#include "compiler/codegen/emu/Fragments.h"

#include "tk/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace tk::emu {
namespace {

std::vector<float> decodeTable(size_t count, float (*decode)(uint32_t)) {
  std::vector<float> table(count);
  for (uint32_t i = 0; i < count; ++i)
    table[i] = decode(i);
  return table;
}

} // namespace

float roundToTf32(float x) {
  if (std::isnan(x) || std::isinf(x))
    return x;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000) & ~0x1fffu);
}

Element elementOfA(Products type) {
  switch (type) {
  case Products::bf16:
    return Element::bf16;
  case Products::f16:
    return Element::f16;
  case Products::tf32:
    return Element::tf32;
  case Products::i8:
    return Element::i8;
  case Products::e4m3:
  case Products::e4m3_e5m2:
    return Element::e4m3;
  case Products::e5m2:
  case Products::e5m2_e4m3:
    return Element::e5m2;
  }
  return Element::bf16;
}
Element elementOfB(Products type) {
  if (type == Products::e4m3_e5m2)
    return Element::e5m2;
  return type == Products::e5m2_e4m3 ? Element::e4m3 : elementOfA(type);
}

int sizeOf(Element type) {
  return type == Element::tf32 ? 4 : type == Element::bf16 || type == Element::f16 ? 2 : 1;
}

float decode(Element type, const unsigned char *from) {
  static const std::vector<float> f16 =
      decodeTable(65536, [](uint32_t bits) { return f16_to_f32(static_cast<uint16_t>(bits)); });
  static const std::vector<float> e4m3 =
      decodeTable(256, [](uint32_t bits) { return f8e4m3_to_f32(static_cast<uint8_t>(bits)); });
  static const std::vector<float> e5m2 =
      decodeTable(256, [](uint32_t bits) { return f8e5m2_to_f32(static_cast<uint8_t>(bits)); });
  uint16_t half;
  float single;
  switch (type) {
  case Element::bf16:
    std::memcpy(&half, from, sizeof half);
    return bf16_to_f32(half);
  case Element::f16:
    std::memcpy(&half, from, sizeof half);
    return f16[half];
  case Element::tf32:
    std::memcpy(&single, from, sizeof single);
    return roundToTf32(single);
  case Element::i8:
    return static_cast<float>(static_cast<int8_t>(*from));
  case Element::e4m3:
    return e4m3[*from];
  case Element::e5m2:
    return e5m2[*from];
  }
  return 0;
}

namespace {

struct Matrices {
  float a[16][32];
  float b[8][32]; ///< transposed
};

/// Word w of a lane's fragment of A is row g + 8 (w & 1), elements from 4-byte column t + 4 (w / 2)
/// of the row; of B, column g, from 4-byte row t + 4 w.
void gather(Products type, const void *const *a, const void *const *b, Matrices &to) {
  const Element typeA = elementOfA(type), typeB = elementOfB(type);
  const int size = sizeOf(typeA), perWord = 4 / size;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    const auto *fromA = static_cast<const unsigned char *>(a[lane]);
    const auto *fromB = static_cast<const unsigned char *>(b[lane]);
    const unsigned g = lane / 4, t = lane % 4;
    for (unsigned w = 0; w < 4; ++w)
      for (int i = 0; i < perWord; ++i) {
        const unsigned k =
            (t + 4 * (w / 2)) * static_cast<unsigned>(perWord) + static_cast<unsigned>(i);
        to.a[g + 8 * (w & 1)][k] = decode(typeA, fromA + 4 * w + static_cast<unsigned>(i * size));
      }
    for (unsigned w = 0; w < 2; ++w)
      for (int i = 0; i < perWord; ++i) {
        const unsigned k = (t + 4 * w) * static_cast<unsigned>(perWord) + static_cast<unsigned>(i);
        to.b[g][k] = decode(typeB, fromB + 4 * w + static_cast<unsigned>(i * size));
      }
  }
}

} // namespace

/// Bits behind the first one that sums of products of 8-bit floats keep.
static constexpr int bitsOfByteSums = 13;

static double cutOff(double value, int exponent) {
  const double unit = std::ldexp(1.0, exponent - bitsOfByteSums);
  return std::trunc(value / unit) * unit;
}

/// What is summed is cut off, towards zero, at a bit that depends on the largest exponent among
/// products (the sum of their factors' exponents) and c; so is the sum. As measured on sm_90.
static float dotOfBytes(Products type, const float *a, const float *b, int k, float c) {
  auto exponentOf = [](Element element, float value) {
    return std::max(std::ilogb(value), element == Element::e5m2 ? -14 : -6);
  };
  int largest = c != 0 ? std::ilogb(c) : std::numeric_limits<int>::min();
  for (int i = 0; i < k; ++i)
    if (a[i] != 0 && b[i] != 0)
      largest = std::max(largest,
                         exponentOf(elementOfA(type), a[i]) + exponentOf(elementOfB(type), b[i]));
  double sum = c != 0 ? cutOff(static_cast<double>(c), largest) : 0;
  for (int i = 0; i < k; ++i)
    if (const double product = static_cast<double>(a[i]) * static_cast<double>(b[i]); product != 0)
      sum += cutOff(product, largest);
  return sum != 0 ? static_cast<float>(cutOff(sum, std::ilogb(sum))) : 0;
}

/// Products and their sum are exact in f64 but for extreme ranges.
float dot(Products type, const float *a, const float *b, int k, float c) {
  double sum = 0;
  for (int i = 0; i < k; ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  const Element element = elementOfA(type);
  if ((element == Element::e4m3 || element == Element::e5m2) &&
      std::isfinite(sum + static_cast<double>(c)))
    return dotOfBytes(type, a, b, k, c);
  const auto result = static_cast<float>(sum + static_cast<double>(c));
  return std::isnan(result) ? std::bit_cast<float>(0x7fffffffu) : result;
}

int dotIntegers(const float *a, const float *b, int k, int c) {
  auto sum = static_cast<uint32_t>(c);
  for (int i = 0; i < k; ++i)
    sum += static_cast<uint32_t>(static_cast<int>(a[i]) * static_cast<int>(b[i]));
  return static_cast<int>(sum);
}

void multiplyFragments(Products type, void *const *c, const void *const *a, const void *const *b) {
  Matrices matrices;
  gather(type, a, b, matrices);
  const int k = 32 / sizeOf(elementOfA(type));
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    const unsigned g = lane / 4, t = lane % 4;
    for (unsigned i = 0; i < 4; ++i) {
      const float *row = matrices.a[g + 8 * (i / 2)], *column = matrices.b[2 * t + i % 2];
      if (type == Products::i8) {
        int &to = static_cast<int *>(c[lane])[i];
        to = dotIntegers(row, column, k, to);
      } else {
        float &to = static_cast<float *>(c[lane])[i];
        to = dot(type, row, column, k, to);
      }
    }
  }
}

void multiplyWide(void *const *c, const void *const *a, const void *const *b) {
  double rows[16][4], columns[8][4];
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    const unsigned g = lane / 4, t = lane % 4;
    rows[g][t] = static_cast<const double *>(a[lane])[0];
    rows[g + 8][t] = static_cast<const double *>(a[lane])[1];
    columns[g][t] = *static_cast<const double *>(b[lane]);
  }
  for (unsigned lane = 0; lane < warpSize; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      const double *row = rows[lane / 4 + 8 * (i / 2)], *column = columns[2 * (lane % 4) + i % 2];
      double &to = static_cast<double *>(c[lane])[i];
      for (unsigned k = 0; k < 4; ++k)
        to = std::fma(row[k], column[k], to);
    }
}

void distributeRows(void *const *y, const unsigned char (*rows)[8][16], int words,
                    bool transposed) {
  for (unsigned lane = 0; lane < warpSize; ++lane)
    for (int m = 0; m < words; ++m) {
      unsigned char *to = static_cast<unsigned char *>(y[lane]) + 4 * m;
      const unsigned g = lane / 4, t = lane % 4;
      if (!transposed) {
        std::memcpy(to, &rows[m][g][4 * t], 4);
        continue;
      }
      std::memcpy(to, &rows[m][2 * t][2 * g], 2);
      std::memcpy(to + 2, &rows[m][2 * t + 1][2 * g], 2);
    }
}

void collectRows(unsigned char (*rows)[8][16], const void *const *x, int words, bool transposed) {
  for (unsigned lane = 0; lane < warpSize; ++lane)
    for (int m = 0; m < words; ++m) {
      const unsigned char *from = static_cast<const unsigned char *>(x[lane]) + 4 * m;
      const unsigned g = lane / 4, t = lane % 4;
      if (!transposed) {
        std::memcpy(&rows[m][g][4 * t], from, 4);
        continue;
      }
      std::memcpy(&rows[m][2 * t][2 * g], from, 2);
      std::memcpy(&rows[m][2 * t + 1][2 * g], from + 2, 2);
    }
}

} // namespace tk::emu
