//===- OrderAxes.cpp - axes in the order of a matrix product --------------===//
//
// A tile of a product has one index as its rows, one as its columns, and runs over one at a time.
// Several short ones fill it badly. They are one if they stand side by side in every tensor, which
// tk-collapse-axes asks for. This pattern copies the tensors in which they do not:
//
//   %z = tk.compute ["b", "d", "w"] {tk.reduce [sum] ["p", "c"] {x[b, p, w, c] * y[p, c, d]}}
//     =>
//   %o = tk.compute ["b.w", "p.c"] {x[b.w / W, p.c / C, b.w % W, p.c % C]}
//   %q = tk.compute ["b.w", "d"] {tk.reduce [sum] ["p.c"] {o[b.w, p.c] * y[p.c, d]}}
//   %z = tk.compute ["b", "d", "w"] {q[b * W + w, d]}
//
// 1. Sort the indices: those of a batch, which both factors have, then those of the rows, of the
//    columns and of the sum. The order inside of each is that of the result, or of the factor with
//    more axes.
// 2. Copy each factor whose axes are in another order. The batch comes first. Rows and terms, or
//    columns and terms, may come in either order: both are tiles of a matrix product.
// 3. Compute the product over one index of each kind. A parameter that nothing else reads gets one
//    axis for each kind, too.
// 4. If the result is not in that order, a second compute op reads it in the order of the program.
//    The kind of its last axis comes last in the product, too. Short axes behind a long one, as the
//    positions of upsampling by 2, do not count.
//
// Only whole plans tell whether copies pay: the pattern leaves the products' names on the kernel,
// and takes those that the compiler then names (compiler/StoreByTime.cpp).
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/OrderAxes.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScheduleEntries.h"
#include "passes/analysis/StrideAxes.h"
#include "passes/tensor/split/ProductAxes.h"

#include "dialects/tk/TkInvariance.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-reductions:axis-order";

/// Elements of an axis from which on they are worth a run in memory.
static constexpr int64_t leastRun = 8;

/// The product, if there is one whose axes are not in order.
static std::optional<Product> findUnordered(KernelOp kernel, ComputeOp compute) {
  std::optional<Product> product = Product::match(kernel, compute);
  if (!product)
    return std::nullopt;
  const ProductAxes order(*product);
  if (order.hasFactorInOrder(*product, 0) && order.hasFactorInOrder(*product, 1) &&
      order.hasResultInOrder(*product))
    return std::nullopt;
  return product;
}

static bool mayChange(KernelOp kernel) {
  return !kernel->hasAttr("tk.schedules") && !findScheduleBlock(kernel) &&
         !isBatchInvariant(kernel);
}

static std::string nameOf(ComputeOp compute) {
  return cast<StringAttr>(compute.getNames()[0]).getValue().str();
}

namespace {
/// What a factor is loaded from: a tensor whose axes are those of the batch, `own` and the terms,
/// or the terms and `own`.
struct Operand {
  Value tensor;
  bool hasTermsFirst = false;
};

/// Computes a product again, with its axes in order.
class ProductOrder {
public:
  ProductOrder(Product product)
      : product(product), order(product), builder(product.compute),
        terms(builder, product, order.terms) {
    for (BlockArgument index : order.batch)
      batch.emplace_back(builder, product, Indices{index});
    for (const Indices &indices : order.own)
      own.emplace_back(builder, product, indices);
    isTurned = llvm::is_contained(order.own[0], lastRun());
  }
  void apply(KernelOp kernel);

private:
  SmallVector<const Joined *> kinds(const Joined &first, const Joined &second) const;
  /// The index of the result's last axis, or of the last one before short ones: neighbours in
  /// memory are those of that axis, a few elements apart.
  BlockArgument lastRun() {
    ComputeOp compute = product.compute;
    for (BlockArgument index : llvm::reverse(compute.getBlock()->getArguments())) {
      const int64_t upper = getUpperBound(product.extentOf(index));
      if ((upper < 0 || upper >= leastRun) && !llvm::is_contained(order.batch, index))
        return index;
    }
    return compute.getIndex(compute.getNumIndices() - 1);
  }
  /// Those of the result. The kind of its last run is the last one.
  SmallVector<const Joined *> kindsOfResult() const {
    return isTurned ? kinds(own[1], own[0]) : kinds(own[0], own[1]);
  }
  bool isPlain(unsigned n);
  bool hasTermsFirst(unsigned n);
  bool joinsParameter(KernelOp kernel, unsigned n);
  Operand takeParameter(unsigned n);
  Operand copy(unsigned n);
  Value createSum(OpBuilder &at, ArrayRef<Operand> operands, IRMapping &mapping, ValueRange outer);
  ComputeOp createProduct(ArrayRef<Operand> operands, StringRef name);

