// Memory that runs out at a chosen allocation. A program that links this has its own operator new.

#ifndef TK_TESTS_UNIT_FAILINGALLOCATION_H
#define TK_TESTS_UNIT_FAILINGALLOCATION_H

namespace tk::test {

enum class Failing { once, from_there_on };

/// While it lives, operator new fails after `count` more allocations.
class FailingAllocation {
public:
  FailingAllocation(long count, Failing failing);
  FailingAllocation(const FailingAllocation &) = delete;
  FailingAllocation &operator=(const FailingAllocation &) = delete;
  ~FailingAllocation() { stop(); }

  /// No allocation fails from here on. Whether one has.
  bool stop();
};

long allocations_so_far();

/// How many allocations `call` makes.
template <typename F> long count_allocations(F &&call) {
  long before = allocations_so_far();
  call();
  return allocations_so_far() - before;
}

} // namespace tk::test

#endif // TK_TESTS_UNIT_FAILINGALLOCATION_H
