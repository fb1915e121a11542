// Loaded GPU code: one driver module for each distinct cubin and device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/Driver.h"
#include "tk/module.h"

namespace tk::cuda {

class GpuModule {
public:
  /// The module of a cubin, loaded once a device while anyone holds it.
  static std::shared_ptr<GpuModule> load(DeviceContext &device, const std::string &cubin);
  ~GpuModule();
  GpuModule(const GpuModule &) = delete;
  GpuModule &operator=(const GpuModule &) = delete;

  /// A function that may use so much dynamic shared memory.
  CUfunction function(const std::string &symbol, int64_t shared_bytes, bool cluster) const;
  /// How many blocks of a launch run at once, in whole clusters; at least one cluster.
  unsigned resident_blocks(CUfunction function, LaunchConfig config, LaunchAttribute cluster,
                           bool has_cluster) const;
  Resources resources(const std::string &symbol, int64_t shared_bytes, unsigned block) const;
  DeviceContext &device() const { return m_device; }

private:
  GpuModule(DeviceContext &device, CUmodule module) : m_device(device), m_module(module) {}
  DeviceContext &m_device;
  CUmodule m_module;
};

} // namespace tk::cuda
