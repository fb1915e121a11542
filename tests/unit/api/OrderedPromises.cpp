//===- OrderedPromises.cpp - promises that ThreadSanitizer sees -----------===//
//
// Of an inline function the linker takes the first definition that it meets. LLVM's archives have
// some of std::promise and are not instrumented: with theirs, ThreadSanitizer does not see that a
// value is set before it is read. The definitions of this file come first.
//
//===----------------------------------------------------------------------===//
#include <future>
#include <memory>

namespace {
[[gnu::used]] void set(std::promise<std::shared_ptr<int>> &promise,
                       const std::shared_ptr<int> &value) {
  promise.set_value(value);
}

[[gnu::used]] void fail(std::promise<std::shared_ptr<int>> &promise) {
  promise.set_exception(nullptr);
}

[[gnu::used]] std::shared_ptr<int> get(const std::shared_future<std::shared_ptr<int>> &future) {
  return future.get();
}
} // namespace
