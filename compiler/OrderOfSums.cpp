//===- OrderOfSums.cpp - in which order a plan adds ------------------------===//
//
// 1. orderOfFused() prints the compute ops that reduce: what is cut in parts, what is online, which
//    types are multiplied.
// 2. orderOfFunctions() prints what decides the order inside each function: the unit that
//    multiplies, steps of loops that carry sums, and the layout of reduced tiles along the reduced
//    axis.
//
// The number of rows and columns of a tile is in neither: each of them has sums of its own.
//
//===----------------------------------------------------------------------===//
#include "compiler/BatchInvariance.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

using namespace mlir;

namespace tk {

/// The type of elements.
static std::string elementOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << getElementTypeOrSelf(type);
  return text;
}

static bool isFloat(Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); }

std::string orderOfFused(ModuleOp fused) {
  std::string text;
  llvm::raw_string_ostream out(text);
  fused.walk([&](ComputeOp compute) {
    const bool reduces =
        compute
            ->walk([](Operation *op) {
              return isa<ReduceOp, ScanOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
            })
            .wasInterrupted();
    if (!reduces)
      return;
    out << "compute\n";
    compute.walk([&](Operation *op) {
      if (auto reduce = dyn_cast<ReduceOp>(op)) {
        out << " reduce";
        for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k)
          out << " " << stringifyReduceKind(reduce.getKind(k)) << " "
              << elementOf(reduce.getResult(k).getType());
        for (Value bound : reduce->getOperands()) {
          APInt number;
          out << (matchPattern(bound, m_ConstantInt(&number)) ? " " + toString(number, 10, true)
                                                              : std::string(" n"));
        }
        out << "\n";
      } else if (isa<ScanOp>(op)) {
        out << " scan " << elementOf(op->getResult(0).getType()) << "\n";
      } else if (op->getNumResults() == 1 && isFloat(op->getResult(0).getType()) &&
                 !isa<arith::ConstantOp>(op)) {
        out << " " << op->getName() << " " << elementOf(op->getResult(0).getType()) << "\n";
      }
    });
  });
  return text;
}

namespace {

/// What decides the order of one function's sums.
class FunctionOrder {
public:
  std::string of(gpu::FuncOp function) {
    function.walk([&](Operation *op) { add(op); });
    if (!reduces)
      return {};
    const gpu::KernelPlan plan = gpu::getPlan(function);
    // Blocks of a cluster share the operands of a product, and the sums of a row.
    const bool isProduct =
        plan.family == gpu::PlanFamily::Gemm || plan.family == gpu::PlanFamily::FusedGemm;
    std::string text = "function " + gpu::stringifyPlanFamily(plan.family).str() + " " +
                       gpu::stringifyPlanUnit(plan.unit).str() + " cluster " +
                       std::to_string(isProduct ? 1 : plan.tiles.getCluster()) + " maximum " +
                       gpu::stringifyRowMaximum(plan.rowMaximum).str() + " sums " +
                       gpu::stringifyRowSums(plan.rowSums).str() + "\n";
    for (const std::string &line : lines)
      text += "  " + line + "\n";
    return text;
  }

private:
  void add(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return addLoop(loop);
    if (auto reduce = dyn_cast<gpu::ReduceOp>(op))
      return addTile(op, reduce.getKind(), reduce.getSource().getType(), reduce.getAxis());
    if (auto runs = dyn_cast<gpu::ReduceRunsOp>(op))
      return addTile(op, runs.getKind(), runs.getSource().getType(), runs.getAxis());
    if (auto scan = dyn_cast<gpu::ScanOp>(op))
      return addTile(op, scan.getKind(), scan.getSource().getType(), scan.getAxis());
    if (auto recurrence = dyn_cast<gpu::RecurrenceOp>(op))
      return addTile(op, ReduceKind::Sum, recurrence.getSource().getType(), recurrence.getAxis());
    if (auto dot = dyn_cast<gpu::DotOp>(op)) {
      reduces = true;
      lines.insert("dot " + elementOf(dot.getA().getType()) + " " +
                   elementOf(dot.getB().getType()) + " " + elementOf(dot.getResult().getType()));
      return;
    }
    const bool hasFloats = llvm::any_of(op->getResultTypes(), isFloat);
    if (isa<gpu::WarpgroupDotOp>(op) && hasFloats) {
      reduces = true;
      std::string line = "warpgroup_dot";
      for (Value operand : op->getOperands().take_front(3))
        line += " " + typeOfOperand(operand.getType());
      lines.insert(line);
      return;
    }
    // Tiles of one axis that a whole block reduces, and other forms of reduction.
    if (isa<gpu::MomentsOp, gpu::WeightsOp, gpu::ArgReduceOp, gpu::ReduceInThreadsOp,
            gpu::WarpgroupSumsOp, gpu::DoubtOp, gpu::DoubtedOp>(op)) {
      std::string line;
      llvm::raw_string_ostream out(line);
      out << op->getName();
      for (Type type : op->getOperandTypes())
        out << " " << type;
      reduces = true;
      lines.insert(line);
      return;
    }
    if (hasFloats && isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
        !isa<arith::ConstantOp, arith::SelectOp>(op))
      addArithmetic(op);
    if (isa<gpu::ScaledExpDiffOp, gpu::ScaledExponentOp>(op))
      addArithmetic(op);
  }

