//===- FuseProducers.cpp - compute a local tensor where it is read --------===//
//
// A local tensor in global memory costs a store, a load and a launch. This pass computes the
// tensor's elements inside the consumer instead, where the cost rule allows it
// (FuseProducersCost.cpp).
//
// 1. Visit compute ops in program order. For each result, collect the loads that read it.
// 2. Fuse a pointwise producer into each reader for which the cost rule agrees. If the producer
//    reads a matrix product, either all readers fuse it or none does.
// 3. Fuse a producer with reductions only if the rule agrees for all readers: a tensor that is
//    stored anyway is cheaper to load. The exception is a reader that carries the producer's
//    reductions in a loop of its own. Such a reader fuses a row reduction even if other readers do
//    not.
//    Rows are also stored if their reader is computed where it is read only without them
//    (KeptElements.cpp).
// 4. Fuse producers with matrix products last, and in reverse order. The row reductions and
//    pointwise ops between two products are gone by then. Of three products in a row, the last two
//    become a back-to-back contraction. Attention thus fuses the scores into its loop, and does not
//    compute a projection again for the scores.
// 5. Fusing clones the producer's expression at the load's indices. An operation that does not
//    depend on a reduction's index moves out of that reduction. A padded load becomes a selection
//    between the element and the padding value, and the loads of the clone become padded too. Equal
//    expressions of a reader are merged.
// 6. Store a producer whose copies exceed the budget of work and code (FusionBudget.cpp).
// 7. The module's attributes `tk.inline` and `tk.store` name results for which the cost rule is not
//    asked (ChosenResults.cpp). A scan is stored all the same; so is what step 6 stores, and what
//    is reduced of an inlined product's rows for readers of its elements. With
//    `tk.store_reductions` all reductions, scans and products are stored.
// 8. Erase compute ops that nothing reads.
//
// The pass first fuses a copy of the module and runs the merging passes that follow on it. If an
// operation of the copy would combine values of two computations of one sum
// (passes/analysis/ValueCopies.h), the compute op of that sum is stored for all readers.
//
//   %s = tk.compute ["i","j"] {.. %d = tk.reduce [sum] ["k"] ..}
//   %y = tk.compute ["i","j"] {.. %v = tk.load %s[%i, %j]; %r = maximumf %v, %zero ..}
//     =>
//   %y = tk.compute ["i","j"] {.. %d = tk.reduce [sum] ["k"] ..; %r = maximumf %d, %zero ..}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/FuseProducers.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/FusionChoices.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ValueCopies.h"
#include "passes/tensor/fuse/ChosenResults.h"
#include "passes/tensor/fuse/FusionBudget.h"
#include "passes/tensor/fuse/InlineProducer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Pass/PassManager.h"

namespace tk {
#define GEN_PASS_DEF_FUSEPRODUCERS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-fuse-producers";

namespace {
struct FuseProducersPass : tk::impl::FuseProducersBase<FuseProducersPass> {
  using FuseProducersBase::FuseProducersBase;

  /// Those of the passes that are tried out, and of the marks of products, too.
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, math::MathDialect, gpu::TkGpuDialect>();
  }

  void runOnOperation() override {
    NamedPatterns named(getOperation(), getArgument(), disable, only);
    if (failed(named.verify()))
      return signalPassFailure();
    patterns = &named;
    once.clear();
    chosen.clear();
    int64_t next = 0;
    getOperation()->walk([&](KernelOp kernel) {
      numberComputations(kernel, next);
      addInlinedComputations(kernel, chosen);
    });
    while (findMixtures())
      ;
    getOperation()->walk([&](KernelOp kernel) {
      numberProducts(kernel);
      numInlined += fuse(kernel, /*isTrial=*/false);
      roundMixedProducts(kernel);
      mergeEqualResults(kernel);
      sayDeclined(kernel);
      forgetComputations(kernel);
    });
  }

private:
  bool findMixtures();
  unsigned fuse(KernelOp kernel, bool isTrial);
  bool isComputedOnce(OpResult producer) { return holdsComputation(producer.getOwner(), once); }
  std::optional<SmallVector<Read>> findReads(KernelOp kernel, bool products);
  unsigned inlineReads(ArrayRef<Read> reads);
  std::optional<std::string> whyStore(OpResult producer, ArrayRef<Read> reads, ProducerKind kind);
  void dropStoredReads(SmallVector<Read> &reads);
  bool isEpilogue(OpResult producer, ArrayRef<Read> reads);
  void sayDeclined(KernelOp kernel);
  void eraseUnread(KernelOp kernel);

