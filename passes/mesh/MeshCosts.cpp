//===- MeshCosts.cpp - what a rank's work and its messages cost -----------===//
#include "passes/mesh/MeshCosts.h"

#include "passes/machine/CostModel.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Error.h"

#include <cassert>
#include <limits>

using namespace mlir;

namespace tk::mesh {

static network::Mesh meshWith(ArrayRef<MeshAxisInfo> axes) {
  network::Mesh mesh;
  for (const MeshAxisInfo &axis : llvm::reverse(axes)) // ranks are numbered in row-major order
    mesh.axes.push_back({axis.name.str(), std::max<int64_t>(axis.size, 1)});
  return mesh;
}

llvm::Expected<network::Network> networkFor(StringRef text, ArrayRef<MeshAxisInfo> axes) {
  const network::Mesh mesh = meshWith(axes);
  if (text.empty()) {
    llvm::Expected<network::Network> node =
        network::parseNetwork(*network::shippedNetwork("h200-node"));
    if (!node || mesh.numDevices() <= node->numDevices())
      return node;
    text = "h100-superpod";
  }
  llvm::Expected<network::Network> network =
      network::parseNetwork(network::shippedNetwork(text).value_or(text));
  if (!network)
    return network;
  if (llvm::Error error = network::checkFits(*network, mesh))
    return error;
  return network;
}

double timeByRows(double blocks, double launch, const network::CollectiveTime &transfer,
                  bool isHeld) {
  // A launch and a transfer wait for each other. Nothing hides what comes before the bytes.
  const double others = blocks - 1, waits = others * (cost::launch + transfer.latency);
  if (isHeld)
    return blocks * launch + others * transfer.transfer + waits;
  return std::max(blocks * launch, others * transfer.transfer + launch) + waits;
}

/// The device of a network, with the first architecture that has it; an H200 where it is unknown.
static Machine machineFor(const network::Network &network) {
  const DeviceSpec *device = findDevice(network.device);
  if (!device)
    device = findDevice("H200");
  const Architecture *found = nullptr;
  for (const Architecture &row : allArchitectures())
    if (row.arch == device->arch && (!found || row.features > found->features))
      found = &row;
  assert(found && "a device without an architecture");
  return machineOf(*found, *device);
}

MeshCosts::MeshCosts(network::Network description, ArrayRef<MeshAxisInfo> axes)
    : network(std::move(description)), machine(machineFor(network)) {
  const network::Mesh mesh = meshWith(axes);
  for (const MeshAxisInfo &axis : axes)
    groups.push_back(network::groupOf(network, mesh, {axis.name}));
}

llvm::Expected<MeshCosts> MeshCosts::of(KernelOp kernel) {
  const SmallVector<MeshAxisInfo> axes = meshOf(kernel);
  auto text = kernel->getAttrOfType<StringAttr>(networkAttr);
  llvm::Expected<network::Network> network = networkFor(text ? text.getValue() : "", axes);
  if (!network)
    return network.takeError();
  return MeshCosts(std::move(*network), axes);
}

network::CollectiveTime MeshCosts::collective(network::Collective kind, size_t axis,
                                              double bytes) const {
  return network::predict(network, groups[axis], kind, bytes, 1, network::PeerAccess::allowed);
}

network::CollectiveTime MeshCosts::exchange(size_t axis, double bytes) const {
  const double ranks = groups[axis].size;
  const network::CollectiveTime one =
      collective(network::Collective::AllToAll, axis, bytes * ranks);
  network::CollectiveTime sends = collective(network::Collective::Send, axis, bytes / ranks);
  sends.latency *= ranks - 1, sends.transfer *= ranks - 1;
  return isCopied(sends) && sends.total() < one.total() ? sends : one;
}

MeshCosts::Bounds
MeshCosts::boundsOf(llvm::function_ref<network::CollectiveTime(double bytes)> timeOf) const {
  auto means = [&](double bytes) { return network.protocols[timeOf(bytes).protocol].means; };
  // The last power of two at which a means is still to come, or no longer the fastest, and then the
  // byte.
  auto firstWithout = [&](auto isBefore) {
    constexpr int64_t most = int64_t{1} << 40;
    int64_t low = 0, high = 1;
    while (high < most && isBefore(means(static_cast<double>(high))))
      low = high, high *= 2;
    if (high >= most)
      return std::numeric_limits<int64_t>::max();
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (isBefore(means(static_cast<double>(middle))) ? low : high) = middle;
    }
    return high;
  };
  using network::Means;
  Bounds bounds;
  bounds.storedUpTo = firstWithout([](Means means) { return means == Means::Stores; });
  if (bounds.storedUpTo != std::numeric_limits<int64_t>::max())
    --bounds.storedUpTo;
  bounds.copiedFrom = firstWithout([](Means means) { return means != Means::Copies; });
  return bounds;
}

double MeshCosts::products(double multiplyAdds, Type operands) const {
  const double clocks = double(machine.device.processors) * machine.device.clock();
  auto matrix = [&](MatrixType type) {
    return matrixRate(*machine.architecture, type) * clocks * machine.device.matrixShare();
  };
  if (operands.isF16() || operands.isBF16())
    return multiplyAdds / matrix(MatrixType::Half);
  if (isa<FloatType>(operands) && operands.getIntOrFloatBitWidth() == 8)
    return multiplyAdds / matrix(MatrixType::ByteFloat);
  if (operands.isF64())
    return multiplyAdds / matrix(MatrixType::Double);
  constexpr double productsOfF32 = 3; // of bf16, which stand for one of f32
  if (operands.isF32())
    return multiplyAdds * productsOfF32 / matrix(MatrixType::Half);
  return multiplyAdds / (machine.architecture->rates.f32 * clocks);
}

} // namespace tk::mesh
