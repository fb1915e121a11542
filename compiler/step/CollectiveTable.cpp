//===- CollectiveTable.cpp - collectives of a mesh by size ----------------===//
#include "compiler/step/Report.h"
#include "compiler/step/Table.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using tk::network::Axis;
using tk::network::Collective;
using tk::network::CollectiveTime;

namespace tk::step {

void printTable(raw_ostream &os, ArrayRef<std::vector<std::string>> table) {
  std::vector<size_t> widths;
  for (const auto &line : table) {
    widths.resize(std::max(widths.size(), line.size()));
    for (const auto &[i, cell] : enumerate(line))
      widths[i] = std::max(widths[i], cell.size());
  }
  for (const auto &line : table) {
    std::string text;
    for (const auto &[i, cell] : enumerate(line)) {
      const std::string fill(widths[i] - cell.size(), ' ');
      const bool isLeft = i == 0 || i + 1 == line.size();
      text += (i ? "  " : "") + (isLeft ? cell + fill : fill + cell);
    }
    os << StringRef(text).rtrim() << "\n";
  }
}

namespace {

constexpr Collective collectives[] = {Collective::AllGather, Collective::ReduceScatter,
                                      Collective::AllReduce, Collective::AllToAll,
                                      Collective::Send};

struct Entry {
  StringRef axis;
  Collective collective;
  double bytes, busRate;
  CollectiveTime time;
};

/// Bytes of the array that pass one GPU's links: the usual measure of benchmarks of collectives.
double partOnLinks(Collective collective, double devices) {
  const double part = (devices - 1) / devices;
  switch (collective) {
  case Collective::AllReduce:
    return 2 * part;
  case Collective::AllToAll:
    return part / devices;
  case Collective::Send:
    return 1;
  default:
    return part;
  }
}

std::vector<Entry> entriesOf(const network::Network &network, const network::Mesh &mesh,
                             ArrayRef<double> sizes) {
  std::vector<Entry> entries;
  for (const Axis &axis : mesh.axes) {
    if (axis.size <= 1)
      continue;
    const network::Group group = network::groupOf(network, mesh, {axis.name});
    for (Collective collective : collectives)
      for (double bytes : sizes) {
        const CollectiveTime time = network::predict(network, group, collective, bytes);
        entries.push_back({axis.name, collective, bytes,
                           bytes * partOnLinks(collective, group.size) / time.total(), time});
      }
  }
  return entries;
}

std::string sizeText(double bytes) {
  static constexpr StringLiteral units[] = {"B", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  std::string text;
  raw_string_ostream(text) << format("%g ", bytes) << units[unit];
  return text;
}

} // namespace

std::string collectivesText(const network::Network &network, const network::Mesh &mesh,
                            ArrayRef<double> sizes) {
  std::vector<std::vector<std::string>> table = {
      {"axis", "collective", "array", "T_comms", "latency", "GB/s", "protocol, busiest level"}};
  for (const Entry &entry : entriesOf(network, mesh, sizes)) {
    std::string rate;
    raw_string_ostream(rate) << format("%.3g", entry.busRate);
    table.push_back({entry.axis.str(), nameOf(entry.collective).str(), sizeText(entry.bytes),
                     timeText(entry.time.total()), timeText(entry.time.latency), rate,
                     network.protocols[entry.time.protocol].name + ", " +
                         network.levels[entry.time.level].name});
  }
  std::string text;
  raw_string_ostream os(text);
  os << network.name << ", " << mesh.numDevices() << " GPUs; GB/s are of each GPU's links\n\n";
  printTable(os, table);
  return text;
}

json::Value collectivesJson(const network::Network &network, const network::Mesh &mesh,
                            ArrayRef<double> sizes) {
  json::Array list;
  for (const Entry &entry : entriesOf(network, mesh, sizes))
    list.push_back(json::Object{{"axis", entry.axis},
                                {"collective", nameOf(entry.collective)},
                                {"array_bytes", entry.bytes},
                                {"comms_ns", entry.time.total()},
                                {"latency_ns", entry.time.latency},
                                {"bus_gb_s", entry.busRate},
                                {"protocol", network.protocols[entry.time.protocol].name},
                                {"level", network.levels[entry.time.level].name},
                                {"reduced_in_switches", entry.time.inSwitches}});
  return json::Object{{"format", "tk collectives 1"},
                      {"network", network.name},
                      {"gpus", mesh.numDevices()},
                      {"collectives", std::move(list)}};
}

} // namespace tk::step
