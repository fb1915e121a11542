//===- RowOrder.cpp - rows in blocks by their group -----------------------===//
//
// A sort by compute ops. No two threads add to one counter, so the order is the same in every run:
// rows of a group keep their order.
//
// 1. Rows are cut into chunks of 256. `entry` has 256 times the group of each row, and its place in
//    the chunk. Behind the last row of a batch stands a group that there is not.
// 2. `rank` counts the smaller entries of the chunk. `run` has the entries in the order of ranks.
// 3. `in` counts the rows of a chunk up to the end of each group: a binary search in the run.
// `upto`
//    adds up the rows of a group over the chunks.
// 4. A group takes whole blocks. `first` is the first block of each group, and `group` the group of
//    each block: the last one that begins at it or before.
// 5. For each place of a block, `row` looks for the chunk that ends behind it, and reads the row
//    from the run. `place` has the place of each row.
//
// Few groups or chunks are counted. Many are places in sorted tensors, which a binary search finds.
//
//   %entry = tk.compute ["q", "j"] {group(q * 256 + j) * 256 + j}
//   %rank  = tk.compute ["q", "j"] {tk.reduce [sum] ["p"] {entry[q, p] < entry[q, j]}}
//   %run   = tk.compute ["q", "r"] {tk.reduce [sum] ["p"] {rank[q, p] == r ? entry[q, p] : 0}}
//   %in    = tk.compute ["g", "q"] {the number of p with run[q, p] < (g + 1) * 256}
//   %upto  = tk.compute ["g", "q"] {tk.scan sum "p" at q {in[g, p] - in[g - 1, p]}}
//   %first = tk.compute ["g"] {tk.scan sum "h" at g {blocks(h)} - blocks(g)}
//       with blocks(h) = ceil(upto[h, last] / 128)
//   %group = tk.compute ["b"] {tk.reduce [sum] ["g"] {first[g] <= b} - 1}
//   %row   = tk.compute ["b", "t"] {run[q, n - upto[g, q] + in[g, q]] mod 256 + q * 256}
//       with g = group[b], n = (b - first[g]) * 128 + t, and the first q with upto[g, q] > n
//   %place = tk.compute ["q", "j"] {first[g] * 128 + upto[g, q] - in[g, q] + rank[q, j]}
//       with g = entry[q, j] / 256
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/RowOrder.h"
#include "passes/machine/limits/Keys.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/SortCost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace tk;
using arith::CmpIPredicate;

using namespace limits::row_order;

bool tk::hasSmallTensors(KernelOp kernel) {
  return kernel->getParentOfType<ModuleOp>()->hasAttr(smallTensorsAttrName);
}

int64_t tk::getMost(KernelOp kernel, Value size) {
  return std::max<int64_t>(getSizeFact(kernel, size).upper.value_or(mostUnknown), 1);
}

/// How many elements a binary search among `number` looks at.
static double stepsOf(double number) { return std::floor(std::log2(std::max(number, 1.0))) + 1; }

double RowSorter::timeOf(double batches, double rows, double groups, int64_t rowsOfBlock) {
  const double chunks = std::ceil(rows / rowsOfChunk), all = batches * rows;
  const double blocks = rowsOfBlock == 1
                            ? all
                            : std::floor(all / static_cast<double>(rowsOfBlock)) + batches * groups;
  const double places = blocks * static_cast<double>(rowsOfBlock);
  constexpr double launches = 9;
  double counted = 2 * all * rowsOfChunk,
         searched = stepsOf(rowsOfChunk) * batches * chunks * groups;
  for (auto [number, among] : {std::pair(blocks, batches * groups), std::pair(places, chunks)})
    (among <= fewElements ? counted : searched) +=
        number * (among <= fewElements ? among : stepsOf(among));
  constexpr double bytesOfCount = 4 * 3; // written once, scanned, and written
  return launches * cost::launch + cost::comparison * counted + cost::searched * searched +
         cost::byte * bytesOfCount * batches * chunks * groups;
}

//===----------------------------------------------------------------------===//
// Parts of compute ops
//===----------------------------------------------------------------------===//

