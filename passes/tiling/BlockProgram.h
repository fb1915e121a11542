//===- BlockProgram.h - builds the program of one block ---------*- C++ -*-===//
//
// Turns the scalar body of a tk.compute into operations on tiles. Every scalar value becomes a tile
// over exactly those tiled indices ("axes") that it depends on, emitted in the outermost scope in
// which they are all live; nothing is computed again along an index that it does not use.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TILING_BLOCKPROGRAM_H
#define TK_PASSES_TILING_BLOCKPROGRAM_H

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/analysis/ChangedElements.h"
#include "passes/analysis/HostSteps.h"
#include "passes/analysis/MaskRanges.h"
#include "passes/analysis/PresentTerms.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/analysis/TileReductions.h"
#include "passes/analysis/VisitedPlaces.h"
#include "passes/tiling/TileAxes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

class BlockProgram {
public:
  BlockProgram(KernelOp kernel, ComputeOp compute, gpu::ScheduleAttr schedule,
               const PresentTerms &present);

  /// Builds a tkgpu.func at the builder's position. The launch's operands are then in `arguments`,
  /// the grid's extent in x is the product of `gridTiles` (extent, tile, is it needed once at
  /// least).
  mlir::FailureOr<gpu::FuncOp> build(mlir::OpBuilder &builder, llvm::StringRef name);

  /// Has the program compute one element of result `r`, whose indices are arguments of the function
  /// instead of following from the block's number. All tiles must be of one element.
  void computeElementOf(unsigned r) { elementOf = r; }
  /// By axis of that result, which argument of the function its index is; nothing if it is 0.
  llvm::ArrayRef<std::optional<unsigned>> getElementIndices() { return elementIndices; }
  /// Has the function take `values` of the kernel, whether it reads them or not.
  void takeArguments(llvm::ArrayRef<mlir::Value> values) { llvm::append_range(taken, values); }
  /// Has loads take elements that no row of a tile sees: results that are not finite are computed
  /// again, element by element.
  void loadUnseen() { loadsUnseen = true; }

  using GridAxis = tk::GridAxis;
  llvm::ArrayRef<mlir::Value> getArguments() { return arguments; }
  llvm::ArrayRef<GridAxis> getGrid() { return grid; }
  /// How many tiles a block goes through, one after the other.
  int64_t getTilesOfBlock() const { return tilesOfBlock; }

private:
  HostSteps hostSteps;
  struct Scope {
    mlir::Block *block = nullptr;
    mlir::Operation *before = nullptr;
    llvm::DenseMap<mlir::Value, TileValue> memo;
    llvm::DenseMap<unsigned, TileValue> indices;
    llvm::DenseMap<unsigned, TileValue> limitMasks;
  };

  // BlockNames.cpp: names of arguments.
  std::string sourceName(mlir::Value value);
  std::string expressionName(mlir::Value value);
  std::string argumentName(mlir::Value value);

  // BlockGrid.cpp: which tile a block has.
  std::optional<unsigned> clusteredIndex();
  void addParallelAxes();
  bool mayEndWithRange(unsigned p);
  bool mayOverlapLast(unsigned p);
  void putRowsFirst();
  bool looksUpFactor(unsigned id);
  mlir::Value tilesOf(unsigned id);
  void setStart(unsigned id, mlir::Value tile);
  std::pair<mlir::Value, mlir::Value> placeInGroups(mlir::Value part, mlir::Value rows,
                                                    mlir::Value columns, bool areWhole);
  void addGridStarts(llvm::ArrayRef<unsigned> tiled);
  void addElementStarts(llvm::ArrayRef<unsigned> tiled);

  // BlockProgram.cpp: the function and its arguments.
  mlir::Value kernelValue(mlir::Value value);
  mlir::Value computeInBlock(mlir::Operation *op);
  llvm::SmallVector<mlir::Value> strides(mlir::Value tensor, llvm::ArrayRef<mlir::Value> extents);

