// Tensor maps for given sizes, for the GPU and for the emulator.
#pragma once

#include "tk/backend.h"

namespace tk::detail {

/// What a tensor map of a plan is for given sizes. Throws `overflow` for extents that a tensor map
/// cannot hold, `invalid_argument` for strides.
ResolvedMap resolve_map(const TensorMap &map, const Signature &signature,
                        std::span<const Scalar> variables, std::span<const TensorView> tensors);

} // namespace tk::detail
