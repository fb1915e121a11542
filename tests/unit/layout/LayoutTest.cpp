//===- LayoutTest.cpp - layouts against the definitions they stand for ----===//
#include "dialects/tkgpu/TkGpuLayout.h"
#include "tests/unit/catch.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"

#include <map>

using namespace mlir;
using namespace tk::gpu;

namespace {

struct Fixture {
  MLIRContext context;
  Fixture() { context.loadDialect<TkGpuDialect>(); }

  LayoutAttr parse(StringRef text) {
    ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
    return llvm::dyn_cast_or_null<LayoutAttr>(parseAttribute(text, &context));
  }
};

/// How often each element of the tile is held, by owners (replicas left out).
std::map<std::vector<int64_t>, int> ownersOf(LayoutAttr layout) {
  std::map<std::vector<int64_t>, int> count;
  for (unsigned warp = 0; warp < layout.getNumWarps(); ++warp)
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned reg = 0; reg < layout.getNumRegisters(); ++reg) {
        if ((warp & layout.getReplicatedWarpMask()) || (lane & layout.getReplicatedLaneMask()))
          continue;
        SmallVector<int64_t> at = layout.getCoordinate(reg, lane, warp);
        ++count[std::vector<int64_t>(at.begin(), at.end())];
      }
  return count;
}

void requireEachElementOnce(LayoutAttr layout, ArrayRef<int64_t> shape) {
  REQUIRE(layout);
  REQUIRE(layout.getTileShape() == SmallVector<int64_t>(shape));
  std::map<std::vector<int64_t>, int> owners = ownersOf(layout);
  int64_t elements = 1;
  for (int64_t extent : shape)
    elements *= extent;
  REQUIRE(int64_t(owners.size()) == elements);
  bool once = true;
  for (auto &[coordinate, count] : owners) {
    once &= count == 1;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      once &= coordinate[axis] >= 0 && coordinate[axis] < shape[axis];
  }
  CHECK(once);
}

} // namespace

TEST_CASE_METHOD(Fixture, "blocked layouts hold each element once") {
  for (int64_t rows : {1, 2, 16, 128})
    for (int64_t columns : {1, 8, 64, 256})
      for (int64_t warps : {1, 4, 8})
        for (int64_t width : {1, 4}) {
          requireEachElementOnce(
              blockedLayout(&context, {rows, columns}, {{1, width}, {1, 0}, warps}),
              {rows, columns});
          requireEachElementOnce(
              blockedLayout(&context, {rows, columns}, {{width, 1}, {0, 1}, warps}),
              {rows, columns});
        }
  requireEachElementOnce(blockedLayout(&context, {512}, {{4}, {0}, 4}), {512});
}

TEST_CASE_METHOD(Fixture, "consecutive lanes follow the first axis of the order") {
  LayoutAttr layout = blockedLayout(&context, {16, 256}, {{1, 4}, {1, 0}, 4});
  CHECK(layout.getVectorWidth(1) == 4);
  CHECK(layout.getVectorWidth(0) == 1);
  CHECK(layout.getCoordinate(0, 1, 0) == SmallVector<int64_t>{0, 4});
  CHECK(layout.getCoordinate(0, 31, 0) == SmallVector<int64_t>{0, 124});
  CHECK(layout.getCoordinate(0, 0, 1) == SmallVector<int64_t>{0, 128});
  CHECK(layout.getCoordinate(0, 0, 2) == SmallVector<int64_t>{1, 0});
}