  // BlockStores.cpp: what is stored, and what tiles reduce for it.
  struct Store {
    TileValue value;
    llvm::SmallVector<mlir::Value> indices, strides, masks;
    llvm::SmallVector<mlir::Attribute> indexDims, maskDims;
    unsigned depth = 0;
    mlir::LocationAttr where; ///< of the result's statement
    /// What blocks carry from tile to tile: the value is what one tile adds.
    std::optional<TileReduction> carried;
  };
  Axes reduceStored(unsigned r, const Axes &own, Store &store);
  mlir::LogicalResult planStore(unsigned r, Store &store);
  bool countsTiles(unsigned p);
  llvm::SmallVector<unsigned> indicesInTile(unsigned r);
  mlir::Value tileNumber(unsigned axis);
  TileValue reduceInTile(TileValue value, const TileReduction::Axis &reduced, ReduceKind kind);
  TileValue findInTile(TileValue value, const TileValue &places, const TileReduction &reduction);
  unsigned axisOfParts(const TileReduction::Axis &reduced);
  void addStore(Store &store, mlir::Value value, mlir::Value buffer);
  mlir::LogicalResult addStores();

  // BlockRows.cpp: tiles that stay as they are.
  std::optional<ChangedPlace> findChangedPlace();
  bool haveOneValue(unsigned p, mlir::Value place);
  std::optional<VisitedPlaces> findVisitedPlaces();
  void setPlace(const NamedIndex &named);
  unsigned addElementAxis();
  void setVisitedPlaces();
  TileValue isOwnPlace();
  void planRows(const Store &store);
  mlir::Block *loopOverTiles(llvm::ArrayRef<mlir::Operation *> all);
  void skipRows();

  // BlockColumns.cpp: what blocks carry from tile to tile.
  std::optional<unsigned> counterOfBlocks(unsigned p);
  mlir::Value beginTiles(unsigned axis, mlir::Value block);
  void carryThroughTiles(llvm::ArrayRef<Store *> stores, mlir::ValueRange buffers);

  // BlockValues.cpp: scopes and elementwise values.
  mlir::OpBuilder &at(unsigned depth);
  TileValue get(mlir::Value value);
  const TileValue *lookup(mlir::Value value);
  TileValue elementwise(mlir::Operation *op);
  TileValue broadcast(const TileValue &source, llvm::ArrayRef<unsigned> axes, unsigned depth);
  TileValue toOrder(const TileValue &source, llvm::ArrayRef<unsigned> axes, unsigned depth);
  TileValue select(const TileValue &condition, const TileValue &value, mlir::TypedAttr otherwise);
  TileValue andMasks(llvm::ArrayRef<TileValue> masks);
  mlir::Value constant(mlir::TypedAttr attr, unsigned depth = 0);
  mlir::Value indexConstant(int64_t value, unsigned depth = 0);
  mlir::Type tileType(llvm::ArrayRef<unsigned> axes, mlir::Type element);
  Axes sorted(const llvm::SetVector<unsigned> &axes);
  Axes unite(llvm::ArrayRef<unsigned> a, llvm::ArrayRef<unsigned> b);
  bool hasAxis(const TileValue &value, unsigned axis);
  void collectAxes(mlir::Value value, llvm::SetVector<unsigned> &axes,
                   llvm::DenseSet<mlir::Value> &visited);
  llvm::SetVector<unsigned> axesOf(mlir::Value value);
  void collectFree(mlir::Operation *op, llvm::SetVector<mlir::Value> &values);
  std::optional<unsigned> axisWithOneQuotient(mlir::Operation *op);
  unsigned freeDepth(mlir::Operation *op);
  template <typename Fn> auto inScope(unsigned depth, Fn body);

  // BlockAccess.cpp: indices, masks and loads.
  unsigned newAxis(llvm::StringRef name, int64_t size, std::optional<unsigned> before = {});
  bool isMerged(mlir::Value index) { return mergedExtents.contains(index); }
  mlir::Value numbersAlong(const Axis &axis, mlir::Type element);
  TileValue index(unsigned axis);
  std::optional<TileValue> convertedIndex(mlir::arith::SIToFPOp conversion);
  std::optional<TileValue> limitMask(unsigned axis);
  std::optional<TileValue> beginMask(unsigned axis);
  std::optional<TileValue> exactMask(unsigned axis, unsigned minDepth = 0);
  void addSafetyMasks(llvm::ArrayRef<unsigned> axes, llvm::SmallVectorImpl<TileValue> &masks);
  TileValue compare(mlir::arith::CmpIPredicate predicate, TileValue a, TileValue b);
  /// The axes at which a load reads, outermost first.
  struct Place {
    llvm::SmallVector<mlir::Value> indices, extents, strides;
  };
  Place readPlaceOf(LoadOp op);
  mlir::Value productOfExtents(mlir::Value outer, mlir::Value inner);
  TileValue load(LoadOp op);
  bool runsWithout(unsigned p);
  bool needsTerms(LoadOp op, llvm::ArrayRef<mlir::Value> extents);
  void addPadMasks(llvm::ArrayRef<mlir::Value> places, llvm::ArrayRef<TileValue> indices,
                   llvm::ArrayRef<mlir::Value> extents, llvm::SmallVectorImpl<TileValue> &masks);
  bool isNonNegative(mlir::Value value, bool inRange = false);

