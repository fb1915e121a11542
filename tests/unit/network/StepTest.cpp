// A step's time from its rows, and the limits of parallelism, by hand.
#include "compiler/step/Report.h"
#include "tests/unit/network/Pod.h"

using namespace tk;
using namespace tk::network;
using namespace tk::step;

namespace {

std::string denseText = R"({
  "name": "dense", "layers": 8, "width": 1024, "heads": 8, "head_size": 128, "hidden": 4096,
  "gated": false, "sequence": 1024, "batch": 64, "microbatches": 4, "type": "bf16",
  "wire": "bf16", "gradients": "bf16"
})";
std::string expertsText = R"({
  "name": "experts", "layers": 4, "width": 1024, "heads": 8, "head_size": 128, "hidden": 4096,
  "experts": {"count": 16, "top_k": 4, "hidden": 2048, "dense_layers": 1},
  "sequence": 1024, "batch": 64, "wire": "bf16", "gradients": "bf16"
})";

Machine h100() { return machineOf(*findArchitectureRow("sm_90a"), *findDevice("H100")); }

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

template <typename T> T taken(llvm::Expected<T> value) {
  std::string message = value ? "" : llvm::toString(value.takeError());
  INFO(message);
  REQUIRE(message.empty());
  return std::move(*value);
}

llvm::Expected<Placement> tryPlace(const std::string &block, llvm::StringRef mesh,
                                   llvm::StringRef order = "") {
  return place(taken(parseBlock(block)), pod(), h100(), taken(parseAxes(mesh)), order);
}

StepPrediction predicted(const std::string &block, llvm::StringRef mesh, StepOptions options = {}) {
  return taken(predictStep(taken(tryPlace(block, mesh)), options));
}

const Row &rowOf(const StepPrediction &prediction, llvm::StringRef name) {
  for (const Row &row : prediction.rows)
    if (row.name == name)
      return row;
  FAIL("no row " << name.str());
  return prediction.rows.front();
}

bool hasRow(const StepPrediction &prediction, llvm::StringRef name) {
  for (const Row &row : prediction.rows)
    if (row.name == name)
      return true;
  return false;
}

/// All launches of a dense stage at one microsecond a layer: 7 forward, 11 backward.
StepOptions unitTimes() {
  StepOptions options;
  options.overlap = Overlap::None;
  for (const Row &row : predicted(denseText, "dp=1").rows)
    options.measured[row.name] = row.phase == Phase::Update ? 0 : 1000;
  return options;
}

} // namespace

TEST_CASE("one GPU has no collectives, and its parts add up", "[step]") {
  const StepPrediction one = predicted(denseText, "dp=1");
  for (const Row &row : one.rows)
    CHECK_FALSE(row.isCollective());
  double sum = 0;
  for (const auto &[name, part] : partsOf(one))
    sum += part;
  CHECK(isNear(sum, one.time.step));
  CHECK(one.limits.empty());
  // 6 operations a weight and token, 12 a score of half of the keys, and width.
  const double weights = 8 * (4 * 1024 * 1024 + 2 * 1024 * 4096);
  CHECK(isNear(one.flops, 65536.0 * (6 * weights + 12 * 512 * 1024 * 8)));
}

TEST_CASE("a product's time is the cost model's", "[step]") {
  const Launch launch = product({8192, 4096, 4096}, {"bf16", 2, MatrixType::BFloat}, h100());
  CHECK(launch.flops == 2.0 * 8192 * 4096 * 4096);
  CHECK(launch.bound == Bound::Matrix);
  // 1024 tiles on 132 multiprocessors: 8 at most on one, 7.76 on average.
  const double rate = sustainedRate({"bf16", 2, MatrixType::BFloat}, h100());
  CHECK(isNear(launch.math, launch.flops / rate * 8 * 132 / 1024, 1e-6));
  CHECK(launch.total > launch.math + cost::launch);
  CHECK(isNear(rate, 2 * 2048.0 * 132 * 1.98 * 0.8));
}