TEST_CASE_METHOD(Fixture, "fragments are those of the PTX ISA for mma.m16n8k16") {
  LayoutAttr c = mmaAccumulatorLayout(&context, 16, 8, {1, 1});
  LayoutAttr a = mmaOperandLayout(&context, DotOperand::A, 16, 16, {1, 1}, 16);
  LayoutAttr b = mmaOperandLayout(&context, DotOperand::B, 8, 16, {1, 1}, 16);
  REQUIRE(c.getNumRegisters() == 4);
  REQUIRE(a.getNumRegisters() == 8);
  REQUIRE(b.getNumRegisters() == 4);
  for (int64_t lane = 0; lane < 32; ++lane) {
    int64_t group = lane >> 2, thread = lane & 3;
    for (int64_t i = 0; i < 4; ++i) {
      int64_t row = i < 2 ? group : group + 8, column = thread * 2 + (i & 1);
      CHECK(c.getCoordinate(i, lane, 0) == SmallVector<int64_t>{row, column});
    }
    for (int64_t i = 0; i < 8; ++i) {
      int64_t row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8;
      int64_t column = thread * 2 + (i & 1) + (i >= 4 ? 8 : 0);
      CHECK(a.getCoordinate(i, lane, 0) == SmallVector<int64_t>{row, column});
    }
    for (int64_t i = 0; i < 4; ++i) {
      int64_t row = thread * 2 + (i & 1) + (i >= 2 ? 8 : 0);
      CHECK(b.getCoordinate(i, lane, 0) == SmallVector<int64_t>{row, group});
    }
  }
}

TEST_CASE_METHOD(Fixture, "fragments are those of the PTX ISA for products of f64") {
  LayoutAttr a = mmaOperandLayout(&context, DotOperand::A, 16, 4, {1, 1}, 64);
  LayoutAttr b = mmaOperandLayout(&context, DotOperand::B, 8, 4, {1, 1}, 64);
  REQUIRE(a.getNumRegisters() == 2);
  REQUIRE(b.getNumRegisters() == 1);
  for (int64_t lane = 0; lane < 32; ++lane) {
    int64_t group = lane >> 2, thread = lane & 3;
    CHECK(a.getCoordinate(0, lane, 0) == SmallVector<int64_t>{group, thread});
    CHECK(a.getCoordinate(1, lane, 0) == SmallVector<int64_t>{group + 8, thread});
    CHECK(b.getCoordinate(0, lane, 0) == SmallVector<int64_t>{thread, group});
  }
  CHECK_FALSE(mmaOperandLayout(&context, DotOperand::A, 16, 2, {1, 1}, 64));
}

TEST_CASE_METHOD(Fixture, "fragments are those of the PTX ISA for 8-bit and tf32 products") {
  LayoutAttr a8 = mmaOperandLayout(&context, DotOperand::A, 16, 32, {1, 1}, 8);
  LayoutAttr b8 = mmaOperandLayout(&context, DotOperand::B, 8, 32, {1, 1}, 8);
  LayoutAttr a32 = mmaOperandLayout(&context, DotOperand::A, 16, 8, {1, 1}, 32);
  LayoutAttr b32 = mmaOperandLayout(&context, DotOperand::B, 8, 8, {1, 1}, 32);
  for (int64_t lane = 0; lane < 32; ++lane) {
    int64_t group = lane >> 2, thread = lane & 3;
    for (int64_t i = 0; i < 16; ++i) {
      int64_t row = (i < 4 || (i >= 8 && i < 12)) ? group : group + 8;
      int64_t column = thread * 4 + (i & 3) + (i >= 8 ? 16 : 0);
      CHECK(a8.getCoordinate(i, lane, 0) == SmallVector<int64_t>{row, column});
    }
    for (int64_t i = 0; i < 8; ++i)
      CHECK(b8.getCoordinate(i, lane, 0) ==
            SmallVector<int64_t>{thread * 4 + (i & 3) + (i >= 4 ? 16 : 0), group});
    for (int64_t i = 0; i < 4; ++i)
      CHECK(a32.getCoordinate(i, lane, 0) ==
            SmallVector<int64_t>{i & 1 ? group + 8 : group, i & 2 ? thread + 4 : thread});
    for (int64_t i = 0; i < 2; ++i)
      CHECK(b32.getCoordinate(i, lane, 0) == SmallVector<int64_t>{thread + 4 * i, group});
  }
}

