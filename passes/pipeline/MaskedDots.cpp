//===- MaskedDots.cpp - products of masked weights by all warps -----------===//
//
// Where all warps of a block multiply, by mma.sync or by FMA, the operands of a product are tiles
// in registers. If a sum is not finite behind the loop, a copy of the loop runs. Without a loop,
// copies of the products run.
//
// 1. Elements of the right operand that are not finite are 0, so that other sums keep their bits.
// 2. A second product counts them: its left operand is 1 where a weight is present, and its right
//    operand is a power of two that says whether an element is NaN, inf or -inf.
// 3. The sums get what was counted.
//
//   %o = for %j {                   %o = for %j { ... }
//     o = dot %w, %v, %o            %p = if all_finite %o { %o } else { for %j {
//   }                          →      o = dot %w, (%v is finite ? %v : 0), %o
//                                     n = dot (1 where %w is present), (what %v is), 0
//                                     o + (n holds NaN ? NaN : n holds inf ? inf : 0 ...)
//                                   } }
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/MaskedDots.h"
#include "passes/machine/limits/MaskedDots.h"
#include "passes/pipeline/MaskedProduct.h"

#include "dialects/tkgpu/TkGpuLayout.h"

#include "dialects/tkgpu/TkGpuFiniteOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::masked_dots;

/// Is it an exponential? No weight that is present is below 0.
static bool isExponential(Operation *op) {
  return isa_and_nonnull<ExpDiffOp, ScaledExpDiffOp, math::ExpOp, math::Exp2Op>(op);
}

/// Goes from `value` back over conversions, which are added to `ops` with the first one first.
static Value skipConversions(Value value, SmallVector<Operation *> &ops) {
  while (
      isa_and_nonnull<arith::TruncFOp, ConvertLayoutOp, ExtractOp, HoldOp>(value.getDefiningOp())) {
    ops.insert(ops.begin(), value.getDefiningOp());
    value = value.getDefiningOp()->getOperand(0);
  }
  return value;
}

/// The only store to the shared tile that `load` reads, in its block.
static LocalStoreOp storeFor(LocalLoadOp load) {
  LocalStoreOp found;
  for (Operation *user : load.getSource().getUsers()) {
    auto store = dyn_cast<LocalStoreOp>(user);
    if (user->getBlock() != load->getBlock() || (!store && !isa<LocalLoadOp>(user)) ||
        (store && found))
      return {};
    found = store ? store : found;
  }
  return found && found->isBeforeInBlock(load) ? found : LocalStoreOp();
}

/// Follows the left operand to the weights, through shared memory if they go there.
bool MaskedDots::findWeights(Product &product, Value &weights) {
  weights = skipConversions(product.dot.getA(), product.behind);
  product.load = weights.getDefiningOp<LocalLoadOp>();
  if (product.load) {
    product.store = storeFor(product.load);
    if (!product.store)
      return false;
    weights = skipConversions(product.store.getValue(), product.ahead);
  } else {
    std::swap(product.ahead, product.behind);
  }
  return weights.getParentBlock() == product.dot->getBlock();
}

bool MaskedDots::add(DotOp dot) {
  const Type element = getElementTypeOrSelf(dot.getB().getType());
  if (dot.hasTerm() || !isa<FloatType>(element) || element.getIntOrFloatBitWidth() > 32 ||
      !getElementTypeOrSelf(dot.getType()).isF32())
    return false;
  Product product;
  product.dot = dot;
  Value weights;
  if (!findWeights(product, weights))
    return false;
  // Weights that are masked behind the exponential, or whose scores are.
  for (auto select = weights.getDefiningOp<arith::SelectOp>();
       select && matchPattern(select.getFalseValue(), m_AnyZeroFloat());
       select = weights.getDefiningOp<arith::SelectOp>()) {
    product.conditions.push_back(select.getCondition());
    weights = select.getTrueValue();
  }
  if (!isExponential(weights.getDefiningOp()))
    return false;
  for (Value source : sourcesOf(weights.getDefiningOp()->getOperand(0)))
    if (auto mask = source.getDefiningOp<arith::SelectOp>(); mask && isMask(mask))
      product.conditions.push_back(mask.getCondition());
  IRMapping known;
  auto isHere = [&](Value condition) {
    auto type = dyn_cast<RankedTensorType>(condition.getType());
    auto wanted = cast<RankedTensorType>(weights.getType());
    return type && type.getShape() == wanted.getShape() &&
           type.getEncoding() == wanted.getEncoding() && computeAt(nullptr, dot, condition, known);
  };
  if (!llvm::any_of(product.conditions, differsByRow) || !llvm::all_of(product.conditions, isHere))
    return false;
  products.push_back(product);
  return true;
}

