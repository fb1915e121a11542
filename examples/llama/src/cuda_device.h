// A GPU through the CUDA driver, without CUDA's headers: the library is loaded at run time.
#pragma once

#include <memory>

#include "device.h"

namespace llama {

/// Throws `no_driver` or `no_device`.
std::unique_ptr<Device> make_cuda_device();

} // namespace llama
