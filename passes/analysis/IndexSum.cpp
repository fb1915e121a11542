//===- IndexSum.cpp - index expressions as sums of products ---------------===//
#include "passes/analysis/IndexSum.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tk {

bool isMultipleOf(KernelOp kernel, Value extent, int64_t size) {
  SizeFact fact = getSizeFact(kernel, extent);
  if (fact.divisor % size == 0)
    return true;
  return llvm::any_of(kernel.getBody().front().getOps<AssumeOp>(), [&](AssumeOp assume) {
    auto compare = assume.getCondition().getDefiningOp<arith::CmpIOp>();
    auto rest = compare ? compare.getLhs().getDefiningOp<FloorModOp>() : FloorModOp();
    std::optional<int64_t> by = rest ? getConstantIndex(rest.getRhs()) : std::nullopt;
    return by && compare.getPredicate() == arith::CmpIPredicate::eq &&
           getConstantIndex(compare.getRhs()) == 0 && *by % size == 0 && *by > 0 &&
           isSameExtent(rest.getLhs(), extent);
  });
}

/// Of longer sums nothing is asked.
static constexpr size_t mostProducts = 16;

static bool isSame(const IndexFactor &a, const IndexFactor &b) {
  if (!a.divisor != !b.divisor || !ScalarEquality().equal(a.value, b.value))
    return false;
  return !a.divisor || ScalarEquality().equal(a.divisor, b.divisor);
}

/// Do both have the same factors, in any order?
static bool isSame(ArrayRef<IndexFactor> a, ArrayRef<IndexFactor> b) {
  SmallVector<IndexFactor> left(b);
  for (const IndexFactor &factor : a) {
    auto *found = llvm::find_if(left, [&](const IndexFactor &f) { return isSame(f, factor); });
    if (found == left.end())
      return false;
    left.erase(found);
  }
  return left.empty();
}

static bool varies(const IndexFactor &factor) {
  return !getIterationIndices(factor.value).empty() ||
         (factor.divisor && !getIterationIndices(factor.divisor).empty());
}

static bool varies(const IndexProduct &product) {
  return llvm::any_of(product.factors, [](const IndexFactor &factor) { return varies(factor); });
}

IndexSum::IndexSum(Value value) {
  if (std::optional<int64_t> number = getConstantIndex(value)) {
    addProduct({{}, *number});
    return;
  }
  Operation *op = value.getDefiningOp();
  auto operand = [&](unsigned n) { return IndexSum(op->getOperand(n)); };
  if (op && value.getType().isIndex()) {
    if (isa<arith::AddIOp, arith::SubIOp>(op)) {
      *this = operand(0);
      add(operand(1), isa<arith::AddIOp>(op) ? 1 : -1);
      return;
    }
    if (isa<arith::MulIOp>(op)) {
      *this = operand(0).times(operand(1));
      return;
    }
    if (isa<FloorDivOp, FloorModOp>(op)) {
      addProduct({{{op->getOperand(0), op->getOperand(1)}}, 1});
      if (isa<FloorDivOp>(op))
        return;
      IndexSum quotients = times(operand(1));
      *this = operand(0);
      add(quotients, -1);
      return;
    }
  }
  addProduct({{{value, Value()}}, 1});
}

void IndexSum::addProduct(IndexProduct product) {
  for (IndexProduct &known : products)
    if (isSame(known.factors, product.factors)) {
      known.number += product.number;
      llvm::erase_if(products, [](const IndexProduct &p) { return p.number == 0; });
      return;
    }
  if (product.number != 0)
    products.push_back(std::move(product));
}

IndexSum &IndexSum::add(const IndexSum &other, int64_t factor) {
  for (IndexProduct product : other.products) {
    product.number *= factor;
    addProduct(product);
  }
  return *this;
}

IndexSum IndexSum::times(const IndexSum &other) const {
  IndexSum result;
  for (const IndexProduct &a : products)
    for (const IndexProduct &b : other.products) {
      IndexProduct product = a;
      product.number *= b.number;
      llvm::append_range(product.factors, b.factors);
      result.addProduct(product);
    }
  return result;
}

std::optional<int64_t> IndexSum::getNumber() const {
  if (products.empty())
    return 0;
  if (products.size() == 1 && products.front().factors.empty())
    return products.front().number;
  return std::nullopt;
}

