//===- TkGpuLayout.cpp - the layout attribute -----------------------------===//
#include "dialects/tkgpu/TkGpuLayout.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk::gpu;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

// layout ::= `<` `register` `=` bits `,` `lane` `=` bits `,` `warp` `=` bits
//            (`,` `held` `=` integer)? `>`
// bits   ::= `[` (vector (`,` vector)*)? `]`
// vector ::= `[` integer (`,` integer)* `]`

static ParseResult parseBit(AsmParser &parser, unsigned &rank, SmallVectorImpl<LayoutBit> &bits) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> vector;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     [&] { return parser.parseInteger(vector.emplace_back()); }))
    return failure();
  if (vector.empty())
    return parser.emitError(loc, "expected a vector with a component for each axis, got []");
  if (rank == 0)
    rank = vector.size();
  if (vector.size() != rank)
    return parser.emitError(loc) << "expected a vector of " << rank << " components, got "
                                 << vector.size();
  LayoutBit bit;
  for (auto [axis, step] : llvm::enumerate(vector)) {
    if (step == 0)
      continue;
    if (bit.step != 0)
      return parser.emitError(loc, "expected at most one component other than 0 in a vector");
    if (step < 0 || step > (int64_t(1) << 30))
      return parser.emitError(loc) << "expected a power of two below 2^31, got " << step;
    bit = {int32_t(axis), int32_t(step)};
  }
  bits.push_back(bit);
  return success();
}

static ParseResult parseBits(AsmParser &parser, StringRef name, unsigned &rank,
                             SmallVectorImpl<LayoutBit> &bits) {
  if (parser.parseKeyword(name) || parser.parseEqual())
    return failure();
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parseBit(parser, rank, bits); });
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  unsigned rank = 0;
  SmallVector<LayoutBit> registers, lanes, warps;
  if (parser.parseLess() || parseBits(parser, "register", rank, registers) || parser.parseComma() ||
      parseBits(parser, "lane", rank, lanes) || parser.parseComma() ||
      parseBits(parser, "warp", rank, warps))
    return {};
  unsigned held = 0;
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("held") || parser.parseEqual() || parser.parseInteger(held)))
    return {};
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), rank,
                    ArrayRef<LayoutBit>(registers), ArrayRef<LayoutBit>(lanes),
                    ArrayRef<LayoutBit>(warps), held);
}

static void printBits(AsmPrinter &printer, StringRef name, unsigned rank,
                      ArrayRef<LayoutBit> bits) {
  printer << name << " = [";
  llvm::interleaveComma(bits, printer, [&](LayoutBit bit) {
    printer << '[';
    for (unsigned axis = 0; axis < rank; ++axis)
      printer << (axis ? ", " : "") << (unsigned(bit.axis) == axis ? bit.step : 0);
    printer << ']';
  });
  printer << ']';
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printBits(printer, "register", getRank(), getRegisterBits());
  printer << ", ";
  printBits(printer, "lane", getRank(), getLaneBits());
  printer << ", ";
  printBits(printer, "warp", getRank(), getWarpBits());
  if (getHeld() != 0)
    printer << ", held = " << getHeld();
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, unsigned rank,
                                 ArrayRef<LayoutBit> registers, ArrayRef<LayoutBit> lanes,
                                 ArrayRef<LayoutBit> warps, unsigned held) {
  if (rank == 0)
    return emitError() << "expected a layout of at least one axis";
  if (lanes.size() != 5)
    return emitError() << "expected 5 lane vectors, got " << lanes.size();
  if (registers.size() > maxRegisterBits)
    return emitError() << "expected at most 10 register vectors (1024 registers a thread), got "
                       << registers.size();
  if (warps.size() > 9)
    return emitError() << "expected at most 9 warp vectors (16 blocks of 32 warps), got "
                       << warps.size();
  bool areAlongOne =
      llvm::all_of(registers, [&](LayoutBit bit) { return bit.axis == registers.front().axis; });
  if (held != 0 && !areAlongOne)
    return emitError() << "expected registers along one axis where only " << held
                       << " of them are held";
  if (held != 0 && held >= 1u << registers.size())
    return emitError() << "expected to hold fewer than " << (1u << registers.size())
                       << " registers, got " << held;
  SmallVector<int64_t> seen(rank, 0);
  for (ArrayRef<LayoutBit> bits : {registers, lanes, warps}) {
    for (LayoutBit bit : bits) {
      if (bit.isReplication()) {
        if (bits.data() == registers.data())
          return emitError()
                 << "expected registers that hold different elements, got a zero vector";
        continue;
      }
      if (bit.axis < 0 || unsigned(bit.axis) >= rank)
        return emitError() << "expected an axis below " << rank << ", got " << bit.axis;
      if (!llvm::isPowerOf2_32(bit.step))
        return emitError() << "expected a power of two, got " << bit.step;
      if (seen[bit.axis] & bit.step)
        return emitError() << "expected each element once, got step " << bit.step << " on axis "
                           << bit.axis << " twice";
      seen[bit.axis] |= bit.step;
    }
  }
  for (auto [axis, steps] : llvm::enumerate(seen))
    if (!llvm::isPowerOf2_64(uint64_t(steps) + 1))
      return emitError() << "expected the steps on axis " << axis
                         << " to be all powers of two below its extent, got a gap";
  return success();
}

