//===- EmitTile.cpp - tiles as register arrays ----------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk::cuda {

bool KernelEmitter::isInline(Operation *op) {
  if (isa<gpu::IotaOp, gpu::RotatedIotaOp, gpu::UndefinedOp, gpu::BroadcastOp, gpu::TransposeOp,
          gpu::ExtractOp, gpu::SpreadInThreadsOp, arith::ConstantOp>(op))
    return true;
  if (auto convert = dyn_cast<gpu::ConvertLayoutOp>(op)) {
    const auto kind =
        gpu::classifyConversion(layoutOf(convert.getSource()), layoutOf(convert.getResult()));
    return kind == gpu::Conversion::None || kind == gpu::Conversion::Register;
  }
  return false;
}

FailureOr<BitMap> KernelEmitter::projection(gpu::LayoutAttr layout, RankedTensorType source,
                                            llvm::ArrayRef<int64_t> dims) {
  auto from = gpu::getLayout(source);
  // What a bit of `layout` adds to the coordinate in `source`.
  auto project = [&](gpu::LayoutBit bit) {
    gpu::LayoutBit result;
    for (auto [axis, dim] : llvm::enumerate(dims))
      if (!bit.isReplication() && dim == bit.axis && source.getDimSize(axis) > 1)
        result = {static_cast<int32_t>(axis), bit.step};
    return result;
  };
  auto sameThreads = [&](auto ours, auto theirs) {
    for (unsigned b = 0; b < std::max(ours.size(), theirs.size()); ++b) {
      const gpu::LayoutBit mine = b < ours.size() ? project(ours[b]) : gpu::LayoutBit();
      const gpu::LayoutBit other = b < theirs.size() ? theirs[b] : gpu::LayoutBit();
      if (mine.step != other.step || (mine.step && mine.axis != other.axis))
        return false;
    }
    return true;
  };
  if (!sameThreads(layout.getLaneBits(), from.getLaneBits()) ||
      !sameThreads(layout.getWarpBits(), from.getWarpBits()))
    return failure();
  BitMap map;
  for (gpu::LayoutBit bit : layout.getRegisterBits()) {
    const gpu::LayoutBit to = project(bit);
    unsigned image = 0;
    if (to.step) {
      llvm::SmallVector<int64_t> offset(source.getRank(), 0);
      offset[to.axis] = to.step;
      auto reg = from.getRegisterAt(offset);
      if (!reg)
        return failure();
      image = *reg;
    }
    map.push_back(image);
  }
  return map;
}

/// The identity 0, 1, ..., or for a transpose its permutation: which result axis a source axis is.
static llvm::SmallVector<int64_t> resultAxes(Operation *op) {
  if (auto broadcast = dyn_cast<gpu::BroadcastOp>(op))
    return llvm::to_vector(broadcast.getDims());
  const unsigned rank = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  llvm::SmallVector<int64_t> axes(rank);
  for (unsigned a = 0; a < rank; ++a)
    axes[a] = a;
  if (auto transpose = dyn_cast<gpu::TransposeOp>(op))
    for (auto [a, from] : llvm::enumerate(transpose.getPermutation()))
      axes[from] = a;
  return axes;
}

LogicalResult KernelEmitter::checkInline(Operation *op) {
  if (!isa<gpu::SpreadInThreadsOp>(op) && op->getNumOperands() == 1 && isTile(op->getOperand(0)) &&
      mlir::failed(projection(layoutOf(op->getResult(0)),
                              cast<RankedTensorType>(op->getOperand(0).getType()), resultAxes(op))))
    return unsupported(op, "expected a source whose elements are in the threads that need them, "
                           "got layouts ")
           << layoutOf(op->getOperand(0)) << " and " << layoutOf(op->getResult(0));
  return success();
}

/// Which register of a thread's part is for each of its elements.
static BitMap registersInParts(gpu::SpreadInThreadsOp spread) {
  auto layout = gpu::getLayout(spread.getType()),
       parts = gpu::getLayout(spread.getSource().getType());
  BitMap map;
  for (gpu::LayoutBit bit : layout.getRegisterBits()) {
    llvm::SmallVector<int64_t> offset(layout.getRank(), 0);
    if (!bit.isReplication() && bit.axis != static_cast<int32_t>(spread.getAxis()))
      offset[bit.axis] = bit.step;
    map.push_back(*parts.getRegisterAt(offset));
  }
  return map;
}