bool IndexSum::varies() const {
  return llvm::any_of(products, [](const IndexProduct &product) { return tk::varies(product); });
}

/// Is a value an index that begins at 0, or a size?
static bool isNotNegative(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || !value.getType().isIndex())
    return false;
  Operation *owner = argument.getOwner()->getParentOp();
  const unsigned n = argument.getArgNumber();
  if (auto kernel = dyn_cast<KernelOp>(owner))
    return n < kernel.getNumDims();
  auto reduce = dyn_cast<ReduceOp>(owner);
  return isa<ComputeOp>(owner) ||
         (reduce && n < reduce.getNumIndices() && getConstantIndex(reduce.getLower()[n]) == 0);
}

bool IndexSum::isNotNegative() const {
  return llvm::all_of(products, [](const IndexProduct &product) {
    return product.number >= 0 && llvm::all_of(product.factors, [](const IndexFactor &factor) {
             if (factor.divisor)
               return IndexSum(factor.value).isNotNegative() &&
                      IndexSum(factor.divisor).isNotNegative();
             return tk::isNotNegative(factor.value);
           });
  });
}

std::optional<IndexSum> IndexSum::dividedBy(KernelOp kernel, Value divisor) const {
  std::optional<int64_t> by = getConstantIndex(divisor);
  if (by && *by <= 0)
    return std::nullopt;
  IndexSum quotient;
  int64_t rest = 0;
  for (IndexProduct product : products) {
    auto *same = llvm::find_if(product.factors, [&](const IndexFactor &factor) {
      return isSame(factor, {divisor, Value()});
    });
    if (by && product.number % *by == 0) {
      product.number /= *by;
    } else if (same != product.factors.end()) {
      product.factors.erase(same);
    } else if (product.factors.empty()) {
      rest = product.number;
      continue;
    } else if (IndexFactor only = product.factors.front(); by && product.factors.size() == 1 &&
                                                           !only.divisor &&
                                                           isMultipleOf(kernel, only.value, *by)) {
      product.factors = {{only.value, divisor}};
    } else {
      return std::nullopt;
    }
    quotient.addProduct(product);
  }
  // A divisor that is a size is 1 at least.
  if (by)
    rest = llvm::divideFloorSigned(rest, *by);
  else if (rest < -1 || rest > 0)
    return std::nullopt;
  quotient.addProduct({{}, rest});
  return quotient;
}

IndexSum IndexSum::withWholeSizes(KernelOp kernel) const {
  IndexSum whole;
  for (IndexProduct product : products) {
    for (IndexFactor &factor : product.factors) {
      std::optional<int64_t> part =
          factor.divisor ? getConstantIndex(factor.divisor) : std::nullopt;
      if (!part || *part <= 0 || product.number % *part != 0 ||
          !isMultipleOf(kernel, factor.value, *part))
        continue;
      product.number /= *part;
      factor.divisor = Value();
    }
    whole.addProduct(product);
  }
  return whole;
}

Value IndexSum::create(OpBuilder &builder, Location loc, Block *home) const {
  IRMapping mapping;
  auto factorOf = [&](const IndexFactor &factor) {
    Value value = cloneSlice(builder, factor.value, home, mapping);
    if (!factor.divisor)
      return value;
    Value divisor = cloneSlice(builder, factor.divisor, home, mapping);
    return FloorDivOp::create(builder, loc, value.getType(), value, divisor).getResult();
  };
  Value sum;
  for (const IndexProduct &product : products) {
    Value term;
    for (const IndexFactor &factor : product.factors) {
      Value next = factorOf(factor);
      term = term ? arith::MulIOp::create(builder, loc, term, next).getResult() : next;
    }
    Value number = arith::ConstantIndexOp::create(builder, loc, product.number);
    if (term && product.number != 1)
      term = arith::MulIOp::create(builder, loc, term, number);
    term = term ? term : number;
    sum = sum ? arith::AddIOp::create(builder, loc, sum, term).getResult() : term;
  }
  return sum ? sum : arith::ConstantIndexOp::create(builder, loc, 0).getResult();
}

