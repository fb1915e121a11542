//===- Mesh.cpp - axes of parallelism on a network ------------------------===//
//
// How the span of a group at a level is found:
//  1. Each device is in one group: that of the devices with the same coordinates on all other axes.
//  2. The devices of a group are counted by the children of the level that they are below, and by
//     the units up to which data moves through the level's links (Network::reachOf).
//  3. A child's links are shared evenly by the devices of the mesh below it. Where the links start
//     at the GPUs, a GPU without a part in the mesh keeps its own unused.
//  4. A child with m of r devices receives (r - m) / r of what the group gathers, through m shares.
//     The child where (r - m) / (r * share) is largest stands for the group, and the slowest group
//     for all.
//
//===----------------------------------------------------------------------===//
#include "passes/network/Mesh.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <algorithm>
#include <map>
#include <set>

using namespace llvm;

namespace tk::network {

int64_t Mesh::numDevices() const {
  int64_t devices = 1;
  for (const Axis &axis : axes)
    devices *= axis.size;
  return devices;
}

int64_t Mesh::sizeOf(StringRef name) const {
  for (const Axis &axis : axes)
    if (axis.name == name)
      return axis.size;
  return 1;
}

Expected<std::vector<Axis>> parseAxes(StringRef text) {
  constexpr int64_t mostOfAxis = 1 << 16;
  std::vector<Axis> axes;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    auto [name, size] = part.trim().split('=');
    Axis axis{name.trim().str(), 0};
    if (axis.name.empty() || size.trim().getAsInteger(10, axis.size))
      return faultAt(Fault::WrongType, "", "expected AXIS=SIZE such as `tp=8`, got '" + part + "'");
    if (axis.size < 1 || axis.size > mostOfAxis)
      return faultAt(Fault::OutOfRange, axis.name,
                     "expected a size from 1 to " + Twine(mostOfAxis) + ", got " + size.trim());
    if (is_contained(map_range(axes, [](const Axis &other) { return other.name; }), axis.name))
      return faultAt(Fault::Inconsistent, axis.name, "the axis is given twice");
    axes.push_back(std::move(axis));
  }
  return axes;
}

Error checkFits(const Network &network, const Mesh &mesh) {
  if (mesh.numDevices() <= network.numDevices())
    return Error::success();
  return faultAt(Fault::OutOfRange, "",
                 "the mesh has " + Twine(mesh.numDevices()) + " GPUs, and the network '" +
                     network.name + "' has " + Twine(network.numDevices()));
}

namespace {

/// The devices of each group, by the coordinates on the other axes.
std::vector<std::vector<int64_t>> allGroups(const Mesh &mesh, ArrayRef<StringRef> axes) {
  std::map<int64_t, std::vector<int64_t>> groups;
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    int64_t rest = device, key = 0, stride = 1;
    for (const Axis &axis : mesh.axes) {
      if (!is_contained(axes, axis.name))
        key += stride * (rest % axis.size);
      stride *= axis.size;
      rest /= axis.size;
    }
    groups[key].push_back(device);
  }
  std::vector<std::vector<int64_t>> lists;
  for (auto &[key, devices] : groups)
    lists.push_back(std::move(devices));
  return lists;
}

/// The busiest child's span of one group at one level.
Span spanOf(const Network &network, size_t level, int64_t numDevices, ArrayRef<int64_t> devices) {
  const int64_t ofChild = network.devicesOfChild(level), ofUnit = network.devicesOfUnit(level),
                ofReach = network.devicesOfUnit(network.reachOf(level));
  std::map<int64_t, int64_t> members, reach;
  std::map<int64_t, std::set<int64_t>> children;
  for (int64_t device : devices) {
    ++members[device / ofChild];
    ++reach[device / ofReach];
    children[device / ofUnit].insert(device / ofChild);
  }
  Span worst;
  double most = -1, units = 1;
  for (const auto &[unit, inside] : children)
    units = std::max(units, static_cast<double>(inside.size()));
  for (auto [child, count] : members) {
    Span span;
    span.members = static_cast<double>(count);
    span.reach = static_cast<double>(reach[child * ofChild / ofReach]);
    const int64_t used = std::min(ofChild, numDevices - child * ofChild);
    span.share =
        span.members / static_cast<double>(network.levels[level].leavesDevices ? ofChild : used);
    const double load = (span.reach - span.members) / (span.reach * span.share);
    if (load > most) {
      most = load;
      worst = span;
    }
  }
  worst.units = units;
  return worst;
}

double loadOf(const Span &span) { return (span.reach - span.members) / (span.reach * span.share); }

} // namespace

Group groupOf(const Network &network, const Mesh &mesh, ArrayRef<StringRef> axes) {
  Group group;
  for (StringRef axis : axes)
    group.size *= static_cast<double>(mesh.sizeOf(axis));
  group.spans.resize(network.levels.size());
  for (const std::vector<int64_t> &devices : allGroups(mesh, axes))
    for (size_t level = 0; level < network.levels.size(); ++level) {
      const Span span = spanOf(network, level, mesh.numDevices(), devices);
      Span &worst = group.spans[level];
      const double units = std::max(worst.units, span.units);
      if (loadOf(span) > loadOf(worst))
        worst = span;
      worst.units = units;
    }
  return group;
}

} // namespace tk::network
