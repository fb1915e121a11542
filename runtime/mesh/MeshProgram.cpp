#include "runtime/mesh/MeshProgram.h"

#include <map>
#include <mutex>

#include "runtime/Sha256.h"
#include "runtime/mesh/Communicator.h"

namespace tk::detail {
namespace {

std::string key_of(const std::vector<MeshAxis> &axes) {
  std::string key;
  for (const MeshAxis &axis : axes)
    key += axis.name + "=" + std::to_string(axis.size) + ",";
  return key;
}

std::shared_ptr<const MeshProgram> make_program(KernelImpl &kernel,
                                                const std::vector<MeshAxis> &axes,
                                                std::span<const int64_t> dims,
                                                const std::string &network) {
  auto program = std::make_shared<MeshProgram>();
  program->sharded = kernel.compiled().shard(kernel.index(), axes, dims, network).value();
  if (const FindStepBounds find = step_bounds_finder())
    program->bounds = find(program->sharded.plan, network);
  CompiledModule &locals = *program->sharded.locals;
  std::string text = program->sharded.plan.str(kernel.signature());
  for (const StepBounds &bounds : program->bounds)
    text += std::to_string(bounds.one_shot_up_to) + " " + std::to_string(bounds.copied_from) + "\n";
  for (size_t i = 0; i < locals.signatures().size(); ++i) {
    auto impl =
        std::make_shared<KernelImpl>(program->sharded.locals, i, kernel.target(), kernel.options());
    text += impl->stage("tk", {}, {}).value();
    program->kernels.push_back(KernelAccess::make(std::move(impl)));
  }
  program->digest = hex(sha256(text));
  return program;
}

/// Programs that live, of kernels that live.
class Programs {
public:
  /// The program of a kernel on a mesh, for sizes of about `dims`: threads that are its ranks share
  /// one, and so do sizes that are placed alike.
  std::shared_ptr<const MeshProgram> find(KernelImpl &kernel, const std::vector<MeshAxis> &axes,
                                          std::span<const int64_t> dims,
                                          const std::string &network) {
    std::string key = network + " " + key_of(axes);
    for (int64_t dim : dims)
      key += std::to_string(dim) + ",";
    std::lock_guard lock(m_mutex);
    std::weak_ptr<const MeshProgram> &entry = m_by_size[{&kernel, key}];
    std::shared_ptr<const MeshProgram> program = entry.lock();
    if (program)
      return program;
    program = make_program(kernel, axes, dims, network);
    std::weak_ptr<const MeshProgram> &alike = m_by_digest[{&kernel, program->digest}];
    if (std::shared_ptr<const MeshProgram> known = alike.lock())
      program = known;
    alike = entry = program;
    return program;
  }

private:
  using Table =
      std::map<std::pair<const KernelImpl *, std::string>, std::weak_ptr<const MeshProgram>>;
  std::mutex m_mutex;
  Table m_by_size, m_by_digest;
};

} // namespace

FindStepBounds &step_bounds_finder() {
  static FindStepBounds find = nullptr;
  return find;
}

std::shared_ptr<const MeshProgram> find_program(KernelImpl &kernel, const Mesh &mesh,
                                                std::span<const int64_t> dims) {
  static Programs programs;
  return programs.find(kernel, mesh.axes(), dims, mesh.impl().network());
}

} // namespace tk::detail
