// Products of a warpgroup: every type, operands contiguous along k and along m or n, in each
// swizzle, and A from registers; on small integers, so that sums are exact.
#include "tests/target/hopper/OnBoth.h"

#include "tk/dtype.h"

#include <random>

using tk::DType;
using tk::test::KernelHarness;

namespace {

/// How an operand lies in shared memory. `span` is the swizzle's bytes, 16 for none.
struct Operand {
  bool transposed = false; ///< m or n is contiguous
  int span = 128;
  bool operator==(const Operand &) const = default;
};

struct Case {
  std::string types; ///< as TK_WARPGROUP_MMA takes them
  std::string a, b;  ///< element types
  DType aType, bType;
  int n = 64;
  Operand left, right;
  bool registers = false;
  bool inRow = false; ///< one call for all instructions
};

constexpr int rows = 64;
constexpr int depthBytes = 128; ///< four instructions

int depthOf(const Case &c) { return depthBytes / static_cast<int>(tk::size_of(c.aType)); }
int swizzleOf(int span) { return span == 128 ? 3 : span == 64 ? 2 : span == 32 ? 1 : 0; }

/// An operand as a tensor, as boxes in shared memory, and as a descriptor.
struct Layout {
  Layout(const Case &c, Operand operand, int count, const std::string &map, int base)
      : operand(operand) {
    const auto size = static_cast<int>(tk::size_of(c.aType));
    const int depth = depthOf(c);
    // The contiguous axis is cut into panels of a span, each a box of the other axis's length.
    const int contiguous = operand.transposed ? count : depth;
    other = operand.transposed ? depth : count;
    const int perPanel = operand.span / size, panels = contiguous / perPanel;
    const int panelBytes = other * operand.span;
    bytes = panels * panelBytes;
    shape = {other, contiguous};
    box = {static_cast<uint32_t>(perPanel), static_cast<uint32_t>(other)};
    for (int panel = 0; panel < panels; ++panel)
      loads += "    tk::bulk_load<2>(shared + " + std::to_string(base + panel * panelBytes) +
               ", &" + map + ", {" + std::to_string(panel * perPanel) + ", 0}, ready);\n";
    const bool none = operand.span == 16;
    int leading, stride, inside; // of the offset of step i
    std::string offset;
    if (operand.transposed) {
      leading = none ? 128 : panelBytes;
      stride = none ? panelBytes : 8 * operand.span;
      offset = "i * " + std::to_string(32 / size * operand.span);
    } else {
      leading = none ? panelBytes : 16;
      stride = 8 * operand.span;
      inside = std::max(operand.span / 32, 1); // steps in a panel
      offset = none ? "i * " + std::to_string(2 * panelBytes)
                    : "i / " + std::to_string(inside) + " * " + std::to_string(panelBytes) +
                          " + i % " + std::to_string(inside) + " * 32";
    }
    descriptor =
        "tk::descriptor_advance(tk::matrix_descriptor(shared + " + std::to_string(base) + ", " +
        std::to_string(leading) + ", " + std::to_string(stride) +
        ", tk::Swizzle::" + (none ? std::string("none") : "bytes" + std::to_string(operand.span)) +
        "), " + offset + ")";
  }
  Operand operand;
  int other = 0, bytes = 0;
  tk::Extents shape;
  std::vector<uint32_t> box;
  std::string loads, descriptor;
};

/// The product of 128 bytes along k, of which `left` and `right` are the operands of instruction i.
std::string productCall(const Case &c, const std::string &left, const std::string &right) {
  const std::string types = "tk::warpgroup_mma<tk::" + c.a + ", tk::" + c.b + ", " +
                            std::to_string(c.n) +
                            (c.registers && !c.inRow ? ""
                             : c.left.transposed     ? ", true"
                                                     : ", false") +
                            (c.right.transposed ? ", true" : ", false");
  if (c.inRow)
    return types + ", 4>(acc, [&](int i) { return " + left + "; }, [&](int i) { return " + right +
           "; }, 0);";
  return "tk::for_each<4>([&](int i) { " + types + ">(acc, " + left + ", " + right +
         ", i > 0); });";
}

std::string productText(const Case &c, const Layout &a, const Layout &b, bool integer) {
  const std::string n = std::to_string(c.n), sum = integer ? "int" : "float";
  const std::string size = std::to_string(tk::size_of(c.aType));
  const std::string left = c.registers ? "registers[i]" : a.descriptor;
  return "#include \"hopper.cuh\"\nnamespace tk { using f32 = float; }\nTK_WARPGROUP_MMA(" +
         c.types + ", " + n + ")\n" + R"(extern "C" __global__ void __launch_bounds__(128)
k(const __grid_constant__ tk::TensorMap x, const __grid_constant__ tk::TensorMap y, const tk::)" +
         c.a + " *from, " + sum + R"( *z) {
  tk::u8 *const shared = tk::shared_memory();
  auto *const ready = reinterpret_cast<tk::PhaseBarrier *>(shared);
  const int thread = tk::thread_index();
  if (thread == 0) {
    tk::phase_init(ready, 1);
    tk::phase_init_fence();
  }
  tk::barrier();
  if (thread == 0) {
    tk::phase_expect(ready, )" +
         std::to_string((c.registers ? 0 : a.bytes) + b.bytes) + ");\n" +
         (c.registers ? "" : a.loads) + b.loads + R"(  }
  tk::phase_wait(ready, 0);
  constexpr int size = )" +
         size + R"(, depth = 128 / size, word = 4 / size;
  [[maybe_unused]] tk::)" +
         c.a + R"( registers[4][4 * word];
  const int lane = tk::lane_index(), row = tk::warp_index() * 16 + lane / 4;
)" +
         (c.registers ? R"(  tk::for_each<4>([&](int i) {
    tk::for_each<4 * word>([&](int e) {
      const int w = e / word, k = i * 32 / size + (lane % 4 + 4 * (w / 2)) * word + e % word;
      registers[i][e] = tk::get(&from[(row + 8 * (w & 1)) * depth + k]);
    });
  });
)"
                      : "") +
         "  " + sum + " acc[" + n + R"( / 2];
  tk::fence_registers(acc);
  tk::warpgroup_fence();
)" + productCall(c, left, b.descriptor) +
         R"(
  tk::warpgroup_commit();
  tk::warpgroup_wait<0>();
  tk::fence_registers(acc);
  tk::for_each<)" +
         n + R"( / 2>([&](int i) {
    tk::put(&z[(row + 8 * (i / 2 % 2)) * )" +
         n + R"( + i / 4 * 8 + lane % 4 * 2 + i % 2], acc[i]);
  });
})";
}

