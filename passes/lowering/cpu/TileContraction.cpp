//===- TileContraction.cpp - matrix products over a tile ------------------===//
//
// A chunk of a sum of products, sum += rows * columns, over a tile:
//  1. The row factor is evaluated into panels of `registerRows` rows, term by term, and the column
//     factor into panels of a register tile's width. Whatever the factors are (converted, scaled,
//     masked, gathered), they are plain numbers of the accumulator's type from there on.
//  2. For every pair of panels a register tile of the sum is loaded, updated by one outer product
//     a term, and stored. Panels are padded, so there are no edges; what the padding computes
//     lands in the padding of the sum.
// The column panel is the inner loop's constant and stays in the first-level cache.
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/TileEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

static SmallVector<unsigned> ownIds(ReduceOp reduce, const BodyAnalysis &analysis) {
  SmallVector<unsigned> ids;
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i)
    ids.push_back(analysis.idOf(reduce.getIndex(i)));
  return ids;
}

/// How many terms the current chunk has.
Value TileEmitter::flatDepth(ReduceOp reduce) {
  Value depth;
  for (unsigned id : ownIds(reduce, analysis))
    depth = depth ? arith::MulIOp::create(b, loc, depth, state[id].current).getResult()
                  : state[id].current;
  return depth;
}

/// Loops over the terms of the chunk; `body` receives their number.
void TileEmitter::forEachDepth(ReduceOp reduce, function_ref<void(Value)> body) {
  SmallVector<unsigned> ids = ownIds(reduce, analysis);
  forEach(ids, [&] {
    Value flat;
    for (unsigned id : ids) {
      if (!flat) {
        flat = state[id].local;
        continue;
      }
      flat = arith::MulIOp::create(b, loc, flat, state[id].current);
      flat = arith::AddIOp::create(b, loc, flat, state[id].local);
    }
    body(flat);
  });
}

/// A factor at the current point; 0 outside the reduction's bounds where those vary in the tile.
Value TileEmitter::maskedFactor(ReduceOp reduce, Value factor) {
  Value value = eval(factor);
  IndexMask mask = analysis.maskOf(factor);
  Value inside;
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i) {
    IndexMask bounds =
        analysis.maskOf(reduce.getLower()[i]) | analysis.maskOf(reduce.getUpper()[i]);
    SmallVector<unsigned> varying = analysis.tiledIds(bounds);
    if (varying.empty() || !(mask & (IndexMask(1) << varying.front())))
      continue;
    Value at = state[analysis.idOf(reduce.getIndex(i))].global;
    for (auto [predicate, bound] : {std::pair{arith::CmpIPredicate::sge, reduce.getLower()[i]},
                                    std::pair{arith::CmpIPredicate::slt, reduce.getUpper()[i]}}) {
      Value ok = arith::CmpIOp::create(b, loc, predicate, at, eval(bound));
      inside = inside ? arith::AndIOp::create(b, loc, inside, ok).getResult() : ok;
    }
  }
  if (!inside)
    return value;
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
  return arith::SelectOp::create(b, loc, inside, value, zero);
}

void TileEmitter::packRows(ReduceOp reduce, const Contraction &c, Value panel) {
  int64_t height = machine.registerRows;
  IndexState saved = state[c.rowId];
  Value last = arith::SubIOp::create(b, loc, saved.current, index(1));
  forLoop(index(0), saved.current, index(height), [&](Value first) {
    Value number = arith::DivUIOp::create(b, loc, first, index(height));
    forEachDepth(reduce, [&](Value depth) {
      for (int64_t r = 0; r < height; ++r) {
        auto savedMemo = memo;
        Value local = arith::AddIOp::create(b, loc, first, index(r));
        state[c.rowId].local = minOf(local, last); // rows of padding repeat the last one
        state[c.rowId].global = arith::AddIOp::create(b, loc, saved.base, state[c.rowId].local);
        Value value = maskedFactor(reduce, c.row);
        memref::StoreOp::create(b, loc, value, panel, ValueRange{number, depth, index(r)});
        memo = std::move(savedMemo);
      }
    });
  });
  state[c.rowId] = saved;
}