  llvm::DenseSet<int64_t> once;   ///< computations whose statements are stored
  llvm::DenseSet<int64_t> chosen; ///< those of products that are computed again by choice
  NamedPatterns *patterns = nullptr;
};
} // namespace

static SmallVector<Read> getReads(OpResult producer) {
  SmallVector<Read> reads;
  for (Operation *user : producer.getUsers())
    if (auto load = dyn_cast<LoadOp>(user); load && load.getTensor() == producer)
      if (auto consumer = load->getParentOfType<ComputeOp>())
        reads.push_back({load, consumer, producer});
  return reads;
}

static bool isReturned(OpResult result) {
  return llvm::any_of(result.getUsers(), [](Operation *user) { return isa<ReturnOp>(user); });
}

std::optional<std::string> FuseProducersPass::whyStore(OpResult producer, ArrayRef<Read> reads,
                                                       ProducerKind kind) {
  if (isComputedOnce(producer))
    return "an operation would receive values of two computations of its sums";
  if (auto why = whyChosenToStore(producer))
    return why;
  if (isTooLargeInside(producer, kind))
    return "no tiles fit with the kernel's reductions computed where they are read";
  if (shallInline(producer, kind))
    return whyOverBudget(reads);
  auto isBeside = [&](Read read) { return isStatisticOfInlined(read, once); };
  if (kind == ProducerKind::Rows && llvm::any_of(reads, isBeside))
    return "a reader that computes its product again has no whole rows of it";
  for (Read read : reads)
    if (auto why = whyNotInline(read, kind, maxExtra))
      return why;
  auto isStored = [&](OpResult element) {
    return isComputedOnce(element) || isChosenToStore(element);
  };
  if (kind == ProducerKind::Rows)
    for (Read read : reads)
      if (ComputeOp kept = findKeptElements(read, maxExtra, isStored))
        return describe(kept) + " would be stored with its reductions, and has more elements";
  if (kind == ProducerKind::Products)
    if (auto why = whyStoreProducts(reads, isReturned(producer), maxExtra))
      return why;
  return whyOverBudget(reads);
}

/// The product that `op` loads an element of; null if it loads none.
static OpResult readProduct(Operation *op) {
  auto load = dyn_cast<LoadOp>(op);
  auto read = load ? dyn_cast<OpResult>(load.getTensor()) : OpResult();
  const bool isProduct =
      read && isa<ComputeOp>(read.getOwner()) && classify(read) == ProducerKind::Products;
  return isProduct ? read : OpResult();
}

/// True if the element is computed from that of a product, which could be computed there, too.
static bool readsProduct(OpResult producer) {
  auto compute = cast<ComputeOp>(producer.getOwner());
  Value element = compute.getYield().getValues()[producer.getResultNumber()];
  return llvm::any_of(getSlice(element, compute.getBlock()),
                      [](Operation *op) { return readProduct(op) != OpResult(); });
}

/// Leaves those of a pointwise producer's reads where it is computed. What is stored for one reader
/// of a product's elements is stored for all: computed again it would take the product again.
void FuseProducersPass::dropStoredReads(SmallVector<Read> &reads) {
  const size_t all = reads.size();
  OpResult producer = reads.front().producer;
  llvm::erase_if(reads, [&](Read read) {
    return whyNotInline(read, ProducerKind::Pointwise, maxExtra).has_value();
  });
  if (reads.size() < all && readsProduct(producer))
    reads.clear();
}

/// The products that the element of a pointwise producer is computed from and that nothing else
/// reads.
static SmallVector<OpResult> getOwnProducts(OpResult producer) {
  auto compute = cast<ComputeOp>(producer.getOwner());
  Value element = compute.getYield().getValues()[producer.getResultNumber()];
  llvm::SetVector<OpResult> products;
  for (Operation *op : getSlice(element, compute.getBlock()))
    if (OpResult read = readProduct(op);
        read && !isReturned(read) &&
        llvm::all_of(getReads(read), [&](Read other) { return other.consumer == compute; }))
      products.insert(read);
  return products.takeVector();
}

