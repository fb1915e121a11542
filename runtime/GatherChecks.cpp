// Kernels compiled with CompileOptions::checked: whether integer tensors index inside, found by a
// kernel of its own before the one that reads.
#include "runtime/Bind.h"

#include <cstring>

namespace tk::detail {
namespace {

/// What the checking kernel finds of one index (see CompiledModule::gather_checks).
struct Found {
  int64_t lowest, highest, low, high;
};

/// A slot a number, as aligned as addresses are assumed to be.
constexpr size_t slot_bytes = 16;

void launch_on_gpu(const BoundImpl &checks, Stream stream, std::vector<void *> &pointers,
                   size_t inputs, std::string &bytes) {
  cuda::DeviceContext &device = checks.gpu.module->device();
  if (cuda::is_capturing(device, stream.handle))
    throw Error(
        ErrorCode::unsupported,
        "'" + checks.signature->name +
            "' is compiled with checks, which wait for their outcome: it cannot be captured",
        {checks.signature->span});
  cuda::DeviceBuffer buffer(device, bytes.size());
  for (size_t r = 0; inputs + r < pointers.size(); ++r)
    pointers[inputs + r] = static_cast<char *>(buffer.data()) + r * slot_bytes;
  checks.launch(stream, pointers);
  buffer.download(bytes.data(), bytes.size(), 0, stream.handle);
}

std::string range_text(int64_t low, int64_t high) {
  if (high <= low)
    return "none: the axis is empty";
  return std::to_string(low) + " to " + std::to_string(high - 1);
}

} // namespace

void check_gathers(const BoundImpl &checks, Stream stream, std::span<void *const> pointers) {
  const Signature &signature = *checks.signature;
  size_t inputs = signature.num_tensors() - signature.results.size();
  std::vector<void *> all(pointers.begin(), pointers.begin() + static_cast<long>(inputs));
  all.resize(signature.num_tensors());
  std::string bytes((signature.results.size() + 1) * slot_bytes, '\0');
  char *first = bytes.data();
  if (checks.variant->executable.kind == Executable::Kind::cuda) {
    launch_on_gpu(checks, stream, all, inputs, bytes);
  } else {
    while (reinterpret_cast<uintptr_t>(first) % slot_bytes != 0)
      ++first;
    for (size_t r = 0; r < signature.results.size(); ++r)
      all[inputs + r] = first + r * slot_bytes;
    checks.launch(stream, all);
  }
  auto number = [&](size_t r) {
    int64_t value = 0;
    std::memcpy(&value, first + r * slot_bytes, sizeof value);
    return value;
  };
  for (size_t r = 0; r + 3 < signature.results.size(); r += 4) {
    Found found{number(r), number(r + 1), number(r + 2), number(r + 3)};
    if (found.lowest > found.highest || (found.lowest >= found.low && found.highest < found.high))
      continue; // none at all, or all inside
    int64_t outside = found.lowest < found.low ? found.lowest : found.highest;
    throw Error(ErrorCode::index_out_of_bounds,
                signature.results[r].name + " is " + std::to_string(outside) + ", expected " +
                    range_text(found.low, found.high),
                {signature.results[r].span});
  }
}

} // namespace tk::detail
