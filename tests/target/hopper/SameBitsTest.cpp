// The emulator's primitives against the hardware's: from the same inputs the same bits. Those that
// only Hopper has are in the other files here; functions that the emulator takes from the host's
// library are in ../cuda/PrimitivesTest.cpp, with a tolerance.
#include "tests/target/hopper/OnBoth.h"

#include <cstring>
#include <map>
#include <random>
#include <string_view>

using tk::DType;
using tk::test::KernelHarness;

namespace {

constexpr int threads = 256;

/// Words of every kind: any bits, small integers, and the ends of the types' ranges as f32.
std::vector<int> words() {
  std::vector<int> list;
  for (uint32_t word :
       {0x00000000u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x00000001u, 0x477fe000u,
        0x477ff000u, 0x43e00000u, 0x43e80000u, 0x47600000u, 0x7f7fffffu, 0xffffffffu, 0x7fffffffu,
        0x3f000000u, 0x3f800000u, 0x4b000001u, 0x5f000000u, 0xdf000000u, 0x33000000u})
    list.push_back(static_cast<int>(word));
  std::mt19937 random(7);
  while (list.size() < 2 * threads) {
    const auto any = static_cast<uint32_t>(random());
    const float value = std::ldexp(static_cast<float>(static_cast<int32_t>(any)),
                                   static_cast<int>(random() % 64) - 50);
    int bits;
    std::memcpy(&bits, &value, 4);
    list.push_back(list.size() % 3 == 0   ? static_cast<int>(any)
                   : list.size() % 3 == 1 ? static_cast<int>(any % 19) - 9
                                          : bits);
  }
  return list;
}

using Bodies = std::vector<std::string>;

/// Runs bodies that have x[512] and write y[256 * perThread] as words, each its own y, on both.
void sameBits(const Bodies &bodies, int perThread) {
  std::string text = R"(#include "hopper.cuh"
TK_DEVICE float number(int bits) { return tk::as_float((tk::u32)bits); }
// NaNs differ in their payloads, which mean nothing.
TK_DEVICE int bits(float x) { return x != x ? 0x7fc00000 : (int)tk::as_bits(x); }
extern "C" __global__ void __launch_bounds__(256) k(const int *__restrict__ x, int *all) {
  const int t = tk::thread_index(), a = tk::get(&x[t]), b = tk::get(&x[t + 256]);
  const float f = number(a), g = number(b);
)";
  const int each = threads * perThread;
  for (size_t i = 0; i < bodies.size(); ++i)
    text += "  tk::barrier();\n  {\n  int *const y = all + " + std::to_string(i) + " * " +
            std::to_string(each) + ";\n" + bodies[i] + "\n  }\n";
  KernelHarness k(text + "}");
  std::vector<int> x = words(), y(bodies.size() * static_cast<size_t>(each)), first;
  k.threads = threads;
  k.sharedBytes = 32768;
  k.in(x, DType::i32);
  k.out(y, DType::i32);
  tk::test::runOnBoth(k, [&] {
    if (first.empty())
      first = y;
    for (size_t i = 0; i < y.size(); ++i)
      if (y[i] != first[i]) {
        FAIL_CHECK(bodies[i / static_cast<size_t>(each)] << "\nat " << i % static_cast<size_t>(each)
                                                         << ": " << std::hex << y[i] << " and "
                                                         << first[i]);
        break;
      }
  });
}

/// The bodies of a test, by the words that each thread writes: those of a kind are one kernel.
class Cases {
public:
  void addBody(const std::string &body, int perThread = 1) { bodies[perThread].push_back(body); }
  /// The body that stores an expression of type int.
  void addValue(const std::string &expression) { addBody("  tk::put(&y[t], " + expression + ");"); }
  void haveSameBits() const {
    for (const auto &[perThread, list] : bodies)
      sameBits(list, perThread);
  }

private:
  std::map<int, Bodies> bodies;
};

} // namespace

