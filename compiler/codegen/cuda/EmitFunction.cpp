//===- EmitFunction.cpp - signatures, dispatch of operations --------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuCountOps.h"
#include "dialects/tkgpu/TkGpuFiniteOps.h"
#include "dialects/tkgpu/TkGpuHistogramOps.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "dialects/tkgpu/TkGpuSortOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk::cuda {

// Words that C++ or NVRTC claim, and those of kernels' own text. All else of the primitives stands
// in tk::, but for macros, whose names begin with TK_.
static constexpr llvm::StringLiteral reserved =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
    "char32_t char8_t class compl concept const const_cast consteval constexpr constinit "
    "continue co_await co_return co_yield decltype default delete do double dynamic_cast else "
    "enum explicit export extern false float for friend goto if inline int long mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "register reinterpret_cast requires restrict return short signed sizeof static "
    "static_assert static_cast struct switch template this thread_local throw true try "
    "typedef typeid typename union unsigned using virtual void volatile wchar_t while xor "
    "xor_eq tk lane warp r scratch shared threadIdx blockIdx blockDim gridDim warpSize main "
    "linux unix NULL assert";

KernelEmitter::KernelEmitter(gpu::FuncOp func, llvm::StringRef symbol, const EmitOptions &options)
    : EmitterState(func, symbol, options) {
  holdsProducts = func.walk([](Operation *op) {
                        return isa<gpu::DotOp, gpu::WarpgroupDotOp>(op) ? WalkResult::interrupt()
                                                                        : WalkResult::advance();
                      })
                      .wasInterrupted();
  for (llvm::StringRef word : llvm::split(reserved, ' '))
    used.reserve(word);
}

/// A file's name as `#line` takes it. Compilers and ptxas do not agree on quotes, line breaks and
/// bytes that are not UTF-8, escaped or not: those become question marks.
static std::string nameInDirective(StringRef name) {
  const bool isText = llvm::json::isUTF8(name);
  std::string text;
  for (char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\')
      text += "\\\\";
    else
      text += c == '"' || byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !isText) ? '?' : c;
  }
  return text;
}

void KernelEmitter::line(const llvm::Twine &text) {
  auto place = location->findInstanceOf<FileLineColLoc>();
  if (options.lineDirectives && place) {
    const std::string file = place.getFilename().str();
    if (file != lineFile || place.getLine() != nextLine) {
      body += "#line " + std::to_string(place.getLine()) + " \"" + nameInDirective(file) + "\"\n";
      lineFile = file;
    }
    nextLine = place.getLine() + 1;
  } else {
    ++nextLine;
  }
  body.append(indent * 2, ' ');
  body += text.str();
  body += '\n';
}

InFlightDiagnostic KernelEmitter::unsupported(Operation *op, const llvm::Twine &what) {
  failed = true;
  return op->emitOpError("cannot be emitted as CUDA: ") << what;
}

static unsigned numThreads(gpu::FuncOp func) {
  return (func.getBlockWarps() + func.getProducerWarps()) * 32;
}

std::string KernelEmitter::signature() {
  llvm::DenseSet<Value> written;
  func.walk([&](gpu::StoreOp store) { written.insert(store.getBuffer()); });
  func.walk([&](gpu::DrawOp draw) { written.insert(draw.getCounter()); });
  // Earlier launches, or other blocks, write these after the function has begun.
  llvm::DenseSet<Value> changing;
  func.walk([&](gpu::LastBlockOp last) {
    written.insert(last.getCounters());
    changing.insert(last.getBuffers().begin(), last.getBuffers().end());
  });
  func.walk([&](gpu::LaunchWaitOp wait) {
    changing.insert(wait.getBuffers().begin(), wait.getBuffers().end());
  });
  // A result that replaces a parameter has that parameter's address.
  const bool inPlace = gpu::getPlan(func).inPlace;
  std::string text =
      "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(numThreads(func));
  if (auto blocks = func.getMinBlocks())
    text += ", " + std::to_string(*blocks);
  text += ")\n" + symbol + "(";
  for (auto [i, argument] : llvm::enumerate(func.getBlock()->getArguments())) {
    const std::string name = freshName(func.getArgName(i));
    telling.insert(name);
    names[argument] = name;
    text += i ? ", " : "";
    if (auto buffer = dyn_cast<gpu::BufferType>(argument.getType()))
      text += (written.contains(argument) ? "" : "const ") + typeName(buffer.getElementType()) +
              (inPlace || changing.contains(argument) ? " *" : " *__restrict__ ") + name;
    else if (isa<gpu::TensorMapType>(argument.getType()))
      text += "const __grid_constant__ tk::TensorMap " + name;
    else
      text += "const " + typeName(argument.getType()) + " " + name;
  }
  return text + ") {\n";
}