  // BlockBounds.cpp: bounds of reductions over a tile.
  struct Reduction;
  mlir::Value scalarBound(mlir::Value bound, const TileValue &tile, bool wantMax);
  /// Of a tile's rows those from `first` on, as many as a warpgroup has.
  struct RowPart {
    unsigned axis;
    int64_t first, rows;
  };
  mlir::Value endOf(mlir::Value value, bool wantMax, const RowPart *part = nullptr);
  llvm::SmallVector<RowPart> rowParts(Reduction &reduction);
  mlir::Value isOutsideRange(const Axis &rows, const RowPart &part);
  mlir::Value boundOfRows(Reduction &reduction, mlir::Value bound, mlir::Value whole, bool wantMax,
                          int64_t step, mlir::Value withoutRows = {});

  // BlockUnions.cpp: terms between ranges.
  /// A mask of the terms over one index, of which one part suffices: `index < end` for one of
  /// `ends`, or `index >= begin` for one of `begins`.
  struct RangeUnion {
    mlir::Value holds;
    llvm::SmallVector<mlir::Value> ends, begins;
    /// The terms of maxima are selections by it alone, which masks at the ends of a range replace.
    bool isWholeMask = false;
    /// What counts to less than `from` stands `skipped` places earlier.
    mlir::Value from, skipped;
  };
  void planUnion(Reduction &reduction);
  mlir::Value skipBetween(Reduction &reduction, unsigned axis, mlir::Value from, mlir::Value to);
  void startInRanges(Reduction &reduction, unsigned axis);
  TileValue unionMask(Reduction &reduction, unsigned minDepth);

  // BlockRanges.cpp: masks of which ranges are known.
  mlir::Value endOfLoaded(LoadOp load, bool wantMax, const RowPart *part);
  void planRanges(Reduction &reduction);
  void narrowToRanges(Reduction &reduction, unsigned axis, mlir::Value &from, mlir::Value &to);
  TileValue knownMask(Reduction &reduction, unsigned minDepth);

  // BlockReduction.cpp, BlockLoops.cpp: reductions.
  struct Accumulator {
    ReduceKind kind;
    mlir::Type type; ///< of an element
    Axes axes;       ///< of the result
    Axes carried;    ///< of the carried tile: `axes`, and the reduced ones if reduced afterwards
    bool isDot = false;
    bool isHistogram = false; ///< a sum by a key (BlockHistogram.cpp)
    bool isAlone = false;     ///< neither corrected for what others have become, nor read by them
    unsigned m = 0, n = 0, k = 0;
    mlir::Value a, b;                          ///< the factors over (m, k) and (k, n)
    llvm::SmallVector<mlir::Operation *> body; ///< of a term that is no product of these
  };
  struct Reduction {
    ReduceOp op;
    llvm::SmallVector<unsigned> axes; ///< one an index
    llvm::SmallVector<Accumulator> accumulators;
    bool isLoop = false;
    bool isFirst = false;    ///< no loop: there is nothing to combine with
    bool masksTerms = false; ///< see BlockMasks.cpp, as for the next one
    llvm::SmallVector<mlir::Value> maskedWeights;
    std::optional<RangeUnion> ranges; ///< outside which all terms vanish
    std::optional<MaskRanges> known;  ///< of the mask that selects `masked`, all scores
    llvm::SmallVector<mlir::Value> masked;
  };
  void reduce(ReduceOp op);
  bool sortRow(ReduceOp op);
  bool planHistogram(Reduction &reduction, unsigned k);
  mlir::Value histogram(Reduction &reduction, unsigned k);
  void bindIndices(Reduction &reduction);
  bool bindWhole(Reduction &reduction, unsigned position, int64_t size);
  void planAccumulators(Reduction &reduction);
  bool planDot(Reduction &reduction, unsigned k);
  bool planPairs(Reduction &reduction, Accumulator &acc);
  mlir::Value pairs(Reduction &reduction, Accumulator &acc, llvm::ArrayRef<mlir::Value> tiles);
  llvm::SmallVector<mlir::Value> initialValues(Reduction &reduction);
  llvm::SmallVector<mlir::Value> loops(Reduction &reduction, unsigned position,
                                       llvm::SmallVector<mlir::Value> carried);
  llvm::SmallVector<mlir::Value> loop(Reduction &reduction, unsigned position, mlir::Value from,
                                      mlir::Value to, mlir::ValueRange carried);
  llvm::SmallVector<mlir::Value> step(Reduction &reduction, llvm::ArrayRef<mlir::Value> carried);
  static llvm::SmallVector<std::string> namesOfCarried(const Reduction &reduction);
  mlir::Location locationOfAccumulator(Reduction &reduction, unsigned k);
  llvm::SmallVector<mlir::Value> onlineStep(Reduction &reduction,
                                            llvm::ArrayRef<mlir::Value> carried);
  llvm::SmallVector<TileValue> finish(Reduction &reduction, llvm::ArrayRef<mlir::Value> carried);
  std::optional<TileValue> termMask(Reduction &reduction, unsigned minDepth = 0);
  TileValue maskedTerm(Reduction &reduction, unsigned k);
  TileValue reduceTile(TileValue tile, llvm::ArrayRef<unsigned> axes, ReduceKind kind);
  mlir::Value combine(ReduceKind kind, mlir::Value a, mlir::Value b);
  llvm::SmallVector<mlir::Value> combineArg(ReduceKind kind, llvm::ArrayRef<mlir::Value> old,
                                            llvm::ArrayRef<mlir::Value> term);
  TileValue argIndices(Reduction &reduction);

