//===- EmitShared.cpp - shared memory -------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuRepeats.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk::cuda {

std::string KernelEmitter::hoisted(const std::string &expression, llvm::StringRef hint) {
  std::string &name = hoistedNames[expression];
  if (name.empty()) {
    name = used.fresh(hint, /*ofFunction=*/true);
    prologue += "  const int " + name + " = " + expression + ";\n";
  }
  return name;
}

std::string SharedAddress::flipped(const RegisterIndex &reg) const {
  // Register numbers print as sums, which are xors only while no two of them share a bit: a row
  // and a column may flip the same chunk.
  BitMap left = flip;
  std::string flips;
  while (llvm::any_of(left, [](unsigned image) { return image != 0; })) {
    BitMap part(left.size(), 0);
    unsigned taken = 0;
    for (auto [b, image] : llvm::enumerate(left))
      if (!(image & taken)) {
        part[b] = image;
        taken |= image;
        image = 0;
      }
    if (const std::string x = reg.mapped(part).str(); x != "0")
      flips += " ^ (" + x + ")";
  }
  if (always)
    flips += " ^ " + std::to_string(always);
  return flips.empty() ? thread : "(" + thread + flips + ")";
}

std::string SharedAddress::added(const RegisterIndex &reg) const {
  const std::string sum = reg.weighted(add);
  return fixed ? sum + " + " + std::to_string(fixed) : sum;
}

std::string SharedAddress::at(const RegisterIndex &reg) const {
  const std::string text = flipped(reg), sum = reg.weighted(add);
  if (text == "0")
    return added(reg);
  return text + (sum == "0" ? "" : " + " + sum) + (fixed ? " + " + std::to_string(fixed) : "");
}

/// What is added to a pointer first leaves constants for the accesses themselves; an index would be
/// summed up for each.
std::string SharedAddress::element(const std::string &buffer, const RegisterIndex &reg) const {
  if (!isPart)
    return buffer + "[" + at(reg) + "]";
  std::string base = further.empty() ? buffer : buffer + " + " + further;
  if (const std::string own = flipped(reg); own != "0")
    base += " + " + own;
  return (base == buffer ? base : "(" + base + ")") + "[" + added(reg) + "]";
}

/// A layout moves each coordinate bit on its own, and so does a swizzle on an unpadded buffer.
/// Hence the address is the thread's part, xor what the register does to the swizzled chunk
/// number, plus what it does elsewhere; both are constants once loops are unrolled.
SharedAddress KernelEmitter::sharedAddress(gpu::SharedType type, gpu::LayoutAttr layout,
                                           llvm::ArrayRef<std::string> threadCoordinates,
                                           const PartBegin &begin) {
  const auto strides = type.getStrides();
  const auto order = type.getAxisOrder();
  const bool swizzled = type.getPhases() > 1 && order.size() > 1;
  const unsigned chunk = type.getChunk(), region = chunk * (type.getPhases() - 1);
  auto flipOf = [&](int64_t axis, unsigned step) -> unsigned {
    if (swizzled && axis == order[0])
      return step & region;
    if (swizzled && axis == order[1])
      return step / type.getPerPhase() % type.getPhases() * chunk;
    return 0;
  };
  // A row that is cut into panels goes on in the next one.
  const unsigned panel = type.getPanel();
  auto addOf = [&](int64_t axis, unsigned step) -> unsigned {
    const bool along = axis == order[0];
    if (along && panel && step >= panel)
      return step / panel * type.getPanelStride();
    return (swizzled && along ? step & ~region : step) * strides[axis];
  };
  SharedAddress address;
  std::string sum;
  for (unsigned axis = 0; axis < threadCoordinates.size(); ++axis) {
    std::string at = threadCoordinates[axis];
    if (axis == order[0] && panel && at != "0") {
      sum += (sum.empty() ? "(" : " + (") + at + ") / " + std::to_string(panel) + " * " +
             std::to_string(type.getPanelStride());
      at = "(" + at + ") % " + std::to_string(panel);
    }
    if (swizzled && axis == order[0] && threadCoordinates[order[1]] != "0")
      at = "(" + at + " ^ (" + threadCoordinates[order[1]] + " / " +
           std::to_string(type.getPerPhase()) + " % " + std::to_string(type.getPhases()) + " * " +
           std::to_string(chunk) + "))";
    if (at == "0")
      continue;
    if (strides[axis] != 1)
      at += " * " + std::to_string(strides[axis]);
    sum += (sum.empty() ? "" : " + ") + at;
  }
  address.thread = sum.empty() ? "0" : hoisted(sum, "shared_at");
  for (gpu::LayoutBit bit : layout.getRegisterBits()) {
    address.flip.push_back(bit.isReplication() ? 0 : flipOf(bit.axis, bit.step));
    address.add.push_back(bit.isReplication() ? 0 : addOf(bit.axis, bit.step));
  }
  for (auto [axis, offset] : llvm::enumerate(begin.offsets)) {
    address.always ^= flipOf(axis, offset);
    address.fixed += addOf(axis, offset);
  }
  address.isPart = !begin.from.empty();
  if (!address.isPart)
    return address;
  // The bits of a multiple of the span are neither the part's nor its offsets'.
  auto moved = [&](auto image) -> std::string {
    const int64_t factor = image(begin.axis, begin.span) / begin.span;
    BitMap bits(llvm::Log2_64(begin.span), 0);
    bool isMultiple = true;
    for (int64_t step = begin.span; step < type.getShape()[begin.axis]; step *= 2) {
      bits.push_back(image(begin.axis, step));
      isMultiple &= bits.back() == step * factor;
    }
    if (!isMultiple)
      return sumOfBits(begin.from, bits);
    return factor == 0   ? "0"
           : factor == 1 ? begin.from
                         : begin.from + " * " + std::to_string(factor);
  };
  if (const std::string flip = moved(flipOf); flip != "0")
    address.thread = "(" + address.thread + " ^ (" + flip + "))";
  if (const std::string add = moved(addOf); add != "0")
    address.further = add;
  return address;
}