Value ComputeWriter::constant(OpBuilder &at, int64_t value) {
  return arith::ConstantIndexOp::create(at, loc, value);
}

Value ComputeWriter::divide(OpBuilder &at, Value value, int64_t divisor) {
  return FloorDivOp::create(at, loc, value.getType(), value, constant(at, divisor));
}

Value ComputeWriter::remainder(OpBuilder &at, Value value, int64_t divisor) {
  return FloorModOp::create(at, loc, value.getType(), value, constant(at, divisor));
}

Value ComputeWriter::word(OpBuilder &at, Value index) {
  return arith::IndexCastOp::create(at, loc, at.getI32Type(), index);
}

Value ComputeWriter::define(StringRef suffix, ArrayRef<StringRef> names, ArrayRef<Value> extents,
                            Type type, Body body) {
  std::string name = prefix + suffix.str();
  auto stored = ComputeOp::create(builder, loc, names, extents, ArrayRef<Type>{type},
                                  ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
                                  [&](OpBuilder &at, Location, ValueRange indices) {
                                    YieldOp::create(at, loc, body(at, indices));
                                  });
  return stored->getResult(0);
}

Value ComputeWriter::count(OpBuilder &at, StringRef name, Value extent, Body term) {
  auto sum = ReduceOp::create(at, loc, ReduceKind::Sum, ArrayRef<StringRef>{name},
                              ValueRange{constant(at, 0)}, ValueRange{extent}, at.getI32Type(),
                              [&](OpBuilder &inner, Location, ValueRange indices) {
                                return word(inner, term(inner, indices));
                              });
  return arith::IndexCastOp::create(at, loc, at.getIndexType(), sum.getResult(0));
}

Value ComputeWriter::countLeading(OpBuilder &at, int64_t most,
                                  llvm::function_ref<Value(OpBuilder &, Value)> holds) {
  Value number = constant(at, 0);
  for (int64_t step = llvm::bit_floor(static_cast<uint64_t>(std::max<int64_t>(most, 1))); step > 0;
       step /= 2) {
    Value next = arith::AddIOp::create(at, loc, number, constant(at, step));
    Value last = arith::AddIOp::create(at, loc, number, constant(at, step - 1));
    number = arith::SelectOp::create(at, loc, holds(at, last), next, number);
  }
  return number;
}

Value ComputeWriter::loadIndex(OpBuilder &at, Value tensor, ValueRange indices,
                               std::optional<int64_t> pad) {
  Value outside;
  if (pad)
    outside = arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(static_cast<int32_t>(*pad)));
  Value element = LoadOp::create(at, loc, tensor, indices, outside);
  return arith::IndexCastOp::create(at, loc, at.getIndexType(), element);
}

//===----------------------------------------------------------------------===//
// The compute ops
//===----------------------------------------------------------------------===//

/// `ofBatch` times the number of batches.
Value RowSorter::allOf(OpBuilder &at, Value ofBatch) {
  return batches ? Value(arith::MulIOp::create(at, loc, batches, ofBatch)) : ofBatch;
}

/// The batch and the group in it of a group of all batches. The batch is null if there is one.
std::pair<Value, Value> RowSorter::splitGroup(OpBuilder &at, Value group) {
  if (!batches)
    return {Value(), group};
  return {FloorDivOp::create(at, loc, group.getType(), group, numGroups),
          FloorModOp::create(at, loc, group.getType(), group, numGroups)};
}

Value RowSorter::batchOfChunk(OpBuilder &at, Value chunk) {
  return batches ? Value(FloorDivOp::create(at, loc, chunk.getType(), chunk, numChunks)) : Value();
}

/// The number of rows of `group` in batches before `batch`.
Value RowSorter::rowsBefore(OpBuilder &at, Value group, Value batch) {
  if (!batch)
    return constant(at, 0);
  Value end = arith::MulIOp::create(at, loc, batch, numChunks);
  Value last = arith::SubIOp::create(at, loc, end, constant(at, 1));
  return loadIndex(at, upTo, {group, last}, 0);
}

