//===- EmitReduce.cpp - reductions along a tile's axis --------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuExchange.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk::cuda {

std::string functorOf(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum:
    return "tk::Sum";
  case ReduceKind::Prod:
    return "tk::Product";
  case ReduceKind::Max:
    return "tk::Maximum";
  case ReduceKind::Min:
    return "tk::Minimum";
  case ReduceKind::Any:
    return "tk::Any";
  case ReduceKind::All:
    return "tk::All";
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin:
    break;
  }
  llvm_unreachable("places of extrema are found in two steps");
}

std::string KernelEmitter::scratch(unsigned bytes) {
  if (func.isSpread()) {
    failed = true;
    func.emitOpError("cannot be emitted as CUDA: expected threads of a cluster to exchange no more "
                     "than what reductions join");
  }
  // Shared by all that use it; barriers separate the uses.
  scratchBytes = std::max<unsigned>(scratchBytes, llvm::alignTo(bytes, gpu::kExchangeAlignment));
  return "scratch";
}

std::string KernelEmitter::ownScratch(unsigned bytes) {
  const unsigned offset = plannedShared + ownScratchBytes;
  ownScratchBytes += llvm::alignTo(bytes, gpu::kExchangeAlignment);
  return "shared + " + std::to_string(offset);
}

void KernelEmitter::awaitCluster() {
  if (!clusterRuns)
    line("tk::cluster_wait();");
  clusterRuns = true;
}

std::string KernelEmitter::declareExchange(llvm::StringRef type, unsigned count, unsigned bytes) {
  awaitCluster();
  const unsigned warps = func.getBlockWarps(), blocks = func.getCluster();
  const std::string exchange = used.fresh("exchange", /*ofFunction=*/true),
                    round = used.fresh("round", /*ofFunction=*/true);
  prologue += "  auto *const " + exchange + " = reinterpret_cast<tk::Exchange<" + type.str() +
              ", " + std::to_string(count) + ", " + std::to_string(warps) + ", " +
              std::to_string(blocks) + "> *>(" +
              ownScratch(gpu::joinBytes(gpu::JoinKind::Blocks, func, count, bytes)) + ");\n  int " +
              round + " = 0;\n";
  preparations += "    tk::prepare_exchange(" + exchange + ");\n";
  tellBeforeJoin();
  return exchange + ", " + round;
}

void KernelEmitter::combineInCluster(llvm::StringRef array, llvm::StringRef type,
                                     llvm::StringRef functor, unsigned count, unsigned bytes) {
  // Blocks send each other whole words.
  const bool narrow = bytes < 4;
  const std::string sent = narrow ? "int" : type.str();
  const std::string exchange = declareExchange(sent, count, std::max(bytes, 4u));
  std::string values = array.str();
  if (narrow) {
    values = freshName("wide");
    line(sent + " " + values + "[" + llvm::Twine(count) + "]; " + loopHeader(count) + " " + values +
         "[r] = " + array + "[r];");
  }
  line("tk::reduce_cluster<" + functor + ">(" + values + ", " + exchange + ");");
  if (narrow)
    line(loopHeader(count) + " " + array + "[r] = (" + type + ")" + values + "[r];");
}

void KernelEmitter::combineAtEnd(gpu::ReduceOp reduce, llvm::StringRef array,
                                 llvm::StringRef functor) {
  llvm::SmallVector<Value> results = {reduce.getResult()};
  std::string sums = array.str();
  if (gpu::ReduceOp beside = gpu::reductionBeside(reduce)) {
    sums = freshName("both");
    line("float " + sums + "[2] = {" + names[beside.getResult()] + "[0], " + array + "[0]};");
    results.insert(results.begin(), beside.getResult());
  }
  line("tk::reduce_lanes<" + functor + ", " + llvm::Twine(gpu::joinedBits(reduce).lanes) + ">(" +
       sums + ");");
  const std::string arguments = "<" + functor.str() + ">(" + sums + ", " +
                                declareExchange("float", results.size(), sizeof(float)) + ");";
  line("tk::send_cluster" + arguments);
  receives.emplace_back([this, results, sums, arguments] {
    line("tk::receive_cluster" + arguments);
    for (auto [number, result] : llvm::enumerate(results))
      declare(result, sums + "[" + std::to_string(number) + "]");
  });
}

