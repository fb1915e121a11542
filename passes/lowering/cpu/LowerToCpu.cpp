//===- LowerToCpu.cpp - tk to loops for the CPU ---------------------------===//
//
// 1. KernelLayout says where every tensor lives: an argument, or scratch memory.
// 2. Each tk.compute, in order, is analysed (BodyAnalysis) and becomes loops (TileEmitter).
// 3. Results that could not be computed in place (an `inout` parameter that others still read, a
//    result returned twice) are copied at the end.
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/LowerToCpu.h"

#include "passes/lowering/cpu/TileEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

namespace {
class LowerToCpu : public PassWrapper<LowerToCpu, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerToCpu)
  LowerToCpu() = default;
  explicit LowerToCpu(const CpuMachine &machine) : machine(machine) {}
  LowerToCpu(const LowerToCpu &other) : PassWrapper(other), machine(other.machine) {}

  StringRef getArgument() const override { return "tk-lower-to-cpu"; }
  StringRef getDescription() const override { return "Lower tk kernels to loops for the CPU"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry
        .insert<arith::ArithDialect, func::FuncDialect, math::MathDialect, memref::MemRefDialect,
                scf::SCFDialect, vector::VectorDialect, LLVM::LLVMDialect>();
  }
  void runOnOperation() override {
    for (KernelOp kernel : llvm::make_early_inc_range(getOperation().getOps<KernelOp>())) {
      if (failed(lowerKernel(kernel)))
        return signalPassFailure();
      kernel.erase();
    }
  }

private:
  LogicalResult lowerKernel(KernelOp kernel);
  void copyOut(KernelLayout &layout, Frame &entry, OpBuilder &b, Value value, unsigned argument);
  CpuMachine machine;
};
} // namespace

/// Copies a tensor into tensor argument number `argument`: a result, or an `inout` parameter.
void LowerToCpu::copyOut(KernelLayout &layout, Frame &entry, OpBuilder &b, Value value,
                         unsigned argument) {
  Location loc = value.getLoc();
  Value source = entry.memref(value);
  // A parameter that lives there has its own strides; a result is as dense as its source.
  Value target;
  for (auto &[tensor, place] : layout.places)
    if (place.kind == TensorPlace::Kind::Argument && place.index == argument &&
        isa<BlockArgument>(tensor))
      target = entry.memref(tensor);
  if (!target)
    target = entry.denseArgument(value, argument);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> position;
  OpBuilder inner = b;
  for (Value extent : layout.extentsOf(value)) {
    auto loop = scf::ForOp::create(inner, loc, zero, entry.get(extent), one);
    position.push_back(loop.getInductionVar());
    inner = OpBuilder::atBlockTerminator(loop.getBody());
  }
  Value element = memref::LoadOp::create(inner, loc, source, position);
  memref::StoreOp::create(inner, loc, element, target, position);
}

LogicalResult LowerToCpu::lowerKernel(KernelOp kernel) {
  ModuleOp module = getOperation();
  KernelLayout layout(kernel);
  std::string name = ("tk_entry_" + kernel.getSymName()).str();
  Frame entry = Frame::createEntry(module, layout, name);
  entry.setUp();
  OpBuilder b = OpBuilder::atBlockEnd(&entry.function.getBody().front());
  unsigned parts = 0;
  for (ComputeOp compute : kernel.getBody().front().getOps<ComputeOp>()) {
    FailureOr<BodyAnalysis> analysis = BodyAnalysis::create(compute, machine);
    if (failed(analysis))
      return failure();
    for (ArrayRef<unsigned> group : TileEmitter::groupResults(compute, *analysis)) {
      unsigned slots = 0;
      b.setInsertionPointToEnd(&entry.function.getBody().front());
      TileEmitter(module, layout, entry, b, compute, *analysis, machine, group, parts, slots)
          .emit();
      if (slots > Frame::extraSlots)
        return compute.emitError("not supported on the CPU: ")
               << slots << " scalars shared by parallel loops, at most " << Frame::extraSlots
               << " are";
    }
  }
  b.setInsertionPointToEnd(&entry.function.getBody().front());
  for (auto [value, argument] : layout.copies)
    copyOut(layout, entry, b, value, argument);
  entry.tearDown(b);
  entry.finish(b);
  return success();
}

std::unique_ptr<Pass> tk::cpu::createLowerToCpuPass(const CpuMachine &machine) {
  return std::make_unique<LowerToCpu>(machine);
}

void tk::cpu::registerLowerToCpuPass() { PassRegistration<LowerToCpu>(); }
