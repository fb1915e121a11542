//===- OutlineParallel.cpp - parallel loops for the runtime's threads -----===//
//
// The runtime has a thread pool that runs ranges of iterations of a function. This pass moves the
// body of each outermost `scf.forall` into such a function. The loop must be on buffers.
//
// 1. Store the values that the body uses from outside into a struct on the stack. Copy constants
//    into the body instead.
// 2. Create a function of (struct, begin, end). It loads the struct, and runs the iterations from
//    begin to end. An iteration's number gives the loop's indices by division and remainder.
// 3. Replace the loop by a call of `parallel_for`, whose address is in the entry's arguments.
// 4. Pass a grain: the number of iterations that take about 2^16 steps. A step is one operation,
//    times the trip counts of the loops around it. A trip count that is known only inside counts as
//    the constant that bounds it, or as 256.
//
// Before: scf.forall (%i) in (%n) { body(%i, %x) }
// After:  store %x, %struct; call parallel_for(%pool, %n, %grain, @k.part0, %struct)
//         func @k.part0(%struct, %begin, %end) { for %i = %begin to %end: body(%i, load %struct) }
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/CpuPasses.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

namespace tk {
#define GEN_PASS_DEF_OUTLINEPARALLEL
#include "passes/lowering/cpu/CpuPasses.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

//===----------------------------------------------------------------------===//
// How much work an iteration is
//===----------------------------------------------------------------------===//

namespace {
/// Estimates the steps of one iteration, as an f64 value outside of the loop.
class CostEstimate {
public:
  CostEstimate(OpBuilder &b, scf::ForallOp loop) : b(b), loop(loop) {}
  Value ofBlock(Block &block);

private:
  Value real(double value) {
    return arith::ConstantOp::create(b, loop.getLoc(), b.getF64FloatAttr(value));
  }
  Value ofExtent(Value extent);
  Value ofTrips(Value lower, Value upper, Value step);
  Value product(Value x, Value y) { return b.createOrFold<arith::MulFOp>(loop.getLoc(), x, y); }
  bool isOutside(Value value) { return !loop.getRegion().isAncestor(value.getParentRegion()); }
  OpBuilder &b;
  scf::ForallOp loop;
};
} // namespace

/// An index that is known outside, else the constant that bounds it, else a guess.
Value CostEstimate::ofExtent(Value extent) {
  APInt constant;
  if (matchPattern(extent, m_ConstantInt(&constant)))
    return real(double(constant.getSExtValue()));
  if (isOutside(extent)) {
    Value wide = arith::IndexCastOp::create(b, loop.getLoc(), b.getI64Type(), extent);
    return arith::SIToFPOp::create(b, loop.getLoc(), b.getF64Type(), wide);
  }
  if (auto least = extent.getDefiningOp<arith::MinSIOp>())
    for (Value side : least->getOperands())
      if (matchPattern(side, m_ConstantInt(&constant)))
        return real(double(constant.getSExtValue()));
  return real(256);
}

Value CostEstimate::ofTrips(Value lower, Value upper, Value step) {
  APInt first, by;
  Value trips = ofExtent(upper);
  if (!matchPattern(lower, m_ConstantInt(&first)) && isOutside(lower) && isOutside(upper))
    trips = arith::SubFOp::create(b, loop.getLoc(), trips, ofExtent(lower));
  if (matchPattern(step, m_ConstantInt(&by)) && by.getSExtValue() > 1)
    trips = product(trips, real(1.0 / double(by.getSExtValue())));
  return trips;
}

Value CostEstimate::ofBlock(Block &block) {
  Value cost = real(double(llvm::range_size(block.getOperations())));
  auto addCost = [&](Value more) {
    cost = b.createOrFold<arith::AddFOp>(loop.getLoc(), cost, more);
  };
  for (Operation &op : block) {
    if (auto inner = dyn_cast<scf::ForOp>(op)) {
      Value trips = ofTrips(inner.getLowerBound(), inner.getUpperBound(), inner.getStep());
      addCost(product(trips, ofBlock(*inner.getBody())));
    } else {
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          addCost(ofBlock(inner));
    }
  }
  return cost;
}

//===----------------------------------------------------------------------===//
// What the body uses
//===----------------------------------------------------------------------===//

namespace {
class LoopOutliner {
public:
  LoopOutliner(scf::ForallOp loop, StringRef name)
      : loop(loop), name(name), entry(loop->getParentOfType<func::FuncOp>()), b(loop),
        converter(loop.getContext()) {}
  LogicalResult run();

private:
  LogicalResult capture();
  func::FuncOp createBody();
  void callParallelFor(func::FuncOp body, Value context);
  Value loadWord(Value base, unsigned position, Type type);
  Value grain();

