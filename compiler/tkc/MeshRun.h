//===- MeshRun.h - kernels on a mesh of ranks, from the command line -*- C++ -*-===//
#ifndef TK_COMPILER_TKC_MESHRUN_H
#define TK_COMPILER_TKC_MESHRUN_H

#include "compiler/tkc/Check.h"
#include "compiler/tkc/MeshChoice.h"
#include "tk/mesh.h"

#include <string>
#include <vector>

namespace tk::tkc {

/// A kernel that ran on every rank of a mesh, each a thread of this process.
struct MeshRun {
  CheckedRun run; ///< whole tensors
  MeshPlan plan;
  std::string target;
};

struct MeshRunOptions {
  std::string target;
  std::vector<MeshAxis> axes;
  std::string network; ///< see tk::MeshOptions
  bool check = false;
  int64_t checkElements = 1 << 14;
  unsigned launches = 1;
};

/// Cuts the arguments into shares, runs the kernel on all ranks at once, and puts the results'
/// shares together. Tensors that several ranks hold have to be equal, bit for bit.
Expected<MeshRun> runOnMesh(const std::shared_ptr<CompiledSource> &source, size_t kernel,
                            const RunArguments &arguments, const MeshRunOptions &options);

/// A stage of a kernel on a mesh: the kernel with its collectives, and its local kernels. "plan" is
/// what each rank runs. `dims` are the sizes; empty: not known.
Expected<std::string> meshStage(const CompiledSource &source, size_t kernel, const MeshChoice &mesh,
                                std::span<const int64_t> dims, const std::string &stage,
                                const std::string &target);
/// Why each collective is there, and what the passes derived of the local kernels.
Expected<std::vector<CompiledSource::Remark>> meshRemarks(const CompiledSource &source,
                                                          size_t kernel, const MeshChoice &mesh,
                                                          std::span<const int64_t> dims,
                                                          const std::string &target);
/// The sizes that a command line gives, in the order of the signature; empty if one is missing.
Expected<std::vector<int64_t>> knownDims(const SourceOptions &options, const Signature &signature);

/// What the run found, for people and for scripts.
void printMeshRun(const MeshRun &run, const Signature &signature, const MeshRunOptions &options,
                  bool json);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_MESHRUN_H
