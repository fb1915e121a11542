// The kernel of one-shot exchanges on the host: a thread block is one thread, and those of a launch
// run one after the other. Ranks are threads of the process, so they wait for each other as GPUs
// do.
#include "tests/unit/runtime/FakeOneShot.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "runtime/mesh/OneShotCall.h"

namespace tk::one_shot {
namespace {

thread_local Word current_block = 0, current_blocks = 1;

Word thread() { return 0; }
Word threads() { return 1; }
Word block() { return current_block; }
Word blocks() { return current_blocks; }
void meet() {}
bool meet_any(bool value) { return value; }
std::atomic_ref<Word> word(Address address) {
  return std::atomic_ref<Word>(*reinterpret_cast<Word *>(address));
}
void release(Address flag, Word value) { word(flag).store(value, std::memory_order_release); }
Word acquire(Address flag) {
  const Word value = word(flag).load(std::memory_order_acquire);
  std::this_thread::yield();
  return value;
}
Word count_up(Address counter) { return word(counter).fetch_add(1); }
Size nanoseconds() {
  return static_cast<Size>(std::chrono::steady_clock::now().time_since_epoch().count());
}
float widen_f16(unsigned short bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
unsigned short narrow_f16(float value) {
  return std::bit_cast<unsigned short>(static_cast<_Float16>(value));
}
float widen_bf16(unsigned short bits) { return std::bit_cast<float>(Word{bits} << 16); }
unsigned short narrow_bf16(float value) { // to nearest, ties to even; NaN is not needed here
  const auto bits = std::bit_cast<Word>(value);
  return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

} // namespace
} // namespace tk::one_shot

#define TK_HOST_EXCHANGE
#include "runtime/mesh/one_shot.cuh"

namespace tk::test {
namespace {

using namespace tk::one_shot;

template <typename Type> bool run_as(const std::string &combine, const Call &call) {
  if (combine == "sum")
    exchange<Type, Combine::sum>(call);
  else if (combine == "prod")
    exchange<Type, Combine::prod>(call);
  else if (combine == "max")
    exchange<Type, Combine::max>(call);
  else if (combine == "min")
    exchange<Type, Combine::min>(call);
  else
    return false;
  return true;
}

bool run_one(const std::string &type, const std::string &combine, const Call &call) {
  if (type == "f64")
    return run_as<Plain<double>>(combine, call);
  if (type == "f32")
    return run_as<Plain<float>>(combine, call);
  if (type == "f16")
    return run_as<Half>(combine, call);
  if (type == "bf16")
    return run_as<Brain>(combine, call);
  if (type == "i64")
    return run_as<Plain<long long>>(combine, call);
  if (type == "i32")
    return run_as<Plain<int>>(combine, call);
  if (type == "i8")
    return run_as<Small<signed char>>(combine, call);
  return run_as<Small<unsigned char>>(combine, call);
}

} // namespace

bool run_one_shot(const std::string &symbol, const void *call, unsigned blocks) {
  const std::string prefix = one_shot_prefix;
  const size_t split = symbol.rfind('_');
  const std::string type = symbol.substr(prefix.size(), split - prefix.size());
  current_blocks = blocks;
  for (current_block = 0; current_block < blocks; ++current_block)
    if (!run_one(type, symbol.substr(split + 1), *static_cast<const Call *>(call)))
      return false;
  return true;
}

} // namespace tk::test
