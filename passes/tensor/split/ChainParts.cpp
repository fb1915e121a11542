//===- ChainParts.cpp - the lengths of the parts of a split-KV ------------===//
//
// Part of tk-split-chains, for sizes that are known only at the launch. C loops are in the batch,
// and W parts are wanted of all loops together. Each loop gets ceil(W / C) parts, unless a part
// would become too short to be worth storing its partial softmax state:
//
//   length = max(ceil(ceil(range / unit) / ceil(W / C)), least) * unit
//   count  = ceil(range / length)
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/ChainParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

std::pair<Value, Value> tk::createParts(OpBuilder &builder, Location loc, Value range,
                                        const PartWish &wish) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto ceilDiv = [&](Value value, Value divisor) -> Value {
    Value rest = builder.createOrFold<arith::SubIOp>(loc, divisor, constant(1));
    Value padded = builder.createOrFold<arith::AddIOp>(loc, value, rest);
    return FloorDivOp::create(builder, loc, padded, divisor);
  };
  Value chains = constant(1);
  for (Value extent : wish.batch)
    chains = builder.createOrFold<arith::MulIOp>(loc, chains, extent);
  chains = arith::MaxSIOp::create(builder, loc, chains, constant(1));
  Value ofChain = ceilDiv(constant(wish.wanted), chains);
  Value units = ceilDiv(ceilDiv(range, constant(wish.unit)), ofChain);
  units = arith::MaxSIOp::create(builder, loc, units, constant(wish.leastUnits));
  Value length = arith::MulIOp::create(builder, loc, units, constant(wish.unit));
  return {length, ceilDiv(range, length)};
}
