//===- EmitAsync.cpp - phases, bulk copies, doubts ------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "compiler/codegen/cuda/WarpArrivals.h"
#include "dialects/tkgpu/TkGpuFiniteOps.h"

using namespace mlir;

namespace tk::cuda {

/// Is this the thread that begins bulk stores, of all warps or of each warpgroup? A team is one.
static std::string leader(gpu::FuncOp func, bool ofWarpgroup) {
  ofWarpgroup |= func.getTeams() > 1;
  return ofWarpgroup ? "tk::thread_index() % 128 == 0" : "tk::thread_index() == 0";
}

/// The producer's program that `op` is part of, if it is.
static bool isInProducer(Operation *op) {
  auto roles = op->getParentOfType<gpu::WarpRolesOp>();
  return roles && roles.getProducer().isAncestor(op->getParentRegion());
}

/// Does a thread read shared memory by itself in the loop that `op` is part of? Products and what
/// moves matrices are the whole warp's, whose lanes are done with them together.
static bool isAmongReads(Operation *op) {
  Operation *scope = op->getParentOp();
  while (!isa<LoopLikeOpInterface, gpu::WarpRolesOp, FunctionOpInterface>(scope))
    scope = scope->getParentOp();
  return scope->walk([](gpu::LocalLoadOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

std::string KernelEmitter::phaseAt(Value phases, Value slot) {
  return "&" + names[phases] + "[" + scalar(slot) + "]";
}

void KernelEmitter::emitByOneThread(Operation *op, const llvm::Twine &statement) {
  line((isInProducer(op) ? "" : "if (tk::thread_index() == 0) ") + statement);
}

LogicalResult KernelEmitter::emitAllocPhases(gpu::AllocPhasesOp alloc) {
  const std::string name = nameFor(alloc.getResult());
  const int64_t stages = alloc.getType().getStages();
  std::string place = "reinterpret_cast<tk::PhaseBarrier *>";
  if (alloc.getNotes()) {
    // A function template has one array for all its calls: each allocation has an instance.
    int64_t id = 0;
    for (auto other : alloc->getBlock()->getOps<gpu::AllocPhasesOp>())
      id += other.getNotes() && other->isBeforeInBlock(alloc) ? 1 : 0;
    place = "tk::phases_apart<" + std::to_string(stages) +
            (id ? ", " + std::to_string(id) : std::string()) + ">";
  }
  line("tk::PhaseBarrier *const " + name + " = " + place + "(shared + " +
       llvm::Twine(phaseOffsets[alloc]) + ");");
  names[alloc.getResult()] = name;
  line("if (tk::thread_index() == 0) {");
  ++indent;
  const int64_t barriers = stages - (alloc.getNotes() ? 1 : 0);
  line("for (int i = 0; i < " + llvm::Twine(barriers) + "; ++i) tk::phase_init(&" + name + "[i], " +
       llvm::Twine(alloc.getArrivals()) + ");");
  if (alloc.getNotes())
    line("tk::clear_notes(&" + name + "[" + llvm::Twine(barriers) + "]);");
  line("tk::phase_init_fence();");
  --indent;
  line("}");
  return success();
}

LogicalResult KernelEmitter::emitPhaseExpect(gpu::PhaseExpectOp expect) {
  emitByOneThread(expect, "tk::phase_expect(" + phaseAt(expect.getPhases(), expect.getSlot()) +
                              ", " + llvm::Twine(expect.getBytes()) + ");");
  return success();
}

LogicalResult KernelEmitter::emitPhaseArrive(gpu::PhaseArriveOp arrive) {
  const std::string at = phaseAt(arrive.getPhases(), arrive.getSlot());
  // What lanes did before is not ordered by another lane's arrival.
  if (isAmongReads(arrive) || canLanesWaitBefore(arrive, arrive.getPhases()))
    line("tk::sync_warp();");
  if (arrive.getCluster()) // a lane for each block
    line("if (" + useLane() + " < " + llvm::Twine(func.getCluster()) + ") tk::phase_arrive_at(" +
         at + ", " + useLane() + ");");
  else
    line("if (" + useLane() + " == 0) tk::phase_arrive(" + at + ");");
  return success();
}

LogicalResult KernelEmitter::emitArriveBefore(gpu::ArriveBeforeOp arrive) {
  const std::string name = declare(arrive.getResult());
  const RegisterIndex reg("r", layoutOf(arrive.getResult()).getRegisterBits().size());
  line(loopHeader(registersOf(arrive.getResult())) + " " + name + "[" + reg.str() +
       "] = " + element(arrive.getValue(), reg) + ";");
  if (isAmongReads(arrive) || canLanesWaitBefore(arrive, arrive.getPhases()))
    line("tk::sync_warp();");
  line("tk::phase_arrive_before(" + phaseAt(arrive.getPhases(), arrive.getSlot()) + ", " +
       useLane() + ", " + name + "[0]);");
  return success();
}

LogicalResult KernelEmitter::emitPhaseWait(gpu::PhaseWaitOp wait) {
  line("tk::phase_wait(" + phaseAt(wait.getPhases(), wait.getSlot()) + ", " +
       scalar(wait.getParity()) + ");");
  return success();
}

static int64_t panelsOf(gpu::BulkCopyOp copy) {
  gpu::SharedType type = copy.getTarget().getType();
  return type.getShape()[type.getAxisOrder()[0]] / type.getRowLength();
}

/// The number of the tensor's columns, an argument, if the condition by which `select` chooses a
/// map compares a column with it; null if it does not.
static Value endOfColumns(arith::SelectOp select) {
  auto both = select.getCondition().getDefiningOp<arith::AndIOp>();
  auto compare = both ? both.getRhs().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!compare)
    return {};
  Value end = compare.getPredicate() == arith::CmpIPredicate::slt   ? compare.getRhs()
              : compare.getPredicate() == arith::CmpIPredicate::sgt ? compare.getLhs()
                                                                    : Value();
  auto argument = dyn_cast_or_null<BlockArgument>(end);
  return argument && isa<gpu::FuncOp>(argument.getOwner()->getParentOp()) ? end : Value();
}

bool KernelEmitter::isChosenByPanel(arith::SelectOp select) {
  return endOfColumns(select) && llvm::all_of(select->getUsers(), [](Operation *user) {
           auto copy = dyn_cast<gpu::BulkCopyOp>(user);
           return copy && panelsOf(copy) > 1;
         });
}

/// The map of `copy`, whose panel `p` begins at `column`. A panel outside of the tensor takes the
/// map that begins with it.
std::string KernelEmitter::mapOfPanel(gpu::BulkCopyOp copy, llvm::StringRef column) {
  auto select = copy.getMap().getDefiningOp<arith::SelectOp>();
  if (!select || !isChosenByPanel(select))
    return (isa<BlockArgument>(copy.getMap()) ? "&" : "") + names[copy.getMap()];
  auto both = select.getCondition().getDefiningOp<arith::AndIOp>();
  return (scalar(both.getLhs()) + " && " + column + " < " + scalar(endOfColumns(select)) + " ? &" +
          names[select.getTrueValue()] + " : &" + names[select.getFalseValue()])
      .str();
}

LogicalResult KernelEmitter::emitBulkCopy(gpu::BulkCopyOp copy) {
  if (!copy.getPhases())
    return unsupported(copy, "expected phases that the copy counts for");
  auto type = copy.getTarget().getType();
  const int64_t panels = panelsOf(copy), parts = type.getInterleave();
  std::string at, column, loop, to = names[copy.getTarget()];
  const int64_t cluster = copy.getMulticast() ? func.getCluster() : 1;
  const int64_t part = type.getShape()[type.getAxisOrder()[1]] / cluster;
  const unsigned rank = copy.getCoordinates().size();
  // The hardware counts axes from the contiguous one outwards.
  for (auto [d, coordinate] : llvm::enumerate(llvm::reverse(copy.getCoordinates()))) {
    std::string text = "(int)(" + scalar(coordinate) + ")";
    if (d == 0 && panels > 1)
      text += " + p * " + std::to_string(type.getRowLength());
    if (d == 1 && parts > 1)
      text += " + h * 2";
    if (copy.getMulticast() && *copy.getMulticast() == rank - 1 - d)
      text += " + tk::cluster_rank() * " + std::to_string(part);
    column = d == 0 ? text : column;
    at += (d ? ", " : "") + text;
  }
  if (copy.getFirstRow().value_or(0) > 0)
    to += " + " + std::to_string(*copy.getFirstRow() * type.getRowLength());
  if (panels > 1) {
    loop = "TK_UNROLL for (int p = 0; p < " + std::to_string(panels) + "; ++p) ";
    to += " + p * " + std::to_string(type.getPanelStride());
  }
  if (parts > 1) {
    loop += "TK_UNROLL for (int h = 0; h < " + std::to_string(parts) + "; ++h) ";
    to += " + h * " + std::to_string(type.getPanelStride() / parts);
  }
  std::string mask;
  if (copy.getMulticast()) {
    to += " + tk::cluster_rank() * " + std::to_string(part * type.getRowLength());
    mask = ", (tk::u16)" + std::to_string((1u << cluster) - 1);
  }
  if (!copy.getDistances().empty()) {
    at += "}, {";
    for (auto [d, distance] : llvm::enumerate(llvm::reverse(copy.getDistances())))
      at += (d ? ", (int)(" : "(int)(") + scalar(distance) + ")";
  }
  const char *form = !mask.empty() ? "_multicast" : copy.getDistances().empty() ? "" : "_windows";
  const char *keep = copy.getOnce()    ? ", tk::Keep::first"
                     : copy.getAgain() ? ", tk::Keep::last"
                                       : "";
  emitByOneThread(copy, loop + "tk::bulk_load" + form + "<" + llvm::Twine(rank) + keep + ">(" + to +
                            ", " + mapOfPanel(copy, column) + ", {" + at + "}, " +
                            phaseAt(copy.getPhases(), copy.getSlot()) + mask + ");");
  return success();
}

LogicalResult KernelEmitter::emitBulkStore(gpu::BulkStoreOp store) {
  auto type = store.getSource().getType();
  const int64_t panels = type.getShape()[type.getAxisOrder()[0]] / type.getRowLength();
  if (panels > 1)
    return unsupported(store, "expected a tile of one panel, got ") << type;
  const unsigned rank = store.getCoordinates().size();
  const bool byWarpgroup = store.getWarpgroupAxis().has_value();
  const int64_t groups = func.getRowsThatRun(func.getNumWarps()) / 4;
  const int64_t rows = type.getShape()[type.getAxisOrder()[1]] / std::max<int64_t>(groups, 1);
  std::string at, isInside, from = names[store.getSource()];
  for (auto [d, coordinate] : llvm::enumerate(llvm::reverse(store.getCoordinates()))) {
    std::string text = "(int)(" + scalar(coordinate) + ")";
    if (byWarpgroup && *store.getWarpgroupAxis() == rank - 1 - d)
      text += " + " + useWarp() + " / 4 * " + std::to_string(rows);
    if (store.getBeforeAxis() == rank - 1 - d)
      isInside = "if (" + text + " >= 0) ";
    at += (d ? ", " : "") + text;
  }
  if (byWarpgroup)
    from += " + " + useWarp() + " / 4 * " + std::to_string(rows * type.getRowLength());
  line("if (" + leader(func, byWarpgroup) + ") {");
  ++indent;
  line(isInside + "tk::bulk_store<" + llvm::Twine(rank) + ">(&" + names[store.getMap()] + ", {" +
       at + "}, " + from + ");");
  line("tk::bulk_commit();");
  --indent;
  line("}");
  return success();
}

LogicalResult KernelEmitter::emitBulkStoreWait(gpu::BulkStoreWaitOp wait) {
  line("if (" + leader(func, wait.getWarpgroup()) + ") tk::bulk_wait_read<" +
       llvm::Twine(wait.getPending()) + ">();");
  return success();
}

LogicalResult KernelEmitter::emitBarrier(gpu::BarrierOp barrier) {
  if (barrier.getCluster())
    line("tk::cluster_sync();");
  else if (barrier.getWarpgroup())
    line("tk::named_barrier_sync(" + llvm::Twine(kWarpgroupBarrier) + " + " + useWarp() +
         " / 4, 128);");
  else
    meet(barrier);
  return success();
}

std::string KernelEmitter::namedBarrier(Operation *op) {
  if (!op->getParentOfType<gpu::WarpRolesOp>())
    return "";
  if (func.getTeams() > 1)
    return std::to_string(kWarpgroupBarrier) + " + " + useWarp() + " / 4, 128";
  return std::to_string(kConsumerBarrier) + ", " + std::to_string(func.getBlockWarps() * 32);
}

void KernelEmitter::meet(Operation *op) {
  const std::string named = namedBarrier(op);
  line(named.empty() ? "tk::barrier();" : "tk::named_barrier_sync(" + named + ");");
}

std::string KernelEmitter::vote(Operation *op, const std::string &condition) {
  const std::string named = namedBarrier(op);
  return named.empty()
             ? "tk::block_all(" + condition + ", " + std::to_string(func.getBlockWarps() * 32) + ")"
             : "tk::named_barrier_all(" + named + ", " + condition + ")";
}

LogicalResult KernelEmitter::emitNoneNegative(gpu::NoneNegativeOp question) {
  Value source = question.getSource();
  std::string all;
  for (unsigned r = 0; r < registersOf(source); ++r)
    all += (r ? " && " : "") + element(source, RegisterIndex(r)) + " >= 0";
  declare(question, ("tk::named_barrier_all(" + llvm::Twine(kWarpgroupBarrier) + " + " + useWarp() +
                     " / 4, 128, " + all + ")")
                        .str());
  return success();
}

/// Where `phases` have their place for notes.
std::string KernelEmitter::notesOf(TypedValue<gpu::PhasesType> phases) {
  return "&" + names[phases] + "[" + std::to_string(phases.getType().getStages() - 1) + "]";
}

LogicalResult KernelEmitter::emitDoubt(gpu::DoubtOp doubt) {
  Value source = doubt.getSource();
  const float largest = std::numeric_limits<float>::max();
  if (doubt.getMost().convertToFloat() == largest &&
      doubt.getLeast().convertToFloat() == -largest) {
    noteIf(doubt, scalar(doubt.getAsked()) + " && !tk::all_finite(" + materialize(source) + ")");
    return success();
  }
  const std::string least = literal(doubt.getLeastAttr()), most = literal(doubt.getMostAttr());
  std::string all;
  const unsigned count = registersOf(source);
  for (unsigned r = 0; r < count; ++r) {
    const std::string x = element(source, RegisterIndex(r));
    all += (r ? " && " : "") + x + " >= " + least + " && " + x + " <= " + most;
  }
  noteIf(doubt, scalar(doubt.getAsked()) + " && !(" + all + ")");
  return success();
}

/// Sets the flag of `doubt` if `condition` holds, which is the operation's result.
void KernelEmitter::noteIf(gpu::DoubtOp doubt, const std::string &condition) {
  std::string asked = condition;
  if (!doubt.getResult().use_empty()) {
    declare(doubt, condition);
    asked = names[doubt.getResult()];
  }
  line("if (" + asked + ") tk::note(" + notesOf(doubt.getPhases()) + ");");
}

LogicalResult KernelEmitter::emitDoubted(gpu::DoubtedOp doubted) {
  const std::string met = "&" + names[doubted.getPhases()] + "[0]";
  const std::string answer = "tk::has_notes(" + notesOf(doubted.getPhases()) + ")";
  if (isInProducer(doubted)) {
    line("tk::phase_wait(" + met + ", 0);");
    declare(doubted, answer);
    return success();
  }
  line("tk::sync_warp();");
  line("if (" + useLane() + " == 0) tk::phase_arrive(" + met + ");");
  line("tk::phase_wait(" + met + ", 0);");
  // By all threads: those that have begun none do not wait, and a branch on which thread this is
  // would have ptxas spill what the tiles' loop carries.
  line("tk::bulk_wait<0>();");
  // A vote is the same in all lanes, as bounds of loops are to be known to be.
  declare(doubted, "tk::any_in_warp(" + answer + ")");
  return success();
}

} // namespace tk::cuda
