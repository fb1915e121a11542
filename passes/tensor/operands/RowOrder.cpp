//===- RowOrder.cpp - rows in blocks by their group -----------------------===//
//
// A counting sort by compute ops. No two threads add to one counter, so the order is the same in
// every run: rows of a group keep their order.
//
// 1. Rows are cut into chunks. `entry` has the group of each row, and -1 behind the last row.
// 2. `in` counts the rows of each group in each chunk. `upto` adds the chunks up.
// 3. A group takes whole blocks. `first` is the first block of each group, and `group` the group of
//    each block.
// 4. The place of a row is that of its group, and behind it the rows of the group in the chunks
//    before and those before it in its chunk.
// 5. For each place of a block, `chunk` counts the chunks that end before the place. If there are
//    many chunks, it counts runs of chunks first. `row` finds the row of that chunk with the place.
//
//   %entry = tk.compute ["q", "j"] {group(q * 256 + j)}
//   %in    = tk.compute ["g", "q"] {tk.reduce [sum] ["j"] {entry[q, j] == g}}
//   %upto  = tk.compute ["g", "q"] {tk.scan sum "p" at q {in[g, p]}}
//   %first = tk.compute ["g"] {tk.reduce [sum] ["h"] {h < g ? ceil(upto[h, last] / 128) : 0}}
//   %group = tk.compute ["b"] {tk.reduce [sum] ["g"] {first[g] <= b} - 1}
//   %place = tk.compute ["q", "j"] {first[entry[q, j]] * 128 + upto[entry[q, j], q]
//       - in[entry[q, j], q] + tk.reduce [sum] ["p"] {p < j and entry[q, p] == entry[q, j]}}
//   %chunk = tk.compute ["b", "t"] {tk.reduce [sum] ["q"] {
//       upto[group[b], q] <= (b - first[group[b]]) * 128 + t}}
//   %row   = tk.compute ["b", "t"] {tk.reduce [sum] ["p"] {
//       place[chunk[b, t], p] == b * 128 + t ? chunk[b, t] * 256 + p + 1 : 0} - 1}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/operands/RowOrder.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/machine/RowOrderCost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace tk;
using arith::CmpIPredicate;

/// The number of chunks that are counted one by one. More are counted in runs of as many first.
static constexpr int64_t chunksOfRun = 64;

double RowSorter::timeOf(double rows, double groups, int64_t rowsOfBlock) {
  const double chunks = std::ceil(rows / rowsOfChunk);
  const double places = (std::floor(rows / static_cast<double>(rowsOfBlock)) + groups) *
                        static_cast<double>(rowsOfBlock);
  const bool inRuns = chunks > chunksOfRun;
  const double searched = inRuns ? std::ceil(chunks / chunksOfRun) + chunksOfRun : chunks;
  const double blocks = places / static_cast<double>(rowsOfBlock);
  const double launches = inRuns ? 9 : 8;
  const double counted =
      groups * rows + groups * groups + blocks * groups + rows * rowsOfChunk + places * rowsOfChunk;
  constexpr double bytesOfCount = 4 * 3; // written once, scanned, and written
  return launches * cost::launch + cost::comparison * counted + cost::searched * places * searched +
         cost::byte * bytesOfCount * chunks * groups;
}

//===----------------------------------------------------------------------===//
// Parts of compute ops
//===----------------------------------------------------------------------===//

Value RowSorter::constant(OpBuilder &at, int64_t value) {
  return arith::ConstantIndexOp::create(at, loc, value);
}

Value RowSorter::divide(OpBuilder &at, Value value, int64_t divisor) {
  return FloorDivOp::create(at, loc, value.getType(), value, constant(at, divisor));
}

Value RowSorter::remainder(OpBuilder &at, Value value, int64_t divisor) {
  return FloorModOp::create(at, loc, value.getType(), value, constant(at, divisor));
}