/// True if the reader sums what it reads anew for each value of one of its own indices, such as a
/// key that the terms are compared with.
static bool isSummedAnew(Read read, ReduceOp around) {
  return around.getKind(0) == ReduceKind::Sum &&
         llvm::any_of(read.consumer.getBlock()->getArguments(), [&](Value index) {
           Dependence onIndex(ValueRange{index});
           return llvm::none_of(read.load.getIndices(), [&](Value i) { return onIndex.on(i); });
         });
}

/// Would all of `products` be stored if their reader were computed where `read` is, in a factor of
/// a contraction or in a sum for each key? A softmax keeps its logits: their mask bounds its range.
static bool areStoredBehind(Read read, ArrayRef<OpResult> products, int64_t maxExtra) {
  auto around = read.load->getParentOfType<ReduceOp>();
  if (!around || !(isContraction(around) || isSummedAnew(read, around)))
    return false;
  OpBuilder builder(read.consumer);
  IRMapping mapping;
  auto copy = cast<ComputeOp>(builder.clone(*read.consumer, mapping));
  auto load = mapping.lookup(read.load.getResult()).getDefiningOp<LoadOp>();
  Inliner({load, copy, read.producer}).run();
  llvm::DenseSet<Value> stored;
  copy->walk([&](LoadOp of) {
    auto product = dyn_cast<OpResult>(of.getTensor());
    if (product && llvm::is_contained(products, product) &&
        whyNotInline({of, copy, product}, ProducerKind::Products, maxExtra))
      stored.insert(product);
  });
  copy.erase();
  return stored.size() == products.size();
}

/// Is a pointwise producer the epilogue of products that could not follow it to its readers, such
/// as an activation between two layers? Computed in the readers, it would leave the products to be
/// stored, and be computed again for each of the readers' elements.
bool FuseProducersPass::isEpilogue(OpResult producer, ArrayRef<Read> reads) {
  SmallVector<OpResult> products = getOwnProducts(producer);
  return !products.empty() && llvm::all_of(products, [&](OpResult product) {
    return !whyStore(product, getReads(product), ProducerKind::Products);
  }) && llvm::all_of(reads, [&](Read read) { return areStoredBehind(read, products, maxExtra); });
}

static StringRef patternOf(ProducerKind kind) {
  switch (kind) {
  case ProducerKind::Pointwise:
    return "elements";
  case ProducerKind::Rows:
  case ProducerKind::Scan:
    return "reductions";
  case ProducerKind::Products:
    return "contractions";
  }
  llvm_unreachable("a kind of producer");
}

/// The reads of a result that shall be computed where they are; nothing if there is none.
std::optional<SmallVector<Read>> FuseProducersPass::findReads(KernelOp kernel, bool products) {
  SmallVector<ComputeOp> computes(kernel.getBody().front().getOps<ComputeOp>());
  if (products)
    std::reverse(computes.begin(), computes.end());
  for (ComputeOp compute : computes) {
    for (OpResult result : compute->getResults()) {
      SmallVector<Read> reads = getReads(result);
      ProducerKind kind = classify(result);
      if (reads.empty() || (kind == ProducerKind::Products) != products ||
          !patterns->isOn(patternOf(kind)) || isComputedOnce(result) || isChosenToStore(result) ||
          isTooLargeInside(result, kind))
        continue;
      if (shallInline(result, kind)) {
        if (!whyOverBudget(reads))
          return reads;
        continue;
      }
      if (kind == ProducerKind::Pointwise) {
        dropStoredReads(reads);
        if (!reads.empty() && isEpilogue(result, reads))
          continue;
      } else if (whyStore(result, reads, kind)) {
        auto isBeside = [&](Read read) { return isStatisticOfInlined(read, once); };
        const bool isAnyBeside = llvm::any_of(reads, isBeside);
        llvm::erase_if(reads, [&](Read read) {
          return kind != ProducerKind::Rows ||
                 !(isAnyBeside ? !isBeside(read) : isCarriedFreely(read)) ||
                 whyNotInline(read, kind, maxExtra).has_value();
        });
      }
      if (!reads.empty() && !whyOverBudget(reads))
        return reads;
    }
  }
  return std::nullopt;
}