/// `value` if `a` compares with `b` as `predicate` says, else 0.
static Value where(OpBuilder &at, Location loc, CmpIPredicate predicate, Value a, Value b,
                   Value value) {
  Value holds = arith::CmpIOp::create(at, loc, predicate, a, b);
  Value zero = arith::ConstantIndexOp::create(at, loc, 0);
  return arith::SelectOp::create(at, loc, holds, value, zero);
}

/// Stores the entries of the rows, and sorts those of each chunk.
void RowSorter::storeRuns(GroupOf groupOf) {
  Type type = builder.getI32Type();
  const SmallVector<Value> extents = {allOf(builder, numChunks), chunkSize};
  entry = define(".entry", {"q", "j"}, extents, type, [&](OpBuilder &at, ValueRange qj) -> Value {
    Value batch = batchOfChunk(at, qj[0]), chunk = qj[0];
    if (batch)
      chunk = FloorModOp::create(at, loc, chunk.getType(), chunk, numChunks);
    Value start = arith::MulIOp::create(at, loc, chunk, constant(at, rowsOfChunk));
    Value row = arith::AddIOp::create(at, loc, start, qj[1]);
    Value last = arith::SubIOp::create(at, loc, numRows, constant(at, 1));
    Value inside = arith::MinSIOp::create(at, loc, row, last);
    Value isRow = arith::CmpIOp::create(at, loc, CmpIPredicate::sle, row, last);
    if (batch)
      inside = arith::AddIOp::create(
          at, loc, arith::MulIOp::create(at, loc, batch, numRows).getResult(), inside);
    Value group = arith::SelectOp::create(at, loc, isRow, groupOf(at, inside), numGroups);
    Value high = arith::MulIOp::create(at, loc, group, constant(at, rowsOfChunk));
    return word(at, arith::AddIOp::create(at, loc, high, qj[1]));
  });
  rank = define(".rank", {"q", "j"}, extents, type, [&](OpBuilder &at, ValueRange qj) -> Value {
    Value own = loadIndex(at, entry, qj);
    return word(at, count(at, "p", chunkSize, [&](OpBuilder &in, ValueRange p) {
                  return where(in, loc, CmpIPredicate::slt, loadIndex(in, entry, {qj[0], p[0]}),
                               own, constant(in, 1));
                }));
  });
  run = define(".run", {"q", "r"}, extents, type, [&](OpBuilder &at, ValueRange qr) -> Value {
    return word(at, count(at, "p", chunkSize, [&](OpBuilder &in, ValueRange p) {
                  return where(in, loc, CmpIPredicate::eq, loadIndex(in, rank, {qr[0], p[0]}),
                               qr[1], loadIndex(in, entry, {qr[0], p[0]}));
                }));
  });
}

/// Stores how many rows of each group there are up to the end of each chunk.
void RowSorter::storeCounts() {
  Type type = builder.getI32Type();
  const SmallVector<Value> extents = {numGroups, allOf(builder, numChunks)};
  inChunk = define(".in", {"g", "q"}, extents, type, [&](OpBuilder &at, ValueRange gq) -> Value {
    Value next = arith::AddIOp::create(at, loc, gq[0], constant(at, 1));
    Value end = arith::MulIOp::create(at, loc, next, constant(at, rowsOfChunk));
    return word(at, countLeading(at, rowsOfChunk, [&](OpBuilder &in, Value place) -> Value {
                  Value own =
                      loadIndex(in, run, {gq[1], place}, std::numeric_limits<int32_t>::max());
                  return arith::CmpIOp::create(in, loc, CmpIPredicate::slt, own, end);
                }));
  });
  upTo = define(".upto", {"g", "q"}, extents, type, [&](OpBuilder &at, ValueRange gq) -> Value {
    Value before = arith::SubIOp::create(at, loc, gq[0], constant(at, 1));
    return ScanOp::create(at, loc, ReduceKind::Sum, "p", constant(at, 0), extents[1], gq[1], type,
                          [&](OpBuilder &in, Location, ValueRange p) -> Value {
                            Value own = loadIndex(in, inChunk, {gq[0], p[0]});
                            Value less = loadIndex(in, inChunk, {before, p[0]}, 0);
                            return word(in, arith::SubIOp::create(in, loc, own, less));
                          });
  });
}