Value RowSorter::word(OpBuilder &at, Value index) {
  return arith::IndexCastOp::create(at, loc, at.getI32Type(), index);
}

Value RowSorter::define(StringRef suffix, ArrayRef<StringRef> names, ArrayRef<Value> extents,
                        Type type, Body body) {
  std::string name = (cast<StringAttr>(before.getNames()[0]).getValue() + suffix).str();
  auto stored = ComputeOp::create(builder, loc, names, extents, ArrayRef<Type>{type},
                                  ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
                                  [&](OpBuilder &at, Location, ValueRange indices) {
                                    YieldOp::create(at, loc, body(at, indices));
                                  });
  return stored->getResult(0);
}

/// The sum of `term`, an index, over `extent`, as an index.
Value RowSorter::count(OpBuilder &at, StringRef name, Value extent, Body term) {
  auto sum = ReduceOp::create(at, loc, ReduceKind::Sum, ArrayRef<StringRef>{name},
                              ValueRange{constant(at, 0)}, ValueRange{extent}, at.getI32Type(),
                              [&](OpBuilder &inner, Location, ValueRange indices) {
                                return word(inner, term(inner, indices));
                              });
  return arith::IndexCastOp::create(at, loc, at.getIndexType(), sum.getResult(0));
}

Value RowSorter::loadIndex(OpBuilder &at, Value tensor, ValueRange indices,
                           std::optional<int64_t> pad) {
  Value outside;
  if (pad)
    outside = arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(static_cast<int32_t>(*pad)));
  Value element = LoadOp::create(at, loc, tensor, indices, outside);
  return arith::IndexCastOp::create(at, loc, at.getIndexType(), element);
}

/// `value` if `a` compares with `b` as `predicate` says, else 0.
static Value where(OpBuilder &at, Location loc, CmpIPredicate predicate, Value a, Value b,
                   Value value) {
  Value holds = arith::CmpIOp::create(at, loc, predicate, a, b);
  Value zero = arith::ConstantIndexOp::create(at, loc, 0);
  return arith::SelectOp::create(at, loc, holds, value, zero);
}

//===----------------------------------------------------------------------===//
// The compute ops
//===----------------------------------------------------------------------===//

/// Stores the rows' groups, and how many rows of each group there are up to the end of each chunk.
void RowSorter::storeGroups(GroupOf groupOf) {
  Type type = builder.getI32Type();
  entry = define(".entry", {"q", "j"}, {numChunks, chunkSize}, type,
                 [&](OpBuilder &at, ValueRange qj) -> Value {
                   Value start = arith::MulIOp::create(at, loc, qj[0], constant(at, rowsOfChunk));
                   Value row = arith::AddIOp::create(at, loc, start, qj[1]);
                   Value last = arith::SubIOp::create(at, loc, numRows, constant(at, 1));
                   Value inside = arith::MinSIOp::create(at, loc, row, last);
                   Value isRow = arith::CmpIOp::create(at, loc, CmpIPredicate::sle, row, last);
                   return word(at, arith::SelectOp::create(at, loc, isRow, groupOf(at, inside),
                                                           constant(at, -1)));
                 });
  inChunk = define(
      ".in", {"g", "q"}, {numGroups, numChunks}, type, [&](OpBuilder &at, ValueRange gq) -> Value {
        return word(at, count(at, "j", chunkSize, [&](OpBuilder &in, ValueRange j) {
                      Value own = loadIndex(in, entry, {gq[1], j[0]});
                      return where(in, loc, CmpIPredicate::eq, own, gq[0], constant(in, 1));
                    }));
      });
  upTo = define(".upto", {"g", "q"}, {numGroups, numChunks}, type,
                [&](OpBuilder &at, ValueRange gq) -> Value {
                  return ScanOp::create(
                      at, loc, ReduceKind::Sum, "p", constant(at, 0), numChunks, gq[1], type,
                      [&](OpBuilder &in, Location, ValueRange p) -> Value {
                        return LoadOp::create(in, loc, inChunk, ValueRange{gq[0], p[0]}, Value());
                      });
                });
}