void KernelEmitter::assignSharedOffsets() {
  unsigned end = 0;
  const bool planned = func.getSharedBytes().has_value();
  func.walk([&](gpu::AllocSharedOp alloc) {
    const unsigned bytes = alloc.getType().getSizeInBytes();
    // Not planned: one after the other.
    const unsigned offset = alloc.getOffset() ? *alloc.getOffset() : llvm::alignTo(end, 128);
    sharedOffsets[alloc] = offset;
    end = std::max(end, offset + bytes);
  });
  func.walk([&](gpu::AllocPrivateOp alloc) {
    const unsigned offset = alloc.getOffset() ? *alloc.getOffset() : llvm::alignTo(end, 16);
    sharedOffsets[alloc] = offset;
    end = std::max<unsigned>(end, offset + alloc.getType().getBytesOfThread() *
                                               func.getBlockWarps() * 32);
  });
  func.walk([&](gpu::AllocPhasesOp alloc) {
    const unsigned offset = alloc.getOffset() ? *alloc.getOffset() : llvm::alignTo(end, 8);
    phaseOffsets[alloc] = offset;
    end = std::max<unsigned>(end, offset + alloc.getType().getStages() * 8);
  });
  plannedShared = std::max<unsigned>(end, planned ? *func.getSharedBytes() : 0);
  plannedShared = llvm::alignTo(plannedShared, 16);
}

FailureOr<EmittedKernel> KernelEmitter::emit(std::string &text) {
  assignSharedOffsets();
  const std::string head = signature();
  if (mlir::failed(emitBlock(*func.getBlock())) || failed)
    return failure();
  const unsigned scratchBegin = plannedShared + ownScratchBytes;
  if (scratchBytes)
    prologue =
        "  tk::u8 *const scratch = shared + " + std::to_string(scratchBegin) + ";\n" + prologue;
  if (func.isSpread()) {
    // Nobody writes to another block's memory before that block runs and has prepared for it.
    if (!preparations.empty())
      prologue += "  if (tk::thread_index() == 0) {\n" + preparations +
                  "    tk::phase_init_fence();\n  }\n";
    prologue += "  tk::cluster_arrive_relaxed();\n";
    awaitCluster();
  }
  if (scratchBegin + scratchBytes)
    prologue = "  tk::u8 *const shared = tk::shared_memory();\n" + prologue;
  if (func.isSpread()) {
    if (usesWarp)
      prologue = "  const int warp = tk::cluster_rank() * " + std::to_string(func.getBlockWarps()) +
                 " + tk::warp_index();\n" + prologue;
  } else if (usesWarp)
    prologue =
        std::string("  const int warp = ") +
        (func.getProducerWarps() ? "tk::warp_uniform(tk::warp_index())" : "tk::warp_index()") +
        ";\n" + prologue;
  if (usesLane)
    prologue = "  const int lane = tk::lane_index();\n" + prologue;
  EmittedKernel kernel;
  kernel.begin = text.size();
  for (BlockArgument argument : func.getBlock()->getArguments())
    kernel.arguments.push_back(names[argument]);
  text += head + prologue + body + "}\n";
  kernel.name = func.getSymName().str();
  kernel.symbol = symbol;
  kernel.threads = numThreads(func);
  kernel.sharedBytes = scratchBegin + scratchBytes;
  kernel.indexBits = func.getIndexBits();
  kernel.cluster = func.getCluster();
  func.walk([&](gpu::LaunchWaitOp) { kernel.waits = true; });
  // Passes plan buffers and leave room for what reductions exchange; what scans, reductions to
  // indices and changes of layout exchange is known only here. What is apart moves all of that.
  constexpr size_t kSharedAlignment = 1024; // of tk::shared_memory()
  size_t apart = 0;
  func.walk([&](gpu::AllocPhasesOp alloc) { apart = alloc.getNotes() ? kSharedAlignment : apart; });
  if (auto target = func->getParentOp()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
      target && kernel.sharedBytes + apart > size_t(target.getShared()))
    return func.emitError("needs ") << kernel.sharedBytes + apart << " B of shared memory, sm_"
                                    << target.getArch() << " has " << target.getShared() << " B";
  return kernel;
}

