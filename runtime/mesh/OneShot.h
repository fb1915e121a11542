// The kernels of one-shot exchanges (one_shot.cuh) on one device.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "runtime/cuda/GpuModule.h"
#include "runtime/mesh/OneShotCall.h"
#include "tk/mesh_plan.h"

namespace tk::detail {

/// How the tensors of an exchange are combined, and of what their elements are.
using OneShotKind = std::pair<DType, MeshCombine>;

class OneShot {
public:
  explicit OneShot(cuda::DeviceContext &device) : m_device(device) {}
  ~OneShot();
  OneShot(const OneShot &) = delete;
  OneShot &operator=(const OneShot &) = delete;

  /// What is in the way of the kernels, such as NVRTC that is missing; empty: nothing.
  std::string prepare();
  static bool combines(DType dtype);
  /// Compiles the kernel on its first use.
  void launch(one_shot::Call call, OneShotKind kind, unsigned blocks, void *stream);
  /// The rank that a kernel waited for in vain; -1: none.
  int64_t lost_rank() const;
  void forget_lost_rank();

private:
  cuda::CUfunction function_for(OneShotKind kind);

  cuda::DeviceContext &m_device;
  uint32_t *m_lost = nullptr; ///< 1 + a rank; memory of the host that the device reaches
  std::map<OneShotKind, cuda::CUfunction> m_functions;
  std::vector<std::shared_ptr<cuda::GpuModule>> m_modules;
};

} // namespace tk::detail