TEST_CASE_METHOD(Fixture, "fragments with runs along k multiply the same pairs") {
  for (int64_t run : {4, 8, 16}) {
    LayoutAttr a = mmaOperandLayout(&context, DotOperand::A, 64, 64, {4, 1}, 16, run);
    LayoutAttr b = mmaOperandLayout(&context, DotOperand::B, 16, 64, {4, 1}, 16, run);
    requireEachElementOnce(a, {64, 64});
    requireEachElementOnce(b, {64, 16});
    CHECK(withAxisFirst(a, 1).getVectorWidth(1) == run);
    CHECK(withAxisFirst(b, 0).getVectorWidth(0) == run);
    // Of an instruction, A's registers 0, 1, 4 and 5 are of the k that B's four are of.
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t i = 0; i < 4; ++i)
        CHECK(a.getCoordinate((i & 1) + (i & 2) * 2, lane, 0)[1] == b.getCoordinate(i, lane, 0)[0]);
  }
  CHECK(!mmaOperandLayout(&context, DotOperand::A, 16, 32, {1, 1}, 16, 16));
}

TEST_CASE_METHOD(Fixture, "fragments of larger tiles hold each element once") {
  for (WarpGrid warps : {WarpGrid{1, 1}, WarpGrid{2, 2}, WarpGrid{4, 1}, WarpGrid{2, 4}}) {
    requireEachElementOnce(mmaAccumulatorLayout(&context, 128, 64, warps), {128, 64});
    for (unsigned bits : {8u, 16u, 32u, 64u}) {
      requireEachElementOnce(mmaOperandLayout(&context, DotOperand::A, 128, 64, warps, bits),
                             {128, 64});
      requireEachElementOnce(mmaOperandLayout(&context, DotOperand::B, 64, 64, warps, bits),
                             {64, 64});
    }
  }
  CHECK_FALSE(mmaAccumulatorLayout(&context, 16, 64, {2, 1}));
}

TEST_CASE_METHOD(Fixture, "accumulators of warpgroups are those of the PTX ISA") {
  // wgmma.mma_async.m64n256k16: d[i] of a thread.
  LayoutAttr c = warpgroupAccumulatorLayout(&context, 128, 256, 8);
  REQUIRE(c);
  REQUIRE(c.getNumRegisters() == 128);
  for (int64_t warp = 0; warp < 8; ++warp)
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t i : {0, 1, 2, 3, 4, 7, 64, 127}) {
        int64_t row = warp * 16 + lane / 4 + i / 2 % 2 * 8;
        int64_t column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        CHECK(c.getCoordinate(i, lane, warp) == SmallVector<int64_t>{row, column});
      }
}

TEST_CASE_METHOD(Fixture, "warpgroups divide a tile's rows, then its columns") {
  for (auto [m, n, warps] : {std::tuple(64, 64, 4),
                             {64, 256, 4},
                             {128, 128, 8},
                             {256, 128, 8},
                             {64, 64, 8},
                             {128, 8, 4}})
    requireEachElementOnce(warpgroupAccumulatorLayout(&context, m, n, warps), {m, n});
  // Two groups of four warps on one block of 64 rows have half of the columns each.
  LayoutAttr c = warpgroupAccumulatorLayout(&context, 64, 64, 8);
  CHECK(c.getCoordinate(0, 0, 4) == SmallVector<int64_t>{0, 32});
  CHECK_FALSE(warpgroupAccumulatorLayout(&context, 64, 8, 8));
  CHECK_FALSE(warpgroupAccumulatorLayout(&context, 32, 64, 4));
  CHECK_FALSE(warpgroupAccumulatorLayout(&context, 64, 64, 2));
}

TEST_CASE_METHOD(Fixture, "a warpgroup's accumulator becomes its next left operand in registers") {
  LayoutAttr accumulator = warpgroupAccumulatorLayout(&context, 128, 64, 8);
  LayoutAttr operand = warpgroupOperandLayout(accumulator, 64, 16);
  CHECK(classifyConversion(accumulator, operand) == Conversion::None);
  requireEachElementOnce(warpgroupOperandLayout(accumulator, 32, 8), {128, 32});
}

