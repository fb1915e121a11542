// Tensor maps for given sizes, for the GPU and for the emulator.
#pragma once

#include "tk/backend.h"

namespace tk::detail {

/// What a tensor map of a plan is for given sizes. Throws `overflow` for extents that a tensor map
/// cannot hold, `invalid_argument` for strides.
ResolvedMap resolve_map(const TensorMap &map, const Signature &signature,
                        std::span<const Scalar> variables, std::span<const TensorView> tensors);

/// How far beyond the end of axis `axis` + 1 the places of windows reach that begin there: of the
/// last one, relative to the last element.
int64_t upper_corner(const TensorMap &map, const ResolvedMap &resolved, size_t axis);

} // namespace tk::detail