TEST_CASE("conversions give the hardware's bits", "[hopper]") {
  Cases cases;
  for (const char *type : {"f16", "bf16", "f8e4m3", "f8e5m2"}) {
    const std::string name = type;
    cases.addValue("f != f ? 0 : (int)tk::from_float<tk::" + name + ">(f).bits");
    cases.addValue("f != f ? 0 : (int)tk::from_double<tk::" + name +
                   ">((double)f * 1.0000001).bits");
    cases.addValue("bits(tk::to_float(tk::" + name + "{(decltype(tk::" + name + "{}.bits))a}))");
  }
  for (const char *type : {"f16", "bf16", "f8e4m3", "f8e5m2"})
    cases.addValue("f != f || g != g ? 0 : (int)tk::pack2<tk::" + std::string(type) + ">(f, g)");
  for (const char *type : {"i8", "u8", "i16", "i32", "i64"})
    cases.addValue("(int)tk::to_integer<tk::" + std::string(type) + ">(f)");
  cases.addValue("(int)(tk::to_integer<tk::i64>((double)f * 3.0) >> 32)");
  cases.addValue("bits(tk::round_to_odd((double)f * 1.0000001))");
  cases.haveSameBits();
}

TEST_CASE("selections and exact functions give the hardware's bits", "[hopper]") {
  Cases cases;
  for (const char *name : {"maximum", "minimum", "max_number", "min_number", "copysign"})
    cases.addValue("bits(tk::" + std::string(name) + "(f, g))");
  for (const char *name :
       {"sqrt", "floor", "ceil", "trunc", "round", "round_even", "abs", "zero_if_low"})
    cases.addValue("bits(tk::" + std::string(name) + "(f))");
  cases.addValue("bits(tk::fma(f, g, 1.5f))");
  cases.addValue("bits(tk::multiply_add(f, 3.0f, g))");
  cases.addValue("bits(tk::mod(f, g))");
  cases.addValue("bits(tk::one_by_zero(f, g))");
  cases.addValue("bits(tk::div_or_zero(f, g))");
  cases.addValue("bits(f / g)");
  cases.addValue("bits(tk::philox_uniform((tk::i64)a * 77777777777, b))");
  cases.addValue("tk::round_up_to_i32(f)");
  cases.addValue("tk::drawn_below((tk::u32)b * 2654435761u, tk::abs(f))");
  cases.haveSameBits();
}

TEST_CASE("functions of integers give the hardware's bits", "[hopper]") {
  Cases cases;
  for (const char *name :
       {"floor_div", "floor_mod", "shift_left", "shift_right", "maximum", "minimum"}) {
    cases.addValue("tk::" + std::string(name) + "(a, b)");
    cases.addValue("tk::" + std::string(name) + "(a, b & 31)");
    cases.addValue("(int)(tk::" + std::string(name) + "((tk::i64)a << 20, (tk::i64)b) >> 7)");
  }
  cases.addValue("tk::abs_integer(a)");
  cases.addValue("tk::pow_integer(b, (tk::i64)(a & 7))");
  cases.addValue("tk::multiply_add(a, b, 5)");
  cases.haveSameBits();
}

TEST_CASE("exchanges among threads give the hardware's bits", "[hopper]") {
  Cases cases;
  for (int mask : {1, 2, 4, 8, 16, 31})
    for (const char *value : {"a", "(tk::i64)a << 9", "(tk::i8)a", "(tk::i16)a", "(a & 4) != 0"})
      cases.addValue("(int)tk::shuffle_xor(" + std::string(value) + ", " + std::to_string(mask) +
                     ")");
  cases.addValue("bits(tk::shuffle_xor(f, 5))");
  cases.addValue("bits((float)tk::shuffle_xor((double)f, 9))");
  cases.addValue("tk::warp_uniform(a)");
  // Which lane is elected is not said; that it is one of each warp is.
  cases.addBody(R"(  int elected[1] = {tk::elect_one()};
  tk::reduce_lanes<tk::Sum, 31>(elected);
  tk::put(&y[t], elected[0]);)");
  // Warps 0 to 3 bring what warps 4 to 7 take.
  cases.addBody(R"(  int *const shared = reinterpret_cast<int *>(tk::shared_memory());
  if (t < 128) {
    tk::put(&shared[t], a);
    tk::named_barrier_arrive(3, 256);
    tk::put(&y[t], 0);
  } else {
    tk::named_barrier_sync(3, 256);
    tk::put(&y[t], tk::get(&shared[255 - t]));
  })");
  cases.haveSameBits();
}