TEST_CASE("measured launches give a step by hand", "[step]") {
  const StepOptions options = unitTimes();
  const StepPrediction one = predicted(denseText, "dp=1", options);
  // 4 microbatches of 8 layers.
  CHECK(isNear(one.time.step, 4 * 8 * (7 + 11) * 1000.0));
  CHECK(isNear(one.time.forwardStep, 4 * 8 * 7 * 1000.0));
  // Four stages of two layers: 4 + 3 turns, and no sends between them on this network but bytes.
  StepOptions staged = options;
  staged.measured["forward.hop"] = staged.measured["backward.hop"] = 100;
  const StepPrediction four = predicted(denseText, "pp=4", staged);
  CHECK(isNear(four.time.bubble, 3 * 2 * (7 + 11) * 1000.0));
  CHECK(isNear(four.time.hops, (4 + 4 - 2) * 200.0));
  CHECK(isNear(four.time.step, 7 * 2 * 18 * 1000.0 + 6 * 200.0));
  CHECK(isNear(four.time.forwardStep, 7 * 2 * 7 * 1000.0 + 6 * 100.0));
}

TEST_CASE("chunks of stages shorten the bubble and add sends", "[step]") {
  StepOptions options = unitTimes();
  options.measured["forward.hop"] = options.measured["backward.hop"] = 100;
  const std::string chunked = replaced(denseText, "\"type\"", "\"stage_chunks\": 2, \"type\"");
  const StepPrediction four = predicted(chunked, "pp=4", options);
  CHECK(isNear(four.time.bubble, 3 * 2 * (7 + 11) * 1000.0 / 2));
  CHECK(isNear(four.time.hops, (7 + 3 * 2) * 200.0)); // 7 of the fill, 2 of each other
  CHECK(isNear(four.time.forwardStep, (4 + 1.5) * 2 * 7 * 1000.0 + 13 * 100.0));
  CHECK(four.limits[0].limit == 13.5);
  options.overlap = Overlap::Gradients;
  CHECK(isNear(predicted(chunked, "pp=4", options).time.hops, 7 * 200.0));
}

TEST_CASE("gradients are hidden under the last backward pass, but for one layer's", "[step]") {
  StepOptions options = unitTimes();
  options.measured["update.attention_gradients"] = 3000;
  options.measured["update.mlp_gradients"] = 5000;
  // 8 layers of 8 us; the backward pass of a microbatch takes 8 * 11 us.
  CHECK(isNear(predicted(denseText, "dp=2", options).time.gradients, 64000));
  options.overlap = Overlap::Gradients;
  CHECK(isNear(predicted(denseText, "dp=2", options).time.gradients, 8000));
  options.measured["update.mlp_gradients"] = 25000; // 8 * 28 - 7 * 11
  CHECK(isNear(predicted(denseText, "dp=2", options).time.gradients, 224000 - 77000));
}

TEST_CASE("collectives are hidden beside their product, as far as it lasts", "[step]") {
  StepOptions options = unitTimes();
  options.overlap = Overlap::All;
  options.measured["forward.qkv_gather"] = 600;
  options.measured["forward.mlp_gather"] = 1500;
  const StepPrediction two = predicted(denseText, "tp=2", options);
  const Row &first = rowOf(two, "forward.qkv_gather"), &second = rowOf(two, "forward.mlp_gather");
  REQUIRE(first.beside >= 0);
  CHECK(two.rows[size_t(first.beside)].name == "forward.qkv");
  CHECK(isNear(first.hidden, 600));
  CHECK(two.rows[size_t(second.beside)].name == "forward.mlp_up");
  CHECK(isNear(second.hidden, 1000));
  CHECK(two.rows[size_t(rowOf(two, "forward.mlp_scatter").beside)].name == "forward.mlp_down");
}

TEST_CASE("two collectives share the product that they are hidden beside", "[step]") {
  StepOptions options;
  options.overlap = Overlap::All;
  options.measured = {{"forward.dispatch", 600e3},
                      {"forward.expert_gather", 700e3},
                      {"forward.expert_up", 1000e3},
                      {"forward.expert_scatter", 5e9},
                      {"forward.expert_down", 400e3}};
  const StepPrediction four = predicted(expertsText, "dp=8,ep=4,tp=2", options);
  auto besideOf = [&](const char *name) {
    const Row &row = rowOf(four, name);
    return row.beside < 0 ? "none" : four.rows[size_t(row.beside)].name;
  };
  CHECK(besideOf("forward.dispatch") == "forward.expert_up");
  CHECK(besideOf("forward.combine") == "forward.expert_down");
  CHECK(besideOf("backward.combine") == "backward.expert_down_rows");
  CHECK(besideOf("backward.dispatch") == "backward.expert_up_weights");
  // The pod has no latency: all of a collective can be hidden.
  CHECK(isNear(rowOf(four, "forward.dispatch").hidden, 600e3));
  CHECK(isNear(rowOf(four, "forward.expert_gather").hidden, 400e3));
  CHECK(isNear(rowOf(four, "forward.expert_scatter").hidden, 400e3));
  CHECK(rowOf(four, "forward.combine").hidden == 0);
}

