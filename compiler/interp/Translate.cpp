//===- Translate.cpp - from the tk dialect to the reference's program -----===//
#include "compiler/interp/OperationCodes.h"
#include "compiler/interp/Program.h"
#include "dialects/tk/TkScheduleOps.h"
#include "passes/analysis/PresentTerms.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tk::interp::detail {
namespace {

class Translator {
public:
  Translator(KernelOp kernel, Mode mode)
      : kernel(kernel), present(addPresentTerms(kernel, Conditions::All)) {
    program->mode = mode;
  }

  Expected<std::unique_ptr<KernelProgram>> run() {
    translateArguments();
    for (Operation &op : kernel.getBody().front()) {
      if (isa<DefaultOp, ScheduleConditionOp, ScalarCaseOp>(op))
        continue;
      if (auto bind = dyn_cast<BindOp>(op)) {
        for (Value extent : bind.getExtents())
          program->tensors[tensorOf(bind.getTensor())].extents.push_back(slot(extent));
        continue;
      }
      if (auto assume = dyn_cast<AssumeOp>(op)) {
        program->assumptions.emplace_back(slot(assume.getCondition()), assume.getText().str());
      } else if (auto compute = dyn_cast<ComputeOp>(op)) {
        translateCompute(compute);
      } else if (auto ret = dyn_cast<ReturnOp>(op)) {
        for (Value value : ret.getResults())
          program->results.push_back(tensorOf(value));
      } else {
        translateInto(program->prologue, &op);
      }
    }
    if (!error.empty())
      return Error(ErrorCode::unsupported, error);
    program->numSlots = numSlots;
    return std::move(program);
  }

private:
  bool isConstant(Value value) const { return constants.contains(value); }

  int slot(Value value) {
    auto [it, inserted] = slots.try_emplace(value, numSlots);
    if (inserted)
      ++numSlots;
    return it->second;
  }

  int tensorOf(Value value) {
    auto it = tensors.find(value);
    if (it != tensors.end())
      return it->second;
    fail("a tensor that neither a parameter nor a compute defines");
    return 0;
  }

  void fail(const Twine &what) {
    if (error.empty())
      error = ("the reference does not know " + what).str();
  }

  int addTensor(Value value) {
    TensorSlot tensor;
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    tensor.isFloat = isa<FloatType>(element);
    tensor.isUnsigned = element.isUnsignedInteger();
    tensor.storedAs = widthOf(element);
    program->tensors.push_back(tensor);
    return tensors[value] = program->tensors.size() - 1;
  }

  void translateArguments() {
    for (Value dim : kernel.getDimArguments())
      program->dimSlots.push_back(slot(dim));
    for (Value param : kernel.getParamArguments()) {
      bool isTensor = isa<RankedTensorType>(param.getType());
      program->paramTensors.push_back(isTensor ? addTensor(param) : -1);
      program->scalarSlots.push_back(isTensor ? -1 : slot(param));
      program->scalarWidths.push_back(isTensor ? Width::F64 : widthOf(param.getType()));
    }
  }

  void translateCompute(ComputeOp op) {
    ComputeProgram compute;
    for (Value extent : op.getExtents())
      compute.extents.push_back(slot(extent));
    for (auto [r, result] : llvm::enumerate(op.getResults())) {
      int id = addTensor(result);
      program->tensors[id].compute = program->computes.size();
      program->tensors[id].result = r;
      SmallVector<unsigned> axes = op.getIndicesOf(r);
      program->tensors[id].axes.assign(axes.begin(), axes.end());
      program->tensors[id].overTiles = getTileReduction(op, r);
      compute.tensors.push_back(id);
    }
    compute.body = translateBody(op.getBody());
    for (auto [r, value] : llvm::enumerate(op.getYield().getValues()))
      if (isConstant(value) && !getTileReduction(op, r))
        constants.insert(op.getResult(r));
    program->computes.push_back(std::move(compute));
  }

  Body translateBody(Region &region) {
    Body body;
    for (Value argument : region.front().getArguments())
      body.arguments.push_back(slot(argument));
    for (Operation &op : region.front().without_terminator())
      translateInto(body.instructions, &op);
    for (Value value : region.front().getTerminator()->getOperands())
      body.yields.push_back(slot(value));
    return body;
  }

  void translateInto(std::vector<Instruction> &into, Operation *op) {
    if (auto shared = dyn_cast<InSharesOp>(op)) {
      slots[shared.getResult()] = slot(shared.getIndex());
      return;
    }
    Instruction instruction;
    bool known = true;
    if (op->getNumResults() > 0) {
      Type type = op->getResult(0).getType();
      instruction.destination = slot(op->getResult(0));
      known = isa<RankedTensorType>(type) || type.isIntOrIndexOrFloat();
      if (type.isIntOrIndexOrFloat())
        instruction.width = widthOf(type);
    }
    known = known &&
            llvm::TypeSwitch<Operation *, bool>(op)
                .Case<arith::ConstantOp, arith::CmpFOp, arith::CmpIOp, LoadOp, ReduceOp, ScanOp>(
                    [&](auto typed) { return translate(instruction, typed); })
                .Default([&](Operation *) { return translateSimple(instruction, op); });
    instruction.rounds = roundsOf(op, instruction.code);
    if (!known)
      fail("operation '" + op->getName().getStringRef() + "'");
    // A wider type holds the number that a narrower one holds.
    if (instruction.code == Code::RoundF &&
        (isa<arith::ExtFOp>(op) || instruction.rounds == Rounds::No)) {
      slots[op->getResult(0)] = instruction.a;
      return;
    }
    into.push_back(std::move(instruction));
  }