FailureOr<std::pair<BitMap, unsigned>> KernelEmitter::registersInSource(Operation *op) {
  if (auto spread = dyn_cast<gpu::SpreadInThreadsOp>(op))
    return std::make_pair(registersInParts(spread), 0u);
  Value source = op->getOperand(0);
  auto map = projection(layoutOf(op->getResult(0)), cast<RankedTensorType>(source.getType()),
                        resultAxes(op));
  std::optional<unsigned> first = 0;
  if (auto extract = dyn_cast<gpu::ExtractOp>(op))
    first = layoutOf(source).getRegisterAt(extract.getOffsets());
  if (mlir::failed(map) || !first)
    return failure();
  return std::make_pair(*map, *first);
}

FailureOr<RegisterIndex> KernelEmitter::registerOfPart(RankedTensorType part,
                                                       RankedTensorType whole,
                                                       llvm::ArrayRef<int64_t> offsets,
                                                       const RegisterIndex &reg) {
  auto map = projection(gpu::getLayout(part), whole, llvm::to_vector(llvm::seq(whole.getRank())));
  std::optional<unsigned> first = gpu::getLayout(whole).getRegisterAt(offsets);
  if (mlir::failed(map) || !first)
    return failure();
  return reg.mapped(*map).combined(RegisterIndex(*first));
}

/// Behind the last element of a tile of one axis that any thread has in a register.
static int64_t endOfRegisters(gpu::LayoutAttr layout) {
  int64_t last = 0, span = 0;
  for (unsigned r = 0; r < layout.getNumRegisters(); ++r)
    last = std::max<int64_t>(last, layout.getRegisterOffset(r)[0]);
  for (llvm::ArrayRef<gpu::LayoutBit> bits : {layout.getLaneBits(), layout.getWarpBits()})
    for (gpu::LayoutBit bit : bits)
      span += bit.isReplication() ? 0 : bit.step;
  return last + span + 1;
}

/// Of floats the thread's part is converted once, and the register's is a constant.
std::string KernelEmitter::iotaElement(Value iota, const RegisterIndex &reg) {
  const std::string type = "(" + elementTypeName(iota.getType()) + ")";
  if (getElementTypeOrSelf(iota.getType()).isIndex())
    return type + "(" + coordinate(layoutOf(iota), 0, reg) + ")";
  return "(" + type + "(" + threadCoordinate(layoutOf(iota), 0) + ") + " + type + "(" +
         registerCoordinate(layoutOf(iota), 0, reg) + "))";
}

/// Where no thread has elements behind the end that others go around, nothing looks for them.
std::string KernelEmitter::rotatedElement(gpu::RotatedIotaOp rotated, const RegisterIndex &reg) {
  const Value value = rotated.getResult();
  const gpu::LayoutAttr layout = layoutOf(value);
  const int64_t length = rotated.getLengthAround();
  auto misalignment = rotated.getShift().getDefiningOp<gpu::MisalignmentOp>();
  const std::optional<int64_t> constant = getConstantIntValue(rotated.getShift());
  const int64_t most =
      misalignment ? static_cast<int64_t>(misalignment.getAlignment()) : constant.value_or(length);
  const bool isPart = endOfRegisters(layout) > length;
  return "tk::rotated<" + std::to_string(length) + ", " + std::to_string(most) + ", " +
         typeName(getElementTypeOrSelf(value.getType())) + (isPart ? ", true" : "") + ">(" +
         threadCoordinate(layout, 0) + ", " + registerCoordinate(layout, 0, reg) + ", " +
         scalar(rotated.getShift()) + ")";
}