  // BlockMerged.cpp: indices that are counted through as one.
  mlir::Value mergedExtent(llvm::ArrayRef<mlir::Value> indices);
  void takeApart(unsigned axis, llvm::ArrayRef<mlir::Value> indices, bool isBounded = false);
  void bindMerged(Reduction &reduction, llvm::ArrayRef<mlir::Value> indices);

  // BlockDot.cpp: contractions.
  mlir::Value dot(Reduction &reduction, Accumulator &acc, mlir::Value carried);
  TileValue dotOperand(Reduction &reduction, mlir::Value factor, llvm::ArrayRef<unsigned> axes,
                       unsigned k);

  // BlockMasks.cpp: masks of online reductions.
  bool planMasks(Reduction &reduction);
  llvm::SmallVector<mlir::Value> maskedScores(Reduction &reduction);
  void maskTerm(Reduction &reduction, mlir::Value term, ReduceKind kind);
  mlir::Value isPartial(Reduction &reduction);
  void planUnseen(Reduction &reduction);
  void addUnseenMasks(mlir::Value value, llvm::SmallVectorImpl<TileValue> &masks);
  bool isCovered(LoadOp op, llvm::ArrayRef<mlir::Value> places, unsigned axis,
                 llvm::ArrayRef<mlir::Value> extents);
  Axes addCoveringMasks(LoadOp op, llvm::ArrayRef<mlir::Value> places,
                        llvm::ArrayRef<unsigned> tileAxes, llvm::ArrayRef<mlir::Value> extents,
                        llvm::SmallVectorImpl<TileValue> &masks);

  // BlockScan.cpp
  void openLoop();
  bool bindStates(ScanOp op);
  ScanOp findEqualScan(ScanOp op, llvm::ArrayRef<ScanOp> others);
  llvm::SmallVector<mlir::Value> beginScans(unsigned id, bool isBackward);
  void closeLoop();
  TileValue addToFirst(const TileValue &carried, TileValue term, unsigned id, bool isBackward,
                       ReduceKind kind);
  TileValue scan(ScanOp op);
  TileValue inShares(InSharesOp op);
  bool isScanOfTile(ScanOp op, unsigned axis);
  bool isPlainScan(ScanOp op, unsigned axis);
  std::optional<unsigned> axisOfScan(ScanOp op, bool isBackward);
  void bindTerms(ScanOp op, unsigned id, bool isBackward);
  TileValue scanAsReduction(ScanOp op);
  void restoreScans();

  // BlockRecurrence.cpp
  mlir::Value isLaterTile(unsigned depth);
  mlir::Value joinState(const TileValue &isJoined, const TileValue &state, const TileValue &decay,
                        const TileValue &term);
  TileValue recur(ScanOp op, unsigned id, bool isBackward, TileValue *state);
  void weightTerms(ReduceOp reduction, mlir::Value end);