LogicalResult KernelEmitter::emitBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (mlir::failed(emitOp(&op)))
      return failure();
  flushGroup();
  return failure(failed);
}

LogicalResult KernelEmitter::emitOp(Operation *op) {
  for (Value result : op->getResults())
    if (isTile(result) && !layoutOf(result))
      return unsupported(op, "expected tiles with layouts, got ") << result.getType();
  locate(op->getLoc());
  if (isInline(op))
    return checkInline(op);
  if (isWithinCappedTile(op) || isWithinScaledIntegers(op))
    return success();
  if (joinScaledField(op))
    return failure(failed);
  if (joinGroup(op))
    return failure(failed);
  if (auto select = dyn_cast<arith::SelectOp>(op);
      select && isa<gpu::TensorMapType>(select.getType())) {
    if (isChosenByPanel(select))
      return failure(failed);
    names[select] = freshName("map");
    line("const tk::TensorMap *const " + names[select] + " = " + scalar(select.getCondition()) +
         " ? &" + names[select.getTrueValue()] + " : &" + names[select.getFalseValue()] + ";");
    return failure(failed);
  }
  if (op->getNumResults() == 1 && !isTile(op->getResult(0)) && op->getNumRegions() == 0) {
    llvm::SmallVector<std::string> operands;
    for (Value operand : op->getOperands())
      operands.push_back(isTile(operand) || isa<gpu::BufferType, gpu::SharedType>(operand.getType())
                             ? ""
                             : scalar(operand));
    if (auto value = expression(op, operands)) {
      declare(op->getResult(0), *value);
      return failure(failed);
    }
  }
  flushGroup();
  locate(op->getLoc());
  commentPhase(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](gpu::ProgramIdOp id) {
        declare(id, "tk::block_" + stringifyGridAxis(id.getAxis()).str() + "()");
        return success();
      })
      .Case([&](gpu::NumProgramsOp o) {
        declare(o, "tk::grid_" + stringifyGridAxis(o.getAxis()).str() + "()");
        return success();
      })
      .Case([&](gpu::LoadOp o) { return emitLoad(o); })
      .Case([&](gpu::StoreOp o) { return emitStore(o); })
      .Case([&](gpu::CopyAsyncOp o) { return emitCopyAsync(o); })
      .Case([&](gpu::AllocSharedOp o) { return emitAllocShared(o); })
      .Case([&](gpu::AllocPrivateOp o) { return emitAllocPrivate(o); })
      .Case([&](gpu::CopyPrivateOp o) { return emitCopyPrivate(o); })
      .Case([&](gpu::PrivateLoadOp o) { return emitPrivateLoad(o); })
      .Case([&](gpu::PrivateStoreOp o) { return emitPrivateStore(o); })
      .Case([&](gpu::StageOp o) { return emitStage(o); })
      .Case([&](gpu::LocalLoadOp o) { return emitLocalLoad(o); })
      .Case([&](gpu::LocalStoreOp o) { return emitLocalStore(o); })
      .Case([&](gpu::ConvertLayoutOp o) { return emitConvertLayout(o); })
      .Case([&](gpu::JoinOp o) { return emitJoin(o); })
      .Case([&](gpu::HoldOp o) { return emitHold(o); })
      .Case([&](gpu::FunnelOp o) { return emitFunnel(o); })
      .Case([&](gpu::MisalignmentOp o) { return emitMisalignment(o); })
      .Case([&](gpu::ReduceOp o) { return emitReduce(o); })
      .Case([&](gpu::ReduceRunsOp o) { return emitReduceRuns(o); })
      .Case([&](gpu::ReduceInThreadsOp o) { return emitReduceInThreads(o); })
      .Case([&](gpu::ArgReduceOp o) { return emitArgReduce(o); })
      .Case([&](gpu::MomentsOp o) { return emitMoments(o); })
      .Case([&](gpu::WeightsOp o) { return emitWeights(o); })
      .Case([&](gpu::SelectAtOp o) { return emitSelectAt(o); })
      .Case([&](gpu::ScanOp o) { return emitScan(o); })
      .Case([&](gpu::HistogramOp o) { return emitHistogram(o); })
      .Case([&](gpu::SortOp o) { return emitSort(o); })
      .Case([&](gpu::RecurrenceOp o) { return emitRecurrence(o); })
      .Case([&](gpu::DotOp o) { return emitDot(o); })
      .Case([&](gpu::AsyncCommitOp) { return line("tk::async_commit();"), success(); })
      .Case([&](gpu::AsyncWaitOp o) {
        line("tk::async_wait<" + llvm::Twine(o.getPending()) + ">();");
        return success();
      })
      .Case([&](gpu::BarrierOp o) { return emitBarrier(o); })
      .Case([&](gpu::TurnOp o) { return emitTurn(o); })
      .Case([&](gpu::NoneNegativeOp o) { return emitNoneNegative(o); })
      .Case([&](gpu::AllFiniteOp o) {
        std::string all;
        for (Value source : o.getSources())
          all += (all.empty() ? "" : " && ") + ("tk::all_finite(" + materialize(source) + ")");
        declare(o, "tk::block_all(" + all + ", " + std::to_string(func.getBlockWarps() * 32) + ")");
        return success();
      })
      .Case([&](gpu::RepairOp o) { return emitRepair(o); })
      .Case([&](gpu::PutElementOp o) {
        line("tk::put(&" + names[o.getBuffer()] + "[" + scalar(o.getOffset()) + "], " +
             scalar(o.getValue()) + ");");
        return success();
      })
      .Case([&](gpu::DoubtOp o) { return emitDoubt(o); })
      .Case([&](gpu::DoubtedOp o) { return emitDoubted(o); })
      .Case([&](gpu::NotedOp o) {
        const std::string answer = "tk::has_notes(" + notesOf(o.getPhases()) + ")";
        auto roles = o->getParentOfType<gpu::WarpRolesOp>();
        const bool isProducer = roles && roles.getProducer().isAncestor(o->getParentRegion());
        declare(o, isProducer ? answer : "tk::any_in_warp(" + answer + ")");
        return success();
      })
      .Case([&](gpu::KeepFiniteOp o) {
        const int64_t words = o.getStage().getType().getSizeInBytes() / 4;
        line("tk::keep_finite<" + llvm::Twine(words) + ">(" + names[o.getStage()] + ", &" +
             names[o.getPhases()] + "[0], finite_parity, &" + names[o.getPhases()] + "[1]);");
        return success();
      })
      .Case([&](gpu::LaunchReleaseOp) { return line("tk::release_launch();"), success(); })
      .Case([&](gpu::LaunchWaitOp) { return line("tk::await_launch();"), success(); })
      .Case([&](gpu::AllocPhasesOp o) { return emitAllocPhases(o); })
      .Case([&](gpu::PhaseExpectOp o) { return emitPhaseExpect(o); })
      .Case([&](gpu::PhaseArriveOp o) { return emitPhaseArrive(o); })
      .Case([&](gpu::ArriveBeforeOp o) { return emitArriveBefore(o); })
      .Case([&](gpu::PhaseWaitOp o) { return emitPhaseWait(o); })
      .Case([&](gpu::BulkCopyOp o) { return emitBulkCopy(o); })
      .Case([&](gpu::BulkStoreOp o) { return emitBulkStore(o); })
      .Case([&](gpu::BulkStoreWaitOp o) { return emitBulkStoreWait(o); })
      .Case([&](gpu::AsyncFenceOp) { return line("tk::fence_async_proxy();"), success(); })
      .Case([&](gpu::ClusterRankOp o) {
        declare(o, "tk::cluster_rank()");
        return success();
      })
      .Case([&](gpu::DrawOp o) { return emitDraw(o); })
      .Case([&](gpu::LastBlockOp o) {
        declare(o, "tk::is_last_block(&" + names[o.getCounters()] + "[" + scalar(o.getGroup()) +
                       "], (int)" + scalar(o.getCount()) + ", reinterpret_cast<int *>(" +
                       scratch(sizeof(int)) + "))");
        return success();
      })
      .Case([&](gpu::TellOp o) { return emitTell(o); })
      .Case([&](gpu::ToldOp o) { return emitTold(o); })
      .Case([&](gpu::OfWarpgroupOp o) { return emitOfWarpgroup(o); })
      .Case([&](gpu::RowsBoundOp o) { return declare(o, scalar(o.getWhole())), success(); })
      .Case([&](gpu::WarpRolesOp o) { return emitWarpRoles(o); })
      .Case([&](gpu::WarpgroupDotOp o) { return emitWarpgroupDot(o); })
      .Case([&](gpu::WarpgroupSumsOp o) { return emitWarpgroupSums(o); })
      .Case([&](gpu::ClearOp o) { return emitClear(o); })
      .Case([&](gpu::FirstInThreadsOp o) { return emitFirstInThreads(o); })
      .Case([&](gpu::WarpgroupWaitOp o) { return emitWarpgroupWait(o); })
      .Case([&](scf::ForOp o) { return emitFor(o); })
      .Case([&](scf::IfOp o) { return emitIf(o); })
      .Case([&](scf::WhileOp o) { return emitWhile(o); })
      .Case<arith::TruncFOp, arith::SIToFPOp, arith::ExtFOp, math::TanhOp, arith::MulFOp,
            math::FmaOp, ExpDiffOp, RandOp>([&](Operation *o) { return emitWholeTile(o); })
      .Default([&](Operation *o) -> LogicalResult {
        return unsupported(o, "no form for this operation");
      });
}