  Product product;
  ProductAxes order;
  OpBuilder builder;
  SmallVector<Joined> batch, own;
  Joined terms;
  bool isTurned; ///< columns before rows
};
} // namespace

/// The kinds of indices of a tensor, those of the batch first.
SmallVector<const Joined *> ProductOrder::kinds(const Joined &first, const Joined &second) const {
  SmallVector<const Joined *> all;
  for (const Joined &one : batch)
    all.push_back(&one);
  all.push_back(&first);
  all.push_back(&second);
  return all;
}

/// Is the factor in order, with one axis for each kind?
bool ProductOrder::isPlain(unsigned n) {
  return order.hasFactorInOrder(product, n) && order.own[n].size() == 1 && order.terms.size() == 1;
}

bool ProductOrder::hasTermsFirst(unsigned n) {
  return product.axesOf(n)[order.batch.size()] == order.terms.front();
}

/// Is the factor a dense parameter in order that nothing else reads?
bool ProductOrder::joinsParameter(KernelOp kernel, unsigned n) {
  auto parameter = dyn_cast<BlockArgument>(product.factors[n].getTensor());
  return parameter && order.hasFactorInOrder(product, n) && !getStrideAxes(kernel, parameter) &&
         !kernel.getParam(parameter.getArgNumber() - kernel.getNumDims()).getInout() &&
         llvm::all_of(parameter.getUsers(), [&](Operation *user) {
           return isa<BindOp>(user) || user == product.factors[n];
         });
}

/// Gives the parameter one axis for each kind.
Operand ProductOrder::takeParameter(unsigned n) {
  LoadOp load = product.factors[n];
  Value tensor = load.getTensor();
  const Operand operand = {.tensor = tensor, .hasTermsFirst = hasTermsFirst(n)};
  SmallVector<int64_t> shape(order.batch.size() + 2, ShapedType::kDynamic);
  const auto all = operand.hasTermsFirst ? kinds(terms, own[n]) : kinds(own[n], terms);
  for (Operation *user : tensor.getUsers())
    if (auto bind = dyn_cast<BindOp>(user)) {
      OpBuilder before(bind);
      SmallVector<Value> extents;
      unsigned axis = 0;
      for (const Joined *kind : all) {
        Value extent = bind.getExtents()[axis++];
        for (unsigned more = 1; more < kind->indices.size(); ++more)
          extent =
              before.createOrFold<arith::MulIOp>(bind.getLoc(), extent, bind.getExtents()[axis++]);
        extents.push_back(extent);
      }
      bind.getExtentsMutable().assign(extents);
    }
  tensor.setType(
      RankedTensorType::get(shape, cast<RankedTensorType>(tensor.getType()).getElementType()));
  return operand;
}

/// A copy of the factor with one axis for each kind. The kind of its last axis stays the last one,
/// so that the copy reads and writes runs, unless the matrix unit takes terms alone there.
Operand ProductOrder::copy(unsigned n) {
  LoadOp load = product.factors[n];
  Operand operand;
  operand.hasTermsFirst = load.getType().getIntOrFloatBitWidth() == 16 &&
                          llvm::is_contained(order.own[n], product.axesOf(n).back());
  const auto all = operand.hasTermsFirst ? kinds(terms, own[n]) : kinds(own[n], terms);
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  for (const Joined *kind : all) {
    names.push_back(kind->name);
    extents.push_back(kind->extent);
  }
  auto body = [&](OpBuilder &inner, Location loc, ValueRange indices) {
    IRMapping mapping;
    for (auto [kind, index] : llvm::zip_equal(all, indices))
      kind->divide(inner, product, index, mapping);
    SmallVector<Value> place;
    for (Value index : load.getIndices())
      place.push_back(mapping.lookup(index));
    Value element = LoadOp::create(inner, loc, load.getTensor(), place, Value());
    YieldOp::create(inner, loc, element);
  };
  const std::string name = nameOf(product.compute) + ".ordered";
  auto made =
      ComputeOp::create(builder, load.getLoc(), names, extents, ArrayRef<Type>{load.getType()},
                        ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{}, body);
  operand.tensor = made->getResult(0);
  return operand;
}

