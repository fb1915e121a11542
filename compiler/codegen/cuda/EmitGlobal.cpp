//===- EmitGlobal.cpp - accesses to global memory -------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuPlan.h"

#include "passes/layout/ReadOnce.h"
#include "passes/layout/SlidingLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk::cuda {

FailureOr<std::string> KernelEmitter::elementOver(Operation *op, Value value, Attribute dims,
                                                  const Address &address,
                                                  const RegisterIndex &reg) {
  if (!isTile(value))
    return scalar(value);
  auto type = cast<RankedTensorType>(value.getType());
  if (!address.layout || !layoutOf(value)) {
    unsupported(op, "expected scalar indices for a scalar access, got ") << type;
    return failure();
  }
  auto map = projection(address.layout, type, cast<DenseI64ArrayAttr>(dims).asArrayRef());
  if (mlir::failed(map)) {
    unsupported(op, "expected an index or mask in the threads that use it, got ")
        << type << " for an access of layout " << address.layout;
    return failure();
  }
  return element(value, reg.mapped(*map));
}

FailureOr<std::string> KernelEmitter::offsetOf(Operation *op, const Address &address,
                                               const RegisterIndex &reg) {
  std::string sum;
  for (auto [index, stride, dims] :
       llvm::zip(address.indices, address.strides, address.indexDims)) {
    auto text = elementOver(op, index, dims, address, reg);
    if (mlir::failed(text))
      return failure();
    std::string term = *text;
    if (matchPattern(stride, m_Zero()) || matchPattern(index, m_Zero()))
      continue;
    if (!matchPattern(stride, m_One()))
      term += " * " + scalar(stride);
    sum += (sum.empty() ? "" : " + ") + term;
  }
  return sum.empty() ? "0" : sum;
}

FailureOr<std::string> KernelEmitter::maskOf(Operation *op, const Address &address,
                                             const RegisterIndex &reg) {
  std::string all;
  for (auto [mask, dims] : llvm::zip(address.masks, address.maskDims)) {
    if (matchPattern(mask, m_One()))
      continue;
    auto text = elementOver(op, mask, dims, address, reg);
    if (mlir::failed(text))
      return failure();
    all += (all.empty() ? "" : " && ") + *text;
  }
  return all;
}

/// For an access in runs: arrays of the offsets and conditions of a thread's elements.
FailureOr<KernelEmitter::Run> KernelEmitter::runOf(Operation *op, const Address &address) {
  const unsigned bits = address.layout.getRegisterBits().size();
  const RegisterIndex reg = bits ? RegisterIndex("r", bits) : RegisterIndex(0);
  auto offset = offsetOf(op, address, reg);
  auto mask = maskOf(op, address, reg);
  if (mlir::failed(offset) || mlir::failed(mask))
    return failure();
  std::string condition = isa<gpu::StoreOp>(op) ? ownerCondition(address.layout) : "";
  if (!mask->empty())
    condition += (condition.empty() ? "" : " && ") + *mask;
  if (condition.empty())
    condition = "true";
  Run run{freshName("at"), freshName("in")};
  gpu::LayoutAttr layout = address.layout;
  const unsigned registers = layout.getNumRegisters();
  const std::string count = "[" + std::to_string(registers) + "]", loop = loopHeader(registers);
  line(typeName(IndexType::get(op->getContext())) + " " + run.offsets + count + ";");
  line("bool " + run.conditions + count + ";");
  line(loop + " " + run.offsets + "[r] = " + *offset + ", " + run.conditions +
       "[r] = " + condition + ";");
  return run;
}

LogicalResult KernelEmitter::emitMisalignment(gpu::MisalignmentOp misalignment) {
  std::string sum;
  for (auto [index, stride] : llvm::zip_equal(misalignment.getIndices(), misalignment.getStrides()))
    sum += (sum.empty() ? "" : " + ") + scalar(index) + " * " + scalar(stride);
  declare(misalignment, "(" + (sum.empty() ? "0" : sum) + ") & " +
                            std::to_string(misalignment.getAlignment() - 1));
  return success();
}

/// Does a load's address follow from `value`, through single numbers?
static bool leadsToLoad(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<gpu::LoadOp>(user) || (isMemoryEffectFree(user) && user->getNumResults() == 1 &&
                                      !isa<RankedTensorType>(user->getResult(0).getType()) &&
                                      leadsToLoad(user->getResult(0)));
  });
}

