//===- KernelEmitter.h - emission of one function, internal ------*- C++ -*-===//
//
// A tile is an array of the registers that a thread holds, `float x[8]`; a scalar is a variable.
// Runs of elementwise operations on tiles of one layout become one unrolled loop over registers.
// Broadcasts, coordinates, constants and renamings of registers have no storage: they are
// expressions wherever they are used.
//
// The methods are spread over the files of this folder by family: EmitFunction (signature),
// EmitNames, EmitScalar (single operations), EmitTile (tiles and fused loops), EmitCaps,
// EmitPositions, EmitControl, EmitGlobal, EmitShared, EmitPrivate, EmitReduce, EmitScan, EmitPairs
// (two reductions in one exchange), EmitDraws, EmitFragments, EmitMatrix, EmitAsync, EmitRoles,
// EmitWarpgroup, EmitDescriptors (factors of warpgroups' products), EmitTypes, EmitComments. What a
// method tells of a tile or an operation is in TileAddresses.h, CappedTile.h and OperationParts.h.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_CUDA_KERNELEMITTER_H
#define TK_COMPILER_CODEGEN_CUDA_KERNELEMITTER_H

#include "compiler/codegen/cuda/EmitterState.h"
#include "compiler/codegen/cuda/OperationParts.h"
#include "dialects/tkgpu/TkGpuFields.h"
#include "dialects/tkgpu/TkGpuFiniteOps.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/Twine.h"

namespace tk::gpu {
class HistogramOp;
class RecurrenceOp;
class SortOp;
} // namespace tk::gpu

namespace tk::cuda {

/// The barrier of the consumer's warps. Barrier 0 is the whole block's.
inline constexpr int kConsumerBarrier = 1;
/// That of the first warpgroup; each has one.
inline constexpr int kWarpgroupBarrier = kConsumerBarrier + 1;

/// Declares the warpgroup products that a module's functions use; each is its own template.
std::string warpgroupDeclarations(mlir::ModuleOp module);

class KernelEmitter : EmitterState {
public:
  KernelEmitter(gpu::FuncOp func, llvm::StringRef symbol, const EmitOptions &options);
  /// Appends the function to `text`.
  mlir::FailureOr<EmittedKernel> emit(std::string &text);

private:
  using Result = mlir::LogicalResult;

  // EmitFunction
  std::string signature();
  std::string freshName(llvm::StringRef hint) { return used.fresh(hint); }
  std::string nameFor(mlir::Value value);
  std::string hintOf(mlir::Value value);
  std::string nameOfArithmetic(mlir::Operation *op);
  /// Appends a line, indented and tied to the location of the operation being emitted.
  void line(const llvm::Twine &text);
  void locate(mlir::Location loc) { location = loc; }
  /// A comment with the source line and the tile of an operation that moves, multiplies or reduces
  /// tiles, unless it goes on with what the last comment says.
  void commentPhase(mlir::Operation *op);
  Result emitBlock(mlir::Block &block);
  Result emitOp(mlir::Operation *op);
  mlir::InFlightDiagnostic unsupported(mlir::Operation *op, const llvm::Twine &what);
  void assignSharedOffsets();

  // EmitTypes
  /// The C++ type of an element or scalar; empty (and an error at the function) if there is none.
  std::string typeName(mlir::Type type);
  /// That of a tile's elements or of a scalar.
  std::string elementTypeName(mlir::Type type) {
    return typeName(mlir::getElementTypeOrSelf(type));
  }
  std::string hoisted(const std::string &expression, llvm::StringRef hint);
  /// The name of an argument that loops divide by, with its reciprocal.
  std::string divisor(const std::string &argument);
  std::optional<std::string> dividedIndex(mlir::Operation *op, llvm::ArrayRef<std::string> in);
  unsigned elementBytes(mlir::Type type);
  std::string literal(mlir::TypedAttr value);

