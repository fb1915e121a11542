//===- LayoutRewriter.h - layouts in the types of tiles ---------*- C++ -*-===//
//
// tk-coalesce-accesses chooses a layout for each class of tiles (LayoutChoice.h). LayoutRewriter
// writes them into a function.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LAYOUT_LAYOUTREWRITER_H
#define TK_PASSES_LAYOUT_LAYOUTREWRITER_H

#include "passes/layout/LayoutChoice.h"

#include "mlir/IR/Builders.h"

namespace tk {

/// Puts the chosen layouts into the types of a function.
class LayoutRewriter {
public:
  LayoutRewriter(gpu::FuncOp function, const LayoutChoice &choice)
      : function(function), choice(choice) {}

  void run();
  unsigned getNumConversions() const { return numConversions; }

private:
  void recordLayouts();
  void rewriteOperands(mlir::Operation *op);
  void rewriteAccess(mlir::OperandRange indices, mlir::ArrayAttr indexDims,
                     mlir::OperandRange masks, mlir::ArrayAttr maskDims, gpu::LayoutAttr layout,
                     mlir::Operation *op);
  void rewriteLoad(gpu::LoadOp load);
  void rewriteStore(gpu::StoreOp store);
  void rewriteReduction(mlir::Operation *op, mlir::ValueRange reduced, mlir::Value source,
                        llvm::function_ref<gpu::LayoutAttr(gpu::LayoutAttr)> leftOf);
  void setOperand(mlir::OpOperand &operand, gpu::LayoutAttr layout) {
    if (isTile(operand.get()))
      operand.set(inLayout(operand.get(), layout));
  }

  /// `value` as a tile with `layout`.
  mlir::Value inLayout(mlir::Value value, gpu::LayoutAttr layout);
  mlir::Value recompute(mlir::Value cheap, gpu::LayoutAttr layout);

  gpu::FuncOp function;
  const LayoutChoice &choice;
  llvm::DenseMap<mlir::Value, gpu::LayoutAttr> layouts; ///< of the tiles that are not cheap
  llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, mlir::Value> versions;
  llvm::SmallVector<mlir::Operation *> cheapOps;
  unsigned numConversions = 0;
};

} // namespace tk

#endif // TK_PASSES_LAYOUT_LAYOUTREWRITER_H