TEST_CASE_METHOD(Fixture, "with interleaved columns it becomes one of 8 bits in registers") {
  for (int64_t n : {32, 64, 128, 256}) {
    LayoutAttr plain = warpgroupAccumulatorLayout(&context, 128, n, 8);
    LayoutAttr dealt = warpgroupAccumulatorLayout(&context, 128, n, 8, /*interleave=*/2);
    requireEachElementOnce(dealt, {128, n});
    CHECK(classifyConversion(plain, warpgroupOperandLayout(plain, n, 8)) == Conversion::Shuffle);
    CHECK(classifyConversion(dealt, warpgroupOperandLayout(dealt, n, 8)) == Conversion::Register);
  }
  // Column c of the instruction is the c-th row of the operand as it lies in memory.
  LayoutAttr dealt = warpgroupAccumulatorLayout(&context, 64, 64, 4, /*interleave=*/2);
  CHECK(dealt.getCoordinate(/*column 2*/ 0, 1, 0) == SmallVector<int64_t>{0, 4});
  CHECK(dealt.getCoordinate(/*column 32*/ 16, 0, 0) == SmallVector<int64_t>{0, 2});
}

TEST_CASE_METHOD(Fixture, "the warps of the operands are those of the accumulator") {
  WarpGrid warps{2, 4};
  LayoutAttr c = mmaAccumulatorLayout(&context, 64, 128, warps);
  LayoutAttr a = mmaOperandLayout(&context, DotOperand::A, 64, 32, warps, 16);
  LayoutAttr b = mmaOperandLayout(&context, DotOperand::B, 128, 32, warps, 16);
  for (unsigned warp = 0; warp < 8; ++warp) {
    CHECK(c.getCoordinate(0, 0, warp)[0] == a.getCoordinate(0, 0, warp)[0]);
    CHECK(c.getCoordinate(0, 0, warp)[1] == b.getCoordinate(0, 0, warp)[1]);
  }
}

TEST_CASE_METHOD(Fixture, "an accumulator becomes the next product's A operand in registers") {
  LayoutAttr accumulator = mmaAccumulatorLayout(&context, 64, 64, {4, 1});
  LayoutAttr operand = mmaOperandLayout(&context, DotOperand::A, 64, 64, {4, 1}, 16);
  CHECK(classifyConversion(accumulator, operand) == Conversion::None);
  // Two fragments along m in each warp: the same elements, numbered in another order.
  LayoutAttr tall = mmaAccumulatorLayout(&context, 128, 64, {4, 1});
  LayoutAttr tallOperand = mmaOperandLayout(&context, DotOperand::A, 128, 64, {4, 1}, 16);
  CHECK(classifyConversion(tall, tallOperand) == Conversion::Register);
  SmallVector<unsigned> sources = registerPermutation(tall, tallOperand);
  REQUIRE(sources.size() == 64);
  bool same = true;
  for (unsigned reg = 0; reg < 64; ++reg)
    for (unsigned lane = 0; lane < 32; ++lane)
      same &= tallOperand.getCoordinate(reg, lane, 3) == tall.getCoordinate(sources[reg], lane, 3);
  CHECK(same);
  LayoutAttr split = mmaAccumulatorLayout(&context, 64, 64, {2, 2});
  CHECK(classifyConversion(split, operand) == Conversion::Shared);
  CHECK(registerPermutation(split, operand).empty());
}

TEST_CASE_METHOD(Fixture, "operands of FMA products follow the accumulator's threads") {
  LayoutAttr c = blockedLayout(&context, {64, 64}, {{4, 4}, {1, 0}, 4, {2, 16}, {4, 1}});
  LayoutAttr a = fmaOperandLayout(c, DotOperand::A, 8);
  requireEachElementOnce(a, {64, 8});
  for (unsigned warp = 0; warp < 4; ++warp)
    for (unsigned lane = 0; lane < 32; ++lane) {
      CHECK(a.getCoordinate(0, lane, warp)[0] == c.getCoordinate(0, lane, warp)[0]);
      CHECK(a.getCoordinate(0, lane, warp)[1] == 0);
    }
}

