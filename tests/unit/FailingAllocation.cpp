#include "tests/unit/FailingAllocation.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> allocations{0};
/// How many allocations still succeed; negative: all of them.
std::atomic<long> allocations_left{-1};
std::atomic<bool> fails_for_good{false};
std::atomic<bool> has_failed{false};

bool allocation_fails() {
  ++allocations;
  long left = allocations_left.load();
  if (left < 0)
    return false;
  if (left > 0) {
    --allocations_left;
    return false;
  }
  has_failed = true;
  if (!fails_for_good)
    allocations_left = -1;
  return true;
}

void *allocate(std::size_t size, std::size_t alignment) {
  if (allocation_fails())
    return nullptr;
  return std::aligned_alloc(alignment, (std::max<std::size_t>(size, 1) + alignment - 1) /
                                           alignment * alignment);
}

void *allocate_or_throw(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
  if (void *memory = allocate(size, alignment))
    return memory;
  throw std::bad_alloc();
}

} // namespace

namespace tk::test {

FailingAllocation::FailingAllocation(long count, Failing failing) {
  has_failed = false;
  fails_for_good = failing == Failing::from_there_on;
  allocations_left = count;
}

bool FailingAllocation::stop() {
  allocations_left = -1;
  return has_failed;
}

long allocations_so_far() { return allocations; }

} // namespace tk::test

void *operator new(std::size_t size) { return allocate_or_throw(size); }
void *operator new[](std::size_t size) { return allocate_or_throw(size); }
void *operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
  return allocate(size, alignof(std::max_align_t));
}
void *operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t &) noexcept {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, const std::nothrow_t &) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t, const std::nothrow_t &) noexcept {
  std::free(memory);
}
