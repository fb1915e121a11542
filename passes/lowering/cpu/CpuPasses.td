//===- CpuPasses.td - the passes of the CPU target ------------------------===//
#ifndef TK_PASSES_LOWERING_CPU_CPUPASSES_TD
#define TK_PASSES_LOWERING_CPU_CPUPASSES_TD

include "mlir/Pass/PassBase.td"

def WidenSums : Pass<"tk-widen-sums", "::mlir::ModuleOp"> {
  let summary = "Accumulate f32 sums in f64, except for matrix products";
  let description = [{
    The loops of the CPU target add one element after the other. The error of an f32 sum would grow
    with the number of its elements. A sum in f64 is rounded once. The pass also widens the running
    sums of scans.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numWidened", "sums", "Sums accumulated in f64">];
}

def TkToLinalg : Pass<"tk-to-linalg", "::mlir::ModuleOp"> {
  let summary = "Lower kernels to functions of linalg operations on tensor tiles";
  let description = [{
    A kernel becomes a function of its dimensions, its parameters and a tensor for each result. Each
    compute op becomes an `scf.forall` over tiles of its outputs. The `scf.forall` contains loops over
    the chunks of reductions. These loops contain linalg operations on slices. The `doc` strings of
    `linalg.generic` and the attribute `tk.indices` of loops keep the names of indices.
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
           "Most elements of an accumulator tile that is kept in vector registers">];
  let statistics = [Statistic<"numVectorized", "contractions", "Contractions vectorised">];
}

def KeepEmptyReductions : Pass<"tk-keep-empty-reductions", "::mlir::ModuleOp"> {
  let summary = "Keep the initial value of reductions that may have no elements";
  let description = [{
    Bufferisation regards the initial value of a reduction as overwritten if the body does not use it.
    The pass makes such an operation conditional on a range that is not empty.
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
    Otherwise a copy between strided buffers would become a call to MLIR's runtime library.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def LinalgToLoops : Pass<"tk-linalg-to-loops", "::mlir::ModuleOp"> {
  let summary = "Lower linalg operations to loops, and hoist invariant reads out of the "
                "innermost loop";
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"numHoisted", "reads", "Invariant reads hoisted out of a loop">];
}

def OutlineParallel : Pass<"tk-outline-parallel", "::mlir::ModuleOp"> {
  let summary = "Outline parallel loops into functions that the runtime's threads run";
  let description = [{
    The body of each outermost `scf.forall` becomes a function of a range of iterations. A struct
    passes the values that the body uses from outside. The cost of the body determines the least
    number of iterations for a thread.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"numOutlined", "loops", "Parallel loops outlined into functions">];
}

def ExpandScalars : Pass<"tk-expand-scalars", "::mlir::ModuleOp"> {
  let summary = "Expand scalar functions and conversions into arithmetic that LLVM vectorises";
  let description = [{
    Functions of f32 such as `exp`, `log` and `sin` become polynomials. Conversions of bf16 and f8
    become integer arithmetic. The scalar operations of `tk` become operations of `arith`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif // TK_PASSES_LOWERING_CPU_CPUPASSES_TD