TEST_CASE_METHOD(Fixture, "a slice keeps the other axes' elements where they are") {
  LayoutAttr full = mmaAccumulatorLayout(&context, 64, 32, {4, 1});
  LayoutAttr rows = sliceLayout(full, 1);
  requireEachElementOnce(rows, {64});
  CHECK(rows.getReplicatedLaneMask() == 3u);
  for (unsigned lane = 0; lane < 32; ++lane)
    CHECK(rows.getCoordinate(0, lane, 2)[0] == full.getCoordinate(0, lane, 2)[0]);
  CHECK(broadcastSourceLayout(full, {0}, {64}) == rows);
  CHECK(broadcastSourceLayout(full, {0, 1}, {64, 1}).getTileShape() == SmallVector<int64_t>{64, 1});
  AxisBits columns = axisBits(full, 1);
  CHECK(columns.lanes == 3u);
  CHECK(columns.registers == 0b1101u);
  CHECK(columns.warps == 0u);
}

TEST_CASE_METHOD(Fixture, "reduced runs are counted where their elements were") {
  LayoutAttr full = mmaAccumulatorLayout(&context, 64, 32, {4, 1});
  LayoutAttr runs = runsLayout(full, 0, 16);
  requireEachElementOnce(runs, {4, 32});
  for (unsigned warp = 0; warp < 4; ++warp)
    CHECK(runs.getCoordinate(0, 5, warp)[0] == full.getCoordinate(0, 5, warp)[0] / 16);
  AxisBits inRun = runBits(full, 0, 16);
  CHECK(inRun.lanes == 0b11100u);
  CHECK(inRun.registers == 0b10u);
  CHECK(inRun.warps == 0u);
  CHECK(runBits(full, 0, 32).warps == 1u);
  CHECK(runsLayout(full, 0, 1) == full);
}

TEST_CASE_METHOD(Fixture, "a permuted layout holds the transposed element") {
  LayoutAttr layout = blockedLayout(&context, {8, 64}, {{1, 2}, {1, 0}, 2});
  LayoutAttr transposed = permuteLayout(layout, {1, 0});
  for (unsigned reg = 0; reg < layout.getNumRegisters(); ++reg) {
    SmallVector<int64_t> at = layout.getCoordinate(reg, 13, 1);
    CHECK(transposed.getCoordinate(reg, 13, 1) == SmallVector<int64_t>{at[1], at[0]});
  }
}

TEST_CASE_METHOD(Fixture, "text round-trips and bad text is refused") {
  StringRef text = "#tkgpu.layout<register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], "
                   "[2, 0], [4, 0]], warp = [[16, 0]]>";
  LayoutAttr layout = parse(text);
  REQUIRE(layout);
  CHECK(layout.getCoordinate(3, 5, 1) == SmallVector<int64_t>{25, 3});
  CHECK(layout == mmaAccumulatorLayout(&context, 32, 8, {2, 1}));
  std::string printed;
  llvm::raw_string_ostream(printed) << layout;
  CHECK(printed == text);

  auto lanes = [&](StringRef registers, StringRef lane) {
    return parse(
        ("#tkgpu.layout<register = [" + registers + "], lane = [" + lane + "], warp = []>").str());
  };
  CHECK(lanes("", "[1], [2], [4], [8], [16]"));
  CHECK(lanes("", "[1], [2], [4], [8], [0]"));
  CHECK_FALSE(lanes("", "[1], [2], [4], [8]"));          // too few lanes
  CHECK_FALSE(lanes("", "[1], [2], [4], [8], [32]"));    // a gap
  CHECK_FALSE(lanes("", "[1], [2], [4], [8], [8]"));     // an element twice
  CHECK_FALSE(lanes("", "[1], [2], [3], [8], [16]"));    // no power of two
  CHECK_FALSE(lanes("[0]", "[1], [2], [4], [8], [16]")); // replicated registers
  CHECK_FALSE(lanes("[1, 1]", "[1, 0], [0, 0], [0, 0], [0, 0], [0, 0]"));
  CHECK_FALSE(parse("#tkgpu.layout<register = [], lane = [], warp = []>"));
}
