// Kernels compiled with CompileOptions::checked: whether integer tensors index inside, and whether
// assertions hold, found by a kernel of its own before the one that reads.
//
// The results of the checking kernel are single numbers. For each index there are four of i64: the
// lowest and the highest value, named after the place, and from where and up to where it may be.
// For each assertion there follow
//   "assert:TEXT"  the row-major position of the first element at which it fails, else the greatest
//                  i64
//   "failures"     at how many it fails
//   "index:NAME"   for each index, outermost first, where its range begins, and
//   "end"          where that ends
//   "value:TEXT"   for each part of the condition its value at the first: f64, i64 or bool
#include "runtime/Bind.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace tk::detail {
namespace {

/// What the checking kernel finds of one index (see CompiledModule::gather_checks).
struct Found {
  int64_t lowest, highest, low, high;
};

/// A slot a number, as aligned as addresses are assumed to be.
constexpr size_t slot_bytes = 16;

constexpr std::string_view assert_tag = "assert:", index_tag = "index:", value_tag = "value:";

/// The results of the checking kernel.
struct Numbers {
  const Signature &signature;
  const char *slots;

  const Parameter &result(size_t r) const { return signature.results[r]; }
  size_t size() const { return signature.results.size(); }
  bool has(size_t r, std::string_view tag) const {
    return r < size() && result(r).name.starts_with(tag);
  }
  std::string text(size_t r, std::string_view tag) const {
    return result(r).name.substr(tag.size());
  }
  int64_t integer(size_t r) const { return load<int64_t>(r); }
  std::string shown(size_t r) const {
    if (result(r).dtype == DType::boolean)
      return load<uint8_t>(r) ? "true" : "false";
    if (result(r).dtype == DType::i64)
      return std::to_string(integer(r));
    const double value = load<double>(r);
    if (std::isnan(value))
      return "nan";
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
  }

private:
  template <typename T> T load(size_t r) const {
    T value{};
    std::memcpy(&value, slots + r * slot_bytes, sizeof value);
    return value;
  }
};

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

/// Throws for an index that is outside; `r` is the first of its four results.
void check_index(const Numbers &numbers, size_t r) {
  Found found{numbers.integer(r), numbers.integer(r + 1), numbers.integer(r + 2),
              numbers.integer(r + 3)};
  if (found.lowest > found.highest || (found.lowest >= found.low && found.highest < found.high))
    return; // none at all, or all inside
  int64_t outside = found.lowest < found.low ? found.lowest : found.highest;
  throw Error(ErrorCode::index_out_of_bounds,
              numbers.result(r).name + " is " + std::to_string(outside) + ", expected " +
                  range_text(found.low, found.high),
              {numbers.result(r).span});
}

/// Throws for an assertion that fails, and returns the result behind its last; `r` is its first.
size_t check_assertion(const Numbers &numbers, size_t r) {
  const size_t first = r;
  std::vector<std::pair<std::string, int64_t>> indices;
  std::vector<int64_t> lengths;
  for (r += 2; numbers.has(r, index_tag); r += 2) {
    indices.emplace_back(numbers.text(r, index_tag), numbers.integer(r));
    lengths.push_back(numbers.integer(r + 1) - numbers.integer(r));
  }
  std::string values;
  for (; numbers.has(r, value_tag); ++r)
    values +=
        (values.empty() ? ": " : ", ") + numbers.text(r, value_tag) + " is " + numbers.shown(r);
  int64_t position = numbers.integer(first);
  if (position == std::numeric_limits<int64_t>::max())
    return r;
  for (size_t axis = indices.size(); axis-- > 0; position /= lengths[axis])
    indices[axis].second += position % lengths[axis];
  std::string place;
  for (const auto &[index, value] : indices)
    place += (place.empty() ? " at " : ", ") + index + " = " + std::to_string(value);
  const int64_t failures = numbers.integer(first + 1);
  throw Error(ErrorCode::constraint_failed,
              "assert " + numbers.text(first, assert_tag) + " fails" + place + values +
                  (failures > 1 ? " (the first of " + std::to_string(failures) + ")" : ""),
              {numbers.result(first).span});
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
  const Numbers numbers{signature, first};
  for (size_t r = 0; r < numbers.size();) {
    if (numbers.has(r, assert_tag)) {
      r = check_assertion(numbers, r);
      continue;
    }
    check_index(numbers, r);
    r += 4;
  }
}

} // namespace tk::detail
