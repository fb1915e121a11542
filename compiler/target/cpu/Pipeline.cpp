//===- Pipeline.cpp - from tk to the LLVM dialect -------------------------===//
#include "compiler/target/cpu/CpuPipeline.h"
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

void tk::cpu::addLinalgStage(OpPassManager &manager, const CpuMachine &machine) {
  TkToLinalgOptions options;
  options.vectorBytes = machine.vectorBytes;
  manager.addPass(createTkToLinalg(options));
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void tk::cpu::addLoopStage(OpPassManager &manager) {
  manager.addPass(createVectorizeContractions());
  manager.addPass(createBindCpuArguments());
  manager.addPass(createKeepEmptyReductions());
  bufferization::OneShotBufferizePassOptions buffers;
  // Where the analysis cannot prove that a loop updates what it carries in place, it copies.
  buffers.allowReturnAllocsFromLoops = true;
  manager.addPass(bufferization::createOneShotBufferizePass(buffers));
  manager.addPass(createCSEPass()); // slices taken twice are one, and a copy onto itself is none
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createExpandCopies());
  manager.addPass(createLinalgToLoops());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createOutlineParallel());
  // Buffers of tiles are made once for all tiles, on the stack where they are small.
  manager.addNestedPass<func::FuncOp>(bufferization::createBufferLoopHoistingPass());
  manager.addNestedPass<func::FuncOp>(bufferization::createPromoteBuffersToStackPass());
  bufferization::buildBufferDeallocationPipeline(manager);
  manager.addPass(createExpandScalars());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void tk::cpu::addLlvmStage(OpPassManager &manager) {
  manager.addPass(createConvertVectorToSCFPass(VectorTransferToSCFOptions().enableFullUnroll()));
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  ConvertVectorToLLVMPassOptions vectors;
  vectors.vectorContractLowering = vector::VectorContractLowering::OuterProduct;
  manager.addPass(createConvertVectorToLLVMPass(vectors));
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createConvertMathToLibmPass());
  manager.addPass(createConvertToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addPass(createCSEPass());
}

bool tk::cpu::isCpuPass(llvm::StringRef name) {
  OpPassManager manager(ModuleOp::getOperationName());
  addLinalgStage(manager, {});
  addLoopStage(manager);
  addLlvmStage(manager);
  return llvm::any_of(manager, [&](Pass &pass) { return pass.getArgument() == name; });
}

tk::cpu::CpuMachine tk::cpu::hostMachine() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  bool wide = features.lookup("avx512f") && features.lookup("avx512vl") &&
              features.lookup("avx512bw") && features.lookup("avx512dq");
  return wide ? CpuMachine::avx512() : CpuMachine::avx2();
}