  // EmitScalar
  /// The value of an elementwise operation for given operands; nullopt if it is none.
  std::optional<std::string> expression(mlir::Operation *op, llvm::ArrayRef<std::string> operands);
  std::optional<std::string> arithExpression(mlir::Operation *op, llvm::ArrayRef<std::string> in);
  std::string quotient(mlir::arith::DivFOp divide, llvm::ArrayRef<std::string> in);
  std::string approximateQuotient(mlir::arith::DivFOp divide, llvm::ArrayRef<std::string> in);
  std::optional<std::string> castExpression(mlir::Operation *op, llvm::ArrayRef<std::string> in);
  std::optional<std::string> mathExpression(mlir::Operation *op, llvm::ArrayRef<std::string> in);
  /// Draws a block of Philox for so many consecutive registers as share one.
  Result emitNeighbours(RandOp rand);
  std::string unsignedCast(mlir::Type type, llvm::StringRef x);

  // EmitTile
  bool isTile(mlir::Value value) { return llvm::isa<mlir::RankedTensorType>(value.getType()); }
  gpu::LayoutAttr layoutOf(mlir::Value value) { return gpu::getLayout(value.getType()); }
  unsigned registersOf(mlir::Value value) {
    return isTile(value) ? layoutOf(value).getNumRegisters() : 1;
  }
  unsigned registerBits(mlir::Value value) {
    return isTile(value) ? layoutOf(value).getRegisterBits().size() : 0;
  }
  /// The element of a tile in a register, or a scalar.
  std::string element(mlir::Value value, const RegisterIndex &reg);
  std::string iotaElement(mlir::Value iota, const RegisterIndex &reg);
  std::string rotatedElement(gpu::RotatedIotaOp rotated, const RegisterIndex &reg);
  std::string scalar(mlir::Value value) { return element(value, RegisterIndex(0)); }
  /// Whether a value is an expression wherever it is used.
  bool isInline(mlir::Operation *op);
  /// The registers of a lower-rank tile that go with those of a tile of `layout`; axis `a` of it
  /// is axis `dims[a]`.
  mlir::FailureOr<BitMap> projection(gpu::LayoutAttr layout, mlir::RankedTensorType source,
                                     llvm::ArrayRef<int64_t> dims);
  /// For an inline operation on a tile: the source's register for each bit of the result's, and
  /// that for register 0.
  mlir::FailureOr<std::pair<BitMap, unsigned>> registersInSource(mlir::Operation *op);
  /// The register of `whole` that is `reg` of its part at `offsets`.
  mlir::FailureOr<RegisterIndex> registerOfPart(mlir::RankedTensorType part,
                                                mlir::RankedTensorType whole,
                                                llvm::ArrayRef<int64_t> offsets,
                                                const RegisterIndex &reg);
  /// Where a tile's registers are found in an array, in whole groups of 1 << lowBits.
  Fragments fragmentsOf(mlir::Value value, unsigned lowBits);
  /// The same if no new array is needed.
  std::optional<Fragments> renamed(mlir::Value value, unsigned lowBits);
  /// Where pairs of a tile of 8-bit floats are found, if they are whole somewhere.
  std::optional<Fragments> renamedPairs(mlir::Value value);
  Result checkInline(mlir::Operation *op);
  /// The name of an array that holds a tile; makes one if it is only an expression.
  std::string materialize(mlir::Value value);
  /// Declares a variable (array) for a value.
  std::string declare(mlir::Value value, llvm::StringRef initial = "");
  /// A new array that the caller may overwrite, with the tile's contents.
  std::string copyOf(mlir::Value value, llvm::StringRef hint = "");
  void assign(llvm::StringRef target, mlir::Value value);
  std::string loopHeader(unsigned count, unsigned step = 1);
  Result emitHold(gpu::HoldOp hold);
  Result emitFunnel(gpu::FunnelOp funnel);
  Result emitSelectAt(gpu::SelectAtOp select);
  bool joinGroup(mlir::Operation *op);
  std::optional<ScaledIntegers> scaledIntegers(mlir::Operation *op);
  bool isWithinScaledIntegers(mlir::Operation *op);
  /// The fields that `end` rounds, if neighbours have their zero and scale in common.
  std::optional<gpu::ScaledField> scaledField(mlir::Operation *end);
  /// Emits the fields that `op` ends, or nothing if it is within such fields; false if it is not.
  bool joinScaledField(mlir::Operation *op);
  bool isSharedByPairs(mlir::Value value);
  int64_t stepOfPlaces(mlir::Value place);
  void emitScaledField(const gpu::ScaledField &scaled, mlir::Value result);
  void flushGroup();
  void emitGroupStatement(mlir::Operation *op, const RegisterIndex &reg);
  bool escapesGroup(mlir::Value value);
  /// The thread's part of the coordinate along an axis, an int variable or "0".
  std::string threadCoordinate(gpu::LayoutAttr layout, unsigned axis);
  /// What a register adds to it, an expression.
  std::string registerCoordinate(gpu::LayoutAttr layout, unsigned axis, const RegisterIndex &reg);
  std::string coordinate(gpu::LayoutAttr layout, unsigned axis, const RegisterIndex &reg);
  /// A condition that holds in one of the threads that hold the same elements; empty: in all.
  std::string ownerCondition(gpu::LayoutAttr layout);
  std::string useLane() { return usesLane = true, "lane"; }
  std::string useWarp() { return usesWarp = true, "warp"; }

