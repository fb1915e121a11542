//===- Rows.cpp - the launches and collectives of a step ------------------===//
//
// The rows between two blocks are sharded by tp (each GPU has its part of the rows). A product's
// rows are gathered before it, and what it adds to is scattered behind it; the backward pass has
// the collectives of the same arrays in the other direction. Gathered rows are kept for the
// backward pass. docs/explanation/network-model.md lists the rows.
//
//===----------------------------------------------------------------------===//
#include "compiler/step/Rows.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <algorithm>
#include <functional>

using namespace llvm;
using tk::network::Collective;

namespace tk::step {

StringRef nameOf(Phase phase) {
  static constexpr StringLiteral names[] = {"forward", "backward", "update"};
  return names[static_cast<size_t>(phase)];
}

std::vector<Stage> stagesOf(const Block &block, int64_t stages) {
  std::vector<Stage> result;
  int64_t layer = 0;
  for (int64_t s = 0; s < stages; ++s) {
    Stage stage;
    const int64_t count = block.layers / stages + (s < block.layers % stages);
    for (int64_t end = layer + count; layer < end; ++layer)
      ++(block.experts.count && layer >= block.experts.denseLayers ? stage.expertLayers
                                                                   : stage.denseLayers);
    stage.hasHead = s + 1 == stages && block.vocabulary > 0;
    result.push_back(stage);
  }
  return result;
}

namespace {

class RowBuilder {
public:
  RowBuilder(const Placement &placement, const Stage &stage)
      : at(placement), block(placement.block), stage(stage), bytes(block.type.bytes),
        rows(placement.rows()), tensor(placement.tensor()) {}

  std::vector<Row> run();

private:
  void launch(StringRef name, const Launch &launch);
  void collective(StringRef name, Parallelism of, Collective kind, double arrayBytes,
                  bool feedsNext = false, double part = 1);
  void products(StringRef name, const Product &product);
  void norm(StringRef name);
  /// All rows on each GPU of tp, of `width` elements; those of the product behind them.
  void gather(StringRef name, double rowCount);
  /// Sums of partial rows over tp, each GPU with its part of the rows.
  void scatter(StringRef name, double rowCount);
  void feedForward(StringRef prefix, double hidden, double rowCount, double groups);
  void attentionPart();
  void exchange(StringRef name, StringRef pack);
  void expertPart();
  void head();
  void pass(Phase phase);
  void update();
  void hops();
  void weights(StringRef name, double count, double elements, Parallelism of);
  void pairCollectives();