std::optional<IndexSum> greatestOf(KernelOp kernel, Value value) {
  if (getIterationIndices(value).empty())
    return IndexSum(value);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto compute = dyn_cast<ComputeOp>(argument.getOwner()->getParentOp());
    if (!compute)
      return std::nullopt;
    return IndexSum(compute.getExtents()[argument.getArgNumber()]).add(-1);
  }
  Operation *op = value.getDefiningOp();
  if (op->getNumOperands() != 2 || !value.getType().isIndex())
    return std::nullopt;
  std::optional<IndexSum> left = greatestOf(kernel, op->getOperand(0));
  if (!left)
    return std::nullopt;
  Value other = op->getOperand(1);
  const bool isSize = getIterationIndices(other).empty();
  if (isa<FloorDivOp>(op) && isSize)
    return left->dividedBy(kernel, other);
  if (isa<arith::SubIOp>(op) && isSize)
    return left->add(IndexSum(other), -1);
  std::optional<IndexSum> right = greatestOf(kernel, other);
  if (right && isa<arith::AddIOp>(op))
    return left->add(*right);
  if (right && isa<arith::MulIOp>(op) && IndexSum(op->getOperand(0)).isNotNegative() &&
      IndexSum(other).isNotNegative())
    return left->times(*right);
  return std::nullopt;
}

/// The one factor of a product that is a quotient by a positive number, and that number.
static std::optional<std::pair<IndexFactor, int64_t>> matchQuotient(const IndexProduct &product) {
  if (product.factors.size() != 1 || !product.factors.front().divisor)
    return std::nullopt;
  std::optional<int64_t> divisor = getConstantIndex(product.factors.front().divisor);
  if (!divisor || *divisor <= 0)
    return std::nullopt;
  return std::pair(product.factors.front(), *divisor);
}

static SmallVector<IndexProduct> varyingOf(const IndexSum &sum) {
  SmallVector<IndexProduct> found;
  llvm::copy_if(sum.getProducts(), std::back_inserter(found),
                [](const IndexProduct &product) { return varies(product); });
  return found;
}

/// Takes `a / d - b / d`, which is at most `(a - b + d - 1) / d`, from the sum of `length`.
static bool takeDifference(RangeLength &length) {
  SmallVector<IndexProduct> varying = varyingOf(length.sum);
  for (const IndexProduct &above : varying)
    for (const IndexProduct &below : varying) {
      auto a = matchQuotient(above), b = matchQuotient(below);
      if (!a || !b || a->second != b->second || above.number <= 0 || above.number != -below.number)
        continue;
      IndexSum apart(a->first.value);
      apart.add(IndexSum(b->first.value), -1);
      if (apart.varies())
        continue;
      apart.add(a->second - 1);
      length.quotients.push_back({apart, a->first.divisor, above.number});
      IndexSum taken;
      taken.addProduct(above);
      taken.addProduct(below);
      length.sum.add(taken, -1);
      length.isExact = false;
      return true;
    }
  return false;
}

/// Takes `a - a / d * d`, which is less than `d`, from the sum of `length`.
static bool takeRest(RangeLength &length) {
  for (const IndexProduct &product : varyingOf(length.sum)) {
    auto quotient = matchQuotient(product);
    if (!quotient || product.number != -quotient->second)
      continue;
    IndexSum without = length.sum;
    without.add(IndexSum(quotient->first.value), -1);
    IndexProduct taken = product;
    taken.number = -product.number;
    without.addProduct(taken);
    if (without.varies())
      continue;
    length.sum = without.add(quotient->second - 1);
    length.isExact = false;
    return true;
  }
  return false;
}

std::optional<RangeLength> lengthOfRange(const IndexSum &begin, const IndexSum &end) {
  RangeLength length;
  length.sum = end;
  length.sum.add(begin, -1);
  while (length.sum.varies())
    if (length.sum.getProducts().size() > mostProducts ||
        !(takeDifference(length) || takeRest(length)))
      return std::nullopt;
  return length;
}

Value RangeLength::create(OpBuilder &builder, Location loc, Block *home) const {
  Value length = sum.create(builder, loc, home);
  for (const Quotient &part : quotients) {
    IRMapping mapping;
    Value dividend = part.dividend.create(builder, loc, home);
    Value divisor = cloneSlice(builder, part.divisor, home, mapping);
    Value quotient = FloorDivOp::create(builder, loc, dividend.getType(), dividend, divisor);
    Value factor = arith::ConstantIndexOp::create(builder, loc, part.factor);
    quotient = arith::MulIOp::create(builder, loc, quotient, factor);
    length = arith::AddIOp::create(builder, loc, length, quotient);
  }
  return length;
}

} // namespace tk
