//===- CpuPasses.td - the passes of the CPU target ------------------------===//
#ifndef TK_PASSES_LOWERING_CPU_CPUPASSES_TD
#define TK_PASSES_LOWERING_CPU_CPUPASSES_TD

include "mlir/Pass/PassBase.td"

def WidenSums : Pass<"tk-widen-sums", "::mlir::ModuleOp"> {
  let summary = "Accumulate f32 sums in f64, except for matrix products";
  let description = [{
    The loops of the CPU target add one term after the other. The error of an f32 sum would grow
    with the number of its terms; a sum in f64 is rounded once. Running sums of scans likewise.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numWidened", "sums", "Sums widened">];
}

def TkToLinalg : Pass<"tk-to-linalg", "::mlir::ModuleOp"> {
  let summary = "Lower kernels to functions of linalg operations on tensor tiles";
  let description = [{
    A kernel becomes a function over its dimensions, its parameters and a tensor for each result.
    Each statement becomes an `scf.forall` over tiles of its outputs, inside of it loops over the
    chunks of reductions, and inside of those linalg operations on slices. `doc` strings of
    `linalg.generic` and `tk.indices` of loops keep the names of indices.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"vectorBytes", "vector-bytes", "int64_t", "64", "Bytes of a vector register">];
}

def VectorizeContractions : Pass<"tk-vectorize-contractions", "::mlir::ModuleOp"> {
  let summary = "Turn small matrix products into loops with accumulators in vector registers";
  let dependentDialects = [
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::mlir::vector::VectorDialect"];
  let options = [
    Option<"maxElements", "max-elements", "int64_t", "256",
           "Elements of the largest sum that is kept in registers">];
  let statistics = [Statistic<"numVectorized", "contractions", "Contractions vectorised">];
}

def KeepEmptyReductions : Pass<"tk-keep-empty-reductions", "::mlir::ModuleOp"> {
  let summary = "Keep the initial value of reductions that may have no elements";
  let description = [{
    Bufferisation regards the start of a reduction as overwritten where the body does not use it.
    Such an operation becomes conditional on there being terms.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def BindCpuArguments : Pass<"tk-bind-cpu-arguments", "::mlir::ModuleOp"> {
  let summary = "Give functions on tensors the calling convention of tk/cpu_abi.h";
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect"];
}

def ExpandCopies : Pass<"tk-expand-copies", "::mlir::ModuleOp"> {
  let summary = "Turn copies of buffers into linalg operations";
  let description = [{
    A copy between buffers with strides would become a call of a library that MLIR brings along.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def LinalgToLoops : Pass<"tk-linalg-to-loops", "::mlir::ModuleOp"> {
  let summary = "Lower linalg operations to loops, and hoist invariant reads out of the "
                "innermost loop";
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"numHoisted", "reads", "Reads moved before a loop">];
}

def OutlineParallel : Pass<"tk-outline-parallel", "::mlir::ModuleOp"> {
  let summary = "Outline parallel loops into functions that the runtime's threads run";
  let description = [{
    The body of each outermost `scf.forall` becomes a function over a range of iterations; what it
    uses of its surroundings is handed over in a struct. How many iterations are worth a thread
    follows from what the body does.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"numOutlined", "loops", "Loops outlined">];
}

def ExpandScalars : Pass<"tk-expand-scalars", "::mlir::ModuleOp"> {
  let summary = "Expand scalar functions and conversions into arithmetic that LLVM vectorises";
  let description = [{
    `exp`, `log`, `sin` and the like in f32 become polynomials, conversions of bf16 and f8 become
    integer arithmetic, and tk's scalar operations become arith.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif // TK_PASSES_LOWERING_CPU_CPUPASSES_TD