TEST_CASE("sharded weights are gathered under the layer before", "[step]") {
  const std::string sharded = replaced(denseText, "\"type\"", "\"weights\": \"sharded\", \"type\"");
  StepOptions options;
  options.overlap = Overlap::None;
  for (const Row &row : predicted(sharded, "dp=2").rows)
    options.measured[row.name] = row.isCollective() || row.phase == Phase::Update ? 0 : 1000;
  options.measured["forward.mlp_weights_gather"] = 3000;
  const double launches = 8 * 7 * 1000;
  CHECK(isNear(predicted(sharded, "dp=2", options).time.forward, launches + 8 * 3000));
  options.overlap = Overlap::Gradients;
  CHECK(isNear(predicted(sharded, "dp=2", options).time.forward, launches + 3000));
  options.measured["forward.mlp_weights_gather"] = 9000; // 8 * 9 - 7 * 7
  CHECK(isNear(predicted(sharded, "dp=2", options).time.forward, launches + 23000));
}

TEST_CASE("rows that go to two experts of a GPU travel once", "[step]") {
  // k = 4 of 2 GPUs: two copies, of which one leaves; each GPU computes with 4 of 16 experts a row.
  const StepPrediction two = predicted(expertsText, "dp=2,ep=2,tp=2");
  const double own = 32 * 1024 / 2 * 1024.0 * 2;
  CHECK(isNear(rowOf(two, "forward.dispatch").comms.total(), own / 450));
  CHECK(isNear(rowOf(two, "forward.expert_gather").arrayBytes, 2 * 2 * own));
  CHECK(isNear(rowOf(two, "forward.pack").launch.bytes, 3 * own));
  CHECK(isNear(rowOf(two, "forward.unpack").launch.bytes, 3 * own));
  CHECK(isNear(rowOf(two, "forward.expert_up").launch.flops,
               2.0 * 32 * 1024 * 4 * 1024 * 2 * 2048 / 2));
}

TEST_CASE("bytes and operations of launches", "[step]") {
  const std::string grouped =
      replaced(denseText, "\"head_size\"", "\"kv_heads\": 2, \"head_size\"");
  const StepPrediction four = predicted(grouped, "tp=4");
  // 16384 rows: 2 of 8 heads, and one of the two heads of keys and of values, which GPUs share.
  CHECK(isNear(rowOf(four, "forward.qkv").launch.flops, 2.0 * 16384 * 1024 * (2 + 2) * 128));
  const double quarter = 16384 / 4 * 1024.0 * 2;
  CHECK(isNear(rowOf(four, "forward.mlp_norm").launch.bytes, 4 * quarter));
  CHECK(isNear(rowOf(four, "backward.mlp_norm").launch.bytes, 5 * quarter));
  CHECK(isNear(rowOf(four, "forward.attention").launch.flops, 2.0 * 2 * 16384 * 512 * 2 * 128));
  CHECK(isNear(rowOf(four, "backward.attention").launch.flops,
               2.5 * rowOf(four, "forward.attention").launch.flops));
}

TEST_CASE("attention takes longer than its products", "[step]") {
  const ElementType bf16{"bf16", 2, MatrixType::BFloat};
  const Attention small{4, 4096, 16, 16, 64, true, false};
  const Launch launch = attention(small, bf16, h100());
  // Exponentials: 16 a clock, a score each; half of the keys and half a tile more.
  const double scores = 4 * 4096 * (4096 + 128) / 2.0 * 16;
  const double exponentials = scores / (16 * 132 * 1.98);
  // Both overlap, as the fourth powers of their times add up (CostModel.h).
  CHECK(launch.total > std::pow(std::pow(launch.math, 4) + std::pow(exponentials, 4), 0.25));
  CHECK(launch.total < launch.math + 2 * exponentials);
}