PartBegin KernelEmitter::beginOf(gpu::LocalLoadOp load) {
  PartBegin begin;
  begin.offsets = load.getOffsets().value_or(llvm::ArrayRef<int64_t>());
  if (Value from = load.getFrom()) {
    begin.from = scalar(from);
    begin.axis = *load.getAxis();
    begin.span = *load.getSpan();
  }
  return begin;
}

SharedAddress KernelEmitter::sharedAddress(gpu::SharedType type, gpu::LayoutAttr layout,
                                           const PartBegin &begin) {
  llvm::SmallVector<std::string> threads;
  for (unsigned axis = 0; axis < layout.getRank(); ++axis)
    threads.push_back(threadCoordinate(layout, axis));
  return sharedAddress(type, layout, threads, begin);
}

LogicalResult KernelEmitter::emitAllocShared(gpu::AllocSharedOp alloc) {
  const std::string name = nameFor(alloc.getResult());
  const std::string type = typeName(alloc.getType().getElementType());
  line(type + " *const " + name + " = reinterpret_cast<" + type + " *>(shared + " +
       llvm::Twine(sharedOffsets[alloc]) + ");");
  names[alloc.getResult()] = name;
  gpu::SharedType tile = alloc.getType();
  if (const int64_t ones = tile.getOnes()) {
    const bool isRing = tile.getShape().size() > 2;
    const int64_t stages = isRing ? tile.getShape()[0] : 1,
                  ofStage = tile.getNumElements() / stages;
    const int64_t count =
        tile.hasPanelOfOnes() ? tile.getPanelStride() : ones * tile.getRowLength();
    line("tk::put_ones<" + llvm::Twine(count) + ", " + llvm::Twine(32 * func.getBlockWarps()) +
         ">(" + name + " + " + llvm::Twine(ofStage - count) + ", " + llvm::Twine(stages) + ", " +
         llvm::Twine(ofStage) + ");");
  }
  return success();
}

LogicalResult KernelEmitter::emitStage(gpu::StageOp stage) {
  const std::string name = nameFor(stage.getResult());
  std::string rows;
  if (stage.getFrom())
    rows = " + " + scalar(stage.getFrom()) + " * " + std::to_string(stage.getType().getRowLength());
  line(typeName(stage.getType().getElementType()) + " *const " + name + " = " +
       names[stage.getSource()] + " + " + scalar(stage.getStage()) + " * " +
       llvm::Twine(stage.getSource().getType().getStrides()[0]) + rows + ";");
  names[stage.getResult()] = name;
  return success();
}

