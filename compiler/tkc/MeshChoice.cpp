//===- MeshChoice.cpp - the mesh that a command is for --------------------===//
#include "compiler/tkc/MeshChoice.h"

#include "passes/network/Network.h"

#include "llvm/ADT/StringRef.h"

#include <CLI/CLI.hpp>

namespace tk::tkc {

void MeshChoice::addTo(CLI::App &command, const std::string &whatMeshDoes) {
  auto *option = command.add_option("--mesh", mesh, whatMeshDoes)->type_name("AXIS=RANKS,…");
  command
      .add_option("--network", network,
                  "With --mesh: the network between the ranks, by whose cost collectives are "
                  "chosen: a JSON file, or h200-node (default), h200-pair, h100-node or "
                  "h100-superpod")
      ->type_name("FILE")
      ->needs(option);
}

/// "dp=2,tp=4" as axes.
static Expected<std::vector<MeshAxis>> parseMesh(const std::string &text) {
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

Expected<MeshChoice::Chosen> MeshChoice::read() const {
  Expected<std::vector<MeshAxis>> axes = parseMesh(mesh);
  if (!axes)
    return axes.error();
  if (network.empty() || network::shippedNetwork(network))
    return Chosen{std::move(*axes), network};
  Expected<std::string> text = readFile(network);
  if (!text)
    return text.error();
  if (llvm::Expected<network::Network> parsed = network::parseNetwork(*text); !parsed)
    return Error(ErrorCode::bad_file, network + ": " + llvm::toString(parsed.takeError()));
  return Chosen{std::move(*axes), std::move(*text)};
}

} // namespace tk::tkc
