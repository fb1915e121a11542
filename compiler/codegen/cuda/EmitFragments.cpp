//===- EmitFragments.cpp - ldmatrix and stmatrix --------------------------===//
//
// A matrix is 8 rows of 16 bytes: rows along the shared buffer's second axis, bytes along its
// contiguous one. Lane 8 m + r names row r of matrix m; a matrix is one 32-bit word of each
// thread's fragment.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk::cuda {

/// Are the words of `layout` those of matrices with rows along `across` and words along `along`?
static bool isFragment(gpu::LayoutAttr layout, int64_t along, int64_t across, unsigned wordBits) {
  auto is = [](gpu::LayoutBit bit, int64_t axis, unsigned step) {
    return bit.axis == axis && bit.step == static_cast<int32_t>(step);
  };
  const auto registers = layout.getRegisterBits(), lanes = layout.getLaneBits();
  bool fits = registers.size() >= wordBits;
  for (unsigned b = 0; fits && b < wordBits; ++b)
    fits = is(registers[b], along, 1u << b);
  for (unsigned b = 0; b < 5; ++b)
    fits =
        fits && is(lanes[b], b < 2 ? along : across, b < 2 ? 1u << (wordBits + b) : 1u << (b - 2));
  return fits;
}

FailureOr<MatrixAccess> KernelEmitter::matrixAccess(const std::string &buffer, gpu::SharedType type,
                                                    gpu::LayoutAttr layout, bool transposed,
                                                    const PartBegin &begin) {
  const auto order = type.getAxisOrder();
  const unsigned perWord = 4 / elementBytes(type.getElementType());
  const unsigned wordBits = llvm::Log2_32(perWord), bits = layout.getRegisterBits().size();
  const int64_t along = transposed ? order[1] : order[0], across = transposed ? order[0] : order[1];
  if ((transposed && perWord != 2) || !isFragment(layout, along, across, wordBits))
    return failure();
  MatrixAccess access;
  access.words = 1u << std::min(2u, bits - wordBits);
  llvm::SmallVector<std::string> threads;
  for (unsigned axis = 0; axis < layout.getRank(); ++axis) {
    BitMap lane(5, 0), warp;
    if (axis == order[1])
      lane = {1, 2, 4, 0, 0};
    for (unsigned b = 0; b < 2 && wordBits + b < bits; ++b)
      if (layout.getRegisterBits()[wordBits + b].axis == static_cast<int32_t>(axis))
        lane[3 + b] = layout.getRegisterBits()[wordBits + b].step;
    for (gpu::LayoutBit bit : layout.getWarpBits())
      warp.push_back(bit.axis == static_cast<int32_t>(axis) ? bit.step : 0);
    const std::string l = sumOfBits("lane", lane), w = sumOfBits("warp", warp);
    std::string sum;
    if (l != "0")
      useLane(), sum = l;
    if (w != "0")
      useWarp(), sum += (sum.empty() ? "" : " + ") + w;
    threads.push_back(sum.empty() ? "0" : hoisted(sum, "matrix_at"));
  }
  const unsigned step = access.words * perWord, count = 1u << bits;
  if (count != step) {
    access.reg = RegisterIndex("r", bits, llvm::Log2_32(step));
    access.loop = loopHeader(count, step) + " ";
  }
  const SharedAddress address = sharedAddress(type, layout, threads, begin);
  access.at = address.element(buffer, access.reg);
  return access;
}

LogicalResult KernelEmitter::emitLoadMatrix(gpu::LocalLoadOp load) {
  Value result = load.getResult();
  auto access = matrixAccess(names[load.getSource()], load.getSource().getType(), layoutOf(result),
                             load.getTransposed(), beginOf(load));
  if (mlir::failed(access))
    return unsupported(load, "expected the layout of a matrix fragment, got ") << layoutOf(result);
  const std::string name = declare(result);
  line(access->loop + "tk::load_matrix<" + llvm::Twine(access->words) + ", " +
       (load.getTransposed() ? "true" : "false") + ">(&" + name + "[" + access->reg.str() + "], &" +
       access->at + ");");
  return success();
}

LogicalResult KernelEmitter::emitStoreMatrix(gpu::LocalStoreOp store) {
  Value value = store.getValue();
  auto access = matrixAccess(names[store.getTarget()], store.getTarget().getType(), layoutOf(value),
                             store.getTransposed(), {});
  if (mlir::failed(access))
    return unsupported(store, "expected the layout of a matrix fragment, got ") << layoutOf(value);
  const Fragments tile = fragmentsOf(value, llvm::Log2_32(16 / elementBytes(value.getType())));
  line(access->loop + "tk::store_matrix<" + llvm::Twine(access->words) + ", " +
       (store.getTransposed() ? "true" : "false") + ">(&" + access->at + ", " +
       tile.at(access->reg) + ");");
  return success();
}

} // namespace tk::cuda