/// Follows the last product to the loop's result, or to where its block goes on with it.
bool MaskedDots::findSum() {
  int64_t terms = 0;
  for (Product &product : products) {
    terms += cast<RankedTensorType>(product.dot.getB().getType()).getDimSize(0);
    if (product.dot != products.back().dot && !product.dot->hasOneUse())
      return false;
  }
  sum = products.back().dot.getResult();
  Value value = sum;
  // Sums may be scaled before the next step.
  while (value.hasOneUse() && isa<arith::MulFOp>(*value.user_begin()))
    value = value.user_begin()->getResult(0);
  OpOperand *use = value.hasOneUse() ? &*value.use_begin() : nullptr;
  auto yield = use ? dyn_cast<scf::YieldOp>(use->getOwner()) : scf::YieldOp();
  if (yield) {
    loop = dyn_cast<scf::ForOp>(yield->getParentOp());
    if (!loop || yield->getBlock() != products.back().dot->getBlock())
      return false;
    sum = loop.getResult(use->getOperandNumber());
  }
  LayoutAttr layout = getLayout(sum.getType());
  return terms < kNan && layout && layout.getNumRegisters() <= kMostSums;
}

SmallVector<MaskedDots, 0> MaskedDots::findIn(Block *block) {
  SmallVector<MaskedDots, 0> found;
  for (auto dot : block->getOps<DotOp>()) {
    const bool isNext =
        !found.empty() && dot.getAcc() == found.back().products.back().dot.getResult();
    MaskedDots dots = isNext ? found.back() : MaskedDots();
    if (!dots.add(dot))
      continue;
    if (isNext)
      found.pop_back();
    found.push_back(dots);
  }
  llvm::erase_if(found, [](MaskedDots &dots) { return !dots.findSum(); });
  return found;
}

static Value splat(OpBuilder &builder, Location loc, Type like, double number) {
  auto type = cast<RankedTensorType>(like);
  return arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(type,
                             cast<Attribute>(builder.getFloatAttr(type.getElementType(), number))));
}

static RankedTensorType withElement(Type like, Type element) {
  auto type = cast<RankedTensorType>(like);
  return RankedTensorType::get(type.getShape(), element, type.getEncoding());
}

static Value compare(OpBuilder &builder, arith::CmpFPredicate predicate, Value a, double b) {
  Value other = splat(builder, a.getLoc(), a.getType(), b);
  return arith::CmpFOp::create(builder, a.getLoc(), predicate, a, other);
}

static Value choose(OpBuilder &builder, Value condition, Value then, Value otherwise) {
  return arith::SelectOp::create(builder, condition.getLoc(), condition, then, otherwise);
}

static Value inF32(OpBuilder &builder, Value values) {
  if (getElementTypeOrSelf(values.getType()).isF32())
    return values;
  return arith::ExtFOp::create(builder, values.getLoc(),
                               withElement(values.getType(), builder.getF32Type()), values);
}

static Value isFinite(OpBuilder &builder, Value numbers) {
  Value size = math::AbsFOp::create(builder, numbers.getLoc(), numbers);
  return compare(builder, arith::CmpFPredicate::OLT, size, std::numeric_limits<float>::infinity());
}

static Value convert(OpBuilder &builder, ArrayRef<Operation *> conversions, Value value) {
  for (Operation *conversion : conversions) {
    IRMapping own;
    own.map(conversion->getOperand(0), value);
    value = builder.clone(*conversion, own)->getResult(0);
  }
  return value;
}

/// 1 in place of each weight that is present, else 0: as the weights are converted, or stored.
Value MaskedDots::presence(OpBuilder &builder, Operation *point, const IRMapping &outer) {
  Product &first = products.front();
  IRMapping mapping;
  Value present;
  for (Value condition : first.conditions) {
    Value one = computeAt(&builder, point, outer.lookupOrDefault(condition), mapping);
    present =
        present ? arith::AndIOp::create(builder, point->getLoc(), present, one).getResult() : one;
  }
  auto type = withElement(present.getType(), builder.getF32Type());
  Value marks = choose(builder, present, splat(builder, point->getLoc(), type, 1),
                       splat(builder, point->getLoc(), type, 0));
  if (!first.store)
    return marks;
  Value stored = convert(builder, first.ahead, marks);
  auto store = cast<LocalStoreOp>(builder.clone(*first.store));
  store.getValueMutable().assign(stored);
  store.getTargetMutable().assign(outer.lookupOrDefault(first.store.getTarget()));
  return marks;
}