/// Makes the sum again over the terms as one index. `outer`: the product's indices.
Value ProductOrder::createSum(OpBuilder &at, ArrayRef<Operand> operands, IRMapping &mapping,
                              ValueRange outer) {
  ReduceOp reduce = product.reduce;
  Location loc = reduce.getLoc();
  auto body = [&](OpBuilder &inner, Location, ValueRange term) {
    IRMapping inside(mapping);
    for (auto [n, operand] : llvm::enumerate(operands)) {
      SmallVector<Value> place(outer.take_front(batch.size()));
      place.append({outer[batch.size() + (isTurned ? 1 - n : n)], term[0]});
      if (operand.hasTermsFirst)
        std::swap(place[place.size() - 1], place[place.size() - 2]);
      LoadOp load = product.factors[n];
      inside.map(load.getResult(),
                 LoadOp::create(inner, load.getLoc(), operand.tensor, place, Value()).getResult());
    }
    for (Operation &op : reduce.getBlock()->without_terminator())
      if (!llvm::is_contained(product.factors, &op))
        inner.clone(op, inside);
    return inside.lookupOrDefault(reduce.getYield().getValues()[0]);
  };
  Value zero = arith::ConstantIndexOp::create(at, loc, 0);
  auto sum =
      ReduceOp::create(at, loc, ReduceKind::Sum, ArrayRef<StringRef>{terms.name}, ValueRange{zero},
                       ValueRange{terms.extent}, reduce.getResult(0).getType(), body);
  sum.setPrecision(reduce.getPrecision());
  sum->setDiscardableAttrs(reduce->getDiscardableAttrDictionary());
  return sum.getResult(0);
}

ComputeOp ProductOrder::createProduct(ArrayRef<Operand> operands, StringRef name) {
  ComputeOp compute = product.compute;
  const auto all = kindsOfResult();
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  for (const Joined *kind : all) {
    names.push_back(kind->name);
    extents.push_back(kind->extent);
  }
  auto body = [&](OpBuilder &inner, Location, ValueRange indices) {
    IRMapping mapping;
    for (auto [kind, index] : llvm::zip_equal(all, indices))
      kind->divide(inner, product, index, mapping);
    for (Operation &op : *compute.getBlock())
      if (&op == product.reduce)
        mapping.map(product.reduce.getResult(0), createSum(inner, operands, mapping, indices));
      else
        inner.clone(op, mapping);
  };
  Type element = cast<RankedTensorType>(compute.getResult(0).getType()).getElementType();
  return ComputeOp::create(builder, compute.getLoc(), names, extents, ArrayRef<Type>{element},
                           ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{}, body);
}

void ProductOrder::apply(KernelOp kernel) {
  SmallVector<Operand> operands;
  for (unsigned n : {0, 1})
    operands.push_back(isPlain(n) ? Operand{product.factors[n].getTensor(), hasTermsFirst(n)}
                       : joinsParameter(kernel, n) ? takeParameter(n)
                                                   : copy(n));
  ComputeOp compute = product.compute;
  Value result = compute.getResult(0);
  const bool isInOrder = order.hasResultInOrder(product) &&
                         llvm::all_of(result.getUsers(), llvm::IsaPred<LoadOp, ReturnOp>);
  const std::string name = nameOf(compute);
  ComputeOp made = createProduct(operands, isInOrder ? name : name + ".product");
  Value joined = made->getResult(0);
  auto read = [&](OpBuilder &at, ValueRange indices) {
    SmallVector<Value> place;
    for (const Joined *kind : kindsOfResult())
      place.push_back(kind->place(at, product, indices));
    return LoadOp::create(at, compute.getLoc(), joined, place, Value()).getResult();
  };
  if (!isInOrder) {
    auto end = compute.getYield();
    OpBuilder at(end);
    end->setOperand(0, read(at, SmallVector<Value>(compute.getBlock()->getArguments())));
    return eraseDead(compute);
  }
  for (OpOperand &use : llvm::make_early_inc_range(result.getUses())) {
    if (auto load = dyn_cast<LoadOp>(use.getOwner())) {
      OpBuilder at(load);
      load.getResult().replaceAllUsesWith(read(at, load.getIndices()));
      load.erase();
    } else {
      use.set(joined);
    }
  }
  compute.erase();
}

unsigned tk::orderAxes(KernelOp kernel) {
  auto module = kernel->getParentOfType<ModuleOp>();
  auto chosen = module->getAttrOfType<ArrayAttr>(orderedByTimeAttrName);
  if (!mayChange(kernel))
    return 0;
  unsigned ordered = 0;
  SmallVector<std::string> others;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().front().getOps<ComputeOp>())) {
    std::optional<Product> product = findUnordered(kernel, compute);
    if (!product)
      continue;
    const std::string name = nameOf(compute);
    if (!chosen || !llvm::is_contained(chosen.getAsValueRange<StringAttr>(), name)) {
      others.push_back(name);
      continue;
    }
    note(compute, passName, Verdict::Derived,
         "the axes of the " + describe(product->reduce) +
             " are brought in the order of a matrix product: the kernel is predicted to take less "
             "time so");
    ProductOrder(*product).apply(kernel);
    ++ordered;
  }
  if (others.empty())
    kernel->removeAttr(unorderedAttrName);
  else
    kernel->setAttr(
        unorderedAttrName,
        Builder(kernel.getContext()).getStrArrayAttr(llvm::to_vector_of<StringRef>(others)));
  return ordered;
}
