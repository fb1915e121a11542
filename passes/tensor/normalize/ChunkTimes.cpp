//===- ChunkTimes.cpp - the times of products by chunks --------------------===//
//
// ChunkProducts.cpp has the algorithm. The times are those of the matrix unit for operands in
// 16 bits, and of CUDA cores for others.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ComputedFactor.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/limits/Splits.h"
#include "passes/tensor/normalize/ChunkProduct.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;
using namespace tk;
using namespace limits::chunk_products;

/// Finds the type of the matrix unit's operands. Each has a factor in bf16, as scores and states in
/// f16 could be too large for it. Others are multiplied in f32.
void ChunkProduct::findNarrow() {
  unsigned numNarrow = 0;
  for (ArrayRef<Factor> operand : {ArrayRef(a), ArrayRef(b), ArrayRef(c)})
    numNarrow += llvm::any_of(operand, [&](const Factor &factor) {
      auto wide = factor.value.getDefiningOp<arith::ExtFOp>();
      const bool isNarrow = wide && !factor.isDivisor && wide.getIn().getType().isBF16();
      if (isNarrow && mayRound)
        narrow = cast<FloatType>(wide.getIn().getType());
      return isNarrow;
    });
  if (numNarrow < 3)
    narrow = {};
}

/// Are the scores in a chunk products of operands in 16 bits, as they are stored?
bool ChunkProduct::hasNarrowScores() {
  return llvm::all_of(ArrayRef<ArrayRef<Factor>>{a, b}, [](ArrayRef<Factor> operand) {
    auto wide = operand.empty() ? arith::ExtFOp() : operand[0].value.getDefiningOp<arith::ExtFOp>();
    return operand.size() == 1 && wide && wide.getIn().getType().getIntOrFloatBitWidth() == 16;
  });
}

double ChunkProduct::sizeOf(const Indices &all) {
  double size = 1;
  for (BlockArgument index : all)
    size *= guessSize(kernel, compute.getExtents()[index.getArgNumber()]);
  return size;
}

double ChunkProduct::timeOfScan() {
  return cost::launch +
         sizeOf(batch) * guessSize(kernel, extent) * sizeOf(states) * sizeOf(columns) * termOfScan;
}

double ChunkProduct::timeOfChunks() {
  const double rows = guessSize(kernel, extent), matrices = sizeOf(batch), y = sizeOf(states),
               x = sizeOf(columns);
  double best = std::numeric_limits<double>::infinity();
  if (y < leastOfState || x < leastOfState)
    return best;
  for (int64_t candidate : chunks) {
    const double one = static_cast<double>(candidate);
    if (one > rows || ((weighsStates || weighsColumns) && candidate > longestWeighed))
      continue;
    const double pairs = matrices * rows * one;
    double bytes = matrices * (rows / one * y * x * bytesOfState + rows * x * bytesOfResult);
    double products = matrices * rows * (one * (y + x) + 2 * y * x) * termOfProduct;
    if (!narrow) { // CUDA cores multiply, and scores and the sums of a chunk are stored
      bytes += pairs * bytesOfScore + matrices * rows * x * bytesOfResult;
      products = matrices * rows * (one * ((hasNarrowScores() ? 0 : y) + x) + 2 * y * x) *
                 termOfWideProduct * std::max(rowsOfWideTile / one, 1.0);
    }
    const double time = (narrow ? launches : launchesOfWide) * cost::launch + bytes * cost::byte +
                        products +
                        pairs * (weighsStates    ? y * termOfWeighed
                                 : weighsColumns ? x * termOfWeighed
                                                 : termOfPair);
    if (time < best) {
      best = time;
      length = candidate;
    }
  }
  return best;
}