void check(const Case &c) {
  const int depth = depthOf(c);
  const auto size = tk::size_of(c.aType);
  const bool integer = c.aType == DType::i8;
  const Layout a(c, c.left, rows, "x", 1024);
  const Layout b(c, c.right, c.n, "y", 1024 + (c.registers ? 0 : a.bytes));
  std::mt19937 random(7);
  auto fill = [&](DType type, int count, std::vector<unsigned char> &bytes,
                  std::vector<int> &values) {
    for (int i = 0; i < count; ++i) {
      values.push_back(static_cast<int>(random() % 7) - 3);
      bytes.resize(bytes.size() + size);
      tk::store_from_f64(type, &bytes[static_cast<size_t>(i) * size], values.back());
    }
  };
  std::vector<unsigned char> aBytes, bBytes;
  std::vector<int> aValues, bValues;
  fill(c.aType, rows * depth, aBytes, aValues);
  fill(c.bType, c.n * depth, bBytes, bValues);
  KernelHarness k(productText(c, a, b, integer));
  k.threads = 128;
  k.sharedBytes = 1024 + (c.registers ? 0 : a.bytes) + b.bytes;
  k.inView({aBytes.data(), c.aType, a.shape});
  k.mapped(a.box, static_cast<uint8_t>(swizzleOf(c.left.span)));
  k.inView({bBytes.data(), c.bType, b.shape});
  k.mapped(b.box, static_cast<uint8_t>(swizzleOf(c.right.span)));
  k.inView({aBytes.data(), c.aType, a.shape});
  std::vector<float> floats(static_cast<size_t>(rows * c.n));
  std::vector<int> ints(floats.size());
  if (integer)
    k.out(ints, DType::i32);
  else
    k.out(floats, DType::f32);
  INFO(c.types << " n " << c.n << ", A " << c.left.span << (c.left.transposed ? " along m" : "")
               << (c.registers ? " from registers" : "") << ", B " << c.right.span
               << (c.right.transposed ? " along n" : ""));
  tk::test::runOnBoth(k, [&] {
    size_t wrong = 0;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < c.n; ++j) {
        int sum = 0;
        for (int p = 0; p < depth; ++p)
          sum += aValues[static_cast<size_t>(c.left.transposed ? p * rows + i : i * depth + p)] *
                 bValues[static_cast<size_t>(c.right.transposed ? p * c.n + j : j * depth + p)];
        const auto at = static_cast<size_t>(i * c.n + j);
        wrong += integer ? ints[at] != sum : floats[at] != static_cast<float>(sum);
      }
    CHECK(wrong == 0);
  });
}