/// Is a single number that says what else to load, such as a label, loaded before the row that a
/// block holds in its threads' registers, without the others of a cluster, is reduced?
static bool isBesideRow(gpu::LoadOp load, gpu::FuncOp func) {
  bool isReduced = false;
  for (Operation *op = load->getNextNode(); op; op = op->getNextNode()) {
    if (isa<gpu::AsyncWaitOp>(op))
      return false;
    isReduced |= isa<gpu::ReduceOp, gpu::WeightsOp>(op);
  }
  return isReduced && load->getParentOp() == func && !func.isSpread() &&
         leadsToLoad(load.getResult());
}

/// The form of a load of one element at a time. One that stands before a wait for other data, in a
/// loop, is begun there: what the compiler would begin behind it comes later by as much. Of single
/// numbers that is so for those of rows, which blocks without products go through, or hold.
static std::string getterOf(gpu::LoadOp load, gpu::FuncOp func, bool besideProducts) {
  const Type type = getElementTypeOrSelf(load.getResult().getType());
  const unsigned bits = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 64;
  const bool isSingle = !isa<RankedTensorType>(load.getResult().getType());
  if ((bits != 16 && bits != 32) || (isSingle && besideProducts))
    return "tk::get(&";
  if (!isa<scf::ForOp>(load->getParentOp()))
    return isSingle && isBesideRow(load, func) ? "tk::get_ahead(&" : "tk::get(&";
  for (Operation *op = load->getNextNode(); op; op = op->getNextNode())
    if (isSingle ? isa<gpu::AsyncWaitOp>(op) : isa<gpu::PhaseWaitOp>(op))
      return "tk::get_ahead(&";
  return "tk::get(&";
}

LogicalResult KernelEmitter::emitLoad(gpu::LoadOp load) {
  Address address{load.getIndices(),   load.getStrides(),  load.getMasks(),
                  load.getIndexDims(), load.getMaskDims(), layoutOf(load.getResult())};
  Value result = load.getResult();
  const unsigned count = registersOf(result), run = load.getRun();
  const unsigned vector = run > 1 ? run : load.getVector();
  const RegisterIndex reg = count == vector
                                ? RegisterIndex(0)
                                : RegisterIndex("r", registerBits(result), llvm::Log2_32(vector));
  auto offset = offsetOf(load, address, reg);
  auto mask = maskOf(load, address, reg);
  if (mlir::failed(offset) || mlir::failed(mask))
    return failure();
  const std::string buffer = names[load.getBuffer()];
  const std::string type = elementTypeName(result.getType());
  const bool isInteger = getElementTypeOrSelf(result.getType()).isInteger();
  std::string other = isInteger ? "0" : type + "{}";
  if (load.getOther())
    other = element(load.getOther(), isTile(load.getOther()) ? reg : RegisterIndex(0));
  // A literal is an int: the primitives deduce their type from this argument too.
  if (isInteger)
    other = "(" + type + ")" + other;
  if (!isTile(result)) {
    const std::string at = getterOf(load, func, holdsProducts) + buffer + "[" + *offset + "])";
    declare(result, mask->empty() ? at : *mask + " ? " + at + " : " + other);
    return success();
  }
  const std::string name = declare(result);
  const std::string loop = count == vector ? "" : loopHeader(count, vector) + " ";
  const gpu::CacheAttr cache = gpu::getCache(load);
  if (cache && cache.getCommon() && run == 1 && !mask->empty()) {
    line(loop + "tk::load_common<" + llvm::Twine(vector) + ">(&" + name + "[" + reg.str() + "], &" +
         buffer + "[" + *offset + "], " + *mask + ", " + other + ");");
    return success();
  }
  if (vector == 1) {
    const std::string at = getterOf(load, func, holdsProducts) + buffer + "[" + *offset + "])";
    line(loop + name + "[" + reg.str() +
         "] = " + (mask->empty() ? at : *mask + " ? " + at + " : " + other) + ";");
    return success();
  }
  if (run > 1) {
    auto parts = runOf(load, address);
    if (mlir::failed(parts))
      return failure();
    line("tk::load_runs<" + llvm::Twine(run) + ">(" + name + ", " + buffer + ", " + parts->offsets +
         ", " + parts->conditions + ", " + other + ");");
    return success();
  }
  if (cache && cache.getKeptFrom() > 0 && mask->empty()) {
    line(loop + "tk::load_kept<" + llvm::Twine(vector) + ">(&" + name + "[" + reg.str() + "], &" +
         buffer + "[" + *offset + "], tk::grid_x() >= " + llvm::Twine(cache.getKeptFrom()) + ");");
    return success();
  }
  line(loop + (cache && cache.getOnce() ? "tk::load_once<" : "tk::load<") + llvm::Twine(vector) +
       ">(&" + name + "[" + reg.str() + "], &" + buffer + "[" + *offset + "]" +
       (mask->empty() ? "" : ", " + *mask + ", " + other) + ");");
  return success();
}