  // EmitCaps
  std::optional<CappedTile> cappedScores(mlir::Operation *op);
  std::optional<CappedTile> cappedTile(mlir::Operation *op);
  /// Is `op` told with the operation that ends a capped tile?
  bool isWithinCappedTile(mlir::Operation *op);
  std::string factorsOf(const CappedTile &capped);
  std::string declareCap(const std::string &factors);
  /// Declares what capped tiles of `loop` have in common, if it is known here; returns whose
  /// `caps` end with the loop.
  llvm::SmallVector<std::string> declareCaps(mlir::scf::ForOp loop);
  /// The scalar and the places of columns whose product `added` is; nulls if it is none.
  std::pair<mlir::Value, gpu::IotaOp> risingBy(mlir::Value added);
  AddedToCap addedToCap(const CappedTile &capped, mlir::Value result);
  StepOfReferences stepOf(const CappedTile &capped);
  /// Is `op` computed for nothing but references of rows that are told with weights under them?
  bool isWithinReferences(mlir::Operation *op);
  /// Which row's reference is that of register `r`, if two of a thread's rows share theirs; else
  /// "".
  std::string rowOfShared(const CappedTile &capped, mlir::Value result);
  RowReferences declareReferences(const CappedTile &capped, mlir::Value result);
  void emitCap(const CappedTile &capped, mlir::Value result);

  // EmitPositions
  std::optional<PlaceWords> placesAlong(gpu::LayoutAttr layout, unsigned axis);
  std::optional<PlaceWords> matchPlaceTest(mlir::Operation *op);
  /// Are the places of use for such comparisons alone, and so needed by none?
  bool servesPlaceTests(mlir::Operation *op);
  bool emitPlaceTest(mlir::Operation *compare);
  /// A choice by such a comparison between neighbours of 16 bits and zeros.
  bool emitKeptPairs(mlir::Operation *select);

  // EmitControl
  Result emitFor(mlir::scf::ForOp loop);
  void emitEnd(mlir::scf::ForOp loop, llvm::ArrayRef<std::string> carried);
  Result emitIf(mlir::scf::IfOp branch);
  Result emitWhile(mlir::scf::WhileOp loop);
  Result assignAll(mlir::ValueRange from, llvm::ArrayRef<std::string> to);
  void declareAs(mlir::Value value, llvm::StringRef name, mlir::Value initial);

  // EmitRepair
  Result emitRepair(gpu::RepairOp repair);

  // EmitGlobal
  struct Address {
    mlir::ValueRange indices, strides, masks;
    mlir::ArrayAttr indexDims, maskDims;
    gpu::LayoutAttr layout; ///< of the accessed tile; null for a scalar
  };
  mlir::FailureOr<std::string> offsetOf(mlir::Operation *op, const Address &address,
                                        const RegisterIndex &reg);
  mlir::FailureOr<std::string> maskOf(mlir::Operation *op, const Address &address,
                                      const RegisterIndex &reg);
  mlir::FailureOr<std::string> elementOver(mlir::Operation *op, mlir::Value value,
                                           mlir::Attribute dims, const Address &address,
                                           const RegisterIndex &reg);
  struct Run {
    std::string offsets, conditions; ///< arrays, one entry an element of a thread
  };
  mlir::FailureOr<Run> runOf(mlir::Operation *op, const Address &address);
  Result emitMisalignment(gpu::MisalignmentOp misalignment);
  Result emitLoad(gpu::LoadOp load);
  Result emitStore(gpu::StoreOp store);
  Result emitCopyAsync(gpu::CopyAsyncOp copy);