TEST_CASE("tensor parallelism gathers and scatters rows around products", "[step]") {
  const StepPrediction two = predicted(denseText, "tp=2");
  // 16 sequences of a microbatch, 1024 elements of two bytes.
  const double array = 16 * 1024.0 * 1024 * 2;
  for (const char *name : {"forward.qkv_gather", "forward.output_scatter", "forward.mlp_gather",
                           "forward.mlp_scatter", "backward.mlp_scatter", "backward.qkv_gather"})
    CHECK(isNear(rowOf(two, name).arrayBytes, array));
  CHECK(isNear(rowOf(two, "forward.qkv_gather").comms.total(), array / 2 / 450));
  CHECK(rowOf(two, "backward.qkv_gather").collective == Collective::ReduceScatter);
  CHECK(rowOf(two, "backward.mlp_scatter").collective == Collective::AllGather);
  // Partial sums in f32 have twice the bytes.
  const StepPrediction wide =
      predicted(replaced(denseText, "\"wire\": \"bf16\"", "\"wire\": \"f32\""), "tp=2");
  CHECK(isNear(rowOf(wide, "forward.mlp_scatter").arrayBytes, 2 * array));
  CHECK(isNear(rowOf(wide, "forward.mlp_gather").arrayBytes, array));
}

TEST_CASE("experts exchange rows, and reduce their gradients over dp / ep", "[step]") {
  const StepPrediction four = predicted(expertsText, "dp=8,ep=4,tp=2");
  // 8 sequences of 1024 rows on a rank, half of them on each GPU of tp; k = 4 of 4 GPUs.
  const double own = 8 * 1024 / 2 * 1024.0 * 2;
  const Row &dispatch = rowOf(four, "forward.dispatch");
  CHECK(isNear(dispatch.arrayBytes, 16 * own));
  // tp is innermost: 4 GPUs of ep lie at a distance of 2 in one node.
  CHECK(isNear(dispatch.comms.total(), 3 * own / 450));
  CHECK(dispatch.count == 3);
  CHECK(isNear(rowOf(four, "forward.expert_gather").arrayBytes, 4 * 2 * own));
  // Each GPU has 4 experts, and as many rows as without ep, four times.
  CHECK(
      isNear(rowOf(four, "forward.expert_up").launch.flops, 2.0 * 8192 * 4 * 1024 * 2 * 2048 / 2));
  const Row &gradients = rowOf(four, "update.expert_gradients");
  CHECK(gradients.parallelism == Parallelism::ExpertData);
  CHECK(isNear(gradients.arrayBytes, 4 * 3 * 1024.0 * 2048 / 2 * 2));
  CHECK(rowOf(four, "update.mlp_gradients").count == 1);
  CHECK(rowOf(four, "update.attention_gradients").parallelism == Parallelism::Data);
  // k = 4 of 8 GPUs: half of the dense exchange.
  const StepPrediction eight = predicted(expertsText, "dp=8,ep=8");
  CHECK(isNear(rowOf(eight, "forward.dispatch").comms.total(), 7 * 0.5 * 2 * own / 450));
}

TEST_CASE("sharded weights are gathered before use", "[step]") {
  const std::string sharded = replaced(denseText, "\"type\"", "\"weights\": \"sharded\", \"type\"");
  const StepPrediction two = predicted(sharded, "dp=2");
  CHECK(hasRow(two, "forward.mlp_weights_gather"));
  CHECK(hasRow(two, "backward.mlp_weights_gather"));
  CHECK(rowOf(two, "update.mlp_gradients").collective == Collective::ReduceScatter);
  CHECK_FALSE(hasRow(predicted(denseText, "dp=2"), "forward.mlp_weights_gather"));
}

TEST_CASE("the limit of data parallelism is C / W tokens", "[step]") {
  const StepPrediction eight = predicted(denseText, "dp=8,tp=8");
  const double rate = sustainedRate({"bf16", 2, MatrixType::BFloat}, h100());
  const Limit &data = eight.limits[0];
  CHECK(data.parallelism == Parallelism::Data);
  // 8 GPUs of different nodes: the cards of 50, and 7/8.
  CHECK(isNear(data.limit, rate / 50 * 7 / 8));
  CHECK(data.value == 64 * 1024 / 8 / 4);
  CHECK(data.holds == (data.value >= data.limit));
  CHECK(data.level == "leaf");
  // Gradients of four bytes double it.
  const std::string wide = replaced(denseText, "\"gradients\": \"bf16\"", "\"gradients\": \"f32\"");
  CHECK(isNear(predicted(wide, "dp=8,tp=8").limits[0].limit, 2 * data.limit));
}