  static std::string typeOfOperand(Type type) {
    if (auto shared = dyn_cast<gpu::SharedType>(type))
      return elementOf(shared.getElementType());
    return elementOf(type);
  }

  void addArithmetic(Operation *op) {
    std::string line =
        op->getName().getStringRef().str() + " " + elementOf(op->getResult(0).getType());
    llvm::raw_string_ostream(line) << " " << op->getAttrDictionary();
    lines.insert(line);
  }

  /// Does an operation compute floats, other than products of the matrix unit?
  static bool addsTiles(Operation *op) {
    return llvm::any_of(op->getResultTypes(), isFloat) &&
           (isa<gpu::ReduceOp, gpu::ReduceRunsOp, gpu::ScanOp, gpu::RecurrenceOp>(op) ||
            (isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
             !isa<arith::ConstantOp, arith::SelectOp, arith::ExtFOp>(op)));
  }

  /// A loop that carries sums, or running maxima. Steps of a matrix unit's sums do not matter: it
  /// adds terms one group after the other.
  void addLoop(scf::ForOp loop) {
    const bool carries =
        llvm::any_of(loop.getInitArgs(), [](Value value) { return isFloat(value.getType()); });
    const bool adds = loop.getBody()
                          ->walk([](Operation *op) {
                            return addsTiles(op) ? WalkResult::interrupt() : WalkResult::advance();
                          })
                          .wasInterrupted();
    APInt step;
    if (!carries || !adds)
      return;
    reduces = true;
    lines.insert("loop " + (matchPattern(loop.getStep(), m_ConstantInt(&step))
                                ? toString(step, 10, true)
                                : std::string("n")));
  }

  /// A tile that is reduced along an axis: who has which of its elements.
  void addTile(Operation *op, ReduceKind kind, Type type, uint64_t axis) {
    const bool isExact = !isFloat(type) || (kind != ReduceKind::Sum && kind != ReduceKind::Prod);
    if (isExact) // in any order
      return;
    reduces = true;
    auto tile = dyn_cast<RankedTensorType>(type);
    std::string line;
    llvm::raw_string_ostream out(line);
    out << op->getName() << " " << stringifyReduceKind(kind) << " " << elementOf(type) << " of "
        << (tile ? tile.getDimSize(static_cast<unsigned>(axis)) : 1);
    auto layout = tile ? dyn_cast_or_null<gpu::LayoutAttr>(tile.getEncoding()) : gpu::LayoutAttr();
    if (layout) {
      addBits(out, " registers", layout.getRegisterBits(), axis);
      addBits(out, " lanes", layout.getLaneBits(), axis);
      addBits(out, " warps", layout.getWarpBits(), axis);
      out << " held " << layout.getHeld();
    }
    auto loop = op->getParentOfType<scf::ForOp>();
    out << (loop ? " in a loop" : "");
    lines.insert(line);
  }

  static void addBits(llvm::raw_ostream &out, StringRef name, ArrayRef<gpu::LayoutBit> bits,
                      uint64_t axis) {
    out << name;
    for (const gpu::LayoutBit &bit : bits)
      if (bit.axis == static_cast<int64_t>(axis) && !bit.isReplication())
        out << " " << bit.step;
  }

  std::set<std::string> lines;
  bool reduces = false;
};

} // namespace

std::string orderOfFunctions(ModuleOp lowered) {
  std::string text;
  lowered.walk([&](gpu::FuncOp function) { text += FunctionOrder().of(function); });
  return text;
}

} // namespace tk