const EmittedKernel *EmittedModule::find(llvm::StringRef name) const {
  for (const EmittedKernel &kernel : kernels)
    if (kernel.name == name)
      return &kernel;
  return nullptr;
}

FailureOr<EmittedModule> emitCuda(ModuleOp module, const EmitOptions &options) {
  EmittedModule emitted;
  emitted.text = "#include \"tk_device.cuh\"\n";
  WalkResult hopper = module.walk([](Operation *op) {
    return isa<gpu::AllocPhasesOp, gpu::ClusterRankOp>(op) ? WalkResult::interrupt()
                                                           : WalkResult::advance();
  });
  if (hopper.wasInterrupted())
    emitted.text += "#include \"hopper.cuh\"\n" + warpgroupDeclarations(module);
  else if (llvm::any_of(module.getOps<gpu::FuncOp>(), [](auto func) { return func.isSpread(); }))
    emitted.text += "#include \"cluster.cuh\"\n";
  llvm::StringSet<> symbols;
  for (auto func : module.getOps<gpu::FuncOp>()) {
    emitted.text += "\n";
    // Names such as "loss.partial" are none in C++.
    std::string symbol = func.getSymName().str();
    for (char &c : symbol)
      c = llvm::isAlnum(c) ? c : '_';
    while (!symbols.insert(symbol).second)
      symbol += '_';
    auto kernel = KernelEmitter(func, symbol, options).emit(emitted.text);
    if (failed(kernel))
      return failure();
    emitted.kernels.push_back(*kernel);
  }
  return emitted;
}

} // namespace tk::cuda