  const Placement &at;
  const Block &block;
  const Stage &stage;
  const double bytes, rows, tensor;
  Phase phase = Phase::Forward;
  double count = 1;
  std::vector<Row> list;
};

void RowBuilder::launch(StringRef name, const Launch &launch) {
  Row &row = list.emplace_back();
  row.name = (nameOf(phase) + "." + name).str();
  row.phase = phase;
  row.count = count;
  row.launch = launch;
  row.total = launch.total;
}

void RowBuilder::collective(StringRef name, Parallelism of, Collective kind, double arrayBytes,
                            bool feedsNext, double part) {
  if (at.size(of) <= 1 || count == 0)
    return;
  Row &row = list.emplace_back();
  row.name = (nameOf(phase) + "." + name).str();
  row.phase = phase;
  row.count = count;
  row.parallelism = of;
  row.collective = kind;
  row.arrayBytes = arrayBytes;
  row.feedsNext = feedsNext;
  row.comms = network::predict(at.network, at.group(of), kind, arrayBytes, part);
  row.total = row.comms.total();
}

void RowBuilder::products(StringRef name, const Product &forward) {
  if (phase == Phase::Forward)
    return launch(name, product(forward, block.type, at.machine));
  // The gradient of the rows, and that of the weights.
  const Product ofRows{forward.rows, forward.inner, forward.columns, forward.groups};
  const Product ofWeights{forward.inner, forward.columns, forward.rows, forward.groups};
  launch((name + "_rows").str(), product(ofRows, block.type, at.machine));
  launch((name + "_weights").str(), product(ofWeights, block.type, at.machine));
}

void RowBuilder::norm(StringRef name) {
  // The residual is added in the same launch: two tensors in, two out; backward three in, two out.
  const double tensorBytes = rows / tensor * double(block.width) * bytes;
  launch(name,
         step::pass((phase == Phase::Forward ? 2 : 3) * tensorBytes, 2 * tensorBytes, at.machine));
}

void RowBuilder::gather(StringRef name, double rowCount) {
  const bool isForward = phase == Phase::Forward;
  collective(name, Parallelism::Tensor,
             isForward ? Collective::AllGather : Collective::ReduceScatter,
             rowCount * double(block.width) * (isForward ? bytes : block.wire.bytes), isForward);
}

void RowBuilder::scatter(StringRef name, double rowCount) {
  const bool isForward = phase == Phase::Forward;
  collective(name, Parallelism::Tensor,
             isForward ? Collective::ReduceScatter : Collective::AllGather,
             rowCount * double(block.width) * (isForward ? block.wire.bytes : bytes), !isForward);
}

/// Runs parts in their order, or backwards in the backward pass.
template <typename... Parts> void inOrder(Phase phase, Parts... parts) {
  std::array<std::function<void()>, sizeof...(Parts)> all = {parts...};
  if (phase != Phase::Forward)
    std::reverse(all.begin(), all.end());
  for (const auto &part : all)
    part();
}

void RowBuilder::feedForward(StringRef prefix, double hidden, double rowCount, double groups) {
  const double width = double(block.width), columns = hidden / tensor;
  const double ofGroup = rowCount / groups;
  const std::string name = prefix.str();
  inOrder(
      phase, [&] { gather(name + "_gather", groups > 1 ? rowCount : rows); },
      [&] { products(name + "_up", {ofGroup, (block.matrices() - 1) * columns, width, groups}); },
      [&] { products(name + "_down", {ofGroup, width, columns, groups}); },
      [&] { scatter(name + "_scatter", groups > 1 ? rowCount : rows); });
}

void RowBuilder::attentionPart() {
  const double width = double(block.width), size = double(block.headSize);
  const double heads = double(block.heads) / tensor,
               kvHeads = std::max(double(block.kvHeads) / tensor, 1.0);
  const double length = double(block.sequence);
  inOrder(
      phase, [&] { norm("attention_norm"); }, [&] { gather("qkv_gather", rows); },
      [&] { products("qkv", {rows, (heads + 2 * kvHeads) * size, width}); },
      [&] {
        launch("attention", attention({rows / length, length, heads, kvHeads, size, block.isCausal,
                                       phase == Phase::Backward},
                                      block.type, at.machine));
      },
      [&] { products("output", {rows, width, heads * size}); },
      [&] { scatter("output_scatter", rows); });
}

void RowBuilder::exchange(StringRef name, StringRef pack) {
  // Rows for all GPUs of ep would be the dense exchange; top_k of them are sent.
  const double ranks = at.experts();
  const double own = rows / tensor * double(block.width) * bytes;
  const double copies = std::min(double(block.experts.topK), ranks);
  const bool isDispatch = name == "dispatch";
  auto packing = [&] {
    launch(pack, step::pass(isDispatch ? own : copies * own, isDispatch ? copies * own : own,
                            at.machine));
  };
  auto sending = [&] {
    collective(name, Parallelism::Experts, Collective::AllToAll, ranks * ranks * own,
               isDispatch == (phase == Phase::Forward),
               network::partOfTopK(double(block.experts.topK), ranks));
  };
  if (isDispatch)
    inOrder(phase, packing, sending);
  else
    inOrder(phase, sending, packing);
}

void RowBuilder::expertPart() {
  const Experts &experts = block.experts;
  const double ranks = at.experts(), topK = double(experts.topK);
  // Each row that arrives is multiplied by topK / copies experts of the GPU.
  const double arriving = rows * std::min(topK, ranks);
  const double width = double(block.width), columns = double(experts.hidden) / tensor;
  const double groups = double(experts.count) / ranks, ofGroup = rows * topK / groups;
  inOrder(
      phase, [&] { norm("mlp_norm"); },
      [&] { products("router", {rows / tensor, double(experts.count), width}); },
      [&] {
        if (experts.shared)
          feedForward("shared", double(experts.shared * experts.hidden), rows, 1);
      },
      [&] { exchange("dispatch", "pack"); }, [&] { gather("expert_gather", arriving); },
      [&] { products("expert_up", {ofGroup, (block.matrices() - 1) * columns, width, groups}); },
      [&] { products("expert_down", {ofGroup, width, columns, groups}); },
      [&] { scatter("expert_scatter", arriving); }, [&] { exchange("combine", "unpack"); });
}

void RowBuilder::head() {
  const double columns = double(block.vocabulary) / tensor;
  const double logits = rows * columns * bytes;
  inOrder(
      phase, [&] { gather("head_gather", rows); },
      [&] { products("head", {rows, columns, double(block.width)}); },
      [&] {
        launch("loss", step::pass(logits, phase == Phase::Forward ? 0 : logits, at.machine));
      });
}

void RowBuilder::weights(StringRef name, double times, double elements, Parallelism of) {
  count = times;
  const double gradients = elements * block.gradients.bytes, values = elements * bytes;
  if (phase == Phase::Update)
    collective((name + "_gradients").str(), of,
               block.areWeightsSharded ? Collective::ReduceScatter : Collective::AllReduce,
               gradients);
  else if (block.areWeightsSharded)
    collective((name + "_weights_gather").str(), of, Collective::AllGather, values);
}

void RowBuilder::hops() {
  count = 1;
  collective("hop", Parallelism::Pipeline, Collective::Send,
             rows / tensor * double(block.width) * bytes);
}

void RowBuilder::pass(Phase of) {
  phase = of;
  auto everyWeight = [&] {
    const double ranks = at.experts();
    const Experts &experts = block.experts;
    weights("attention", stage.layers(), block.attentionWeights() / tensor, Parallelism::Data);
    weights("mlp", stage.denseLayers, block.denseWeights() / tensor, Parallelism::Data);
    weights("shared", stage.expertLayers, (block.sharedWeights() / tensor + block.routerWeights()),
            Parallelism::Data);
    weights("expert", stage.expertLayers,
            double(experts.count) / ranks * block.expertWeights() / tensor,
            Parallelism::ExpertData);
    weights("head", stage.hasHead, block.headWeights() / tensor, Parallelism::Data);
  };
  if (phase == Phase::Update) {
    everyWeight();
    return;
  }
  if (block.areWeightsSharded)
    everyWeight();
  inOrder(
      phase,
      [&] {
        count = stage.layers();
        attentionPart();
      },
      [&] {
        count = stage.denseLayers;
        if (count == 0)
          return;
        inOrder(
            phase, [&] { norm(stage.expertLayers ? "dense_norm" : "mlp_norm"); },
            [&] { feedForward("mlp", double(block.hidden), rows, 1); });
      },
      [&] {
        count = stage.expertLayers;
        if (count)
          expertPart();
      },
      [&] {
        count = 1;
        if (stage.hasHead)
          head();
      });
  hops();
}

void RowBuilder::update() {
  pass(Phase::Update);
  count = 1;
  const double moved =
      weightsOfDevice(at, stage) * block.optimizerBytes / (block.areWeightsSharded ? at.data() : 1);
  launch("optimizer", step::pass(moved / 2, moved / 2, at.machine));
}

/// A collective of rows can run beside a product next to it: the one that needs its rows, which
/// arrive in parts, or the one whose sums it adds. Another collective may stand between them.
void RowBuilder::pairCollectives() {
  constexpr int farthest = 2;
  const int size = int(list.size());
  for (int i = 0; i < size; ++i) {
    Row &row = list[size_t(i)];
    if (row.parallelism != Parallelism::Tensor && row.parallelism != Parallelism::Experts)
      continue;
    const int step = row.feedsNext ? 1 : -1;
    for (int distance = 1; distance <= farthest; ++distance) {
      const int at = i + step * distance;
      if (at < 0 || at >= size || list[size_t(at)].phase != row.phase ||
          list[size_t(at)].count != row.count)
        break;
      if (list[size_t(at)].isCollective())
        continue;
      if (list[size_t(at)].launch.flops > 0)
        row.beside = at;
      break;
    }
  }
}

std::vector<Row> RowBuilder::run() {
  pass(Phase::Forward);
  pass(Phase::Backward);
  update();
  pairCollectives();
  return std::move(list);
}

} // namespace

std::vector<Row> rowsOf(const Placement &placement, const Stage &stage) {
  return RowBuilder(placement, stage).run();
}

double weightsOfDevice(const Placement &placement, const Stage &stage) {
  const Block &block = placement.block;
  const double tensor = placement.tensor();
  const double ofExperts =
      double(block.experts.count) / placement.experts() * block.expertWeights() / tensor;
  return stage.layers() * block.attentionWeights() / tensor +
         stage.denseLayers * block.denseWeights() / tensor +
         stage.expertLayers * (ofExperts + block.sharedWeights() / tensor + block.routerWeights()) +
         (stage.hasHead ? block.headWeights() / tensor : 0);
}

double bytesOfWeights(const Placement &placement, const Stage &stage) {
  constexpr double bytesOfStates = 3 * 4;
  const Block &block = placement.block;
  const double ofWeight = block.type.bytes + block.gradients.bytes + bytesOfStates;
  return weightsOfDevice(placement, stage) * ofWeight /
         (block.areWeightsSharded ? placement.data() : 1);
}

} // namespace tk::step