void TileEmitter::packColumns(ReduceOp reduce, const Contraction &c, Value panel, int64_t width) {
  IndexState saved = state[c.columnId];
  Value last = arith::SubIOp::create(b, loc, saved.current, index(1));
  forLoop(index(0), saved.current, index(width), [&](Value first) {
    Value number = arith::DivUIOp::create(b, loc, first, index(width));
    Value rest = arith::SubIOp::create(b, loc, saved.current, first);
    Value isFull = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, rest, index(width));
    auto branch = scf::IfOp::create(b, loc, isFull, /*withElseRegion=*/true);
    for (bool full : {true, false}) {
      OpBuilder outside = b;
      b = full ? branch.getThenBodyBuilder() : branch.getElseBodyBuilder();
      forEachDepth(reduce, [&](Value depth) {
        forLoop(index(0), index(width), index(1), [&](Value column) {
          Value local = arith::AddIOp::create(b, loc, first, column);
          state[c.columnId].local = full ? local : minOf(local, last);
          state[c.columnId].global =
              arith::AddIOp::create(b, loc, saved.base, state[c.columnId].local);
          Value value = maskedFactor(reduce, c.column);
          memref::StoreOp::create(b, loc, value, panel, ValueRange{number, depth, column});
        });
      });
      b = outside;
    }
  });
  state[c.columnId] = saved;
}

void TileEmitter::emitRegisterTiles(ReduceOp reduce, const Contraction &c, Value rows,
                                    Value columns, const Buffer &sum, Value depth) {
  Type element = cast<MemRefType>(sum.memref.getType()).getElementType();
  int64_t lanes = machine.vectorBytes / (element.getIntOrFloatBitWidth() / 8);
  int64_t height = machine.registerRows, vectors = machine.registerVectors;
  auto vectorType = VectorType::get({lanes}, element);
  auto tilePositions = [&](Value row, Value column, auto callback) {
    for (int64_t r = 0; r < height; ++r)
      for (int64_t v = 0; v < vectors; ++v)
        callback(r * vectors + v,
                 SmallVector<Value>{arith::AddIOp::create(b, loc, row, index(r)),
                                    arith::AddIOp::create(b, loc, column, index(v * lanes))});
  };
  Value columnWidth = index(lanes * vectors), rowHeight = index(height);
  forLoop(index(0), state[c.columnId].current, columnWidth, [&](Value column) {
    Value columnPanel = arith::DivUIOp::create(b, loc, column, columnWidth);
    forLoop(index(0), state[c.rowId].current, rowHeight, [&](Value row) {
      Value rowPanel = arith::DivUIOp::create(b, loc, row, rowHeight);
      SmallVector<Value> sums(height * vectors);
      tilePositions(row, column, [&](int64_t i, ValueRange at) {
        sums[i] = vector::LoadOp::create(b, loc, vectorType, sum.memref, at);
      });
      sums = carryLoop(index(0), depth, sums, [&](Value k, ValueRange carried) {
        SmallVector<Value> right, next(carried);
        for (int64_t v = 0; v < vectors; ++v)
          right.push_back(vector::LoadOp::create(b, loc, vectorType, columns,
                                                 ValueRange{columnPanel, k, index(v * lanes)}));
        for (int64_t r = 0; r < height; ++r) {
          Value scalar = memref::LoadOp::create(b, loc, rows, ValueRange{rowPanel, k, index(r)});
          Value left = vector::BroadcastOp::create(b, loc, vectorType, scalar);
          for (int64_t v = 0; v < vectors; ++v) {
            Value &out = next[r * vectors + v];
            if (isa<FloatType>(element))
              out = vector::FMAOp::create(b, loc, left, right[v], out);
            else
              out =
                  arith::AddIOp::create(b, loc, out, arith::MulIOp::create(b, loc, left, right[v]));
          }
        }
        return next;
      });
      tilePositions(row, column, [&](int64_t i, ValueRange at) {
        vector::StoreOp::create(b, loc, sums[i], sum.memref, at);
      });
    });
  });
}

bool TileEmitter::emitContraction(ReduceOp reduce, unsigned k) {
  const Contraction *c = analysis.contractionOf(reduce, k);
  if (!c)
    return false;
  const Buffer &sum = buffers[reduce.getResult(k)];
  if (sum.ids != SmallVector<unsigned>{c->rowId, c->columnId})
    return false;
  Type element = cast<MemRefType>(sum.memref.getType()).getElementType();
  int64_t lanes = machine.vectorBytes / (element.getIntOrFloatBitWidth() / 8);
  int64_t height = machine.registerRows, width = lanes * machine.registerVectors;
  int64_t depthCapacity = 1;
  for (unsigned id : ownIds(reduce, analysis))
    depthCapacity *= analysis.tileOf(id);
  Value rows = frame->allocate(
      MemRefType::get({analysis.tileOf(c->rowId) / height, depthCapacity, height}, element));
  Value columns = frame->allocate(
      MemRefType::get({analysis.tileOf(c->columnId) / width, depthCapacity, width}, element));
  packRows(reduce, *c, rows);
  packColumns(reduce, *c, columns, width);
  emitRegisterTiles(reduce, *c, rows, columns, sum, flatDepth(reduce));
  return true;
}
