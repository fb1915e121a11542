//===- WarpgroupOperands.h - operands of warpgroups' products ---*- C++ -*-===//
//
// Warpgroups multiply boxes that bulk copies bring to shared memory (BulkBox.h). The left operand
// may be in registers: computed from another product, or element by element from such boxes.
// Operands that were extended from 8-bit floats, for the sake of the sum's bits, are multiplied as
// they are: threads add up what the hardware sums of one tile.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LAYOUT_WARPGROUPOPERANDS_H
#define TK_PASSES_LAYOUT_WARPGROUPOPERANDS_H

#include "passes/layout/BulkBox.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

/// The operands of a product as warpgroups multiply them.
mlir::Value getWarpgroupA(gpu::DotOp dot);
mlir::Value getWarpgroupB(gpu::DotOp dot);

/// Does the hardware multiply such operands?
bool haveWarpgroupProduct(gpu::DotOp dot);

/// What the products of one function are formed of.
class WarpgroupOperands {
public:
  explicit WarpgroupOperands(LaunchArguments &arguments) : arguments(arguments) {}

  /// Notes what the operands of `dot` are loaded from; false and why if warpgroups cannot take
  /// them.
  bool read(gpu::DotOp dot, std::string &why);

  /// The boxes of loads, in the order in which they were noted.
  llvm::MapVector<mlir::Value, BulkBox> boxes;
  /// Loads whose elements products take from registers.
  llvm::SetVector<gpu::LoadOp> throughRegisters;
  /// Loads of numbers that many neighbours share, which threads keep.
  llvm::SetVector<gpu::LoadOp> ofGroups;

  /// Divides the places of `ofGroups` by themselves.
  void dividePlaces();

private:
  bool readBox(mlir::Value operand, std::string &why, bool mayRepeat = false);
  bool readShared(mlir::Value operand, unsigned kAxis, std::string &why);
  bool readProduct(gpu::DotOp dot, gpu::DotOp source, std::string &why);
  bool readElements(gpu::DotOp dot, std::string &why);

  LaunchArguments &arguments;
  AxisInfo info{/*gathers=*/true};
};

} // namespace tk

#endif // TK_PASSES_LAYOUT_WARPGROUPOPERANDS_H
