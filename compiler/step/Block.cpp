//===- Block.cpp - a transformer model as plain data ----------------------===//
#include "compiler/step/Block.h"

#include "llvm/ADT/Twine.h"

using namespace llvm;
using tk::network::Fault;
using tk::network::FaultLog;
using tk::network::ObjectReader;
using tk::network::Range;

namespace tk::step {

double Block::attentionWeights() const {
  return double(width) * double(headSize) * double(2 * heads + 2 * kvHeads);
}

double Block::denseWeights() const { return matrices() * double(width) * double(hidden); }

double Block::expertWeights() const { return matrices() * double(width) * double(experts.hidden); }

double Block::sharedWeights() const { return double(experts.shared) * expertWeights(); }

double Block::routerWeights() const { return double(width) * double(experts.count); }

double Block::headWeights() const { return double(width) * double(vocabulary); }

double Block::allWeights() const {
  const auto withExperts = double(expertLayers()), dense = double(layers) - withExperts;
  return double(layers) * attentionWeights() + dense * denseWeights() + headWeights() +
         withExperts *
             (double(experts.count) * expertWeights() + sharedWeights() + routerWeights());
}

double Block::activeWeights() const {
  const auto withExperts = double(expertLayers()), dense = double(layers) - withExperts;
  return double(layers) * attentionWeights() + dense * denseWeights() + headWeights() +
         withExperts * (double(experts.topK) * expertWeights() + sharedWeights() + routerWeights());
}

namespace {

constexpr Range sizes{1, double(1 << 24)}, counts{0, double(1 << 20)};

/// Bytes that Adam moves of a weight: the gradient in f32; two moments and the weight in f32, read
/// and written; the weight in 16 bits, written.
constexpr double bytesOfAdam = 4 + 2 * 3 * 4 + 2;

struct TypeRow {
  StringRef name;
  double bytes;
  MatrixType matrix;
};
constexpr TypeRow types[] = {{"bf16", 2, MatrixType::BFloat},
                             {"f16", 2, MatrixType::Half},
                             {"f32", 4, MatrixType::TF32},
                             {"f8e4m3", 1, MatrixType::ByteFloat},
                             {"f8e5m2", 1, MatrixType::ByteFloat}};

ElementType readType(ObjectReader &reader, StringRef field, size_t otherwise) {
  SmallVector<StringRef> names;
  for (const TypeRow &row : types)
    names.push_back(row.name);
  const TypeRow &row = types[reader.choice(field, names, otherwise)];
  return {row.name.str(), row.bytes, row.matrix};
}

Experts readExperts(ObjectReader &block) {
  Experts experts;
  const json::Value *value = block.value("experts", false);
  if (!value)
    return experts;
  ObjectReader reader(*value, block.placeOf("experts"), block.faults());
  experts.count = reader.integer("count", {2, sizes.most});
  experts.topK = reader.integer("top_k", sizes);
  experts.hidden = reader.integer("hidden", sizes);
  experts.shared = reader.integer("shared", counts, 0);
  experts.denseLayers = reader.integer("dense_layers", counts, 0);
  if (experts.topK > experts.count)
    block.faults().add(Fault::Inconsistent, reader.placeOf("top_k"),
                       "expected at most the " + Twine(experts.count) + " experts, got " +
                           Twine(experts.topK));
  return experts;
}

void check(const Block &block, FaultLog &faults) {
  if (block.heads % block.kvHeads)
    faults.add(Fault::Inconsistent, "kv_heads",
               "expected a divisor of the " + Twine(block.heads) + " heads, got " +
                   Twine(block.kvHeads));
  if (block.experts.denseLayers > block.layers)
    faults.add(Fault::Inconsistent, "experts.dense_layers",
               "expected at most the " + Twine(block.layers) + " layers, got " +
                   Twine(block.experts.denseLayers));
  if (block.batch % block.microbatches)
    faults.add(Fault::Inconsistent, "microbatches",
               "expected a divisor of the batch of " + Twine(block.batch) + ", got " +
                   Twine(block.microbatches));
}

} // namespace

Expected<Block> parseBlock(StringRef text) {
  Expected<json::Value> value = network::parseJson(text, "the model");
  if (!value)
    return value.takeError();
  FaultLog faults;
  Block block;
  {
    ObjectReader reader(*value, "", faults);
    reader.choice("format", {"tk block 1"}, 0);
    block.name = reader.text("name");
    block.source = reader.text("source", "");
    block.layers = reader.integer("layers", sizes);
    block.width = reader.integer("width", sizes);
    block.heads = reader.integer("heads", sizes);
    block.kvHeads = reader.integer("kv_heads", sizes, block.heads);
    block.headSize = reader.integer("head_size", sizes);
    block.isCausal = reader.flag("causal", true);
    block.hidden = reader.integer("hidden", sizes);
    block.isGated = reader.flag("gated", true);
    block.experts = readExperts(reader);
    block.vocabulary = reader.integer("vocabulary", {0, sizes.most}, 0);
    block.sequence = reader.integer("sequence", sizes);
    block.batch = reader.integer("batch", sizes);
    block.microbatches = reader.integer("microbatches", sizes, 1);
    block.chunks = reader.integer("stage_chunks", sizes, 1);
    block.type = readType(reader, "type", 0);
    block.wire = readType(reader, "wire", 2);
    block.gradients = readType(reader, "gradients", 2);
    block.areWeightsSharded = reader.choice("weights", {"replicated", "sharded"}, 0) == 1;
    block.optimizerBytes = reader.number("optimizer_bytes", {0, 1000}, bytesOfAdam);
  }
  if (!faults.any())
    check(block, faults);
  if (faults.any())
    return faults.take();
  return block;
}

} // namespace tk::step
