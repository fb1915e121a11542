// Builds the tk.kernel of one analysed kernel. Internal to IRGen*.cpp.

#ifndef TK_FRONTEND_IRGENKERNEL_H
#define TK_FRONTEND_IRGENKERNEL_H

#include "dialects/tk/TkDialect.h"
#include "frontend/SemaTree.h"
#include "frontend/Source.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace tk::frontend {

class KernelGen {
public:
  KernelGen(mlir::OpBuilder &builder, const sema::Kernel &kernel, const SourceManager &sources)
      : builder(builder), kernel(kernel), sources(sources) {}

  void run();
  /// Instead of the kernel the one that checks its gathers: of the same parameters, with the
  /// results that sema::Kernel::gatherChecks lists.
  void runGatherChecks();

private:
  using Value = mlir::Value;

  // Structure (IRGen.cpp)
  KernelOp createKernel(llvm::ArrayRef<mlir::Attribute> params,
                        llvm::ArrayRef<llvm::StringRef> results);
  void finishKernel(llvm::ArrayRef<const sema::Tensor *> results);
  void parameters(KernelOp op);
  void assumptions();
  void assume(const sema::Assumption &assumption);
  void scheduleConditions();
  void addShardings(KernelOp op);
  void statement(const sema::Statement &statement);
  std::string textOf(const sema::Node *n) const;
  mlir::Attribute schedules();
  mlir::Location loc(Span span) const;
  mlir::Type storedType(ast::DType dtype);
  mlir::Type valueType(sema::Type type);

  // Expressions (IRGenExpr.cpp)
  Value value(const sema::Node *n);
  /// Whether it is built once in the kernel, for its launches to evaluate.
  bool isKernelValue(const sema::Node *n);
  Value build(const sema::Node *n);
  Value constant(const sema::Node *n);
  Value load(const sema::Node *n);
  Value reduce(const sema::Node *n);
  Value scan(const sema::Node *n);
  Value convert(const sema::Node *n);
  Value roundToOdd(Value v, mlir::Location at);
  /// Rounds a float to a stored narrow type (f8 saturates), staying in the stored type.
  Value narrow(Value v, ast::DType dtype, mlir::Location at);
  Value widen(Value v, ast::DType dtype, mlir::Location at);
  Value number(double v, mlir::Type type, mlir::Location at);
  Value integer(std::int64_t v, mlir::Type type, mlir::Location at);

  // Operators and functions (IRGenMath.cpp)
  Value operation(const sema::Node *n);
  Value floatOp(const sema::Node *n, llvm::ArrayRef<Value> a, mlir::Location at);
  Value activation(const sema::Node *n, Value x, mlir::Location at);
  Value integerOp(const sema::Node *n, llvm::ArrayRef<Value> a, mlir::Location at);
  Value compareOp(const sema::Node *n, llvm::ArrayRef<Value> a, mlir::Location at);
  Value power(Value base, std::int64_t exponent, bool isFloat, mlir::Location at);

  struct Frame {
    llvm::DenseMap<const sema::Node *, Value> values;
    llvm::DenseMap<const sema::IndexVar *, Value> indices;
    llvm::DenseMap<const sema::IndexVar *, Value> offsets; ///< from where the index's range begins
    bool barrier = false; ///< values of frames below may rest on another binding of an index
  };
  Value lookup(const sema::Node *n) const;
  Value indexValue(const sema::IndexVar *var) const;
  /// An index less where its range begins, which is how axes of tensors count.
  Value offsetOf(const sema::IndexVar *var) const;
  /// Makes `offset`, an argument of the block being built, stand for an index.
  void bindIndex(const sema::IndexVar *var, Value offset);
  Value lengthOf(const sema::IndexVar *var);

  mlir::OpBuilder &builder;
  const sema::Kernel &kernel;
  const SourceManager &sources;
  std::vector<Frame> frames;
  mlir::OpBuilder::InsertPoint kernelPoint; ///< where values of sizes alone go
  mlir::Operation *statementOp = nullptr;
  llvm::DenseMap<const sema::Node *, bool> kernelValues;
  llvm::SmallVector<Value> dims, params;
  llvm::DenseMap<const sema::Tensor *, Value> tensors;
};

} // namespace tk::frontend

#endif // TK_FRONTEND_IRGENKERNEL_H
