// Ranks whose tensors lie in host memory.
#pragma once

#include "runtime/mesh/Communicator.h"

namespace tk::detail {

/// A rank that shows its tensor to the others, computes its part of a collective from theirs, and
/// waits until all have read.
class HostRank : public Communicator {
public:
  bool takes(std::string_view target) const override {
    return target == "cpu" || is_emulated(target);
  }
  void run(const CollectiveCall &call, Stream stream) override;
  void run_by_rows(const CollectiveCall &call, Stream stream, const LaunchBlock &launch) override;

private:
  /// Shows this rank's tensor, and returns where those of the members lie once all have.
  virtual std::vector<const void *> show(const CollectiveCall &call,
                                         const std::vector<int64_t> &members) = 0;
  /// Waits until all members of an axis are here.
  virtual void meet(size_t axis, const std::vector<int64_t> &members) = 0;
};

} // namespace tk::detail