LogicalResult LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         function_ref<InFlightDiagnostic()> emitError) const {
  LayoutAttr self = *this;
  if (shape == ArrayRef<int64_t>(self.getTileShape()))
    return success();
  InFlightDiagnostic diagnostic = emitError() << "expected a tile of shape [";
  llvm::interleaveComma(self.getTileShape(), diagnostic);
  diagnostic << "] for this layout, got [";
  llvm::interleaveComma(shape, diagnostic);
  return diagnostic << ']';
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

static void addVectors(ArrayRef<LayoutBit> bits, unsigned number, SmallVectorImpl<int64_t> &sum) {
  for (auto [position, bit] : llvm::enumerate(bits))
    if (number >> position & 1)
      sum[bit.axis] ^= bit.step;
}

static unsigned replicatedMask(ArrayRef<LayoutBit> bits) {
  unsigned mask = 0;
  for (auto [position, bit] : llvm::enumerate(bits))
    mask |= unsigned(bit.isReplication()) << position;
  return mask;
}

SmallVector<int64_t> LayoutAttr::getTileShape() {
  SmallVector<int64_t> shape(getRank(), 1);
  for (ArrayRef<LayoutBit> bits : {getRegisterBits(), getLaneBits(), getWarpBits()})
    for (LayoutBit bit : bits)
      shape[bit.axis] += bit.step;
  return shape;
}

SmallVector<int64_t> LayoutAttr::getRegisterOffset(unsigned reg) {
  SmallVector<int64_t> offset(getRank(), 0);
  addVectors(getRegisterBits(), reg, offset);
  return offset;
}

SmallVector<int64_t> LayoutAttr::getCoordinate(unsigned reg, unsigned lane, unsigned warp) {
  SmallVector<int64_t> coordinate = getRegisterOffset(reg);
  addVectors(getLaneBits(), lane, coordinate);
  addVectors(getWarpBits(), warp, coordinate);
  return coordinate;
}

std::optional<unsigned> LayoutAttr::getRegisterAt(ArrayRef<int64_t> offset) {
  SmallVector<int64_t> rest(offset);
  unsigned reg = 0;
  for (auto [position, bit] : llvm::enumerate(getRegisterBits()))
    if (rest[bit.axis] & bit.step) {
      reg |= 1u << position;
      rest[bit.axis] ^= bit.step;
    }
  if (llvm::any_of(rest, [](int64_t component) { return component != 0; }))
    return std::nullopt;
  return reg;
}

unsigned LayoutAttr::getReplicatedLaneMask() { return replicatedMask(getLaneBits()); }
unsigned LayoutAttr::getReplicatedWarpMask() { return replicatedMask(getWarpBits()); }

int64_t LayoutAttr::getVectorWidth(unsigned axis) {
  int64_t width = 1;
  for (LayoutBit bit : getRegisterBits()) {
    if (bit.axis != int32_t(axis) || bit.step != width)
      break;
    width *= 2;
  }
  return width;
}