/// Stores the first block of each group, and the group of each block.
void RowSorter::storeBlocks(RowOrder &order) {
  Type type = builder.getI32Type();
  order.first =
      define(".first", {"g"}, {numGroups}, type, [&](OpBuilder &at, ValueRange g) -> Value {
        return word(at, count(at, "h", numGroups, [&](OpBuilder &in, ValueRange h) {
                      Value last = arith::SubIOp::create(in, loc, numChunks, constant(in, 1));
                      Value rows = loadIndex(in, upTo, {h[0], last}, 0);
                      Value raised =
                          arith::AddIOp::create(in, loc, rows, constant(in, rowsOfBlock - 1));
                      return where(in, loc, CmpIPredicate::slt, h[0], g[0],
                                   divide(in, raised, rowsOfBlock));
                    }));
      });
  order.blockGroup =
      define(".group", {"b"}, {order.numBlocks}, type, [&](OpBuilder &at, ValueRange b) -> Value {
        Value begun = count(at, "g", numGroups, [&](OpBuilder &in, ValueRange g) {
          return where(in, loc, CmpIPredicate::sle, loadIndex(in, order.first, g), b[0],
                       constant(in, 1));
        });
        return word(at, arith::SubIOp::create(at, loc, begun, constant(at, 1)));
      });
}

/// Stores the place of each row.
void RowSorter::storePlaces(RowOrder &order) {
  order.place = define(
      ".place", {"q", "j"}, {numChunks, chunkSize}, builder.getI32Type(),
      [&](OpBuilder &at, ValueRange qj) -> Value {
        Value own = loadIndex(at, entry, qj);
        Value ofChunk = count(at, "p", chunkSize, [&](OpBuilder &in, ValueRange p) {
          Value isSame = arith::CmpIOp::create(in, loc, CmpIPredicate::eq,
                                               loadIndex(in, entry, {qj[0], p[0]}), own);
          Value one = arith::SelectOp::create(in, loc, isSame, constant(in, 1), constant(in, 0));
          return where(in, loc, CmpIPredicate::slt, p[0], qj[1], one);
        });
        Value here = loadIndex(at, inChunk, {own, qj[0]}, 0);
        Value before = arith::SubIOp::create(at, loc, loadIndex(at, upTo, {own, qj[0]}, 0), here);
        Value start = arith::MulIOp::create(at, loc, loadIndex(at, order.first, {own}, 0),
                                            constant(at, rowsOfBlock));
        Value place = arith::AddIOp::create(at, loc, start, before);
        place = arith::AddIOp::create(at, loc, place, ofChunk);
        Value isRow = arith::CmpIOp::create(at, loc, CmpIPredicate::sge, own, constant(at, 0));
        return word(at, arith::SelectOp::create(at, loc, isRow, place, constant(at, -1)));
      });
}