  // EmitPrivate
  /// Where a thread has the elements of a stage from register `reg` on.
  std::string privateAt(mlir::Value memory, mlir::Value stage, const RegisterIndex &reg);
  Result emitAllocPrivate(gpu::AllocPrivateOp alloc);
  Result emitCopyPrivate(gpu::CopyPrivateOp copy);
  Result emitPrivateLoad(gpu::PrivateLoadOp load);
  Result emitJoin(gpu::JoinOp join);
  Result emitPrivateStore(gpu::PrivateStoreOp store);

  // EmitShared
  PartBegin beginOf(gpu::LocalLoadOp load);
  void emitElementLoads(const SharedAddress &address, const std::string &buffer,
                        const std::string &name, unsigned count);
  SharedAddress sharedAddress(gpu::SharedType type, gpu::LayoutAttr layout,
                              llvm::ArrayRef<std::string> threadCoordinates,
                              const PartBegin &begin);
  SharedAddress sharedAddress(gpu::SharedType type, gpu::LayoutAttr layout, const PartBegin &begin);
  // EmitFragments
  mlir::FailureOr<MatrixAccess> matrixAccess(const std::string &buffer, gpu::SharedType type,
                                             gpu::LayoutAttr layout, bool transposed,
                                             const PartBegin &begin);
  Result emitLoadMatrix(gpu::LocalLoadOp load);
  Result emitStoreMatrix(gpu::LocalStoreOp store);

  // EmitShared
  Result emitAllocShared(gpu::AllocSharedOp alloc);
  Result emitStage(gpu::StageOp stage);
  Result emitLocalLoad(gpu::LocalLoadOp load);
  Result emitLocalStore(gpu::LocalStoreOp store);
  Result emitConvertLayout(gpu::ConvertLayoutOp convert);

  // EmitReduce
  mlir::FailureOr<Reduced> matchReduction(gpu::LayoutAttr source, mlir::Value result,
                                          unsigned axis);
  std::string takeReduced(const Reduced &reduced, const std::string &terms, unsigned numTerms,
                          llvm::StringRef type, llvm::StringRef hint = "partial");
  Result emitReduce(gpu::ReduceOp reduce);
  Result emitReduceRuns(gpu::ReduceRunsOp reduce);
  Result emitReduceInThreads(gpu::ReduceInThreadsOp reduce);
  Result emitArgReduce(gpu::ArgReduceOp reduce);
  Result emitScan(gpu::ScanOp scan);
  Result emitRecurrence(gpu::RecurrenceOp recurrence);
  /// Names the total of a scan along `axis`, which is in `array` with the registers of the source.
  Result nameTotal(mlir::Operation *scan, mlir::Value total, mlir::Value source, int32_t axis,
                   const std::string &array);
  Result emitHistogram(gpu::HistogramOp histogram);
  Result emitSort(gpu::SortOp sort);
  void combineAcross(mlir::Operation *op, llvm::StringRef array, llvm::StringRef type,
                     llvm::StringRef functor, unsigned count, unsigned bytes, gpu::AxisBits bits);
  /// As combineAcross, for all warps of a cluster; blocks that come here again are in step.
  void combineInCluster(llvm::StringRef array, llvm::StringRef type, llvm::StringRef functor,
                        unsigned count, unsigned bytes);
  /// Sends a row's two sums, or one, and receives them where the loop's body ends.
  void combineAtEnd(gpu::ReduceOp reduce, llvm::StringRef array, llvm::StringRef functor);
  /// Makes what the blocks exchange `count` values through; returns it and the number of its uses.
  std::string declareExchange(llvm::StringRef type, unsigned count, unsigned bytes);
  /// From here on all blocks of the cluster are known to run.
  void awaitCluster();
  /// Shared memory for what one operation exchanges: common to all, or one operation's alone.
  std::string scratch(unsigned bytes);
  std::string ownScratch(unsigned bytes);

  // EmitDraws
  /// What numbers are told through; made where it is first asked for.
  std::string toldNumbers();
  Result emitDraw(gpu::DrawOp draw);
  Result emitTell(gpu::TellOp tell);
  Result emitTold(gpu::ToldOp told);
  /// Sends what waits for the cluster to join something.
  void tellBeforeJoin();