TEST_CASE("the limit of tensor parallelism is F W / C", "[step]") {
  const StepPrediction eight = predicted(denseText, "tp=8");
  const double rate = sustainedRate({"bf16", 2, MatrixType::BFloat}, h100());
  CHECK(isNear(eight.limits[0].limit, 4096 * (450.0 * 8 / 7) / rate));
  // Three matrices of gated blocks: half as much again.
  const std::string gated = replaced(denseText, "\"gated\": false", "\"gated\": true");
  CHECK(isNear(predicted(gated, "tp=8").limits[0].limit, 1.5 * eight.limits[0].limit));
}

TEST_CASE("the limits of experts and of pipelines", "[step]") {
  const double rate = sustainedRate({"bf16", 2, MatrixType::BFloat}, h100());
  const StepPrediction eight = predicted(expertsText, "dp=8,ep=8");
  REQUIRE(eight.limits.size() == 2); // dp / ep is 1
  const Limit &experts = eight.limits[1];
  CHECK(experts.parallelism == Parallelism::Experts);
  // Two exchanges of 7 * 1/2 rows of two bytes; 2 * 3 matrices * 4 experts.
  CHECK(isNear(experts.limit, 2 * 2 * 7 * 0.5 / 450 * rate / (2 * 3 * 4)));
  // Weights of experts: E / (k ep) = 16 / (4 * 2) as many tokens; four copies of a node's GPUs.
  const StepPrediction copies = predicted(expertsText, "dp=8,ep=2");
  REQUIRE(copies.limits[1].parallelism == Parallelism::ExpertData);
  CHECK(isNear(copies.limits[1].limit, rate / 450 * 3 / 4 * 2));
  CHECK(isNear(copies.limits[0].limit, rate / 450 * 7 / 8));
  const StepPrediction four = predicted(denseText, "pp=4");
  CHECK(four.limits[0].limit == 27);
  CHECK_FALSE(four.limits[0].holds);
}

TEST_CASE("the layers of a model are cut into stages", "[step]") {
  const Block block = taken(parseBlock(replaced(expertsText, "\"layers\": 4", "\"layers\": 7")));
  const std::vector<Stage> stages = stagesOf(block, 3);
  REQUIRE(stages.size() == 3);
  CHECK(stages[0].denseLayers == 1);
  CHECK(stages[0].expertLayers == 2);
  CHECK(stages[1].layers() == 2);
  CHECK_FALSE(stages[2].hasHead);
  const Block head = taken(parseBlock(example("models/llama-8b.json")));
  CHECK(stagesOf(head, 4)[3].hasHead);
  CHECK_FALSE(stagesOf(head, 4)[2].hasHead);
  // Weights without the embedding: 7.5 billion.
  CHECK(isNear(head.allWeights(), 7.504e9, 1e-3));
}

TEST_CASE("what a GPU holds of the weights", "[step]") {
  const Placement eight = taken(tryPlace(expertsText, "dp=8,ep=4,tp=2"));
  const Stage stage = stagesOf(eight.block, 1)[0];
  // Half of the attention and of the dense layer; half of 4 of 16 experts; the router.
  const double weights = 4 * 4 * 1024.0 * 1024 / 2 + 3 * 1024.0 * 4096 / 2 +
                         3 * (4 * 3 * 1024.0 * 2048 / 2 + 1024 * 16);
  CHECK(isNear(weightsOfDevice(eight, stage), weights));
  CHECK(isNear(bytesOfWeights(eight, stage), weights * (2 + 2 + 12)));
}

TEST_CASE("the stage with the head is the slowest", "[step]") {
  const StepPrediction four =
      taken(predictStep(taken(place(taken(parseBlock(example("models/llama-8b.json"))), pod(),
                                    h100(), taken(parseAxes("pp=4,dp=4")), "")),
                        {}));
  CHECK(four.slowest == 3);
  CHECK(hasRow(four, "forward.head"));
}