  KernelOp kernel;
  ComputeOp compute;
  gpu::ScheduleAttr schedule;
  const PresentTerms &present; ///< the conditions under which terms of sums exist
  mlir::OpBuilder builder;
  mlir::Location loc;
  gpu::FuncOp func;
  llvm::SmallVector<Scope> scopes; ///< which moves its elements where it grows
  std::vector<Axis> axes;
  llvm::SmallVector<unsigned> order; ///< all axes, in the order in which tiles have them
  llvm::DenseMap<mlir::Value, unsigned> axisOf;
  /// Of indices that are counted through with others: where each ends.
  llvm::DenseMap<mlir::Value, mlir::Value> mergedExtents;
  llvm::DenseMap<mlir::Value, Axes> runningAxes;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<int64_t>> reduceTiles;
  llvm::MapVector<mlir::Operation *, ReduceOp> reductionOf; ///< of a scan that is one
  /// Of factors that weights multiply, what is 0 where a mask leaves terms out for all rows: their
  /// loads, or themselves.
  using Unseen = UnseenTerms;
  llvm::DenseMap<mlir::Value, Unseen> unseen;
  bool loadsUnseen = false;
  llvm::DenseMap<mlir::Value, Axes> zeroOutside; ///< the axes whose limit masks zero a tile
  std::optional<unsigned> elementOf;             ///< see computeElementOf
  llvm::SmallVector<std::optional<unsigned>> elementIndices;
  llvm::SmallVector<mlir::Value> taken; ///< see takeArguments
  llvm::SmallVector<mlir::Value> arguments;
  llvm::SmallVector<std::string> argumentNames;
  llvm::DenseMap<mlir::Value, mlir::Value> argumentOf;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> stridesOf;
  llvm::SmallVector<GridAxis> grid;
  bool hasOneIndex = false;            ///< is the block's number that of a tile of one index?
  std::optional<unsigned> clusterAxis; ///< along which the blocks of a cluster lie
  /// The parallel index that the block steps through, if any, and what scans carry along it.
  std::optional<unsigned> loopAxis;
  int64_t tilesOfBlock = 1; ///< the launch has a block for so many tiles
  mlir::Value numTiles;     ///< how many there are, where that is more than one
  mlir::Value isPlace;      ///< of indices with one value: are all in their ranges?
  /// Of indices whose value an element gives: the elements, and their axis.
  std::optional<VisitedPlaces> visited;
  unsigned elementAxis = 0;
  mlir::Operation *loopOp = nullptr;
  llvm::DenseMap<mlir::Operation *, unsigned> carryOf;
  llvm::DenseMap<mlir::Operation *, ScanOp> equalScan; ///< of scans that are not carried twice
  llvm::DenseSet<mlir::Value> hasStates; ///< indices of reductions that carried scans are over
  unsigned leastDepth = 0;               ///< of the scope of elementwise values
  llvm::SmallVector<TileValue> carries;
  /// Of the tiles that the block goes through, and carries what they are reduced to: its first one,
  /// where all end, in steps of how many it goes, and the one that it has.
  mlir::Value firstTile, endOfTiles, numBlocks, tileOfLoop;
};

/// Is `value` computed from indices and dimensions alone?
bool isOfSizes(KernelOp kernel, mlir::Value value);

/// `name` with all that an identifier may not hold made an underscore.
std::string identifierOf(llvm::StringRef name);

/// The element that a reduction of `kind` starts from.
mlir::TypedAttr identityOf(ReduceKind kind, mlir::Type type);

template <typename Fn> auto BlockProgram::inScope(unsigned depth, Fn body) {
  llvm::SmallVector<Scope> inner;
  while (scopes.size() > depth + 1) {
    inner.push_back(std::move(scopes.back()));
    scopes.pop_back();
  }
  auto restore = [&] {
    while (!inner.empty()) {
      scopes.push_back(std::move(inner.back()));
      inner.pop_back();
    }
  };
  if constexpr (std::is_void_v<decltype(body())>) {
    body();
    restore();
  } else {
    auto result = body();
    restore();
    return result;
  }
}

/// The number of tiles: the product of the numbers along each axis.
mlir::Value gridExtent(mlir::OpBuilder &builder, mlir::Location loc,
                       llvm::ArrayRef<BlockProgram::GridAxis> axes);

} // namespace tk

#endif // TK_PASSES_TILING_BLOCKPROGRAM_H