/// Do all threads meet between one execution of `op` and the next, for another reduction in its
/// block?
static bool isFollowedByMeeting(Operation *op, gpu::FuncOp func) {
  if (!op->getBlock()->getOps<gpu::MomentsOp>().empty())
    return true;
  return llvm::any_of(op->getBlock()->getOps<gpu::ReduceOp>(), [&](gpu::ReduceOp other) {
    const gpu::LayoutAttr layout = gpu::getLayout(other.getSource().getType());
    return other != op && layout &&
           gpu::joinKindOf(other, func, gpu::axisBits(layout, other.getAxis())) ==
               gpu::JoinKind::UniformWarps;
  });
}

/// Do the threads that combine values meet between one execution of `op` and the next, at a barrier
/// in its block?
static bool isFollowedByBarrier(Operation *op) {
  return llvm::any_of(op->getBlock()->getOps<gpu::BarrierOp>(), [](gpu::BarrierOp barrier) {
    return !barrier.getCluster() && !barrier.getWarpgroup();
  });
}

void KernelEmitter::combineAcross(Operation *op, llvm::StringRef array, llvm::StringRef type,
                                  llvm::StringRef functor, unsigned count, unsigned bytes,
                                  gpu::AxisBits bits) {
  const gpu::JoinKind kind = gpu::joinKindOf(op, func, bits);
  // Several values of lanes that share them all are exchanged once, not by each: lanes take halves
  // of them, which a number that is no power of two has not.
  const bool atOnce =
      kind == gpu::JoinKind::EachLane && bits.lanes && count > 1 && llvm::isPowerOf2_32(count);
  if (bits.lanes && !atOnce)
    line("tk::reduce_lanes<" + functor + ", " + llvm::Twine(bits.lanes) + ">(" + array + ");");
  if (kind == gpu::JoinKind::InWarps)
    return;
  if (kind == gpu::JoinKind::Blocks)
    return combineInCluster(array, type, functor, count, bytes);
  const int64_t exchanged = gpu::joinBytes(kind, func, count, bytes);
  std::string numbers =
      ", " + std::to_string(bits.warps) + ", " + std::to_string(func.getNumWarps());
  if (atOnce)
    numbers = ", " + std::to_string(bits.lanes) + numbers;
  const bool isOwn = gpu::hasOwnExchange(op, kind);
  if (op->getParentOfType<gpu::WarpRolesOp>())
    numbers += ", tk::FirstThreads<" + std::to_string(kConsumerBarrier) + ", " +
               std::to_string(func.getNumWarps() * 32) +
               (isOwn && isFollowedByBarrier(op) ? ", true>" : ">");
  auto call = [&](llvm::StringRef primitive, llvm::StringRef place) {
    line("tk::" + primitive + "<" + functor + numbers + ">(" + array + ", reinterpret_cast<" +
         type + " *>(" + place + "));");
  };
  if (kind == gpu::JoinKind::EachLane) {
    call(atOnce ? "reduce_threads" : "reduce_warps",
         isOwn ? ownScratch(exchanged) : scratch(exchanged));
    return;
  }
  // With memory of its own only the same operation's last execution can still be reading.
  if (op->getParentOp() != func && !isFollowedByMeeting(op, func))
    line("tk::barrier();");
  call("reduce_uniform_warps", ownScratch(exchanged));
}

static llvm::SmallVector<int64_t> axesWithout(unsigned rank, unsigned axis) {
  llvm::SmallVector<int64_t> axes;
  for (unsigned a = 0; a < rank; ++a)
    if (a != axis)
      axes.push_back(a);
  return axes;
}

