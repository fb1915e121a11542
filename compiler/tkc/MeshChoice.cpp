//===- MeshChoice.cpp - the mesh that a command is for --------------------===//
#include "compiler/tkc/MeshChoice.h"

#include "passes/network/Network.h"

#include "llvm/ADT/StringRef.h"

#include <CLI/CLI.hpp>

namespace tk::tkc {

void MeshChoice::addTo(CLI::App &command, const std::string &whatMeshDoes) {
  auto *option = command.add_option("--mesh", mesh, "AXIS=RANKS,…: " + whatMeshDoes);
  command
      .add_option("--network", network,
                  "With --mesh: the network between the ranks, by whose cost collectives are "
                  "chosen, as JSON, or h200-node (default), h200-pair, h100-node or h100-superpod")
      ->needs(option);
}

Expected<std::vector<MeshAxis>> MeshChoice::axes() const { return parseMesh(mesh); }

Expected<std::string> MeshChoice::description() const {
  if (network.empty() || network::shippedNetwork(network))
    return network;
  Expected<std::string> text = readFile(network);
  if (!text)
    return text.error();
  if (llvm::Expected<network::Network> read = network::parseNetwork(*text); !read)
    return Error(ErrorCode::bad_file, network + ": " + llvm::toString(read.takeError()));
  return text;
}

Expected<std::vector<MeshAxis>> parseMesh(const std::string &text) {
  std::vector<MeshAxis> axes;
  llvm::StringRef rest(text);
  while (!rest.empty()) {
    auto [item, behind] = rest.split(',');
    rest = behind;
    auto [name, size] = item.split('=');
    MeshAxis axis{name.trim().str(), 0};
    if (axis.name.empty() || size.getAsInteger(10, axis.size) || axis.size < 1)
      return Error(ErrorCode::invalid_argument,
                   "expected --mesh AXIS=RANKS,…, got '" + item.str() + "'");
    axes.push_back(std::move(axis));
  }
  if (axes.empty())
    return Error(ErrorCode::invalid_argument, "expected --mesh AXIS=RANKS,…, got nothing");
  return axes;
}

} // namespace tk::tkc