/// Does a reduction have a scan in its terms?
static bool holdsScan(ReduceOp reduce) {
  return reduce.walk([](ScanOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

unsigned FuseProducersPass::inlineReads(ArrayRef<Read> reads) {
  auto compute = cast<ComputeOp>(reads.front().producer.getOwner());
  SmallVector<ComputeOp> merged = getReadersWithEqualLoads(reads);
  for (Read read : reads) {
    noteInlined(read.load, compute, passName,
                describe(compute) + (isPlural(compute) ? " are" : " is") + " computed where " +
                    describe(read.consumer) + (isPlural(read.consumer) ? " read" : " reads") +
                    (isPlural(compute) ? " them" : " it") +
                    (isInlinedByTime(read.producer)
                         ? ": the kernel is predicted to take less time so"
                         : ""));
    auto overStates = classify(read.producer) == ProducerKind::Scan
                          ? read.load->getParentOfType<ReduceOp>()
                          : ReduceOp();
    Inliner(read).run();
    if (overStates && holdsScan(overStates))
      keepFactorsOfStates(overStates);
  }
  for (ComputeOp reader : merged)
    mergeEqualExpressions(reader);
  return reads.size();
}

unsigned FuseProducersPass::fuse(KernelOp kernel, bool isTrial) {
  unsigned inlined = 0;
  for (ComputeOp compute : kernel.getBody().front().getOps<ComputeOp>())
    mergeEqualExpressions(compute);
  while (true) {
    std::optional<SmallVector<Read>> reads = findReads(kernel, /*products=*/false);
    if (!reads)
      reads = findReads(kernel, /*products=*/true);
    if (!reads)
      return inlined;
    auto rewrite = [&] {
      inlined += inlineReads(*reads);
      eraseUnread(kernel);
    };
    if (isTrial)
      rewrite();
    else
      patterns->run(patternOf(classify(reads->front().producer)), rewrite);
  }
}

/// The passes behind this one that make one computation of equal ones.
static void addMergingPasses(OpPassManager &manager) {
  manager.addPass(createSimplify());
  manager.addPass(createMergeComputes());
  manager.addPass(createSimplify());
  manager.addPass(createRestrictRanges());
  manager.addPass(createSimplify());
  manager.addPass(createOnlineReductions());
  manager.addPass(createSimplify());
}

/// Fuses a copy of the module. Returns true if computations have to be stored that were not known
/// of before.
bool FuseProducersPass::findMixtures() {
  OwningOpRef<ModuleOp> trial = getOperation().clone();
  bool mayMix = false;
  trial->walk([&](KernelOp kernel) {
    fuse(kernel, /*isTrial=*/true);
    mayMix |= !findMixedCopies(kernel, chosen).empty();
  });
  if (!mayMix)
    return false;
  // What is equal now is not known before reductions are carried in one loop.
  PassManager manager(&getContext());
  addMergingPasses(manager);
  if (failed(manager.run(*trial)))
    return false;
  bool isNews = false;
  trial->walk([&](KernelOp kernel) {
    for (int64_t number : findMixedCopies(kernel, chosen))
      isNews |= once.insert(number).second;
  });
  return isNews;
}

void FuseProducersPass::sayDeclined(KernelOp kernel) {
  for (ComputeOp compute : kernel.getBody().front().getOps<ComputeOp>())
    for (OpResult result : compute->getResults()) {
      SmallVector<Read> reads = getReads(result);
      if (reads.empty())
        continue;
      if (auto why = whyStore(result, reads, classify(result)))
        noteStored(compute, passName, *why);
    }
}

void FuseProducersPass::eraseUnread(KernelOp kernel) {
  SmallVector<ComputeOp> computes(kernel.getBody().front().getOps<ComputeOp>());
  for (ComputeOp compute : llvm::reverse(computes))
    if (compute->use_empty())
      compute.erase();
}