/// Checks that a reduction's result lives in the threads that hold the source.
FailureOr<Reduced> KernelEmitter::matchReduction(gpu::LayoutAttr source, Value result,
                                                 unsigned axis) {
  Reduced reduced;
  auto layout = gpu::getLayout(result.getType());
  if (!layout)
    return reduced;
  if (mlir::failed(projection(source, cast<RankedTensorType>(result.getType()),
                              axesWithout(source.getRank(), axis))))
    return failure();
  reduced.registers = layout.getNumRegisters();
  for (gpu::LayoutBit bit : layout.getRegisterBits()) {
    llvm::SmallVector<int64_t> offset(source.getRank(), 0);
    offset[bit.axis + (bit.axis >= static_cast<int32_t>(axis))] = bit.step;
    auto reg = source.getRegisterAt(offset);
    if (!reg)
      return failure();
    reduced.sourceOf.push_back(*reg);
  }
  return reduced;
}

/// Of an array with a reduction's results in registers of the source, those of the result.
std::string KernelEmitter::takeReduced(const Reduced &reduced, const std::string &terms,
                                       unsigned numTerms, llvm::StringRef type,
                                       llvm::StringRef hint) {
  const unsigned count = reduced.registers;
  if (count == numTerms)
    return terms;
  const std::string array = freshName(hint);
  const RegisterIndex reg("r", llvm::Log2_32(count));
  line(type + " " + array + "[" + llvm::Twine(count) + "];");
  line(count == 1 ? array + "[0] = " + terms + "[0];"
                  : loopHeader(count) + " " + array + "[r] = " + terms + "[" +
                        reg.mapped(reduced.sourceOf).str() + "];");
  return array;
}

LogicalResult KernelEmitter::emitReduce(gpu::ReduceOp reduce) {
  Value source = reduce.getSource(), result = reduce.getResult();
  auto layout = layoutOf(source);
  const unsigned axis = reduce.getAxis();
  auto matched = matchReduction(layout, result, axis);
  if (mlir::failed(matched))
    return unsupported(reduce, "expected a result in the threads that hold the source, got ")
           << result.getType();
  const std::string type = elementTypeName(source.getType());
  const std::string functor = functorOf(reduce.getKind());
  const gpu::AxisBits bits = gpu::joinedBits(reduce);
  const std::string hint = hintOf(result);
  const std::string terms = copyOf(source, hint.empty() ? "t" : hint + "_parts");
  if (bits.registers) {
    const std::string primitive =
        reduce.getAsIntegers() ? "maximum_as_integers<" : "reduce_registers<" + functor + ", ";
    line("tk::" + primitive + llvm::Twine(bits.registers) + ">(" + terms + ");");
  }
  const std::string array = takeReduced(*matched, terms, registersOf(source), type,
                                        hint.empty()     ? "partial"
                                        : isTile(result) ? hint
                                                         : hint + "_joined");
  const unsigned count = matched->registers;
  if (reduce.getBesideNext()) {
    names[result] = array; // until the next reduction
    return success();
  }
  if (gpu::isReadAtEnd(reduce) && gpu::joinKindOf(reduce, func, bits) == gpu::JoinKind::Blocks) {
    combineAtEnd(reduce, array, functor);
    return success();
  }
  if (gpu::ReduceOp beside = gpu::reductionBeside(reduce)) {
    const std::string both = freshName("both");
    line(type + " " + both + "[2] = {" + names[beside.getResult()] + "[0], " + array + "[0]};");
    combineAcross(reduce, both, type, functor, 2, elementBytes(source.getType()), bits);
    declare(beside.getResult(), both + "[0]");
    declare(result, both + "[1]");
    return success();
  }
  if (!reduce.getOpen())
    combineAcross(reduce, array, type, functor, count, elementBytes(source.getType()), bits);
  if (isTile(result))
    names[result] = array;
  else
    declare(result, array + "[0]");
  return success();
}

LogicalResult KernelEmitter::emitReduceRuns(gpu::ReduceRunsOp reduce) {
  Value source = reduce.getSource(), result = reduce.getResult();
  auto layout = layoutOf(source), left = layoutOf(result);
  const unsigned axis = reduce.getAxis();
  Reduced reduced{left.getNumRegisters(), {}};
  for (gpu::LayoutBit bit : left.getRegisterBits()) {
    llvm::SmallVector<int64_t> offset(layout.getRank(), 0);
    offset[bit.axis] =
        bit.axis == static_cast<int32_t>(axis) ? bit.step * reduce.getRun() : bit.step;
    reduced.sourceOf.push_back(*layout.getRegisterAt(offset));
  }
  const std::string type = elementTypeName(source.getType());
  const std::string functor = functorOf(reduce.getKind()), terms = copyOf(source);
  const gpu::AxisBits bits = gpu::runBits(layout, axis, reduce.getRun());
  if (bits.registers)
    line("tk::reduce_registers<" + functor + ", " + llvm::Twine(bits.registers) + ">(" + terms +
         ");");
  const std::string array = takeReduced(reduced, terms, registersOf(source), type);
  combineAcross(reduce, array, type, functor, reduced.registers, elementBytes(source.getType()),
                bits);
  names[result] = array;
  return success();
}