TEST_CASE("a mesh of 1024 GPUs", "[step]") {
  const StepPrediction all =
      taken(predictStep(taken(place(taken(parseBlock(example("models/llama-8b.json"))), pod(),
                                    h100(), taken(parseAxes("dp=32,tp=8,pp=4")), "")),
                        {}));
  CHECK(all.placement.mesh.numDevices() == 1024);
  CHECK(all.limits.size() == 3);
  CHECK(all.rate() > 0);
}

TEST_CASE("the order of the axes decides which links a group has", "[step]") {
  const Placement usual = taken(tryPlace(denseText, "dp=8,tp=8"));
  const Placement turned = taken(tryPlace(denseText, "dp=8,tp=8", "ep,dp,tp,pp"));
  const auto time = [](const Placement &at, Parallelism of) {
    return predict(at.network, at.group(of), Collective::AllGather, 1e9).total();
  };
  CHECK(isNear(time(usual, Parallelism::Tensor), time(turned, Parallelism::Data)));
  CHECK(time(usual, Parallelism::Data) > time(turned, Parallelism::Data));
}

TEST_CASE("faults of a model and of its mesh", "[step]") {
  auto faultOf = [](llvm::Error error) {
    std::string text;
    llvm::handleAllErrors(std::move(error), [&](const DescriptionError &found) {
      text = nameOf(found.fault).str() + " " + found.place;
    });
    return text;
  };
  auto blockFault = [&](const std::string &from, const std::string &to) {
    return faultOf(parseBlock(replaced(expertsText, from, to)).takeError());
  };
  CHECK(blockFault("\"layers\": 4,", "") == "missing layers");
  CHECK(blockFault("\"layers\": 4", "\"layers\": 0") == "out of range layers");
  CHECK(blockFault("\"heads\": 8", "\"heads\": 8, \"kv_heads\": 3") == "inconsistent kv_heads");
  CHECK(blockFault("\"top_k\": 4", "\"top_k\": 17") == "inconsistent experts.top_k");
  CHECK(blockFault("\"dense_layers\": 1", "\"dense_layers\": 9") ==
        "inconsistent experts.dense_layers");
  CHECK(blockFault("\"wire\": \"bf16\"", "\"wire\": \"bf8\"") == "unknown wire");
  CHECK(blockFault("\"batch\": 64", "\"batch\": 64, \"microbatches\": 3") ==
        "inconsistent microbatches");
  CHECK(blockFault("\"hidden\": 4096", "\"hidden\": true") == "wrong type hidden");

  auto placeFault = [&](const std::string &block, llvm::StringRef mesh,
                        llvm::StringRef order = "") {
    return faultOf(tryPlace(block, mesh, order).takeError());
  };
  CHECK(placeFault(denseText, "xp=2") == "unknown xp");
  CHECK(placeFault(denseText, "dp=2,ep=2") == "inconsistent ep");
  CHECK(placeFault(expertsText, "dp=2,ep=4") == "inconsistent ep");
  CHECK(placeFault(expertsText, "dp=32,ep=32") == "inconsistent ep");
  CHECK(placeFault(denseText, "dp=32") == "inconsistent dp");
  CHECK(placeFault(denseText, "tp=3") == "inconsistent tp");
  CHECK(placeFault(denseText, "pp=9") == "out of range pp");
  CHECK(placeFault(replaced(denseText, "\"type\"", "\"stage_chunks\": 3, \"type\""), "pp=4") ==
        "out of range pp");
  CHECK(placeFault(denseText, "dp=2", "tp,dp") == "missing order");
  CHECK(placeFault(denseText, "dp=2", "tp,tp,dp,pp") == "unknown order");
}

TEST_CASE("faults of measured times", "[step]") {
  CHECK(taken(parseTimes(R"({"microseconds": {"a": 2}})"))["a"] == 2000);
  auto message = [](llvm::Error error) { return llvm::toString(std::move(error)); };
  CHECK(
      message(parseTimes(R"({"microseconds": {"a": -1}})").takeError()).find("`microseconds.a`") ==
      0);
  StepOptions options;
  options.measured["forward.qvk"] = 1;
  CHECK(message(predictStep(taken(tryPlace(denseText, "dp=1")), options).takeError())
            .find("near it is 'forward.qkv'") != std::string::npos);
}
