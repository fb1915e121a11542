//===- Placement.cpp - a model on a mesh of GPUs --------------------------===//
#include "compiler/step/Placement.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using tk::network::Axis;
using tk::network::Fault;
using tk::network::faultAt;

namespace tk::step {

StringRef nameOf(Parallelism parallelism) {
  static constexpr StringLiteral names[] = {"-", "tp", "ep", "dp", "dp/ep", "pp"};
  return names[static_cast<size_t>(parallelism)];
}

double Placement::rows() const {
  return double(block.batch) * double(block.sequence) / (data() * double(block.microbatches));
}

namespace {

struct Sizes {
  int64_t tp = 1, ep = 1, dp = 1, pp = 1;

  int64_t *find(StringRef name) {
    return name == "tp"   ? &tp
           : name == "ep" ? &ep
           : name == "dp" ? &dp
           : name == "pp" ? &pp
                          : nullptr;
  }
};

Expected<Sizes> sizesOf(ArrayRef<Axis> axes) {
  Sizes sizes;
  for (const Axis &axis : axes) {
    int64_t *size = sizes.find(axis.name);
    if (!size)
      return faultAt(Fault::Unknown, axis.name, "unknown axis; there are tp, ep, dp and pp");
    *size = axis.size;
  }
  return sizes;
}

Error divides(int64_t divisor, StringRef axis, int64_t whole, StringRef of) {
  if (whole % divisor == 0)
    return Error::success();
  return faultAt(Fault::Inconsistent, axis,
                 "expected a divisor of " + of + ", which is " + Twine(whole) + ", got " +
                     Twine(divisor));
}

Error checkSizes(const Block &block, const Sizes &sizes) {
  const Experts &experts = block.experts;
  if (sizes.ep > 1 && experts.count == 0)
    return faultAt(Fault::Inconsistent, "ep", "the model '" + block.name + "' has no experts");
  if (sizes.pp > block.layers)
    return faultAt(Fault::OutOfRange, "pp",
                   "expected at most one stage for each of the " + Twine(block.layers) +
                       " layers, got " + Twine(sizes.pp));
  if (block.chunks > block.layers / sizes.pp)
    return faultAt(Fault::OutOfRange, "pp",
                   "expected a layer or more for each of the " + Twine(block.chunks) +
                       " chunks of a stage, got " + Twine(sizes.pp) + " stages of " +
                       Twine(block.layers) + " layers");
  const int64_t parts = sizes.dp * block.microbatches;
  if (block.batch % parts)
    return faultAt(Fault::Inconsistent, "dp",
                   "expected a batch that is a multiple of dp * microbatches, which is " +
                       Twine(parts) + ", got " + Twine(block.batch));
  struct Rule {
    int64_t divisor;
    StringRef axis;
    int64_t whole;
    StringRef of;
  };
  SmallVector<Rule> rules = {{sizes.ep, "ep", sizes.dp, "dp"},
                             {sizes.tp, "tp", block.heads, "heads"},
                             {sizes.tp, "tp", block.hidden, "hidden"}};
  if (experts.count) {
    rules.push_back({sizes.ep, "ep", experts.count, "experts.count"});
    rules.push_back({sizes.tp, "tp", experts.hidden, "experts.hidden"});
  }
  for (const Rule &rule : rules)
    if (Error error = divides(rule.divisor, rule.axis, rule.whole, rule.of))
      return error;
  return Error::success();
}

/// The mesh in the order that is asked for.
Expected<network::Mesh> meshOf(Sizes sizes, StringRef order) {
  sizes.dp /= sizes.ep;
  network::Mesh mesh;
  SmallVector<StringRef> names;
  (order.empty() ? StringRef("tp,ep,dp,pp") : order).split(names, ',');
  for (StringRef name : names) {
    name = name.trim();
    const int64_t *size = sizes.find(name);
    const bool isTwice = any_of(mesh.axes, [&](const Axis &axis) { return axis.name == name; });
    if (!size || isTwice)
      return faultAt(Fault::Unknown, "order",
                     "expected tp, ep, dp and pp, each once, got '" + order + "'");
    mesh.axes.push_back({name.str(), *size});
  }
  if (mesh.axes.size() != 4)
    return faultAt(Fault::Missing, "order",
                   "expected tp, ep, dp and pp, each once, got '" + order + "'");
  return mesh;
}

} // namespace

Expected<network::Mesh> meshFor(ArrayRef<Axis> axes, StringRef order) {
  Expected<Sizes> sizes = sizesOf(axes);
  if (!sizes)
    return sizes.takeError();
  if (Error error = divides(sizes->ep, "ep", sizes->dp, "dp"))
    return error;
  return meshOf(*sizes, order);
}

Expected<Placement> place(Block block, network::Network network, const Machine &machine,
                          ArrayRef<Axis> axes, StringRef order) {
  Expected<Sizes> sizes = sizesOf(axes);
  if (!sizes)
    return sizes.takeError();
  if (Error error = checkSizes(block, *sizes))
    return error;
  Expected<network::Mesh> mesh = meshOf(*sizes, order);
  if (!mesh)
    return mesh.takeError();
  if (Error error = network::checkFits(network, *mesh))
    return error;
  Placement placement{std::move(block), std::move(network), std::move(*mesh), machine, {}};
  auto set = [&](Parallelism of, ArrayRef<StringRef> names) {
    placement.groups[static_cast<size_t>(of)] =
        network::groupOf(placement.network, placement.mesh, names);
  };
  set(Parallelism::None, {});
  set(Parallelism::Tensor, {"tp"});
  set(Parallelism::Experts, {"ep"});
  set(Parallelism::Data, {"ep", "dp"});
  set(Parallelism::ExpertData, {"dp"});
  set(Parallelism::Pipeline, {"pp"});
  return placement;
}

} // namespace tk::step