  scf::ForallOp loop;
  StringRef name;
  func::FuncOp entry;
  OpBuilder b;
  LLVMTypeConverter converter;
  llvm::SetVector<Value> captured;
  SmallVector<Type> fields; ///< as they are in the struct
};

struct OutlineParallel : ::tk::impl::OutlineParallelBase<OutlineParallel> {
  void runOnOperation() override {
    for (func::FuncOp function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      SmallVector<scf::ForallOp> loops;
      function.walk<WalkOrder::PreOrder>([&](scf::ForallOp loop) {
        loops.push_back(loop);
        return WalkResult::skip();
      });
      for (auto [number, loop] : llvm::enumerate(loops)) {
        std::string name = (function.getSymName() + ".part" + Twine(number)).str();
        if (failed(LoopOutliner(loop, name).run()))
          return signalPassFailure();
        ++numOutlined;
      }
    }
  }
};
} // namespace

static Type pointerType(OpBuilder &b) { return LLVM::LLVMPointerType::get(b.getContext()); }

static Type structType(OpBuilder &b, ArrayRef<Type> fields) {
  return LLVM::LLVMStructType::getLiteral(b.getContext(), fields);
}

/// A value as its counterpart of the LLVM dialect's types, and back.
static Value castTo(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return UnrealizedConversionCastOp::create(b, loc, TypeRange{type}, ValueRange{value})
      .getResult(0);
}

LogicalResult LoopOutliner::capture() {
  if (loop.getNumResults() != 0)
    return loop.emitError("expected a parallel loop on buffers, got one with tensor results");
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(loop.getRegion(), used);
  for (Value value : used) {
    Operation *op = value.getDefiningOp();
    if (op && op->hasTrait<OpTrait::ConstantLike>()) {
      OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
      Value copy = inside.clone(*op)->getResult(0);
      replaceAllUsesInRegionWith(value, copy, loop.getRegion());
      continue;
    }
    Type type = converter.convertType(value.getType());
    if (!type)
      return loop.emitError("cannot hand a value of type ") << value.getType() << " to a thread";
    captured.insert(value);
    fields.push_back(type);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The function, and its call
//===----------------------------------------------------------------------===//

Value LoopOutliner::loadWord(Value base, unsigned position, Type type) {
  Value address = LLVM::GEPOp::create(b, loop.getLoc(), pointerType(b), b.getI64Type(), base,
                                      LLVM::GEPArg(int32_t(position)));
  return LLVM::LoadOp::create(b, loop.getLoc(), type, address);
}

func::FuncOp LoopOutliner::createBody() {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(entry);
  Location loc = loop.getLoc();
  Type i64 = b.getI64Type();
  auto body = func::FuncOp::create(b, loc, name, b.getFunctionType({pointerType(b), i64, i64}, {}));
  body.setPrivate();
  Block *block = body.addEntryBlock();
  b.setInsertionPointToStart(block);
  IRMapping mapping;
  for (auto [i, value] : llvm::enumerate(captured)) {
    Value address =
        LLVM::GEPOp::create(b, loc, pointerType(b), structType(b, fields), block->getArgument(0),
                            ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
    Value field = LLVM::LoadOp::create(b, loc, fields[i], address);
    mapping.map(value, castTo(b, loc, field, value.getType()));
  }
  SmallVector<Value> counts;
  for (OpFoldResult count : loop.getMixedUpperBound())
    counts.push_back(mapping.lookupOrDefault(getValueOrCreateConstantIndexOp(b, loc, count)));
  Value begin = arith::IndexCastOp::create(b, loc, b.getIndexType(), block->getArgument(1));
  Value end = arith::IndexCastOp::create(b, loc, b.getIndexType(), block->getArgument(2));
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  auto iterations = scf::ForOp::create(b, loc, begin, end, one);
  func::ReturnOp::create(b, loc);
  b.setInsertionPointToStart(iterations.getBody());
  Value rest = iterations.getInductionVar();
  for (unsigned level = counts.size(); level-- > 0;) {
    Value number = rest;
    if (level > 0) {
      number = arith::RemUIOp::create(b, loc, rest, counts[level]);
      rest = arith::DivUIOp::create(b, loc, rest, counts[level]);
    }
    mapping.map(loop.getInductionVar(level), number);
  }
  for (Operation &op : loop.getBody()->without_terminator())
    b.clone(op, mapping);
  return body;
}

/// So many iterations that handing them to another thread pays.
Value LoopOutliner::grain() {
  Location loc = loop.getLoc();
  Value cost = CostEstimate(b, loop).ofBlock(*loop.getBody());
  auto real = [&](double value) {
    return arith::ConstantOp::create(b, loc, b.getF64FloatAttr(value)).getResult();
  };
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value share =
      arith::DivFOp::create(b, loc, real(65536), arith::MaximumFOp::create(b, loc, cost, real(1)));
  Value whole = arith::FPToSIOp::create(b, loc, b.getI64Type(), share);
  Value grain = arith::IndexCastOp::create(b, loc, b.getIndexType(), whole);
  return arith::MaxSIOp::create(b, loc, grain, one);
}

void LoopOutliner::callParallelFor(func::FuncOp body, Value context) {
  enum ArgsMember { ParallelFor = 3, Pool = 4 }; // of tk_cpu_args, all of 8 bytes
  Location loc = loop.getLoc();
  Type i64 = b.getI64Type(), pointer = pointerType(b);
  Value args = entry.getArgument(0);
  Value callee = loadWord(args, ParallelFor, pointer), pool = loadWord(args, Pool, pointer);
  Value count = arith::ConstantIndexOp::create(b, loc, 1);
  for (OpFoldResult extent : loop.getMixedUpperBound())
    count =
        b.createOrFold<arith::MulIOp>(loc, count, getValueOrCreateConstantIndexOp(b, loc, extent));
  Value count64 = arith::IndexCastOp::create(b, loc, i64, count);
  Value grain64 = arith::IndexCastOp::create(b, loc, i64, grain());
  Value function = func::ConstantOp::create(b, loc, body.getFunctionType(), body.getSymName());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                          {pointer, i64, i64, pointer, pointer});
  LLVM::CallOp::create(
      b, loc, type,
      ValueRange{callee, pool, count64, grain64, castTo(b, loc, function, pointer), context});
}

LogicalResult LoopOutliner::run() {
  if (entry.getNumArguments() != 1 || entry.getArgument(0).getType() != pointerType(b))
    return entry.emitError("expected a function with the convention of tk/cpu_abi.h");
  if (failed(capture()))
    return failure();
  Location loc = loop.getLoc();
  for (OpFoldResult count : loop.getMixedUpperBound())
    if (auto value = dyn_cast<Value>(count); value && captured.insert(value))
      fields.push_back(converter.convertType(value.getType()));
  func::FuncOp body = createBody();
  OpBuilder first = OpBuilder::atBlockBegin(&entry.getBody().front());
  Value one = LLVM::ConstantOp::create(first, loc, b.getI64Type(), b.getI64IntegerAttr(1));
  Value context = LLVM::AllocaOp::create(first, loc, pointerType(b), structType(b, fields), one);
  for (auto [i, value] : llvm::enumerate(captured)) {
    Value address = LLVM::GEPOp::create(b, loc, pointerType(b), structType(b, fields), context,
                                        ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
    LLVM::StoreOp::create(b, loc, castTo(b, loc, value, fields[i]), address);
  }
  callParallelFor(body, context);
  loop.erase();
  return success();
}
