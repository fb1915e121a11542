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
  struct Chosen {
    std::vector<MeshAxis> axes;
    std::string network; ///< the description, or its name; see MeshOptions
  };
  /// Fails where the text names no axes, or a file cannot be read or describes no network.
  Expected<Chosen> read() const;
};

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_MESHCHOICE_H