/// Is `load`, of single floats of a part, one factor of products whose other one is read in
/// vectors?
static bool isBesideVectors(gpu::LocalLoadOp load) {
  return getElementTypeOrSelf(load.getType()).isF32() && load.getFrom() && load.getVector() == 1 &&
         llvm::all_of(load->getUsers(), [&](Operation *user) {
           auto dot = dyn_cast<gpu::DotOp>(user);
           if (!dot || dot.getAcc() == load.getResult())
             return false;
           Value other = dot.getA() == load.getResult() ? dot.getB() : dot.getA();
           auto read = other.getDefiningOp<gpu::LocalLoadOp>();
           return read && read.getVector() > 1;
         });
}

/// Reads the elements of a part one by one, each at a constant from one of a few places: the
/// compiler has nothing to put together, which takes a third of its time for products of f32, and
/// leaves the order to the assembler.
void KernelEmitter::emitElementLoads(const SharedAddress &address, const std::string &buffer,
                                     const std::string &name, unsigned count) {
  llvm::MapVector<unsigned, std::string> rows; // by what is flipped
  std::string reads;
  for (unsigned r = 0; r < count; ++r) {
    unsigned flip = address.always, offset = address.fixed;
    for (auto [b, image] : llvm::enumerate(address.flip))
      if (r >> b & 1) {
        flip ^= image;
        offset += address.add[b];
      }
    std::string &row = rows[flip];
    if (row.empty())
      row = freshName("row");
    reads += name + "[" + std::to_string(r) + "] = tk::get_at<" + std::to_string(offset) + ">(" +
             row + "); ";
  }
  for (const auto &[flip, row] : rows)
    line("const auto " + row + " = tk::shared_row(" + buffer +
         (address.further.empty() ? "" : " + " + address.further) + " + (" + address.thread +
         " ^ " + llvm::Twine(flip) + "));");
  line(llvm::StringRef(reads).rtrim());
}

/// By bit of the register number, the bit of the number of the stored element that it is in `map`,
/// 0 for neighbours that share one; returns how many stored elements a thread reads.
static unsigned mapRepeats(gpu::LayoutAttr layout, llvm::ArrayRef<int64_t> repeats, BitMap &map) {
  unsigned words = 1;
  for (gpu::LayoutBit bit : layout.getRegisterBits()) {
    const bool isOwn = bit.step >= repeats[bit.axis];
    map.push_back(isOwn ? words : 0);
    words *= isOwn ? 2 : 1;
  }
  return words;
}

/// The layout of the stored elements of a tile.
static gpu::LayoutAttr storedLayout(gpu::LayoutAttr layout, llvm::ArrayRef<int64_t> repeats) {
  for (auto [axis, times] : llvm::enumerate(repeats))
    layout = gpu::runsLayout(layout, axis, times);
  return layout;
}

LogicalResult KernelEmitter::emitLocalLoad(gpu::LocalLoadOp load) {
  if (load.getMatrix())
    return emitLoadMatrix(load);
  Value result = load.getResult();
  auto layout = layoutOf(result);
  if (const auto repeats = gpu::repeatsOf(load); !repeats.empty()) {
    // Each stored element is read once, and given to all registers that it stands for.
    BitMap map;
    const unsigned words = mapRepeats(layout, repeats, map);
    const SharedAddress address =
        sharedAddress(load.getSource().getType(), storedLayout(layout, repeats), {});
    const RegisterIndex word =
        words == 1 ? RegisterIndex(0) : RegisterIndex("r", llvm::Log2_32(words));
    const std::string from = freshName("words"), type = elementTypeName(load.getType());
    line(type + " " + from + "[" + llvm::Twine(words) + "];");
    line((words == 1 ? "" : loopHeader(words, 1) + " ") + from + "[" + word.str() +
         "] = tk::get(&" + address.element(names[load.getSource()], word) + ");");
    const RegisterIndex reg("r", registerBits(result));
    const std::string name = declare(result);
    line(loopHeader(registersOf(result), 1) + " " + name + "[r] = " + from + "[" +
         reg.mapped(map).str() + "];");
    return success();
  }
  const unsigned count = registersOf(result), vector = load.getVector();
  const RegisterIndex reg = count == vector
                                ? RegisterIndex(0)
                                : RegisterIndex("r", registerBits(result), llvm::Log2_32(vector));
  const SharedAddress address = sharedAddress(load.getSource().getType(), layout, beginOf(load));
  const std::string at = address.element(names[load.getSource()], reg);
  const std::string name = declare(result);
  const std::string loop = count == vector ? "" : loopHeader(count, vector) + " ";
  if (isBesideVectors(load))
    emitElementLoads(address, names[load.getSource()], name, count);
  else if (vector == 1)
    line(loop + name + "[" + reg.str() + "] = tk::get(&" + at + ");");
  else
    line(loop + "tk::load<" + llvm::Twine(vector) + ">(&" + name + "[" + reg.str() + "], &" + at +
         ");");
  return success();
}