/// Stores the first block of each group, and the group of each block.
void RowSorter::storeBlocks(RowOrder &order) {
  Type type = builder.getI32Type();
  Value allGroups = allOf(builder, numGroups);
  auto blocksOf = [&](OpBuilder &at, Value ofAll) -> Value {
    auto [batch, group] = splitGroup(at, ofAll);
    Value end = numChunks;
    if (batch)
      end = arith::AddIOp::create(
          at, loc, arith::MulIOp::create(at, loc, batch, numChunks).getResult(), numChunks);
    Value last = arith::SubIOp::create(at, loc, end, constant(at, 1));
    Value rows = loadIndex(at, upTo, {group, last}, 0);
    if (batch)
      rows = arith::SubIOp::create(at, loc, rows, rowsBefore(at, group, batch));
    Value raised = arith::AddIOp::create(at, loc, rows, constant(at, rowsOfBlock - 1));
    return word(at, divide(at, raised, rowsOfBlock));
  };
  order.first =
      define(".first", {"g"}, {allGroups}, type, [&](OpBuilder &at, ValueRange g) -> Value {
        auto upTo = ScanOp::create(
            at, loc, ReduceKind::Sum, "h", constant(at, 0), allGroups, g[0], type,
            [&](OpBuilder &in, Location, ValueRange h) -> Value { return blocksOf(in, h[0]); });
        return arith::SubIOp::create(at, loc, upTo.getResult(), blocksOf(at, g[0]));
      });
  constexpr int64_t none = std::numeric_limits<int32_t>::max();
  auto begins = [&](OpBuilder &at, Value group, Value block) -> Value {
    return arith::CmpIOp::create(at, loc, CmpIPredicate::sle,
                                 loadIndex(at, order.first, {group}, none), block);
  };
  const int64_t groups = getMost(kernel, allGroups);
  order.blockGroup =
      define(".group", {"b"}, {order.numBlocks}, type, [&](OpBuilder &at, ValueRange b) -> Value {
        Value begun =
            groups <= fewElements
                ? count(at, "g", allGroups,
                        [&](OpBuilder &in, ValueRange g) -> Value {
                          return arith::SelectOp::create(in, loc, begins(in, g[0], b[0]),
                                                         constant(in, 1), constant(in, 0));
                        })
                : countLeading(at, groups,
                               [&](OpBuilder &in, Value g) { return begins(in, g, b[0]); });
        return word(at, arith::SubIOp::create(at, loc, begun, constant(at, 1)));
      });
}

/// Stores the place of each row.
void RowSorter::storePlaces(RowOrder &order) {
  order.place =
      define(".place", {"q", "j"}, {allOf(builder, numChunks), chunkSize}, builder.getI32Type(),
             [&](OpBuilder &at, ValueRange qj) -> Value {
               Value own = divide(at, loadIndex(at, entry, qj), rowsOfChunk), group = own;
               Value before = arith::SubIOp::create(at, loc, loadIndex(at, upTo, {own, qj[0]}, 0),
                                                    loadIndex(at, inChunk, {own, qj[0]}, 0));
               if (Value batch = batchOfChunk(at, qj[0])) {
                 before = arith::SubIOp::create(at, loc, before, rowsBefore(at, own, batch));
                 batch = arith::MulIOp::create(at, loc, batch, numGroups);
                 group = arith::AddIOp::create(at, loc, batch, own);
               }
               Value start = arith::MulIOp::create(at, loc, loadIndex(at, order.first, {group}, 0),
                                                   constant(at, rowsOfBlock));
               Value place = arith::AddIOp::create(at, loc, start, before);
               place = arith::AddIOp::create(at, loc, place, loadIndex(at, rank, qj));
               Value isRow = arith::CmpIOp::create(at, loc, CmpIPredicate::slt, own, numGroups);
               return word(at, arith::SelectOp::create(at, loc, isRow, place, constant(at, -1)));
             });
}

