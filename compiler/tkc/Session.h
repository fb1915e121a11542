//===- Session.h - a kernel with its arguments on a device -------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_SESSION_H
#define TK_COMPILER_TKC_SESSION_H

#include "compiler/CompiledSource.h"
#include "compiler/tkc/Inputs.h"
#include "tk/module.h"

#include <memory>

namespace tk::tkc {

struct LaunchTime {
  std::string symbol;
  double milliseconds = 0;
};

/// One kernel bound to the arguments of one run, on the CPU or a GPU.
class Session {
public:
  /// Compiles for the target and binds. The arguments' tensors are only looked at for their shapes.
  /// On a GPU, `beside` shares its memory, if it is a session with the same arguments.
  static Expected<std::unique_ptr<Session>> create(std::shared_ptr<CompiledSource> source,
                                                   size_t kernel, const std::string &target,
                                                   const RunArguments &arguments,
                                                   const Session *beside = nullptr);
  ~Session();

  /// Copies the inputs in, fills the results with a byte, launches, and copies every tensor back
  /// (in the order of Signature::tensor).
  Expected<std::vector<HostTensor>> run(const RunArguments &arguments, uint8_t fill);
  /// The median time of a launch in milliseconds, over repeated launches after a warm-up. They take
  /// that many seconds, or 20 launches on a GPU and 5 on the CPU where that is more.
  Expected<double> time(double seconds = 0.5);
  /// Bytes of local memory a thread, of the launch that has most; 0 without a GPU.
  int64_t spilledBytes() const;

  /// The median time of each launch of a call that does something, alone, in their order.
  Expected<std::vector<LaunchTime>> timeOfLaunches();

  const Signature &signature() const;
  const std::string &target() const;
  std::string deviceName() const;
  /// "driver 13.0", or nothing without a GPU.
  std::string driverName() const;
  size_t numLaunches() const;
  /// What the variant that runs was compiled for.
  const Facts &facts() const;
  /// Bytes a second that a large copy reads and writes on the target's device, measured now; 0
  /// where that is not known.
  static double copyRate(const std::string &target);
  /// " (12 % of the copy bandwidth)" where that is known of this machine, else empty.
  std::string ceilings(double bytesPerSecond) const;

private:
  Session();
  struct Tensors;
  struct State;
  std::unique_ptr<State> state;
};

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_SESSION_H
