// One description of each struct serves writing and reading: `visit(archive, value)` names the
// fields in order (see runtime/Archive.h).
#include "runtime/Archive.h"
#include "tk/plan.h"

namespace tk {
namespace detail {

template <typename A> void visit(A &archive, Parameter &value);
template <typename A> void visit(A &archive, Check &value);
template <typename A> void visit(A &archive, Launch &value);
template <typename A> void visit(A &archive, Arg &value);
template <typename A> void visit(A &archive, Scratch &value);
template <typename A> void visit(A &archive, WindowPlaces &value);
template <typename A> void visit(A &archive, TensorMap &value);
template <typename A> void visit(A &archive, Extent &value);
template <typename A> void visit(A &archive, Expr &value);
template <typename A> void visit(A &archive, ExprStep &value);

template <typename A> void visit(A &archive, ExprStep &value) {
  fields(archive, value.op, value.value);
}
template <typename A> void visit(A &archive, Expr &value) { visit(archive, value.steps()); }
template <typename A> void visit(A &archive, Extent &value) {
  fields(archive, value.expr, value.text);
}
template <typename A> void visit(A &archive, SourceSpan &value) {
  fields(archive, value.file, value.line, value.column, value.end_line, value.end_column);
}
template <typename A> void visit(A &archive, Parameter &value) {
  fields(archive, value.name, value.is_tensor);
  bounded(archive, value.dtype, num_dtypes);
  fields(archive, value.shape, value.strided, value.in_out, value.has_default, value.default_value,
         value.default_text, value.span);
}
template <typename A> void visit(A &archive, Check &value) {
  bounded(archive, value.kind, 5);
  fields(archive, value.condition, value.text, value.span);
}
template <typename A> void visit(A &archive, Signature &value) {
  fields(archive, value.name, value.dims, value.params, value.results, value.checks,
         value.schedules, value.cases, value.span);
}
template <typename A> void visit(A &archive, Arg &value) {
  bounded(archive, value.kind, 6);
  fields(archive, value.index, value.axis);
  bounded(archive, value.dtype, num_dtypes);
  visit(archive, value.value);
}
template <typename A> void visit(A &archive, WindowPlaces &value) {
  fields(archive, value.lower, value.step, value.count);
}
template <typename A> void visit(A &archive, TensorMap &value) {
  fields(archive, value.of_scratch, value.index);
  bounded(archive, value.dtype, num_dtypes);
  fields(archive, value.extents, value.strides, value.stride_axes, value.box, value.swizzle,
         value.fill_nan, value.rounds_to_tf32, value.before, value.places);
}
template <typename A> void visit(A &archive, Launch &value) {
  visit(archive, value.symbol);
  for (unsigned i = 0; i < 3; ++i)
    fields(archive, value.grid[i], value.block[i], value.cluster[i]);
  fields(archive, value.shared_bytes, value.resident, value.overlapped, value.args, value.span);
}
template <typename A> void visit(A &archive, Scratch &value) {
  fields(archive, value.bytes, value.zeroed, value.restored, value.purpose);
}
template <typename A> void visit(A &archive, LaunchPlan &value) {
  fields(archive, value.launches, value.scratch, value.tensor_maps);
}

namespace {

bool well_formed(const Signature &signature) {
  auto limit = static_cast<unsigned>(signature.dims.size()) + signature.num_scalars();
  for (const auto *list : {&signature.params, &signature.results})
    for (const Parameter &parameter : *list) {
      if (parameter.shape.size() > max_rank || !parameter.default_value.well_formed(limit))
        return false;
      for (const Extent &extent : parameter.shape)
        if (!extent.expr.well_formed(limit))
          return false;
    }
  for (const auto *list : {&signature.checks, &signature.schedules, &signature.cases})
    for (const Check &check : *list)
      if (!check.condition.well_formed(limit))
        return false;
  return true;
}

} // namespace
} // namespace detail

std::string encode(const Signature &signature) { return detail::write(signature); }
std::string encode(const LaunchPlan &plan) { return detail::write(plan); }

std::optional<Signature> decode_signature(std::string_view bytes) {
  std::optional<Signature> signature = detail::read<Signature>(bytes);
  return signature && detail::well_formed(*signature) ? signature : std::nullopt;
}

std::optional<LaunchPlan> decode_plan(std::string_view bytes) {
  return detail::read<LaunchPlan>(bytes);
}

} // namespace tk
