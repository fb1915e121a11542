//===- MeshChoice.h - the mesh that a command is for ------------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_MESHCHOICE_H
#define TK_COMPILER_TKC_MESHCHOICE_H

#include "compiler/tkc/Commands.h"

namespace tk::tkc {

/// --mesh and --network of a command.
struct MeshChoice {
  std::string mesh;    ///< AXIS=RANKS,…; empty: one rank
  std::string network; ///< a file, or the name of a network that tk has; empty: see MeshOptions

  void addTo(CLI::App &command, const std::string &whatMeshDoes);
  bool isGiven() const { return !mesh.empty(); }
  Expected<std::vector<MeshAxis>> axes() const;
  /// The description, or its name; see MeshOptions::network. Fails where a file cannot be read or
  /// describes no network.
  Expected<std::string> description() const;
};

/// "dp=2,tp=4" as axes.
Expected<std::vector<MeshAxis>> parseMesh(const std::string &text);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_MESHCHOICE_H