LogicalResult KernelEmitter::emitReduceInThreads(gpu::ReduceInThreadsOp reduce) {
  Value source = reduce.getSource(), result = reduce.getResult();
  auto layout = layoutOf(source), parts = layoutOf(result);
  Reduced reduced{parts.getNumRegisters(), {}};
  for (gpu::LayoutBit bit : parts.getRegisterBits()) {
    llvm::SmallVector<int64_t> offset(layout.getRank(), 0);
    offset[bit.axis] = bit.step;
    reduced.sourceOf.push_back(*layout.getRegisterAt(offset));
  }
  const std::string terms = copyOf(source);
  if (const unsigned along = gpu::axisBits(layout, reduce.getAxis()).registers)
    line("tk::reduce_registers<" + functorOf(reduce.getKind()) + ", " + llvm::Twine(along) + ">(" +
         terms + ");");
  names[result] =
      takeReduced(reduced, terms, registersOf(source), elementTypeName(source.getType()));
  return success();
}

LogicalResult KernelEmitter::emitArgReduce(gpu::ArgReduceOp reduce) {
  Value source = reduce.getSource(), value = reduce.getValue(), index = reduce.getIndex();
  auto layout = layoutOf(source);
  const unsigned axis = reduce.getAxis();
  if (layoutOf(reduce.getIndices()) != layout)
    return unsupported(reduce, "expected indices with the source's layout, got ")
           << reduce.getIndices().getType();
  auto matched = matchReduction(layout, value, axis);
  if (mlir::failed(matched))
    return unsupported(reduce, "expected a result in the threads that hold the source, got ")
           << value.getType();
  const std::string valueType = elementTypeName(source.getType());
  const std::string indexType = elementTypeName(index.getType());
  const bool wantsLargest = reduce.getKind() == ReduceKind::ArgMax;
  const std::string functor = functorOf(wantsLargest ? ReduceKind::Max : ReduceKind::Min);
  const gpu::AxisBits bits = gpu::axisBits(layout, axis);
  const unsigned total = registersOf(source), count = matched->registers;
  // The extremum of all first, which is one instruction a value: only threads that have it look for
  // its place.
  const std::string extrema = copyOf(source), places = copyOf(reduce.getIndices());
  if (bits.registers)
    line("tk::reduce_registers<" + functor + ", " + llvm::Twine(bits.registers) + ">(" + extrema +
         ");");
  const std::string best = freshName("best"), all = freshName("everywhere");
  const RegisterIndex some("r", llvm::Log2_32(count));
  const std::string mapped = "[" + some.mapped(matched->sourceOf).str() + "]";
  line(valueType + " " + best + "[" + llvm::Twine(count) + "], " + all + "[" + llvm::Twine(total) +
       "];");
  line(loopHeader(count) + " " + best + "[r] = " + extrema + mapped + ";");
  combineAcross(reduce, best, valueType, functor, count, elementBytes(source.getType()), bits);
  line(loopHeader(count) + " " + all + mapped + " = " + best + "[r];");
  line("tk::find_first<" + llvm::Twine(bits.registers) + ">(" + places + ", " +
       materialize(source) + ", " + extrema + ", " + all + ");");
  const std::string place = takeReduced(*matched, places, total, indexType);
  combineAcross(reduce, place, indexType, "tk::Minimum", count, elementBytes(index.getType()),
                bits);
  if (!isTile(value)) {
    declare(value, best + "[0]");
    declare(index, place + "[0]");
    return success();
  }
  names[value] = best;
  names[index] = place;
  return success();
}

} // namespace tk::cuda
