//===- WarpgroupMath.cpp - what products of a warpgroup compute -----------===//
#include "compiler/codegen/emu/WarpgroupMath.h"

#include "compiler/codegen/emu/Fragments.h"
#include "compiler/codegen/emu/TensorBox.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace tk::emu {

static constexpr int chunkBytes = 16;

MatrixDescriptor MatrixDescriptor::decode(uint64_t bits) {
  auto field = [&](unsigned at) { return static_cast<int64_t>(bits >> at & 0x3fff) << 4; };
  static constexpr unsigned swizzles[] = {0, 3, 2, 1};
  MatrixDescriptor result;
  result.address = field(0);
  result.leading = field(16);
  result.stride = field(32);
  result.swizzle = swizzles[bits >> 62];
  result.baseOffset = static_cast<unsigned>(bits >> 49 & 7);
  return result;
}

static Element elementOf(const ProductShape &shape, Side side) {
  return side == Side::a ? elementOfA(shape.type) : elementOfB(shape.type);
}
static int rowsOf(const ProductShape &shape, Side side) {
  return side == Side::a ? ProductShape::rows : shape.n;
}
static bool transposed(const ProductShape &shape, Side side) {
  return side == Side::a ? shape.transposeA : shape.transposeB;
}

/// Where element k of a row lies among rows of `depth`.
static size_t at(int row, int depth, int k = 0) {
  return static_cast<size_t>(row) * static_cast<size_t>(depth) + static_cast<size_t>(k);
}

int ProductShape::depth() const { return 32 / sizeOf(elementOfA(type)); }

std::vector<int64_t> operandChunks(const ProductShape &shape, Side side,
                                   const MatrixDescriptor &d) {
  std::vector<int64_t> chunks;
  const int64_t span = d.swizzle ? int64_t{chunkBytes} << d.swizzle : chunkBytes;
  const int rows = rowsOf(shape, side);
  auto add = [&](int64_t offset) { chunks.push_back(swizzled(d.address + offset, d.swizzle)); };
  if (!transposed(shape, side)) {
    const int64_t step = d.swizzle ? chunkBytes : d.leading;
    for (int row = 0; row < rows; ++row)
      for (int64_t c = 0; c < 2; ++c)
        add(row / 8 * d.stride + row % 8 * span + c * step);
    return chunks;
  }
  const int64_t perSpan = span / chunkBytes;
  // From one span of rows to the next, and from one group of 8 k to the next.
  const int64_t across = d.swizzle ? d.leading : d.stride, along = d.swizzle ? d.stride : d.leading;
  for (int64_t eight = 0; eight < rows / 8; ++eight)
    for (int64_t k = 0; k < shape.depth(); ++k)
      add(eight / perSpan * across + k / 8 * along + k % 8 * span + eight % perSpan * chunkBytes);
  return chunks;
}

/// The hardware drops what tf32 does not hold.
static float decodeOperand(Element type, const unsigned char *from) {
  if (type != Element::tf32)
    return decode(type, from);
  uint32_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return std::bit_cast<float>(bits & ~0x1fffu);
}

std::vector<float> operandValues(const ProductShape &shape, Side side,
                                 const unsigned char *chunks) {
  const Element type = elementOf(shape, side);
  const int size = sizeOf(type), depth = shape.depth(), rows = rowsOf(shape, side);
  std::vector<float> values(at(rows, depth));
  const int perChunk = chunkBytes / size, count = rows * depth / perChunk;
  for (int c = 0; c < count; ++c)
    for (int i = 0; i < perChunk; ++i) {
      int row = c / 2, k = c % 2 * perChunk + i;
      if (transposed(shape, side))
        row = c / depth * 8 + i, k = c % depth;
      values[at(row, depth, k)] = decodeOperand(type, chunks + c * chunkBytes + i * size);
    }
  return values;
}

std::vector<float> registerValues(const ProductShape &shape, const void *const *registers) {
  const Element type = elementOfA(shape.type);
  const int size = sizeOf(type), depth = shape.depth(), perWord = 4 / size;
  std::vector<float> values(at(ProductShape::rows, depth));
  for (int thread = 0; thread < 128; ++thread)
    for (int word = 0; word < 4; ++word)
      for (int i = 0; i < perWord; ++i) {
        const int lane = thread % 32, row = thread / 32 * 16 + lane / 4 + 8 * (word & 1);
        const int k = (lane % 4 + 4 * (word / 2)) * perWord + i;
        values[at(row, depth, k)] = decodeOperand(
            type, static_cast<const unsigned char *>(registers[thread]) + 4 * word + i * size);
      }
  return values;
}

void multiplyWarpgroup(const ProductShape &shape, const std::vector<float> &a,
                       const std::vector<float> &b, bool accumulate, unsigned char *const *acc) {
  const int depth = shape.depth();
  for (int thread = 0; thread < 128; ++thread)
    for (int i = 0; i < shape.n / 2; ++i) {
      const int lane = thread % 32, row = thread / 32 * 16 + lane / 4 + 8 * (i / 2 % 2);
      const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      const float *left = &a[at(row, depth)];
      const float *right = &b[at(column, depth)];
      unsigned char *to = acc[thread] + 4 * i;
      if (shape.type == Products::i8) {
        int value = 0;
        if (accumulate)
          std::memcpy(&value, to, sizeof value);
        value = dotIntegers(left, right, depth, value);
        std::memcpy(to, &value, sizeof value);
      } else {
        float value = 0;
        if (accumulate)
          std::memcpy(&value, to, sizeof value);
        value = dot(shape.type, left, right, depth, value);
        std::memcpy(to, &value, sizeof value);
      }
    }
}

} // namespace tk::emu
