// How the axes of a view lie in memory.
#ifndef TK_RUNTIME_VIEWS_H
#define TK_RUNTIME_VIEWS_H

#include "tk/plan.h"
#include "tk/tensor.h"

namespace tk::detail {

/// The axis with stride 1 (TensorFact::unit_axis), and whether all elements lie one behind the
/// other in row-major order once that axis is the last one. Axes of extent 1 do not count.
struct AxisOrder {
  int32_t unit_axis = last_axis;
  bool dense = true;
};
AxisOrder axis_order(const TensorView &view);

/// Gives axes of extent 1, and all axes of an empty view, the strides that they would have if they
/// were longer. Nothing is addressed by them, but facts and descriptors of bulk copies hold them.
void settle_strides(TensorView &view, const AxisOrder &order);

/// Could two elements of a view with positive strides share an address? An axis that is not clear
/// of what lies inside it counts as one that could.
bool may_overlap_itself(const TensorView &view);

} // namespace tk::detail

#endif // TK_RUNTIME_VIEWS_H