Case bf16(Operand left, Operand right) {
  return {"bf16", "bf16", "bf16", DType::bf16, DType::bf16, 64, left, right, false};
}

} // namespace

TEST_CASE("operands with k contiguous, in each swizzle", "[hopper]") {
  for (int span : {16, 32, 64, 128})
    check(bf16({false, span}, {false, span}));
}

TEST_CASE("operands with m or n contiguous, in each swizzle", "[hopper]") {
  for (int span : {16, 32, 64, 128}) {
    check(bf16({true, span}, {false, 128}));
    check(bf16({false, 128}, {true, span}));
  }
  check(bf16({true, 128}, {true, 128}));
}

TEST_CASE("products of every type", "[hopper]") {
  const Operand k;
  check({"f16", "f16", "f16", DType::f16, DType::f16, 136, k, k, false});
  check({"f16", "f16", "f16", DType::f16, DType::f16, 192, {true, 128}, {true, 128}, false});
  check({"tf32", "f32", "f32", DType::f32, DType::f32, 8, k, k, false});
  check({"e4m3", "f8e4m3", "f8e4m3", DType::f8e4m3, DType::f8e4m3, 64, k, k, false});
  check({"e5m2", "f8e5m2", "f8e5m2", DType::f8e5m2, DType::f8e5m2, 24, k, {false, 32}, false});
  check({"e4m3_e5m2", "f8e4m3", "f8e5m2", DType::f8e4m3, DType::f8e5m2, 256, k, k, false});
  check({"e5m2_e4m3", "f8e5m2", "f8e4m3", DType::f8e5m2, DType::f8e4m3, 40, k, k, false});
  check({"i8", "i8", "i8", DType::i8, DType::i8, 96, k, {false, 64}, false});
}

TEST_CASE("A from registers", "[hopper]") {
  const Operand k;
  check({"bf16", "bf16", "bf16", DType::bf16, DType::bf16, 128, k, {true, 128}, true});
  check({"f16", "f16", "f16", DType::f16, DType::f16, 72, k, k, true});
  check({"tf32", "f32", "f32", DType::f32, DType::f32, 32, k, k, true});
  check({"e4m3", "f8e4m3", "f8e4m3", DType::f8e4m3, DType::f8e4m3, 16, k, k, true});
  check({"i8", "i8", "i8", DType::i8, DType::i8, 32, k, k, true});
}

TEST_CASE("products in a row, as one statement", "[hopper]") {
  const Operand k;
  check({"bf16", "bf16", "bf16", DType::bf16, DType::bf16, 256, k, k, false, true});
  check({"f16", "f16", "f16", DType::f16, DType::f16, 64, {true, 128}, {true, 128}, false, true});
  check({"bf16", "bf16", "bf16", DType::bf16, DType::bf16, 128, k, {true, 128}, true, true});
  check({"tf32", "f32", "f32", DType::f32, DType::f32, 32, k, k, true, true});
  check({"e4m3_e5m2", "f8e4m3", "f8e5m2", DType::f8e4m3, DType::f8e5m2, 64, k, k, false, true});
  check({"e4m3", "f8e4m3", "f8e4m3", DType::f8e4m3, DType::f8e4m3, 256, k, k, true, true});
  check({"i8", "i8", "i8", DType::i8, DType::i8, 96, k, {false, 64}, false, true});
}
