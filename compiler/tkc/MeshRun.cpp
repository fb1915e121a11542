//===- MeshRun.cpp - kernels on a mesh of ranks, from the command line ----===//
#include "compiler/tkc/MeshRun.h"

#include "runtime/Kernel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdio>
#include <cstring>
#include <thread>

namespace tk::tkc {

namespace {

std::vector<int64_t> positionsOf(const Mesh &mesh) {
  std::vector<int64_t> positions;
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis)
    positions.push_back(mesh.position(axis));
  return positions;
}

/// One rank's arguments: shares of the parameters, and memory for shares of the results.
struct RankTensors {
  std::vector<HostTensor> tensors; ///< in the order of Signature::tensor
  Status status;
};

class Runner {
public:
  Runner(const Kernel &kernel, const RunArguments &arguments, std::vector<Mesh> meshes)
      : kernel(kernel), signature(kernel.signature()), arguments(arguments),
        meshes(std::move(meshes)), ranks(this->meshes.size()) {
    for (Mesh &mesh : this->meshes)
      kernels.emplace_back(kernel, mesh);
    for (const MeshTensor &tensor : kernels.front().plan().tensors)
      if (tensor.kind != MeshTensor::Kind::temporary)
        shardings[tensor.index] = tensor.sharding;
  }

  Status launch(uint8_t fill) {
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      if (Status cut = cutShares(rank, fill); !cut)
        return cut;
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      threads.emplace_back([this, rank] { ranks[rank].status = launchRank(rank); });
    for (std::thread &thread : threads)
      thread.join();
    return firstFailure();
  }
  Expected<std::vector<HostTensor>> gather() const;
  const MeshPlan &plan() const { return kernels.front().plan(); }

private:
  bool isResult(unsigned tensor) const {
    return tensor >= signature.num_tensors() - signature.results.size();
  }
  Status cutShares(size_t rank, uint8_t fill);
  Status launchRank(size_t rank);
  Status firstFailure() const;

  Kernel kernel;
  const Signature &signature;
  const RunArguments &arguments;
  std::vector<Mesh> meshes;
  std::vector<MeshKernel> kernels;
  mutable std::vector<RankTensors> ranks;
  std::map<unsigned, std::vector<std::string>> shardings;
};

Status Runner::cutShares(size_t rank, uint8_t fill) {
  const std::vector<int64_t> positions = positionsOf(meshes[rank]);
  ranks[rank].tensors.clear();
  for (unsigned t = 0; t < signature.num_tensors(); ++t) {
    HostTensor whole = arguments.tensors[t];
    Expected<HostTensor> share =
        share_of(whole.view(), shardings[t], meshes[rank].axes(), positions);
    if (!share)
      return Error(share.error().code(),
                   "argument '" + signature.tensor(t).name + "': " + share.error().message());
    if (isResult(t) && !share->bytes.empty())
      std::memset(share->bytes.data(), fill, share->bytes.size());
    ranks[rank].tensors.push_back(std::move(*share));
  }
  return {};
}

Status Runner::launchRank(size_t rank) {
  std::vector<NamedValue> inputs, outputs;
  unsigned tensor = 0, scalar = 0;
  for (const Parameter &param : signature.params)
    if (param.is_tensor)
      inputs.emplace_back(param.name, ranks[rank].tensors[tensor++].view());
    else
      inputs.emplace_back(param.name, arguments.scalars[scalar++]);
  for (const Parameter &result : signature.results)
    outputs.emplace_back(result.name, ranks[rank].tensors[tensor++].view());
  return kernels[rank].try_launch({}, inputs, outputs);
}

/// The failure that the others follow from, if any: one that is no loss of another rank.
Status Runner::firstFailure() const {
  const Status *first = nullptr;
  for (const RankTensors &rank : ranks)
    if (!rank.status && (!first || first->error().code() == ErrorCode::rank_lost))
      first = &rank.status;
  return first ? *first : Status();
}

Expected<std::vector<HostTensor>> Runner::gather() const {
  std::vector<HostTensor> whole = arguments.tensors;
  for (unsigned t = 0; t < whole.size(); ++t) {
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      if (Status put = put_share(ranks[rank].tensors[t].view(), whole[t].view(), shardings.at(t),
                                 meshes[rank].axes(), positionsOf(meshes[rank]));
          !put)
        return put.error();
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      Expected<HostTensor> share = share_of(whole[t].view(), shardings.at(t), meshes[rank].axes(),
                                            positionsOf(meshes[rank]));
      if (share && share->bytes != ranks[rank].tensors[t].bytes)
        return Error(ErrorCode::internal, "rank " + std::to_string(rank) + " has another '" +
                                              signature.tensor(t).name +
                                              "' than the ranks that hold the same share");
    }
  }
  return whole;
}

} // namespace

