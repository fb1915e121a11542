//===- BatchInvariance.cpp - code whose bits do not depend on sizes -------===//
//
// 1. findSizeUses() says of each dimension whether a plan may rest on its size.
// 2. referenceFacts() are those of the reference plan: whole tiles of unknown number.
// 3. invariantFacts() are what a call's plan is tried with: the call's own facts, then the same
//    with bounds of at least 16, without bounds, and without divisors.
// 4. orderOfFused() prints the compute ops that reduce: what is cut in parts, what is online, which
//    types are multiplied. orderOfFunctions() prints what decides the order inside each function:
//    the unit that multiplies, steps of loops that carry sums, and the layout of reduced tiles
//    along the reduced axis.
//
// The number of rows and columns of a tile is in neither: each of them has sums of its own.
//
//===----------------------------------------------------------------------===//
#include "compiler/BatchInvariance.h"

#include "compiler/RelevantFacts.h"
#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

using namespace mlir;

namespace tk {
namespace {

/// Rows that a plan has at least: those that the matrix unit multiplies. Fewer rows would go to
/// CUDA cores, which add in another order. Back-to-back contractions want twice as many.
constexpr int64_t leastRows = 16;
/// Multiples of the largest tile.
constexpr uint32_t wholeTiles = 128;
/// What allocators align addresses to, as far as vector accesses ask, and the same of strides.
constexpr uint32_t usualAlignment = 16, usualStrides = 32;

/// Is a value computed from an index of the compute ops and reductions inside a kernel?
bool restsOnIndex(Value value, Value dim) {
  if (auto index = dyn_cast<BlockArgument>(value)) {
    Operation *owner = index.getOwner()->getParentOp();
    auto runsOver = [&](OperandRange extents) {
      return index.getArgNumber() < extents.size() && extents[index.getArgNumber()] == dim;
    };
    if (auto compute = dyn_cast<ComputeOp>(owner))
      return runsOver(compute.getExtents());
    if (auto reduce = dyn_cast<ReduceOp>(owner))
      return runsOver(reduce.getUpper());
    return false;
  }
  Operation *op = value.getDefiningOp();
  return !isa<LoadOp>(op) &&
         llvm::any_of(op->getOperands(), [&](Value operand) { return restsOnIndex(operand, dim); });
}

/// Does a comparison, or the range of a reduction, take a part of the elements along `dim`?
bool isCut(KernelOp kernel, Value dim) {
  return kernel
      ->walk([&](Operation *op) {
        if (auto compare = dyn_cast<arith::CmpIOp>(op))
          if (llvm::any_of(compare->getOperands(),
                           [&](Value side) { return restsOnIndex(side, dim); }))
            return WalkResult::interrupt();
        if (!isa<ReduceOp, ScanOp>(op))
          return WalkResult::advance();
        // A bound such as min(T, i + 1), or one that is loaded.
        for (Value bound : op->getOperands())
          if (Operation *computed = bound.getDefiningOp();
              computed && llvm::is_contained(computed->getOperands(), dim))
            return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

/// Is a value used in a compute op, or an extent of one?
bool reachesComputes(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<ComputeOp>(user) || user->getParentOfType<ComputeOp>() ||
           (user->getNumResults() == 1 && reachesComputes(user->getResult(0)));
  });
}

/// Do elements rest on a quotient of the dimension, such as H / G of heads that share keys? Then it
/// is part of the form of the kernel.
bool isDivided(Value dim) {
  return llvm::any_of(dim.getUsers(), [](Operation *user) {
    if (isa<FloorDivOp, FloorModOp>(user))
      return user->getParentOfType<ComputeOp>() || reachesComputes(user->getResult(0));
    return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::IndexCastOp>(user) &&
           isDivided(user->getResult(0));
  });
}

/// Is a value computed from results of a contraction that are tensors?
bool readsContraction(Value value, llvm::SmallPtrSetImpl<Operation *> &seen) {
  Operation *op = value.getDefiningOp();
  if (!op || !seen.insert(op).second)
    return false;
  auto load = dyn_cast<LoadOp>(op);
  if (!load)
    return llvm::any_of(op->getOperands(),
                        [&](Value operand) { return readsContraction(operand, seen); });
  auto compute = load.getTensor().getDefiningOp<ComputeOp>();
  if (!compute || !seen.insert(compute).second)
    return false;
  return compute
      .walk([&](Operation *inner) {
        auto reduce = dyn_cast<ReduceOp>(inner);
        const bool found = (reduce && isContraction(reduce)) ||
                           (isa<LoadOp>(inner) && readsContraction(inner->getResult(0), seen));
        return found ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Does the dimension count the columns of the second one of two contractions, such as the width of
/// a head's values? A warpgroup holds them all: how many there are decides the unit, and the
/// dimension is part of the form of the kernel.
bool isWidthOfChain(KernelOp kernel, Value dim) {
  auto isWidth = [&](ReduceOp reduce) {
    auto compute = reduce->getParentOfType<ComputeOp>();
    if (!compute || !isContraction(reduce))
      return false;
    Operation *term = reduce.getYield().getValues()[0].getDefiningOp();
    for (unsigned second : {0u, 1u}) {
      llvm::SmallPtrSet<Operation *, 16> seen;
      if (!readsContraction(term->getOperand(1 - second), seen))
        continue;
      const auto own = getIterationIndices(term->getOperand(second));
      const auto others = getIterationIndices(term->getOperand(1 - second));
      for (unsigned p = 0; p < compute.getNumIndices(); ++p)
        if (compute.getExtents()[p] == dim && llvm::is_contained(own, compute.getIndex(p)) &&
            !llvm::is_contained(others, compute.getIndex(p)))
          return true;
    }
    return false;
  };
  return kernel
      ->walk([&](ReduceOp reduce) {
        return isWidth(reduce) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

std::vector<SizeUse> findSizeUses(KernelOp kernel) {
  const std::vector<bool> reduced = findReducedDims(kernel);
  std::vector<SizeUse> uses;
  for (unsigned d = 0; d < kernel.getNumDims(); ++d) {
    const Value dim = kernel.getBody().getArgument(d);
    if (reduced[d] && isCut(kernel, dim))
      uses.push_back(SizeUse::Cut);
    else
      uses.push_back(reduced[d] || isDivided(dim) || isWidthOfChain(kernel, dim) ? SizeUse::Whole
                                                                                 : SizeUse::Batch);
  }
  return uses;
}

Facts referenceFacts(const Facts &facts, ArrayRef<SizeUse> uses) {
  Facts reference = facts;
  for (auto [fact, use] : llvm::zip(reference.dims, uses))
    if (use != SizeUse::Whole)
      fact = DimFact{wholeTiles, -1, {}};
  for (TensorFact &fact : reference.tensors) {
    fact.alignment = usualAlignment;
    fact.stride_divisor = usualStrides;
  }
  reference.small_tensors = true;
  reference.schedules.clear();
  reference.cases.clear();
  return reference;
}

std::vector<Facts> invariantFacts(const Facts &facts, ArrayRef<SizeUse> uses) {
  std::vector<Facts> candidates(6, facts);
  for (auto [d, use] : llvm::enumerate(uses)) {
    if (use == SizeUse::Whole || d >= facts.dims.size())
      continue;
    DimFact own = facts.dims[d];
    own.exact.reset();
    auto atLeast = [&](int64_t rows) {
      DimFact fact = own;
      if (fact.upper >= 0 && fact.upper < rows)
        fact = {1, rows, {}};
      return fact;
    };
    const DimFact open{own.divisor, -1, {}};
    const bool isCut = use == SizeUse::Cut;
    candidates[0].dims[d] = own;
    candidates[1].dims[d] = isCut ? own : atLeast(leastRows);
    candidates[2].dims[d] = isCut ? open : atLeast(leastRows);
    candidates[3].dims[d] = isCut ? open : atLeast(2 * leastRows);
    candidates[4].dims[d] = open;
    candidates[5].dims[d] = DimFact{1, -1, {}};
  }
  return candidates;
}

void leaveOutSizedSteps(llvm::StringSet<> &disabled) {
  for (StringRef step :
       {"tk-split-reductions:chunks", "tk-split-reductions:segments", "tk-split-reductions:scans",
        "tk-parallelize-reductions:split-k", "tk-parallelize-reductions:depths",
        "tk-parallelize-reductions:work-units", "tk-bound-masks", "tk-attach-reductions",
        "tk-join-ends", "tk-keep-references", "tk-guard-masked-values"})
    disabled.insert(step);
}

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
           (isa<gpu::ReduceOp, gpu::ReduceRunsOp, gpu::ScanOp>(op) ||
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