/// `counts` and what `values` that are not finite are, of rows that see them.
Value MaskedDots::count(OpBuilder &builder, Product &product, Value marks, Value values,
                        Value counts, const IRMapping &mapping) {
  using enum arith::CmpFPredicate;
  Location loc = counts.getLoc();
  Value numbers = inF32(builder, values);
  const Type wide = numbers.getType();
  // What an element is, as a number of which sums over a step tell which kinds there are.
  Value kind =
      choose(builder, compare(builder, OEQ, numbers, std::numeric_limits<float>::infinity()),
             splat(builder, loc, wide, kInfinity), splat(builder, loc, wide, kMinusInfinity));
  kind = choose(builder, compare(builder, UNO, numbers, 0), splat(builder, loc, wide, kNan), kind);
  kind = choose(builder, isFinite(builder, numbers), splat(builder, loc, wide, 0), kind);
  if (wide != values.getType())
    kind = arith::TruncFOp::create(builder, loc, values.getType(), kind);
  if (product.load) {
    auto load = cast<LocalLoadOp>(builder.clone(*product.load.getOperation()));
    load.getSourceMutable().assign(mapping.lookupOrDefault(load.getSource()));
    marks = load;
  } else {
    marks = convert(builder, product.ahead, marks);
  }
  marks = convert(builder, product.behind, marks);
  return DotOp::create(builder, loc, counts.getType(), marks, kind, counts,
                       product.dot.getPrecision());
}

/// Leaves values that are not finite out of `dots`, copies of the products, and adds them behind.
void MaskedDots::guard(ArrayRef<DotOp> dots, const IRMapping &mapping) {
  using enum arith::CmpFPredicate;
  SmallVector<Value> values;
  for (DotOp dot : dots) {
    OpBuilder builder(dot);
    Value own = dot.getB();
    values.push_back(own);
    dot.getBMutable().assign(choose(builder, isFinite(builder, inF32(builder, own)), own,
                                    splat(builder, dot.getLoc(), own.getType(), 0)));
  }
  DotOp last = dots.back();
  Location loc = last.getLoc();
  OpBuilder builder(last);
  builder.setInsertionPointAfter(last);
  const Type type = last.getType();
  Value zeros = splat(builder, loc, type, 0), counts = zeros;
  Value marks = presence(builder, last->getNextNode(), mapping);
  for (auto [product, own] : llvm::zip_equal(products, values)) {
    // Read again: all parts at once would take too many registers.
    if (auto load = own.getDefiningOp<LocalLoadOp>())
      own = builder.clone(*load)->getResult(0);
    counts = count(builder, product, marks, own, counts, mapping);
  }
  const float infinity = std::numeric_limits<float>::infinity();
  Value whole = math::FloorOp::create(builder, loc, counts);
  Value below = arith::SubFOp::create(builder, loc, counts, whole);
  Value high = choose(builder, compare(builder, OGE, whole, kInfinity),
                      splat(builder, loc, type, infinity), zeros);
  Value low =
      choose(builder, compare(builder, OGT, below, 0), splat(builder, loc, type, -infinity), zeros);
  Value seen = arith::AddFOp::create(builder, loc, high, low);
  seen = choose(builder, compare(builder, OGE, counts, kNan),
                splat(builder, loc, type, std::numeric_limits<double>::quiet_NaN()), seen);
  Value fixed = arith::AddFOp::create(builder, loc, last.getResult(), seen);
  last.getResult().replaceAllUsesExcept(fixed, fixed.getDefiningOp());
}

void MaskedDots::apply() {
  Location loc = sum.getLoc();
  OpBuilder builder(sum.getContext());
  builder.setInsertionPointAfterValue(sum);
  Value all = AllFiniteOp::create(builder, loc, sum);
  auto branch = scf::IfOp::create(builder, loc, sum.getType(), all, /*withElseRegion=*/true);
  llvm::SmallPtrSet<Operation *, 1> own = {all.getDefiningOp()};
  sum.replaceAllUsesExcept(branch.getResult(0), own);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, sum);
  builder.setInsertionPointToStart(branch.elseBlock());
  IRMapping mapping;
  SmallVector<DotOp> dots;
  if (loop)
    builder.clone(*loop, mapping);
  for (Product &product : products) {
    if (!loop)
      builder.clone(*product.dot, mapping);
    dots.push_back(mapping.lookup(product.dot.getResult()).getDefiningOp<DotOp>());
  }
  scf::YieldOp::create(builder, loc, mapping.lookup(sum));
  guard(dots, mapping);
}