  /// Arithmetic on constants alone gives the constant that its type holds, which is what a compiler
  /// puts in its place. A rounding to a type of storage is no such arithmetic: it is left out of
  /// the exact value.
  Rounds roundsOf(Operation *op, Code code) {
    const bool isTyped = program->mode == Mode::Typed;
    if (code == Code::RoundF) {
      if (isa<arith::ExtFOp>(op) && isConstant(op->getOperand(0)))
        constants.insert(op->getResult(0));
      return isTyped ? Rounds::ToNearest : Rounds::No;
    }
    auto load = dyn_cast<LoadOp>(op);
    const bool ofConstants =
        load ? !load.getPad() && isConstant(load.getTensor())
             : op->getNumRegions() == 0 && op->getNumResults() == 1 &&
                   llvm::all_of(op->getOperands(), [&](Value v) { return isConstant(v); });
    if (ofConstants)
      constants.insert(op->getResult(0));
    return ofConstants                  ? Rounds::ToNearest
           : program->mode != Mode::F64 ? Rounds::Freely
                                        : Rounds::No;
  }

  bool translateSimple(Instruction &instruction, Operation *op) {
    auto it = simpleCodes().find(op->getName().getStringRef());
    if (it == simpleCodes().end() || op->getNumOperands() > 3)
      return false;
    instruction.code = it->second;
    int *operands[] = {&instruction.a, &instruction.b, &instruction.c};
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      *operands[i] = slot(operand);
    instruction.from = widthOf(op->getOperand(0).getType());
    return true;
  }

  bool translate(Instruction &instruction, arith::ConstantOp op) {
    instruction.code = Code::Constant;
    if (auto number = dyn_cast<FloatAttr>(op.getValue()))
      instruction.constant.f = number.getValueAsDouble();
    else if (auto boolean = dyn_cast<BoolAttr>(op.getValue()))
      instruction.constant.i = boolean.getValue();
    else if (auto integer = dyn_cast<IntegerAttr>(op.getValue()))
      instruction.constant.i = integer.getValue().getSExtValue();
    else
      return false;
    return true;
  }

  bool translate(Instruction &instruction, arith::CmpFOp op) {
    instruction.code = Code::CmpF;
    instruction.predicate = static_cast<uint8_t>(op.getPredicate());
    instruction.a = slot(op.getLhs());
    instruction.b = slot(op.getRhs());
    return true;
  }

  bool translate(Instruction &instruction, arith::CmpIOp op) {
    instruction.code = Code::CmpI;
    instruction.predicate = static_cast<uint8_t>(op.getPredicate());
    instruction.from = widthOf(op.getLhs().getType());
    instruction.a = slot(op.getLhs());
    instruction.b = slot(op.getRhs());
    return true;
  }

  bool translate(Instruction &instruction, LoadOp op) {
    instruction.code = Code::Load;
    instruction.tensor = tensorOf(op.getTensor());
    for (Value index : op.getIndices())
      instruction.indices.push_back(slot(index));
    if (op.getPad())
      instruction.pad = slot(op.getPad());
    return true;
  }

  bool translate(Instruction &instruction, ReduceOp op) {
    instruction.code = Code::Reduce;
    auto reduction = std::make_unique<Reduction>();
    for (unsigned k = 0; k < op.getNumAccumulators(); ++k) {
      reduction->kinds.push_back(op.getKind(k));
      reduction->results.push_back(slot(op.getResult(k)));
      Type term = op.getYield().getValues()[k].getType();
      reduction->widths.push_back(widthOf(term));
      reduction->isFloat.push_back(isa<FloatType>(term));
      reduction->present.push_back(-1);
    }
    for (auto [lower, upper] : llvm::zip(op.getLower(), op.getUpper())) {
      reduction->lower.push_back(slot(lower));
      reduction->upper.push_back(slot(upper));
    }
    reduction->body = translateBody(op.getBody());
    if (auto conditions = present.find(op); conditions != present.end())
      for (auto [place, condition] : llvm::zip_equal(reduction->present, conditions->second))
        place = condition ? slot(condition) : -1;
    if (!op.getRescale().empty())
      reduction->rescale = translateBody(op.getRescale());
    reduction->outer = slotsFromAbove(op.getOperation());
    reduction->isMatrixProduct = isMatrixProduct(op, 16);
    reduction->hasByteFactors = isMatrixProduct(op, 8);
    reduction->cutsAccumulator = op.getPrecision() == Precision::Fast;
    if (program->mode == Mode::Typed && op.getPrecision() == Precision::TF32)
      cutFactors(op, reduction->body);
    orderBody(*reduction, [&](int tensor) { return program->tensors[tensor].compute < 0; });
    instruction.reduction = std::move(reduction);
    return true;
  }

