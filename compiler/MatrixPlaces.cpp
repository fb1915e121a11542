//===- MatrixPlaces.cpp - source lines of warpgroup products in SASS ------===//
//
// ptxas writes no line for a warpgroup product: the line table gives it the line of the instruction
// that the schedule puts before it. PTX has the right line.
//
// 1. The products of each function are grouped by shape, and by where the first operand comes from:
//    registers or shared memory.
// 2. If both texts have as many of a group, they are in the same order: a schedule keeps the order
//    of products, and the blocks of a function keep theirs.
// 3. If not, the lines count where all of a group in PTX have the same.
//
//===----------------------------------------------------------------------===//
#include "compiler/MatrixPlaces.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <utility>

using namespace llvm;

namespace tk {
namespace {

/// The lines of a text that hold products, by function and group.
using Products = std::map<std::pair<std::string, std::string>, SmallVector<size_t>>;

std::string groupName(StringRef shape, bool isInRegisters) {
  return (shape + (isInRegisters ? " registers" : " shared")).str();
}

/// The group of `wgmma.mma_async.sync.aligned.m64n128k16.… {sums}, {registers}, …`.
std::string groupOfPtx(StringRef line) {
  StringRef rest = line.trim();
  if (!rest.consume_front("wgmma.mma_async.sync.aligned.m"))
    return "";
  std::string shape = rest.take_until([](char c) { return c == '.'; }).str();
  for (char &c : shape)
    if (!isDigit(c))
      c = 'x';
  return groupName(shape, rest.split("}, ").second.starts_with("{"));
}

/// The group of `HGMMA.64x128x16.… R24, R180, …`.
std::string groupOfSass(StringRef line) {
  StringRef rest = line.trim();
  if (!rest.consume_front("/*"))
    return "";
  auto [name, operands] = rest.split("*/").second.ltrim().split(' ');
  auto [kind, shape] = name.split('.');
  if (!kind.ends_with("GMMA"))
    return "";
  return groupName(shape.split('.').first, operands.split(", ").second.starts_with("R"));
}

Products productsOf(const StageText &stage, function_ref<std::string(StringRef)> functionOf,
                    function_ref<std::string(StringRef)> groupOf) {
  Products products;
  std::string function;
  StringRef rest = stage.text;
  for (size_t number = 0; !rest.empty(); ++number) {
    auto [line, behind] = rest.split('\n');
    if (std::string name = functionOf(line); !name.empty())
      function = name;
    if (std::string group = groupOf(line); !group.empty())
      products[{function, group}].push_back(number);
    rest = behind;
  }
  return products;
}

} // namespace

void placeMatrixInstructions(StageText &sass, const StageText &ptx) {
  Products inPtx = productsOf(
      ptx,
      [](StringRef line) -> std::string {
        auto [head, name] = line.split(".entry ");
        return head == ".visible " || (head.empty() && !name.empty())
                   ? name.take_until([](char c) { return c == '('; }).str()
                   : "";
      },
      groupOfPtx);
  Products inSass = productsOf(
      sass,
      [](StringRef line) -> std::string {
        return line.starts_with(".text.") && line.ends_with(":")
                   ? line.drop_front(StringRef(".text.").size()).drop_back().str()
                   : "";
      },
      groupOfSass);
  for (const auto &[group, lines] : inSass) {
    const SmallVector<size_t> &known = inPtx[group];
    const bool isSame = known.size() == lines.size();
    const bool isOne = !known.empty() && all_of(known, [&](size_t line) {
      return ptx.lines[line] == ptx.lines[known.front()];
    });
    if (isSame || isOne)
      for (auto [i, line] : enumerate(lines))
        sass.lines[line] = ptx.lines[known[isSame ? i : 0]];
  }
}

} // namespace tk
