//===- OperationCodes.cpp - the reference's codes of operations -----------===//
//
// A table from the names of MLIR operations to the instructions of the reference.
//
//===----------------------------------------------------------------------===//
#include "compiler/interp/OperationCodes.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace tk::interp::detail {

Width widthOf(Type type) {
  if (type.isIndex())
    return Width::I64;
  if (type.isF32())
    return Width::F32;
  if (type.isF64())
    return Width::F64;
  if (type.isF16())
    return Width::F16;
  if (type.isBF16())
    return Width::BF16;
  if (isa<Float8E4M3FNType>(type))
    return Width::F8E4M3;
  if (isa<Float8E5M2Type>(type))
    return Width::F8E5M2;
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return Width::I1;
  case 8:
    return Width::I8;
  case 16:
    return Width::I16;
  case 32:
    return Width::I32;
  default:
    return Width::I64;
  }
}

const llvm::StringMap<Code> &simpleCodes() {
  static const llvm::StringMap<Code> codes = {{"arith.addf", Code::AddF},
                                              {"arith.subf", Code::SubF},
                                              {"arith.mulf", Code::MulF},
                                              {"arith.divf", Code::DivF},
                                              {"arith.remf", Code::RemF},
                                              {"arith.maximumf", Code::MaximumF},
                                              {"arith.minimumf", Code::MinimumF},
                                              {"arith.maxnumf", Code::MaxNumF},
                                              {"arith.minnumf", Code::MinNumF},
                                              {"arith.negf", Code::NegF},
                                              {"arith.addi", Code::AddI},
                                              {"arith.subi", Code::SubI},
                                              {"arith.muli", Code::MulI},
                                              {"arith.divsi", Code::DivS},
                                              {"arith.divui", Code::DivU},
                                              {"arith.remsi", Code::RemS},
                                              {"arith.remui", Code::RemU},
                                              {"arith.floordivsi", Code::FloorDiv},
                                              {"arith.ceildivsi", Code::CeilDivS},
                                              {"arith.maxsi", Code::MaxS},
                                              {"arith.minsi", Code::MinS},
                                              {"arith.maxui", Code::MaxU},
                                              {"arith.minui", Code::MinU},
                                              {"arith.andi", Code::And},
                                              {"arith.ori", Code::Or},
                                              {"arith.xori", Code::Xor},
                                              {"arith.shli", Code::Shl},
                                              {"arith.shrsi", Code::ShrS},
                                              {"arith.shrui", Code::ShrU},
                                              {"arith.select", Code::Select},
                                              {"arith.extf", Code::RoundF},
                                              {"arith.truncf", Code::RoundF},
                                              {"arith.extsi", Code::ToSigned},
                                              {"arith.extui", Code::ToUnsigned},
                                              {"arith.trunci", Code::ToSigned},
                                              {"arith.index_cast", Code::ToSigned},
                                              {"arith.index_castui", Code::ToUnsigned},
                                              {"arith.sitofp", Code::SignedToF},
                                              {"arith.uitofp", Code::UnsignedToF},
                                              {"arith.fptosi", Code::FToSigned},
                                              {"arith.fptoui", Code::FToUnsigned},
                                              {"math.exp", Code::Exp},
                                              {"math.exp2", Code::Exp2},
                                              {"math.expm1", Code::ExpM1},
                                              {"math.log", Code::Log},
                                              {"math.log2", Code::Log2},
                                              {"math.log10", Code::Log10},
                                              {"math.log1p", Code::Log1p},
                                              {"math.sqrt", Code::Sqrt},
                                              {"math.rsqrt", Code::Rsqrt},
                                              {"math.cbrt", Code::Cbrt},
                                              {"math.tanh", Code::Tanh},
                                              {"math.erf", Code::Erf},
                                              {"math.sin", Code::Sin},
                                              {"math.cos", Code::Cos},
                                              {"math.tan", Code::Tan},
                                              {"math.absf", Code::AbsF},
                                              {"math.absi", Code::AbsI},
                                              {"math.floor", Code::Floor},
                                              {"math.ceil", Code::Ceil},
                                              {"math.round", Code::Round},
                                              {"math.roundeven", Code::RoundEven},
                                              {"math.trunc", Code::Trunc},
                                              {"math.isnan", Code::IsNaN},
                                              {"math.isinf", Code::IsInf},
                                              {"math.isfinite", Code::IsFinite},
                                              {"math.fma", Code::Fma},
                                              {"math.powf", Code::PowF},
                                              {"math.ipowi", Code::PowI},
                                              {"math.fpowi", Code::FPowI},
                                              {"math.copysign", Code::CopySign},
                                              {"tk.floor_div", Code::FloorDiv},
                                              {"tk.floor_mod", Code::FloorMod},
                                              {"tk.exp_diff", Code::ExpDiff},
                                              {"tk.div_or_zero", Code::DivOrZero},
                                              {"tk.rand", Code::Rand}};
  return codes;
}

} // namespace tk::interp::detail