/// Stores the number of the chunk that has the row of each place. Behind a group's last row it is
/// the number of chunks.
Value RowSorter::storeChunksOfPlaces(const RowOrder &order) {
  Type type = builder.getI32Type();
  auto rankOf = [&](OpBuilder &at, ValueRange bt, Value group) -> Value {
    Value block = arith::SubIOp::create(at, loc, bt[0], loadIndex(at, order.first, {group}, 0));
    Value start = arith::MulIOp::create(at, loc, block, constant(at, rowsOfBlock));
    return arith::AddIOp::create(at, loc, start, bt[1]);
  };
  // A chunk behind the last one ends before no place.
  auto endsBefore = [&](OpBuilder &at, Value group, Value chunk, Value rank) {
    return where(at, loc, CmpIPredicate::sle,
                 loadIndex(at, upTo, {group, chunk}, std::numeric_limits<int32_t>::max()), rank,
                 constant(at, 1));
  };
  const bool inRuns = guessSize(kernel, numChunks) > chunksOfRun;
  Value runs, run;
  if (inRuns) {
    runs = divide(builder, numChunks, chunksOfRun);
    run = define(".run", {"b", "t"}, {order.numBlocks, blockSize}, type,
                 [&](OpBuilder &at, ValueRange bt) -> Value {
                   Value group = loadIndex(at, order.blockGroup, {bt[0]});
                   Value rank = rankOf(at, bt, group);
                   return word(at, count(at, "u", runs, [&](OpBuilder &in, ValueRange u) {
                                 Value start = arith::MulIOp::create(in, loc, u[0],
                                                                     constant(in, chunksOfRun));
                                 Value last = arith::AddIOp::create(in, loc, start,
                                                                    constant(in, chunksOfRun - 1));
                                 return endsBefore(in, group, last, rank);
                               }));
                 });
  }
  return define(".chunk", {"b", "t"}, {order.numBlocks, blockSize}, type,
                [&](OpBuilder &at, ValueRange bt) -> Value {
                  Value group = loadIndex(at, order.blockGroup, {bt[0]});
                  Value rank = rankOf(at, bt, group);
                  Value start = inRuns
                                    ? Value(arith::MulIOp::create(at, loc, loadIndex(at, run, bt),
                                                                  constant(at, chunksOfRun)))
                                    : constant(at, 0);
                  Value extent = inRuns ? constant(at, chunksOfRun) : numChunks;
                  Value counted = count(at, "q", extent, [&](OpBuilder &in, ValueRange q) {
                    return endsBefore(in, group, arith::AddIOp::create(in, loc, start, q[0]), rank);
                  });
                  return word(at, arith::AddIOp::create(at, loc, start, counted));
                });
}

/// Stores the row of each place.
void RowSorter::storeRows(RowOrder &order) {
  Value chunks = storeChunksOfPlaces(order);
  order.blockRow =
      define(".row", {"b", "t"}, {order.numBlocks, blockSize}, builder.getI32Type(),
             [&](OpBuilder &at, ValueRange bt) -> Value {
               Value start = arith::MulIOp::create(at, loc, bt[0], constant(at, rowsOfBlock));
               Value own = arith::AddIOp::create(at, loc, start, bt[1]);
               Value chunk = loadIndex(at, chunks, bt);
               Value found = count(at, "p", chunkSize, [&](OpBuilder &in, ValueRange p) {
                 Value next = arith::AddIOp::create(in, loc, p[0], constant(in, 1));
                 return where(in, loc, CmpIPredicate::eq,
                              loadIndex(in, order.place, {chunk, p[0]}, -1), own, next);
               });
               Value before = arith::MulIOp::create(at, loc, chunk, constant(at, rowsOfChunk));
               Value row = arith::AddIOp::create(at, loc, before, found);
               row = arith::SubIOp::create(at, loc, row, constant(at, 1));
               Value isRow =
                   arith::CmpIOp::create(at, loc, CmpIPredicate::sgt, found, constant(at, 0));
               return word(at, arith::SelectOp::create(at, loc, isRow, row, constant(at, -1)));
             });
}

RowOrder RowSorter::sort(Value rows, Value groups, int64_t ofBlock, GroupOf groupOf) {
  numRows = rows;
  numGroups = groups;
  rowsOfBlock = ofBlock;
  chunkSize = constant(builder, rowsOfChunk);
  blockSize = constant(builder, rowsOfBlock);
  Value raised = arith::AddIOp::create(builder, loc, numRows, constant(builder, rowsOfChunk - 1));
  numChunks = divide(builder, raised, rowsOfChunk);
  RowOrder order;
  order.numBlocks =
      arith::AddIOp::create(builder, loc, divide(builder, numRows, rowsOfBlock), numGroups);
  storeGroups(groupOf);
  storeBlocks(order);
  storePlaces(order);
  storeRows(order);
  return order;
}
