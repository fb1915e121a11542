//===- Pipeline.cpp - from tk to the LLVM dialect -------------------------===//
#include "compiler/codegen/cpu/CpuPipeline.h"
#include "passes/lowering/cpu/CpuPasses.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/AllInterfaces.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/AllocationOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/BufferDeallocationOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/Transforms/SubsetOpInterfaceImpl.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;

void tk::cpu::registerCpuDialects(DialectRegistry &registry) {
  registry
      .insert<TkDialect, affine::AffineDialect, arith::ArithDialect,
              bufferization::BufferizationDialect, cf::ControlFlowDialect, func::FuncDialect,
              linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
              scf::SCFDialect, tensor::TensorDialect, ub::UBDialect, vector::VectorDialect>();
  linalg::registerAllDialectInterfaceImplementations(registry);
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  memref::registerAllocationOpInterfaceExternalModels(registry);
  scf::registerBufferDeallocationOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerInferTypeOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
  vector::registerBufferizableOpInterfaceExternalModels(registry);
  vector::registerSubsetOpInterfaceExternalModels(registry);
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

/// Adds what `create` makes.
template <auto create> static void add(OpPassManager &manager, const tk::cpu::CpuMachine &) {
  manager.addPass(create());
}
/// The same, on each function.
template <auto create> static void addNested(OpPassManager &manager, const tk::cpu::CpuMachine &) {
  manager.addNestedPass<func::FuncOp>(create());
}

static void addTkToLinalg(OpPassManager &manager, const tk::cpu::CpuMachine &machine) {
  tk::TkToLinalgOptions options;
  options.vectorBytes = machine.vectorBytes;
  manager.addPass(tk::createTkToLinalg(options));
}

static void addBufferize(OpPassManager &manager, const tk::cpu::CpuMachine &) {
  bufferization::OneShotBufferizePassOptions options;
  // Where the analysis cannot prove that a loop updates what it carries in place, it copies.
  options.allowReturnAllocsFromLoops = true;
  manager.addPass(bufferization::createOneShotBufferizePass(options));
}

static void addDeallocation(OpPassManager &manager, const tk::cpu::CpuMachine &) {
  bufferization::buildBufferDeallocationPipeline(manager);
}

static void addVectorToScf(OpPassManager &manager, const tk::cpu::CpuMachine &) {
  manager.addPass(createConvertVectorToSCFPass(VectorTransferToSCFOptions().enableFullUnroll()));
}

static void addVectorToLlvm(OpPassManager &manager, const tk::cpu::CpuMachine &) {
  ConvertVectorToLLVMPassOptions options;
  options.vectorContractLowering = vector::VectorContractLowering::OuterProduct;
  manager.addPass(createConvertVectorToLLVMPass(options));
}

llvm::ArrayRef<tk::cpu::CpuPass> tk::cpu::cpuPassTable() {
  constexpr auto canonicalize = add<[] { return createCanonicalizerPass(); }>;
  constexpr auto cse = add<[] { return createCSEPass(); }>;
  using enum CpuStage;
  static constexpr bool needed = true, optional = false;
  static const CpuPass rows[] = {
      {"tk-widen-sums", Linalg, optional, add<[] { return createWidenSums(); }>},
      {"tk-to-linalg", Linalg, needed, addTkToLinalg},
      {"canonicalize", Linalg, optional, canonicalize},
      {"cse", Linalg, optional, cse},
      {"tk-vectorize-contractions", Loops, optional,
       add<[] { return createVectorizeContractions(); }>},
      {"tk-bind-cpu-arguments", Loops, needed, add<[] { return createBindCpuArguments(); }>},
      {"tk-keep-empty-reductions", Loops, needed, add<[] { return createKeepEmptyReductions(); }>},
      {"one-shot-bufferize", Loops, needed, addBufferize},
      // Slices taken twice are one, and a copy onto itself is none.
      {"cse", Loops, optional, cse},
      {"canonicalize", Loops, optional, canonicalize},
      {"tk-expand-copies", Loops, needed, add<[] { return createExpandCopies(); }>},
      {"tk-linalg-to-loops", Loops, needed, add<[] { return createLinalgToLoops(); }>},
      {"canonicalize", Loops, optional, canonicalize},
      {"cse", Loops, optional, cse},
      {"tk-outline-parallel", Loops, needed, add<[] { return createOutlineParallel(); }>},
      // Buffers of tiles are made once for all tiles, on the stack where they are small.
      {"buffer-loop-hoisting", Loops, optional,
       addNested<[] { return bufferization::createBufferLoopHoistingPass(); }>},
      {"promote-buffers-to-stack", Loops, optional,
       addNested<[] { return bufferization::createPromoteBuffersToStackPass(); }>},
      {"buffer-deallocation-pipeline", Loops, needed, addDeallocation},
      {"tk-expand-scalars", Loops, needed, add<[] { return createExpandScalars(); }>},
      {"canonicalize", Loops, optional, canonicalize},
      {"cse", Loops, optional, cse},
      {"convert-vector-to-scf", Llvm, needed, addVectorToScf},
      {"convert-scf-to-cf", Llvm, needed, add<[] { return createSCFToControlFlowPass(); }>},
      {"expand-strided-metadata", Llvm, needed,
       add<[] { return memref::createExpandStridedMetadataPass(); }>},
      {"lower-affine", Llvm, needed, add<[] { return createLowerAffinePass(); }>},
      {"convert-vector-to-llvm", Llvm, needed, addVectorToLlvm},
      {"convert-math-to-llvm", Llvm, needed, add<[] { return createConvertMathToLLVMPass(); }>},
      {"convert-math-to-libm", Llvm, needed, add<[] { return createConvertMathToLibmPass(); }>},
      {"convert-to-llvm", Llvm, needed, add<[] { return createConvertToLLVMPass(); }>},
      {"reconcile-unrealized-casts", Llvm, needed,
       add<[] { return createReconcileUnrealizedCastsPass(); }>},
      {"cse", Llvm, optional, cse},
  };
  return rows;
}

void tk::cpu::addStage(OpPassManager &manager, CpuStage stage, const CpuMachine &machine) {
  for (const CpuPass &row : cpuPassTable())
    if (row.stage == stage)
      row.add(manager, machine);
}

bool tk::cpu::isCpuPass(llvm::StringRef name) {
  OpPassManager manager(ModuleOp::getOperationName());
  for (const CpuPass &row : cpuPassTable())
    row.add(manager, {});
  return llvm::any_of(manager, [&](Pass &pass) { return pass.getArgument() == name; });
}

tk::cpu::CpuMachine tk::cpu::hostMachine() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  bool wide = features.lookup("avx512f") && features.lookup("avx512vl") &&
              features.lookup("avx512bw") && features.lookup("avx512dq");
  return wide ? CpuMachine::avx512() : CpuMachine::avx2();
}