Expected<MeshRun> runOnMesh(const std::shared_ptr<CompiledSource> &source, size_t kernel,
                            const RunArguments &arguments, const MeshRunOptions &options) {
  auto run = [&]() -> MeshRun {
    MeshRun result;
    result.target = resolve_target(options.target).value();
    CompileOptions compile;
    compile.target = result.target;
    tk::MeshOptions meshOptions;
    meshOptions.network = options.network;
    auto impl = std::make_shared<detail::KernelImpl>(source, kernel, result.target, compile);
    Runner runner(detail::KernelAccess::make(impl), arguments,
                  Mesh::threads(options.axes, meshOptions));
    for (unsigned launch = 0; launch < options.launches; ++launch) {
      if (Status launched = runner.launch(launch % 2 == 0 ? 0xFF : 0x7B); !launched)
        throw launched.error();
      std::vector<HostTensor> outputs = runner.gather().value();
      if (launch > 0)
        noteDifferences(result.run, outputs, source->signatures()[kernel]);
      else
        result.run.outputs = std::move(outputs);
    }
    result.plan = runner.plan(); // for these sizes
    if (options.check)
      if (Status compared =
              compareResults(*source, kernel, arguments, options.checkElements, true, result.run);
          !compared)
        throw compared.error();
    return result;
  };
  return detail::capture(run);
}

static Expected<CompiledSource::Placement> placeOn(const CompiledSource &source, size_t kernel,
                                                   const MeshChoice &mesh,
                                                   std::span<const int64_t> dims) {
  Expected<MeshChoice::Chosen> chosen = mesh.read();
  if (!chosen)
    return chosen.error();
  return source.placeOn(kernel, chosen->axes, dims, chosen->network);
}

Expected<std::string> meshStage(const CompiledSource &source, size_t kernel, const MeshChoice &mesh,
                                std::span<const int64_t> dims, const std::string &stage,
                                const std::string &target) {
  Expected<CompiledSource::Placement> placed = placeOn(source, kernel, mesh, dims);
  if (!placed)
    return placed.error();
  if (stage == "plan")
    return placed->plan.str(source.signatures()[kernel]);
  std::string text = stage == "tk" || stage == "fused" ? placed->text : "";
  for (size_t i = 0; i < placed->locals->signatures().size(); ++i) {
    const Signature &local = placed->locals->signatures()[i];
    const std::vector<std::optional<int64_t>> unknown(local.dims.size());
    Expected<std::string> part =
        placed->locals->stage_text(i, stage, target, usual_facts(local, unknown));
    if (!part)
      return part.error();
    text += "// kernel " + local.name + "\n" + *part;
  }
  return text;
}

Expected<std::vector<CompiledSource::Remark>> meshRemarks(const CompiledSource &source,
                                                          size_t kernel, const MeshChoice &mesh,
                                                          std::span<const int64_t> dims,
                                                          const std::string &target) {
  Expected<CompiledSource::Placement> placed = placeOn(source, kernel, mesh, dims);
  if (!placed)
    return placed.error();
  std::vector<CompiledSource::Remark> remarks = std::move(placed->remarks);
  for (size_t i = 0; i < placed->locals->signatures().size(); ++i) {
    const Signature &local = placed->locals->signatures()[i];
    const std::vector<std::optional<int64_t>> unknown(local.dims.size());
    auto own = placed->locals->remarks(i, target, usual_facts(local, unknown));
    if (!own)
      return own.error();
    llvm::append_range(remarks, *own);
  }
  return remarks;
}

Expected<std::vector<int64_t>> knownDims(const SourceOptions &options, const Signature &signature) {
  Expected<std::map<std::string, int64_t>> given = options.dimValues();
  if (!given)
    return given.error();
  std::vector<int64_t> dims;
  for (const std::string &dim : signature.dims) {
    auto found = given->find(dim);
    if (found == given->end())
      return std::vector<int64_t>();
    dims.push_back(found->second);
  }
  return dims;
}

void printMeshRun(const MeshRun &run, const Signature &signature, const MeshRunOptions &options,
                  bool json) {
  std::string mesh;
  for (const MeshAxis &axis : options.axes)
    mesh += (mesh.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  const size_t collectives = run.plan.num_collectives();
  size_t launches = 0;
  for (const MeshStep &step : run.plan.steps)
    launches += step.launches() ? 1 : 0;
  if (json) {
    std::printf("{\"kernel\":\"%s\",\"target\":\"%s\",\"mesh\":\"%s\",\"kernels\":%zu,"
                "\"collectives\":%zu,\"ok\":%s}\n",
                signature.name.c_str(), run.target.c_str(), mesh.c_str(), launches, collectives,
                run.run.firstWrong() ? "false" : "true");
    return;
  }
  std::printf("%s on %s, mesh %s: on each rank %zu kernel%s, %zu collective%s\n",
              signature.name.c_str(), run.target.c_str(), mesh.c_str(), launches,
              launches == 1 ? "" : "s", collectives, collectives == 1 ? "" : "s");
  printResults(run.run.results);
}

} // namespace tk::tkc