std::string KernelEmitter::element(Value value, const RegisterIndex &reg) {
  auto name = names.find(value);
  if (name != names.end())
    return isTile(value) ? name->second + "[" + reg.str() + "]" : name->second;
  auto local = groupLocals.find(value);
  if (local != groupLocals.end())
    return local->second;
  auto test = placeTests.find(value);
  if (test != placeTests.end())
    return test->second.at(reg);
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
    return literal(constant.getValue());
  if (isa_and_nonnull<gpu::IotaOp>(op))
    return iotaElement(value, reg);
  if (auto rotated = dyn_cast_or_null<gpu::RotatedIotaOp>(op))
    return rotatedElement(rotated, reg);
  if (op && op->getNumOperands() == 1) {
    Value source = op->getOperand(0);
    if (!isTile(source))
      return scalar(source);
    if (auto map = registersInSource(op); mlir::succeeded(map))
      return element(source, reg.mapped(map->first).combined(RegisterIndex(map->second)));
  }
  failed = true;
  func.emitOpError("cannot be emitted as CUDA: no form for value ") << value;
  return "0";
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

std::string KernelEmitter::loopHeader(unsigned count, unsigned step) {
  return "TK_UNROLL for (int r = 0; r < " + std::to_string(count) +
         (step == 1 ? "; ++r)" : "; r += " + std::to_string(step) + ")");
}

std::string KernelEmitter::declare(Value value, llvm::StringRef initial) {
  const std::string name = nameFor(value);
  const std::string type = elementTypeName(value.getType());
  if (isTile(value))
    line(type + " " + name + "[" + llvm::Twine(registersOf(value)) + "]" +
         (initial.empty() ? "" : " = " + initial) + ";");
  else
    line((initial.empty() ? "" : "const ") + type + " " + name +
         (initial.empty() ? "" : " = " + initial) + ";");
  names[value] = name;
  return name;
}

void KernelEmitter::assign(llvm::StringRef target, Value value) {
  if (!isTile(value)) {
    line(target + " = " + scalar(value) + ";");
    return;
  }
  const unsigned count = registersOf(value);
  if (count == 1)
    line(target + "[0] = " + element(value, RegisterIndex(0)) + ";");
  else if (auto pairs = renamedPairs(value)) // bytes one by one would be cut out of words
    line(loopHeader(count, 2) + " tk::copy_pair(&" + target + "[r], " +
         pairs->at(RegisterIndex("r", registerBits(value))) + ");");
  else
    line(loopHeader(count) + " " + target +
         "[r] = " + element(value, RegisterIndex("r", registerBits(value))) + ";");
}

std::string KernelEmitter::copyOf(Value value, llvm::StringRef hint) {
  const std::string own = hint.empty() ? hintOf(value) : "";
  const std::string name = freshName(!hint.empty() ? hint.str()
                                     : own.empty() ? "t"
                                                   : own + "_copy");
  line(elementTypeName(value.getType()) + " " + name + "[" + llvm::Twine(registersOf(value)) +
       "];");
  assign(name, value);
  return name;
}

std::optional<Fragments> KernelEmitter::renamed(Value value, unsigned lowBits) {
  RegisterIndex reg("x", registerBits(value));
  Value root = value;
  while (!names.contains(root)) {
    Operation *op = root.getDefiningOp();
    auto step = op && isInline(op) && op->getNumOperands() == 1 && isTile(op->getOperand(0))
                    ? registersInSource(op)
                    : FailureOr<std::pair<BitMap, unsigned>>(failure());
    if (mlir::failed(step))
      return std::nullopt;
    reg = reg.mapped(step->first).combined(RegisterIndex(step->second));
    root = op->getOperand(0);
  }
  Fragments fragments{names[root], {}, reg.valueAt(0)};
  for (unsigned b = 0; b < registerBits(value); ++b) {
    fragments.map.push_back(reg.valueAt(1u << b) ^ fragments.first);
    if (b < lowBits && fragments.map[b] != 1u << b)
      return std::nullopt;
  }
  return fragments;
}

std::optional<Fragments> KernelEmitter::renamedPairs(Value value) {
  Type type = getElementTypeOrSelf(value.getType());
  const bool areBytes = isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 8;
  return areBytes ? renamed(value, 1) : std::nullopt;
}

Fragments KernelEmitter::fragmentsOf(Value value, unsigned lowBits) {
  // A part of a tile, or one under other register numbers, is used where it is as long as the
  // fragments of an instruction stay whole.
  if (auto fragments = renamed(value, lowBits))
    return *fragments;
  return {materialize(value), {}, 0};
}

std::string Fragments::at(const RegisterIndex &reg) const {
  return "&" + array + "[" +
         (map.empty() ? reg : reg.mapped(map)).combined(RegisterIndex(first)).str() + "]";
}

std::string KernelEmitter::materialize(Value value) {
  auto name = names.find(value);
  return name != names.end() ? name->second : copyOf(value);
}

LogicalResult KernelEmitter::emitHold(gpu::HoldOp hold) {
  // In place: the values stay what they are, so that earlier uses do not mind.
  const std::string array = materialize(hold.getSource());
  line("tk::hold(" + array + ");");
  names[hold.getResult()] = array;
  return success();
}

LogicalResult KernelEmitter::emitFunnel(gpu::FunnelOp funnel) {
  const std::string before = materialize(funnel.getBefore()), here = materialize(funnel.getHere());
  const std::string name = declare(funnel);
  const unsigned vector = funnel.getVector();
  line("tk::funnel<" + llvm::Twine(vector) + ">(" + name + ", " + before + ", " + here + ", (int)" +
       scalar(funnel.getShift()) + ");");
  return success();
}

LogicalResult KernelEmitter::emitSelectAt(gpu::SelectAtOp select) {
  auto layout = layoutOf(select.getResult());
  unsigned own = 0; // bits of the coordinate that registers have
  for (gpu::LayoutBit bit : layout.getRegisterBits())
    own |= bit.step;
  const std::string at = materialize(select.getAt()), result = copyOf(select.getOtherwise());
  const std::string index = scalar(select.getIndex());
  const RegisterIndex reg("r", registerBits(select.getResult()));
  line("if ((" + index + " & ~" + llvm::Twine(own) + ") == " + threadCoordinate(layout, 0) + ") " +
       loopHeader(registersOf(select.getResult())) + " if ((" + index + " & " + llvm::Twine(own) +
       ") == (" + registerCoordinate(layout, 0, reg) + ")) " + result + "[r] = " + at + "[r];");
  names[select.getResult()] = result;
  return success();
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

static BitMap stepsAlong(llvm::ArrayRef<gpu::LayoutBit> bits, unsigned axis) {
  BitMap steps;
  for (gpu::LayoutBit bit : bits)
    steps.push_back(!bit.isReplication() && bit.axis == static_cast<int32_t>(axis) ? bit.step : 0);
  return steps;
}

std::string KernelEmitter::threadCoordinate(gpu::LayoutAttr layout, unsigned axis) {
  auto [place, isNew] = coordinates.try_emplace({layout, axis});
  if (!isNew)
    return place->second;
  std::string sum;
  const std::string lanes = sumOfBits("lane", stepsAlong(layout.getLaneBits(), axis));
  const std::string warps = sumOfBits("warp", stepsAlong(layout.getWarpBits(), axis));
  if (lanes != "0")
    useLane(), sum = lanes;
  if (warps != "0")
    useWarp(), sum += (sum.empty() ? "" : " + ") + warps;
  if (sum.empty())
    return place->second = "0";
  std::string hint = "at_";
  for (auto [a, size] : llvm::enumerate(layout.getTileShape()))
    hint += (a ? "x" : "") + (a == axis ? "i" + std::to_string(size) : std::to_string(size));
  const std::string name = hoisted(sum, hint);
  return coordinates[{layout, axis}] = name;
}

std::string KernelEmitter::registerCoordinate(gpu::LayoutAttr layout, unsigned axis,
                                              const RegisterIndex &reg) {
  return reg.mapped(stepsAlong(layout.getRegisterBits(), axis)).str();
}

std::string KernelEmitter::coordinate(gpu::LayoutAttr layout, unsigned axis,
                                      const RegisterIndex &reg) {
  std::string thread = threadCoordinate(layout, axis);
  std::string offset = registerCoordinate(layout, axis, reg);
  if (offset == "0")
    return thread;
  return thread == "0" ? offset : thread + " + " + offset;
}

std::string KernelEmitter::ownerCondition(gpu::LayoutAttr layout) {
  if (!layout)
    return std::string(func.getTeams() > 1 ? "tk::thread_index() % 128 == 0"
                                           : "tk::thread_index() == 0") +
           (func.isSpread() ? " && tk::cluster_rank() == 0" : "");
  std::string text;
  if (unsigned mask = layout.getReplicatedLaneMask() & 31)
    text = "(" + useLane() + " & " + std::to_string(mask) + ") == 0";
  const unsigned allWarps = func.getNumWarps() - 1;
  const unsigned listed = layout.getNumWarps() - 1;
  // Warps beyond those that the layout lists repeat it.
  if (unsigned mask = (layout.getReplicatedWarpMask() & listed) | (allWarps & ~listed))
    text +=
        (text.empty() ? "" : " && ") + ("(" + useWarp() + " & " + std::to_string(mask)) + ") == 0";
  return text;
}

} // namespace tk::cuda