TEST_CASE("reductions and scans give the hardware's bits", "[hopper]") {
  Cases cases;
  for (const char *op : {"Sum", "Product", "Maximum", "Minimum"})
    for (const char *type : {"float", "int"}) {
      const std::string apply = "<tk::" + std::string(op) + ", ", name = type;
      const std::string values = "  " + name + " v[4] = {" +
                                 (name == "int" ? "a, b, a + b, 3};\n" : "f, g, 0.5f, f};\n") +
                                 "  " + name + " *const scratch = reinterpret_cast<" + name +
                                 " *>(tk::shared_memory());\n";
      const std::string store = "  for (int i = 0; i < 4; ++i)\n    tk::put(&y[4 * t + i], " +
                                std::string(name == "int" ? "v[i]" : "bits(v[i])") + ");";
      cases.addBody(values + "  tk::reduce_registers" + apply + "3>(v);\n" + store, 4);
      cases.addBody(values + "  tk::reduce_lanes" + apply + "31>(v);\n" + store, 4);
      cases.addBody(values + "  tk::reduce_lanes" + apply + "20>(v);\n" + store, 4);
      cases.addBody(values + "  tk::reduce_warps" + apply + "5, 8>(v, scratch);\n" + store, 4);
      cases.addBody(values + "  tk::reduce_threads" + apply + "20, 5, 8>(v, scratch);\n" + store,
                    4);
      cases.addBody(values + "  tk::reduce_lanes" + apply + "31>(v);\n  tk::reduce_uniform_warps" +
                        apply + "7, 8>(v, scratch);\n" + store,
                    4);
      const std::string totals = "  " + name + " w[4] = {v[0], v[1], v[2], v[3]};\n";
      cases.addBody(values + totals + "  tk::scan_registers" + apply +
                        "1>(v, w);\n  tk::scan_lanes" + apply + "2, 1>(v, w);\n  tk::scan_warps" +
                        apply + "4, 8, 1>(v, w, scratch);\n" + store,
                    4);
      for (const char *way : {"3>", "3, true>"})
        cases.addBody(values + totals + "  tk::scan_in_thread" + apply + way + "(v, w);\n" + store,
                      4);
    }
  for (const char *op : {"Maximum", "Minimum"})
    cases.addBody(
        "  const float v[1] = {number(a & ~0xff)};\n  float best[1] = {v[0]};\n  int place[1] = "
        "{t};\n" +
        ("  tk::reduce_lanes<tk::" + std::string(op)) +
        ", 31>(best);\n  tk::find_first<0>(place, v, v, best);\n  tk::put(&y[t], place[0]);");
  cases.haveSameBits();
}

TEST_CASE("accesses to memory give the hardware's bits", "[hopper]") {
  Cases cases;
  for (int n : {1, 2, 4}) {
    const std::string count = std::to_string(n), head = "  int v[" + count + "];\n  tk::load<" +
                                                        count + ">(v, &x[t / 8 * " + count + "]";
    const std::string store = "  tk::store<" + count +
                              ">(&y[t * 4], v, true);\n"
                              "  for (int i = " +
                              count +
                              "; i < 4; ++i)\n"
                              "    tk::put(&y[t * 4 + i], 0);";
    cases.addBody(head + ");\n" + store, 4);
    cases.addBody(head + ", (a & 2) != 0, 77);\n" + store, 4);
  }
  // Runs that are whole, cut off by the mask, and apart.
  cases.addBody(R"(  int v[8], at[8];
  bool mask[8];
  for (int i = 0; i < 8; ++i) {
    at[i] = i < 4 || (t & 1) ? (t & 31) * 4 + i : (t + 9 * i) & 255;
    mask[i] = i < 6 || (t & 2);
  }
  tk::load_runs<4>(v, x, at, mask, -1);
  int to[8];
  for (int i = 0; i < 8; ++i) {
    to[i] = (t & 4) ? t * 8 + 7 - i : t * 8 + i;
    tk::put(&y[t * 8 + i], 5);
  }
  tk::store_runs<4>(y, v, to, mask);)",
                8);
  for (const char *type : {"tk::u8", "tk::u16", "int"})
    for (int shift = 0; shift < 4; ++shift)
      cases.addBody("  " + std::string(type) + " before[4], here[4], v[4];\n" +
                        R"(  for (int i = 0; i < 4; ++i) {
    before[i] = (decltype(before[0] + 0))(a + i);
    here[i] = (decltype(before[0] + 0))(b ^ i);
  }
  tk::funnel<4>(v, before, here, )" +
                        std::to_string(shift) +
                        ");\n  for (int i = 0; i < 4; ++i)\n    tk::put(&y[4 * t + i], (int)v[i]);",
                    4);
  for (int bytes : {4, 8, 16}) {
    const std::string n = std::to_string(bytes / 4);
    cases.addBody(
        "  int *const shared = reinterpret_cast<int *>(tk::shared_memory()) + t * 8;\n"
        "  tk::copy_async<" +
            std::to_string(bytes) + ">(shared, &x[t / 8 * " + n +
            "], (t & 3) != 0);\n  tk::async_commit();\n  tk::copy_async<" + std::to_string(bytes) +
            ">(shared + 4, &x[t / 16 * " + n +
            "]);\n  tk::async_commit();\n  tk::async_wait<1>();\n  for (int i = 0; i < " + n +
            "; ++i)\n    tk::put(&y[t * 8 + i], tk::get(&shared[i]));\n"
            "  tk::async_wait<0>();\n  for (int i = 0; i < " +
            n +
            "; ++i)\n    tk::put(&y[t * 8 + 4 + i], tk::get(&shared[4 + i]));\n  for (int i = " +
            n +
            "; i < 4; ++i) {\n    tk::put(&y[t * 8 + i], 0);\n"
            "    tk::put(&y[t * 8 + 4 + i], 0);\n  }",
        8);
  }
  cases.haveSameBits();
}