LogicalResult KernelEmitter::emitLocalStore(gpu::LocalStoreOp store) {
  if (store.getMatrix())
    return emitStoreMatrix(store);
  Value value = store.getValue();
  auto layout = layoutOf(value);
  const unsigned count = registersOf(value), vector = store.getVector();
  const RegisterIndex reg = count == vector
                                ? RegisterIndex(0)
                                : RegisterIndex("r", registerBits(value), llvm::Log2_32(vector));
  const std::string at = names[store.getTarget()] + "[" +
                         sharedAddress(store.getTarget().getType(), layout, {}).at(reg) + "]";
  std::string loop = count == vector ? "" : loopHeader(count, vector) + " ";
  if (const std::string owner = ownerCondition(layout); !owner.empty())
    loop += "if (" + owner + ") ";
  if (vector == 1)
    line(loop + "tk::put(&" + at + ", " + element(value, reg) + ");");
  else
    line(loop + "tk::store<" + llvm::Twine(vector) + ">(&" + at + ", &" + materialize(value) + "[" +
         reg.str() + "]);");
  return success();
}

LogicalResult KernelEmitter::emitConvertLayout(gpu::ConvertLayoutOp convert) {
  Value source = convert.getSource(), result = convert.getResult();
  auto tile = cast<RankedTensorType>(result.getType());
  const int64_t padding = convert.getPadding().value_or(0);
  const unsigned bytes = elementBytes(tile);
  auto type = gpu::SharedType::get(convert.getContext(), tile.getShape(), tile.getElementType(), {},
                                   padding, 1, 1, 1);
  const int64_t exchanged = gpu::conversionBytes(convert, func);
  const std::string base =
      convert.getOffset() ? "shared + " + std::to_string(*convert.getOffset()) : scratch(exchanged);
  if (convert.getOffset())
    plannedShared =
        std::max<unsigned>(plannedShared, llvm::alignTo(*convert.getOffset() + exchanged, 16));
  const std::string name = freshName("exchange");
  const std::string elementType = elementTypeName(tile);
  line(elementType + " *const " + name + " = reinterpret_cast<" + elementType + " *>(" + base +
       ");");
  const unsigned last = tile.getRank() - 1;
  auto widthOf = [&](gpu::LayoutAttr layout) {
    unsigned width = std::min<int64_t>(layout.getVectorWidth(last), 16 / bytes);
    while (width > 1 && (tile.getDimSize(last) + padding) % width)
      width /= 2;
    return std::max(1u, width);
  };
  line("tk::barrier();");
  auto from = layoutOf(source), to = layoutOf(result);
  const unsigned stored = widthOf(from), loaded = widthOf(to);
  const RegisterIndex out("r", registerBits(source), llvm::Log2_32(stored));
  const RegisterIndex in("r", registerBits(result), llvm::Log2_32(loaded));
  const std::string owner = ownerCondition(from);
  line(loopHeader(registersOf(source), stored) + (owner.empty() ? " " : " if (" + owner + ") ") +
       "tk::store<" + llvm::Twine(stored) + ">(&" + name + "[" +
       sharedAddress(type, from, {}).at(out) + "], &" + materialize(source) + "[" + out.str() +
       "]);");
  line("tk::barrier();");
  const std::string array = declare(result);
  line(loopHeader(registersOf(result), loaded) + " tk::load<" + llvm::Twine(loaded) + ">(&" +
       array + "[" + in.str() + "], &" + name + "[" + sharedAddress(type, to, {}).at(in) + "]);");
  return success();
}

} // namespace tk::cuda
