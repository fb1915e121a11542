// Views whose element type and rank the C++ compiler checks: what generated headers take.
#pragma once

#include <concepts>

#include "tk/tensor.h"

namespace tk {

template <DType Type, unsigned Rank> class TypedView : public TensorView {
public:
  /// A dense row-major tensor on the first GPU, as in `{pointer, M, K}`.
  template <std::integral... I>
    requires(sizeof...(I) == Rank)
  TypedView(const void *data, I... extents)
      : TensorView(const_cast<void *>(data), Type, Extents{static_cast<int64_t>(extents)...},
                   Device::cuda(0)) {}
  /// Any view, such as a strided one or one on another GPU; a wrong type or rank is an error of the
  /// launch.
  TypedView(const TensorView &view) : TensorView(view) {}
};

} // namespace tk