TEST_CASE("matrices of a warp give the hardware's bits", "[hopper]") {
  Cases cases;
  for (int words : {1, 2, 4})
    for (const char *transposed : {"false", "true"}) {
      const std::string count = std::to_string(words);
      // Rows are 32 bytes apart, named in an order of their own.
      cases.addBody(R"(  auto *const rows = reinterpret_cast<tk::f16 *>(tk::shared_memory());
  tk::put(&rows[2 * t], tk::f16{(tk::u16)a});
  tk::put(&rows[2 * t + 1], tk::f16{(tk::u16)b});
  tk::barrier();
  tk::f16 v[8] = {};
  tk::load_matrix<)" + count +
                        ", " + transposed + R"(>(v, &rows[(tk::lane_index() * 5 & 31) * 16]);
  for (int i = 0; i < 8; ++i)
    tk::put(&y[8 * t + i], i < 2 * )" +
                        count + " ? (int)v[i].bits : 0);",
                    8);
    }
  // Small integers, whose sums are exact: the order in which they are formed is the hardware's own.
  // Of 8-bit floats fractions, for sums are cut off.
  struct {
    const char *a, *b, *sum;
  } const types[] = {
      {"bf16", "bf16", "float"},     {"f16", "f16", "float"},       {"i8", "i8", "int"},
      {"f8e4m3", "f8e4m3", "float"}, {"f8e5m2", "f8e5m2", "float"}, {"f8e4m3", "f8e5m2", "float"},
      {"f8e5m2", "f8e4m3", "float"}, {"f32", "f32", "float"},       {"f64", "f64", "double"}};
  for (const auto &type : types) {
    const std::string sum = type.sum;
    const bool isByteFloat = std::string_view(type.a).starts_with("f8");
    auto fragment = [&](const std::string &name, const std::string &variable, int words, int by) {
      const std::string of = name == "f32" ? "float" : name == "f64" ? "double" : "tk::" + name;
      const std::string value = "(((t * " + std::to_string(by) + " + i * 5) >> 1) % 7 - 3)";
      return "  " + of + " " + variable + "[" + std::to_string(words) + " * 4 / sizeof(" + of +
             ")];\n  for (int i = 0; i < " + std::to_string(words) + " * 4 / (int)sizeof(" + of +
             "); ++i)\n    " + variable + "[i] = " +
             (name == "i8"    ? "(tk::i8)" + value
              : name == "f64" ? "(double)" + value
                              : "tk::from_float<" + of + ">((float)" + value +
                                    (isByteFloat ? " * 0.37f)" : ")")) +
             ";\n";
    };
    cases.addBody(fragment(type.a, "v", 4, 3) + fragment(type.b, "w", 2, 11) + "  " + sum +
                      " c[4] = {1, 2, 3, 4};\n  tk::mma_m16n8(c, v, w);\n" +
                      "  for (int i = 0; i < 4; ++i)\n    tk::put(&y[4 * t + i], " +
                      (isByteFloat ? "bits(c[i]));" : "(int)c[i]);"),
                  4);
  }
  cases.haveSameBits();
}
