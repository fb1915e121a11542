// Ranks that are GPUs, which communicate through NCCL. Work is ordered on the caller's stream.
//
// NCCL's collectives concatenate the ranks' buffers. That is what a plan asks for where the
// dimension is the outermost one; otherwise blocks are packed before, or unpacked behind, by copies
// with strides.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>

#include "runtime/Environment.h"
#include "runtime/Sha256.h"
#include "runtime/mesh/NcclRank.h"
#include "tk/mesh_nccl.h"

namespace tk {
namespace detail {
using cuda::NcclOp;

namespace {

constexpr int not_ready = 600; // CUDA_ERROR_NOT_READY

/// A tensor as rows of blocks along one dimension: [outer][count of blocks][bytes].
struct Blocks {
  size_t outer = 1, bytes = 1; ///< bytes of one block of one row
  Blocks(DType dtype, const Extents &block, unsigned dim) {
    for (unsigned d = 0; d < block.size(); ++d)
      (d < dim ? outer : bytes) *= static_cast<size_t>(block[d]);
    bytes *= size_of(dtype);
  }
  size_t size() const { return outer * bytes; }
};

NcclType reduced_type(DType dtype) {
  switch (dtype) {
  case DType::f64:
    return NcclType::f64;
  case DType::f32:
    return NcclType::f32;
  case DType::f16:
    return NcclType::f16;
  case DType::bf16:
    return NcclType::bf16;
  case DType::i64:
    return NcclType::i64;
  case DType::i32:
    return NcclType::i32;
  case DType::i8:
    return NcclType::i8;
  case DType::u8:
  case DType::boolean:
    return NcclType::u8;
  default:
    throw Error(ErrorCode::unsupported,
                "NCCL combines no partial results of type " + std::string(name(dtype)));
  }
}

NcclOp reduced_op(MeshCombine combine) {
  switch (combine) {
  case MeshCombine::prod:
    return NcclOp::prod;
  case MeshCombine::max:
  case MeshCombine::any: // of 0 and 1
    return NcclOp::max;
  case MeshCombine::min:
  case MeshCombine::all:
    return NcclOp::min;
  default:
    return NcclOp::sum;
  }
}

} // namespace

/// A communicator for each axis: of the ranks that differ in their position along it alone.
void NcclRank::split() {
  for (size_t axis = 0; axis < m_axes.size(); ++axis) {
    if (m_axes[axis].size == size()) {
      m_comms.push_back(m_world);
      continue;
    }
    const auto color = static_cast<int>(peers_along(m_axes, m_rank, axis).front());
    NcclComm made = nullptr;
    m_nccl.check(
        m_nccl.functions().split(m_world, color, static_cast<int>(position(axis)), &made, nullptr),
        "ncclCommSplit");
    m_comms.push_back(made);
  }
}

void NcclRank::copy(CUdeviceptr to, size_t to_pitch, CUdeviceptr from, size_t from_pitch,
                    size_t bytes, size_t rows, Stream stream) {
  if (bytes == 0 || rows == 0)
    return;
  auto *handle = static_cast<cuda::CUstream>(stream.handle);
  if (rows == 1 || (to_pitch == bytes && from_pitch == bytes)) {
    m_device.check(m_device.driver->memcpy_dtod_async(to, from, bytes * rows, handle),
                   "cuMemcpyDtoDAsync");
    return;
  }
  cuda::Memcpy2D copy;
  copy.from_device = from, copy.from_pitch = from_pitch;
  copy.to_device = to, copy.to_pitch = to_pitch;
  copy.width = bytes, copy.height = rows;
  m_device.check(m_device.driver->memcpy_2d_async(&copy, handle), "cuMemcpy2DAsync");
}

void NcclRank::run_alone(const CollectiveCall &call, Stream stream) {
  cuda::ScopedContext scope(m_device);
  const auto bytes = static_cast<size_t>(byte_count(call.dtype, call.from_shape).value());
  copy(address_of(call.to), bytes, address_of(call.from), bytes, bytes, 1, stream);
}

void NcclRank::gather(const CollectiveCall &call, NcclComm comm, size_t ranks, Stream stream) {
  const Blocks share(call.dtype, call.from_shape, call.step->dim);
  const bool is_packed = share.outer == 1;
  const CUdeviceptr all =
      is_packed ? address_of(call.to)
                : acquire(m_scratch, static_cast<int64_t>(share.size() * ranks), stream);
  m_nccl.check(m_nccl.functions().all_gather(call.from, reinterpret_cast<void *>(all), share.size(),
                                             NcclType::i8, comm, stream.handle),
               "ncclAllGather");
  for (size_t rank = 0; rank < ranks && !is_packed; ++rank)
    copy(address_of(call.to) + rank * share.bytes, ranks * share.bytes, all + rank * share.size(),
         share.bytes, share.bytes, share.outer, stream);
}

void NcclRank::scatter(const CollectiveCall &call, NcclComm comm, size_t ranks, Stream stream) {
  const Blocks share(call.dtype, call.to_shape, call.step->dim);
  CUdeviceptr all = address_of(call.from);
  if (share.outer != 1) {
    all = acquire(m_scratch, static_cast<int64_t>(share.size() * ranks), stream);
    for (size_t rank = 0; rank < ranks; ++rank)
      copy(all + rank * share.size(), share.bytes, address_of(call.from) + rank * share.bytes,
           ranks * share.bytes, share.bytes, share.outer, stream);
  }
  m_nccl.check(m_nccl.functions().reduce_scatter(
                   reinterpret_cast<void *>(all), call.to, share.size() / size_of(call.dtype),
                   reduced_type(call.dtype), reduced_op(call.step->combine), comm, stream.handle),
               "ncclReduceScatter");
}

void NcclRank::exchange_blocks(const CollectiveCall &call, NcclComm comm, size_t ranks,
                               Stream stream) {
  Extents block = call.from_shape; // what one rank sends another
  block[call.step->to_dim] = call.to_shape[call.step->to_dim];
  const Blocks sent(call.dtype, block, call.step->to_dim);
  const Blocks received(call.dtype, block, call.step->dim);
  const size_t bytes = sent.size();
  const CUdeviceptr out = acquire(m_scratch, static_cast<int64_t>(2 * bytes * ranks), stream);
  const CUdeviceptr in = out + bytes * ranks;
  for (size_t rank = 0; rank < ranks; ++rank)
    copy(out + rank * bytes, sent.bytes, address_of(call.from) + rank * sent.bytes,
         ranks * sent.bytes, sent.bytes, sent.outer, stream);
  const Nccl::Functions &f = m_nccl.functions();
  m_nccl.check(f.group_start(), "ncclGroupStart");
  for (size_t rank = 0; rank < ranks; ++rank) {
    const int peer = static_cast<int>(rank);
    m_nccl.check(f.send(reinterpret_cast<void *>(out + rank * bytes), bytes, NcclType::i8, peer,
                        comm, stream.handle),
                 "ncclSend");
    m_nccl.check(f.receive(reinterpret_cast<void *>(in + rank * bytes), bytes, NcclType::i8, peer,
                           comm, stream.handle),
                 "ncclRecv");
  }
  m_nccl.check(f.group_end(), "ncclGroupEnd");
  for (size_t rank = 0; rank < ranks; ++rank)
    copy(address_of(call.to) + rank * received.bytes, ranks * received.bytes, in + rank * bytes,
         received.bytes, received.bytes, received.outer, stream);
}

/// Collectives that NCCL does without copies before or behind become one kernel.
void NcclRank::run_together(std::span<const CollectiveCall> calls, Stream stream) {
  cuda::ScopedContext scope(m_device);
  if (std::all_of(calls.begin(), calls.end(), [&](const auto &call) { return is_copied(call); }))
    return run_by_copies(calls, stream);
  if (std::all_of(calls.begin(), calls.end(), [&](const auto &call) { return !!move_for(call); }))
    return run_at_once(calls, stream);
  const bool is_one = std::all_of(calls.begin(), calls.end(), [](const CollectiveCall &call) {
    const MeshStep::Kind kind = call.step->kind;
    return kind == MeshStep::Kind::all_reduce ||
           (kind == MeshStep::Kind::all_gather &&
            Blocks(call.dtype, call.from_shape, call.step->dim).outer == 1) ||
           (kind == MeshStep::Kind::reduce_scatter &&
            Blocks(call.dtype, call.to_shape, call.step->dim).outer == 1);
  });
  if (!is_one)
    return Communicator::run_together(calls, stream);
  m_nccl.check(m_nccl.functions().group_start(), "ncclGroupStart");
  for (const CollectiveCall &call : calls)
    run(call, stream);
  m_nccl.check(m_nccl.functions().group_end(), "ncclGroupEnd");
}

/// Blocks that peers send lie in the memory that they reach.
std::shared_ptr<void> NcclRank::temporaries(int64_t bytes, Stream stream, bool has_blocks) {
  m_counts.clear();
  m_memory.check_ranks();
  const bool capturing = cuda::is_capturing(m_device, stream.handle);
  if (has_blocks && size() > 1)
    if (const CUdeviceptr address = m_memory.reserve(bytes, stream.handle, capturing))
      return {reinterpret_cast<void *>(address), [this, stream, capturing](void *) {
                try {
                  m_memory.release(stream.handle, capturing);
                } catch (const Error &error) { // of a context that is lost
                  log_message(error.message());
                }
              }};
  const CUdeviceptr address = acquire(m_temporaries, bytes, stream);
  return {reinterpret_cast<void *>(address), [](void *) {}}; // the pool's
}

void NcclRank::run(const CollectiveCall &call, Stream stream) {
  cuda::ScopedContext scope(m_device);
  if (is_copied(call))
    return run_by_copies({&call, 1}, stream);
  if (move_for(call))
    return run_at_once({&call, 1}, stream);
  NcclComm comm = m_comms[call.axis];
  const auto ranks = static_cast<size_t>(m_axes[call.axis].size);
  switch (call.step->kind) {
  case MeshStep::Kind::all_gather:
    return gather(call, comm, ranks, stream);
  case MeshStep::Kind::reduce_scatter:
    return scatter(call, comm, ranks, stream);
  case MeshStep::Kind::all_to_all:
    return exchange_blocks(call, comm, ranks, stream);
  case MeshStep::Kind::exchange:
    return exchange_rows(call, comm, ranks, stream);
  case MeshStep::Kind::all_reduce:
    m_nccl.check(m_nccl.functions().all_reduce(
                     call.from, call.to,
                     static_cast<size_t>(element_count(call.from_shape).value()),
                     reduced_type(call.dtype), reduced_op(call.step->combine), comm, stream.handle),
                 "ncclAllReduce");
    return;
  default:
    return run_alone(call, stream);
  }
}

/// Waits for what is between two events, for as long as the mesh says.
void NcclRank::await(cuda::Event &begin, cuda::Event &end) {
  const auto limit = std::chrono::steady_clock::now() + m_options.timeout;
  for (;;) {
    const int state = end.state_since(begin);
    if (state == 0)
      return;
    if (state != not_ready)
      m_device.check(state, "cuEventElapsedTime");
    cuda::NcclResult failed = 0;
    m_nccl.functions().async_error(m_world, &failed);
    if (failed == 0 && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    abort({});
    m_nccl.check(failed, "the communicator");
    throw Error(ErrorCode::rank_lost, "rank " + std::to_string(m_rank) +
                                          " of the mesh: another rank did not come within " +
                                          std::to_string(m_options.timeout.count()) + " ms");
  }
}

std::vector<std::byte> NcclRank::gather_bytes(const void *bytes, size_t count) {
  cuda::ScopedContext scope(m_device);
  const auto ranks = static_cast<size_t>(size());
  cuda::DeviceBuffer buffer(m_device, count * (ranks + 1));
  buffer.upload(bytes, count, count * ranks, m_stream.handle());
  cuda::Event begin(m_device), end(m_device);
  begin.record(m_stream.handle());
  m_nccl.check(m_nccl.functions().all_gather(static_cast<char *>(buffer.data()) + count * ranks,
                                             buffer.data(), count, NcclType::i8, m_world,
                                             m_stream.handle()),
               "ncclAllGather");
  end.record(m_stream.handle());
  await(begin, end);
  std::vector<std::byte> all(count * ranks);
  buffer.download(all.data(), all.size(), 0, m_stream.handle());
  return all;
}

std::vector<std::string> NcclRank::exchange(const std::string &own) {
  const Digest digest = sha256(own);
  const std::vector<std::byte> bytes = gather_bytes(digest.data(), digest.size());
  std::vector<Digest> all(bytes.size() / digest.size());
  std::memcpy(all.data(), bytes.data(), bytes.size());
  std::vector<std::string> texts;
  for (const Digest &other : all)
    texts.push_back(hex(other));
  return texts;
}

/// NCCL waits for all ranks without end. So a thread joins, and is left behind where one is
/// missing.
static NcclComm join_in_time(const cuda::NcclUniqueId &id, int64_t rank, int64_t ranks, int device,
                             const MeshOptions &options) {
  const Nccl &nccl = *Nccl::get().value();
  cuda::DeviceContext &context = *cuda::DeviceContext::get(device).value();
  auto joined = std::make_shared<std::promise<std::pair<NcclComm, cuda::NcclResult>>>();
  auto result = joined->get_future();
  std::thread([joined, &nccl, &context, id, rank, ranks] {
    cuda::ScopedContext scope(context);
    NcclComm world = nullptr;
    const cuda::NcclResult failed =
        nccl.functions().init_rank(&world, static_cast<int>(ranks), id, static_cast<int>(rank));
    joined->set_value({world, failed});
  }).detach();
  if (result.wait_for(options.timeout) != std::future_status::ready)
    throw Error(ErrorCode::rank_lost, "rank " + std::to_string(rank) + " of the mesh: not all " +
                                          std::to_string(ranks) + " ranks joined within " +
                                          std::to_string(options.timeout.count()) + " ms");
  const auto [world, failed] = result.get();
  nccl.check(failed, "ncclCommInitRank");
  return world;
}

} // namespace detail

std::string nccl_version() { return cuda::Nccl::get().value()->version_text(); }

std::string nccl_unique_id() {
  const cuda::Nccl &nccl = *cuda::Nccl::get().value();
  cuda::NcclUniqueId id;
  nccl.check(nccl.functions().unique_id(&id), "ncclGetUniqueId");
  return std::string(id.bytes, sizeof id.bytes);
}

Mesh mesh_of_nccl(void *communicator, std::span<const MeshAxis> axes, int device,
                  MeshOptions options) {
  return Mesh(std::make_shared<detail::NcclRank>(
      static_cast<cuda::NcclComm>(communicator), /*owns=*/false,
      std::vector<MeshAxis>(axes.begin(), axes.end()), device, std::move(options)));
}

Mesh join_nccl(const std::string &id, int64_t rank, std::span<const MeshAxis> axes, int device,
               MeshOptions options) {
  cuda::NcclUniqueId unique;
  if (id.size() != sizeof unique.bytes)
    throw Error(ErrorCode::invalid_argument, "expected an id of " +
                                                 std::to_string(sizeof unique.bytes) +
                                                 " bytes, got " + std::to_string(id.size()));
  std::memcpy(unique.bytes, id.data(), id.size());
  int64_t ranks = 1;
  for (const MeshAxis &axis : axes)
    ranks *= axis.size;
  if (rank < 0 || rank >= ranks)
    throw Error(ErrorCode::invalid_argument,
                "expected a rank below " + std::to_string(ranks) + ", got " + std::to_string(rank));
  const cuda::NcclComm world = detail::join_in_time(unique, rank, ranks, device, options);
  return Mesh(std::make_shared<detail::NcclRank>(world, /*owns=*/true,
                                                 std::vector<MeshAxis>(axes.begin(), axes.end()),
                                                 device, std::move(options)));
}

} // namespace tk