/// Stores the row of each place.
void RowSorter::storeRows(RowOrder &order) {
  const int64_t chunks = std::min(getMost(kernel, numChunks), mostUnknown / rowsOfChunk);
  auto rowOf = [&](OpBuilder &at, ValueRange bt) -> Value {
    Value ofAll = loadIndex(at, order.blockGroup, {bt[0]});
    Value block = arith::SubIOp::create(at, loc, bt[0], loadIndex(at, order.first, {ofAll}, 0));
    Value start = arith::MulIOp::create(at, loc, block, constant(at, rowsOfBlock));
    Value number = arith::AddIOp::create(at, loc, start, bt[1]);
    auto [batch, group] = splitGroup(at, ofAll);
    Value firstChunk;
    if (batch) {
      firstChunk = arith::MulIOp::create(at, loc, batch, numChunks);
      number = arith::AddIOp::create(at, loc, number, rowsBefore(at, group, batch));
    }
    auto chunkOf = [&](OpBuilder &in, Value chunk) -> Value {
      return firstChunk ? Value(arith::AddIOp::create(in, loc, firstChunk, chunk)) : chunk;
    };
    // A chunk behind the last one ends before no place.
    auto endsBefore = [&, group = group](OpBuilder &in, Value chunk) -> Value {
      Value end =
          loadIndex(in, upTo, {group, chunkOf(in, chunk)}, std::numeric_limits<int32_t>::max());
      return arith::CmpIOp::create(in, loc, CmpIPredicate::sle, end, number);
    };
    Value chunk = chunks > fewElements
                      ? countLeading(at, chunks, endsBefore)
                      : count(at, "q", numChunks, [&](OpBuilder &in, ValueRange q) -> Value {
                          return arith::SelectOp::create(in, loc, endsBefore(in, q[0]),
                                                         constant(in, 1), constant(in, 0));
                        });
    Value isRow = arith::CmpIOp::create(at, loc, CmpIPredicate::slt, chunk, numChunks);
    Value ofAllChunks = chunkOf(at, chunk);
    Value before = arith::SubIOp::create(at, loc, loadIndex(at, upTo, {group, ofAllChunks}, 0),
                                         loadIndex(at, inChunk, {group, ofAllChunks}, 0));
    Value inRun = arith::SubIOp::create(at, loc, number, before);
    Value own = remainder(at, loadIndex(at, run, {ofAllChunks, inRun}, 0), rowsOfChunk);
    Value row = arith::MulIOp::create(at, loc, chunk, constant(at, rowsOfChunk));
    row = arith::AddIOp::create(at, loc, row, own);
    if (batch)
      row = arith::AddIOp::create(at, loc,
                                  arith::MulIOp::create(at, loc, batch, numRows).getResult(), row);
    return word(at, arith::SelectOp::create(at, loc, isRow, row, constant(at, -1)));
  };
  order.blockRow =
      define(".row", {"b", "t"}, {order.numBlocks, blockSize}, builder.getI32Type(), rowOf);
}

RowOrder RowSorter::sort(Value numBatches, Value rows, Value groups, int64_t ofBlock,
                         GroupOf groupOf) {
  batches = numBatches;
  numRows = rows;
  numGroups = groups;
  rowsOfBlock = ofBlock;
  chunkSize = constant(builder, rowsOfChunk);
  blockSize = constant(builder, rowsOfBlock);
  Value raised = arith::AddIOp::create(builder, loc, numRows, constant(builder, rowsOfChunk - 1));
  numChunks = divide(builder, raised, rowsOfChunk);
  RowOrder order;
  order.rowsOfBlock = rowsOfBlock;
  order.numBlocks = divide(builder, allOf(builder, numRows), rowsOfBlock);
  if (rowsOfBlock > 1)
    order.numBlocks =
        arith::AddIOp::create(builder, loc, order.numBlocks, allOf(builder, numGroups));
  storeRuns(groupOf);
  storeCounts();
  storeBlocks(order);
  storePlaces(order);
  storeRows(order);
  return order;
}