  // EmitPairs
  Result emitMoments(gpu::MomentsOp moments);
  Result emitWeights(gpu::WeightsOp weights);
  void joinPairs(llvm::StringRef pair, mlir::Value source);

  // EmitAsync
  std::string phaseAt(mlir::Value phases, mlir::Value slot);
  std::string notesOf(mlir::TypedValue<gpu::PhasesType> phases);
  void emitByOneThread(mlir::Operation *op, const llvm::Twine &statement);
  Result emitAllocPhases(gpu::AllocPhasesOp alloc);
  Result emitPhaseExpect(gpu::PhaseExpectOp expect);
  Result emitPhaseArrive(gpu::PhaseArriveOp arrive);
  Result emitArriveBefore(gpu::ArriveBeforeOp arrive);
  Result emitPhaseWait(gpu::PhaseWaitOp wait);
  Result emitBulkCopy(gpu::BulkCopyOp copy);
  /// Does each panel of all copies that take a map choose it, by whether it begins in the tensor?
  static bool isChosenByPanel(mlir::arith::SelectOp select);
  std::string mapOfPanel(gpu::BulkCopyOp copy, llvm::StringRef column);
  Result emitBulkStore(gpu::BulkStoreOp store);
  Result emitBulkStoreWait(gpu::BulkStoreWaitOp wait);
  Result emitWarpRoles(gpu::WarpRolesOp roles);
  Result emitBarrier(gpu::BarrierOp barrier);
  /// The named barrier of the threads that have the role of `op`, and how many these are; empty
  /// outside of roles: all threads of the block.
  std::string namedBarrier(mlir::Operation *op);
  /// Has these threads meet.
  void meet(mlir::Operation *op);
  /// Whether `condition` is true in all of these threads, who meet.
  std::string vote(mlir::Operation *op, const std::string &condition);
  Result emitTurn(gpu::TurnOp turn);
  Result emitNoneNegative(gpu::NoneNegativeOp question);
  Result emitDoubt(gpu::DoubtOp doubt);
  void noteIf(gpu::DoubtOp doubt, const std::string &condition);
  Result emitDoubted(gpu::DoubtedOp doubted);
  Result emitOfWarpgroup(gpu::OfWarpgroupOp choice);

  // EmitWarpgroup
  /// The registers that a product adds to: those of `acc` where nothing else reads them, or where
  /// the product `replaces` what has been read.
  std::string accumulatorOf(mlir::Operation *product, mlir::Value acc, bool replaces);
  Result emitWarpgroupDot(gpu::WarpgroupDotOp dot);
  void emitPromotedDots(gpu::WarpgroupDotOp last, const PromotedDot &how);
  Result emitWarpgroupSums(gpu::WarpgroupSumsOp sums);
  Result emitClear(gpu::ClearOp clear);
  Result emitFirstInThreads(gpu::FirstInThreadsOp first);
  Result emitWarpgroupWait(gpu::WarpgroupWaitOp wait);

  // EmitDescriptors
  /// The descriptor of what a warpgroup takes first of a factor, with rows or columns along `axis`.
  std::string firstDescriptor(gpu::WarpgroupDotOp dot, mlir::Value operand, int32_t axis);
  std::string descriptorOf(gpu::WarpgroupDotOp dot, mlir::Value operand, int32_t axis,
                           llvm::StringRef hint);
  std::string leftFactor(gpu::WarpgroupDotOp dot, int64_t blocks);
  std::string registerFactor(gpu::WarpgroupDotOp dot);
  /// Blocks of rows of a product that a warpgroup has, each an instruction's.
  int64_t rowBlocksOf(gpu::WarpgroupDotOp dot);
  /// Declares descriptors of factors that products in `loop` take in each of its steps.
  void declareFactors(mlir::scf::ForOp loop);

  // EmitMatrix
  Result emitDot(gpu::DotOp dot);
  Result emitCoreDot(gpu::DotOp dot, const std::string &result, const std::string &head,
                     const std::string &a, const std::string &b);
  /// Tells what the term of `dot` computes of the given elements and sum; returns the new sum.
  mlir::FailureOr<std::string> termOf(gpu::DotOp dot, llvm::ArrayRef<std::string> elements);
  Result emitWholeTile(mlir::Operation *op);
};

} // namespace tk::cuda

#endif // TK_COMPILER_CODEGEN_CUDA_KERNELEMITTER_H