LogicalResult KernelEmitter::emitStore(gpu::StoreOp store) {
  Value value = store.getValue();
  Address address{store.getIndices(),   store.getStrides(),  store.getMasks(),
                  store.getIndexDims(), store.getMaskDims(), layoutOf(value)};
  const unsigned count = registersOf(value), run = store.getRun();
  const unsigned vector = run > 1 ? run : store.getVector();
  const RegisterIndex reg = count == vector
                                ? RegisterIndex(0)
                                : RegisterIndex("r", registerBits(value), llvm::Log2_32(vector));
  auto offset = offsetOf(store, address, reg);
  auto mask = maskOf(store, address, reg);
  if (mlir::failed(offset) || mlir::failed(mask))
    return failure();
  std::string condition = ownerCondition(address.layout);
  if (!mask->empty())
    condition += (condition.empty() ? "" : " && ") + *mask;
  const std::string at = names[store.getBuffer()] + "[" + *offset + "]";
  const std::string loop = count == vector ? "" : loopHeader(count, vector) + " ";
  if (vector == 1) {
    line(loop + (condition.empty() ? "" : "if (" + condition + ") ") + "tk::put(&" + at + ", " +
         element(value, reg) + ");");
    return success();
  }
  const std::string array = materialize(value);
  if (run > 1) {
    auto parts = runOf(store, address);
    if (mlir::failed(parts))
      return failure();
    line("tk::store_runs<" + llvm::Twine(run) + ">(" + names[store.getBuffer()] + ", " + array +
         ", " + parts->offsets + ", " + parts->conditions + ");");
    return success();
  }
  const bool isFar = func.getIndexBits() == 64 && vector * elementBytes(value.getType()) >= 8;
  line(loop + (isFar ? "tk::store_far<" : "tk::store<") + llvm::Twine(vector) + ">(&" + at + ", &" +
       array + "[" + reg.str() + "]" + (condition.empty() ? "" : ", " + condition) + ");");
  return success();
}

LogicalResult KernelEmitter::emitCopyAsync(gpu::CopyAsyncOp copy) {
  auto layout = copy.getLayout();
  Address address{copy.getIndices(),   copy.getStrides(),  copy.getMasks(),
                  copy.getIndexDims(), copy.getMaskDims(), layout};
  const unsigned bits = layout.getRegisterBits().size(), count = 1u << bits;
  const unsigned vector = copy.getVector();
  const RegisterIndex reg =
      count == vector ? RegisterIndex(0) : RegisterIndex("r", bits, llvm::Log2_32(vector));
  auto offset = offsetOf(copy, address, reg);
  auto mask = maskOf(copy, address, reg);
  if (mlir::failed(offset) || mlir::failed(mask))
    return failure();
  const unsigned bytes = vector * elementBytes(copy.getTarget().getType().getElementType());
  const std::string owner = ownerCondition(layout);
  const std::string to = "&" + names[copy.getTarget()] + "[" +
                         sharedAddress(copy.getTarget().getType(), layout, {}).at(reg) + "]";
  const std::string from = "&" + names[copy.getBuffer()] + "[" + *offset + "]";
  std::string text = count == vector ? "" : loopHeader(count, vector) + " ";
  text += owner.empty() ? "" : "if (" + owner + ") ";
  if (bytes >= 4)
    text += "tk::copy_async<" + std::to_string(bytes) + ">(" + to + ", " + from;
  else // narrower than the hardware's smallest: at once, which a barrier makes visible as well
    text += "tk::copy_now<" + std::to_string(vector) + ">(" + to + ", " + from;
  line(text + (mask->empty() ? "" : ", " + *mask) + ");");
  return success();
}

} // namespace tk::cuda