  /// What `term` is but for its sign, or where a condition leaves it in; else null.
  static Value withoutSignOrMask(Value term) {
    if (auto negation = term.getDefiningOp<arith::NegFOp>())
      return negation.getOperand();
    auto choice = term.getDefiningOp<arith::SelectOp>();
    return choice && matchPattern(choice.getFalseValue(), m_AnyZeroFloat()) ? choice.getTrueValue()
                                                                            : Value();
  }

  /// A product in tf32 cuts its factors off: whoever sums products of f32 may do so.
  void cutFactors(ReduceOp op, Body &body) {
    for (Value term : op.getYield().getValues()) {
      while (Value inner = withoutSignOrMask(term))
        term = inner;
      auto product = term.getDefiningOp<arith::MulFOp>();
      if (!product || !product.getType().isF32())
        continue;
      for (Instruction &instruction : body.instructions)
        instruction.cutsFactors |= instruction.destination == slot(product.getResult());
    }
  }

  /// Does `value`, in the body of `op`, rest on the reduction's indices?
  static bool varies(Value value, ReduceOp op) {
    llvm::SetVector<Value> needed;
    needed.insert(value);
    for (size_t n = 0; n < needed.size(); ++n) {
      Value part = needed[n];
      if (part.getParentBlock() != op.getBlock())
        continue;
      Operation *user = part.getDefiningOp();
      // What a nested reduction captures is not followed.
      if (!user || user->getNumRegions() > 0)
        return true;
      needed.insert(user->operand_begin(), user->operand_end());
    }
    return false;
  }

  /// Up to three factors of a term that vary: the others may be applied to the sum.
  static void collectFactors(Value term, ReduceOp op, llvm::SmallVectorImpl<Value> &factors) {
    // Nodes are shared, so that all paths may be too many.
    if (factors.size() > 2 || !varies(term, op))
      return;
    auto product = term.getDefiningOp<arith::MulFOp>();
    if (product && product.getType().isF32()) {
      collectFactors(product.getLhs(), op, factors);
      collectFactors(product.getRhs(), op, factors);
    } else if (Value inner = withoutSignOrMask(term)) {
      collectFactors(inner, op, factors);
    } else {
      factors.push_back(term);
    }
  }

  /// Is it an f32 sum of products whose factors are stored in `bits` or fewer?
  static bool isMatrixProduct(ReduceOp op, unsigned bits) {
    if (op.getNumAccumulators() != 1 || op.getKind(0) != ReduceKind::Sum ||
        op.getPrecision() == Precision::Exact || !op.getResult(0).getType().isF32())
      return false;
    llvm::SmallVector<Value> factors;
    collectFactors(op.getYield().getValues()[0], op, factors);
    auto isNarrow = [&](Value factor) {
      auto widened = factor.getDefiningOp<arith::ExtFOp>();
      return widened && widened.getIn().getType().getIntOrFloatBitWidth() <= bits;
    };
    return factors.size() == 2 && llvm::all_of(factors, isNarrow);
  }

  /// The scalars from outside that an operation's regions and bounds use.
  std::vector<int> slotsFromAbove(Operation *op) {
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    if (isa<ReduceOp>(op))
      captured.insert(op->operand_begin(), op->operand_end());
    std::vector<int> list;
    for (Value value : captured)
      if (!isa<RankedTensorType>(value.getType()))
        list.push_back(slot(value));
    return list;
  }

  bool translate(Instruction &instruction, ScanOp op) {
    instruction.code = Code::Scan;
    auto scan = std::make_unique<ScanState>();
    scan->kind = op.getKind();
    scan->isFloat = isa<FloatType>(op.getResult().getType());
    scan->lower = slot(op.getLower());
    scan->upper = slot(op.getUpper());
    scan->position = slot(op.getPosition());
    scan->body = translateBody(op.getBody());
    scan->outer = slotsFromAbove(op.getOperation());
    instruction.scan = std::move(scan);
    return true;
  }

  KernelOp kernel;
  PresentTerms present;
  std::unique_ptr<KernelProgram> program = std::make_unique<KernelProgram>();
  llvm::DenseMap<Value, int> slots, tensors;
  llvm::DenseSet<Value> constants; ///< scalars, and tensors of which every element is the same one
  int numSlots = 0;
  std::string error;
};

} // namespace

Expected<std::unique_ptr<KernelProgram>> translate(KernelOp kernel, Mode mode) {
  // A copy, to which conditions are added.
  OwningOpRef<KernelOp> copy = kernel.clone();
  return Translator(*copy, mode).run();
}

} // namespace tk::interp::detail
