// The values that a call's arguments give to dimensions and scalars: dimensions are solved from the
// shapes, scalars are completed by their defaults, and what a signature demands of both is checked.
#include "tk/plan.h"

#include <algorithm>

namespace tk {
namespace {

/// Where a dimension got its value: an argument's axis, or a value given by name.
struct Origin {
  int64_t value;
  const Parameter *argument; ///< null: given by name
  unsigned axis;
};

std::string place(const Origin &origin) {
  if (!origin.argument)
    return " as given";
  return " in argument '" + origin.argument->name + "' (axis " + std::to_string(origin.axis) + ")";
}

Error disagree(const std::string &dim, const Origin &first, const Origin &second) {
  std::string message = "dimension '" + dim + "' is " + std::to_string(first.value) + place(first) +
                        " and " + std::to_string(second.value);
  message += second.argument
                 ? " in '" + second.argument->name + "' (axis " + std::to_string(second.axis) + ")"
                 : place(second);
  std::vector<SourceSpan> spans;
  for (const Origin *origin : {&first, &second})
    if (origin->argument)
      spans.push_back(origin->argument->span);
  return Error(ErrorCode::shape_mismatch, std::move(message), std::move(spans));
}

/// "with K = 64, N = 3" for the variables that an expression uses, or "".
std::string values_of(const Expr &expr, const std::vector<std::string> &names,
                      std::span<const Scalar> variables) {
  std::string text;
  for (unsigned v : expr.variables()) {
    if (v >= names.size() || v >= variables.size())
      continue;
    const Scalar &value = variables[v];
    text += (text.empty() ? "" : ", ") + names[v] + " = " +
            (value.is_float ? std::to_string(value.f) : std::to_string(value.i));
  }
  return text;
}

/// The dimension and the literal of an extent `n * P`, n positive; nullopt for any other.
struct Multiple {
  unsigned dim;
  int64_t factor;
};
std::optional<Multiple> multiple_of(const Expr &expr, size_t num_dims) {
  std::optional<std::pair<unsigned, int64_t>> product = expr.literal_multiple();
  if (!product || product->first >= num_dims || product->second <= 0)
    return std::nullopt;
  return Multiple{product->first, product->second};
}

/// The dimension and the literal of an extent `P + n` or `P - n`; nullopt for any other.
struct Offset {
  unsigned dim;
  int64_t added;
};
std::optional<Offset> offset_of(const Expr &expr, size_t num_dims) {
  const std::vector<ExprStep> &steps = expr.steps();
  const bool is_sum = steps.size() == 3 && steps[2].op == ExprOp::add;
  const bool is_difference = steps.size() == 3 && steps[2].op == ExprOp::sub;
  for (size_t i : {0U, 1U}) {
    if (!is_sum && !(is_difference && i == 0))
      continue;
    const ExprStep &dim = steps[i], &literal = steps[1 - i];
    if (dim.op == ExprOp::variable && static_cast<size_t>(dim.value) < num_dims &&
        literal.op == ExprOp::integer && literal.value >= INT32_MIN && literal.value <= INT32_MAX)
      return Offset{static_cast<unsigned>(dim.value),
                    is_difference ? -literal.value : literal.value};
  }
  return std::nullopt;
}

/// Does an extent rest on a scalar parameter?
bool rests_on_scalars(const Expr &expr, size_t num_dims) {
  std::vector<unsigned> variables = expr.variables();
  return std::any_of(variables.begin(), variables.end(), [&](unsigned v) { return v >= num_dims; });
}

/// "argument 'x' (axis 0): expected N + 1 = 8 (N = 7), got 5".
Error mismatch(const Signature &signature, const Parameter &tensor, unsigned axis, int64_t expected,
               int64_t got, std::span<const Scalar> variables) {
  const Extent &extent = tensor.shape[axis];
  std::string values = values_of(extent.expr, signature.variable_names(), variables);
  std::string message =
      "argument '" + tensor.name + "' (axis " + std::to_string(axis) + "): expected " + extent.text;
  if (extent.text != std::to_string(expected))
    message += " = " + std::to_string(expected);
  if (!values.empty() && extent.expr.bare_variable() < 0)
    message += " (" + values + ")";
  return Error(ErrorCode::shape_mismatch, message + ", got " + std::to_string(got), {tensor.span});
}

/// Solves dimensions in three sweeps: bare occurrences bind, then literal multiples and offsets,
/// then every extent of dimensions is checked. Those of scalars are left to check_scalar_extents.
class Solver {
public:
  Solver(const Signature &signature, std::span<const std::optional<Extents>> shapes)
      : m_signature(signature), m_shapes(shapes), m_origins(signature.dims.size()) {}

  Status solve(std::span<const std::optional<int64_t>> preset) {
    for (size_t d = 0; d < preset.size() && d < m_origins.size(); ++d)
      if (preset[d])
        m_origins[d] = Origin{*preset[d], nullptr, 0};
    for (unsigned t = 0; t < m_shapes.size(); ++t)
      if (m_shapes[t])
        if (Status status = bind_bare(t); !status)
          return status;
    for (unsigned t = 0; t < m_shapes.size(); ++t)
      if (m_shapes[t])
        if (Status status = bind_multiples(t); !status)
          return status;
    for (unsigned t = 0; t < m_shapes.size(); ++t)
      if (m_shapes[t])
        if (Status status = check_derived(t); !status)
          return status;
    return {};
  }

  std::vector<std::optional<int64_t>> dims() const {
    std::vector<std::optional<int64_t>> result;
    for (const std::optional<Origin> &origin : m_origins)
      result.push_back(origin ? std::optional(origin->value) : std::nullopt);
    return result;
  }

private:
  Status bind_bare(unsigned t) {
    const Parameter &tensor = m_signature.tensor(t);
    const Extents &shape = *m_shapes[t];
    if (shape.size() != tensor.shape.size())
      return Error(ErrorCode::invalid_argument,
                   "argument '" + tensor.name + "': expected rank " +
                       std::to_string(tensor.shape.size()) + " (" + tensor.str() + "), got rank " +
                       std::to_string(shape.size()),
                   {tensor.span});
    for (unsigned axis = 0; axis < shape.size(); ++axis) {
      int dim = tensor.shape[axis].expr.bare_variable();
      if (dim < 0 || static_cast<size_t>(dim) >= m_origins.size())
        continue;
      Origin here{shape[axis], &tensor, axis};
      std::optional<Origin> &origin = m_origins[static_cast<size_t>(dim)];
      if (!origin)
        origin = here;
      else if (origin->value != here.value)
        return disagree(m_signature.dims[static_cast<size_t>(dim)], *origin, here);
    }
    return {};
  }

  Status bind_multiples(unsigned t) {
    const Parameter &tensor = m_signature.tensor(t);
    const Extents &shape = *m_shapes[t];
    for (unsigned axis = 0; axis < shape.size(); ++axis) {
      if (Status status = bind_offset(tensor, axis, shape[axis]); !status)
        return status;
      std::optional<Multiple> product = multiple_of(tensor.shape[axis].expr, m_origins.size());
      if (!product || m_origins[product->dim])
        continue;
      if (shape[axis] % product->factor != 0)
        return Error(ErrorCode::shape_mismatch,
                     "argument '" + tensor.name + "' (axis " + std::to_string(axis) +
                         "): expected a multiple of " + std::to_string(product->factor) + " (" +
                         tensor.shape[axis].text + "), got " + std::to_string(shape[axis]),
                     {tensor.span});
      m_origins[product->dim] = Origin{shape[axis] / product->factor, &tensor, axis};
    }
    return {};
  }

  Status bind_offset(const Parameter &tensor, unsigned axis, int64_t extent) {
    std::optional<Offset> offset = offset_of(tensor.shape[axis].expr, m_origins.size());
    if (!offset || m_origins[offset->dim])
      return {};
    if (extent < offset->added)
      return Error(ErrorCode::shape_mismatch,
                   "argument '" + tensor.name + "' (axis " + std::to_string(axis) +
                       "): expected at least " + std::to_string(offset->added) + " (" +
                       tensor.shape[axis].text + "), got " + std::to_string(extent),
                   {tensor.span});
    m_origins[offset->dim] = Origin{extent - offset->added, &tensor, axis};
    return {};
  }

  Status check_derived(unsigned t) {
    const Parameter &tensor = m_signature.tensor(t);
    const Extents &shape = *m_shapes[t];
    std::vector<Scalar> variables;
    for (const std::optional<Origin> &origin : m_origins)
      variables.emplace_back(origin ? origin->value : int64_t{0});
    for (unsigned axis = 0; axis < shape.size(); ++axis) {
      const Extent &extent = tensor.shape[axis];
      if (extent.expr.bare_variable() >= 0)
        continue;
      bool known = true;
      for (unsigned v : extent.expr.variables())
        known &= v < m_origins.size() && m_origins[v].has_value();
      if (!known)
        continue;
      Expected<int64_t> expected = extent.expr.evaluate_integer(variables);
      if (!expected)
        return Error(ErrorCode::overflow,
                     "extent '" + extent.text + "' of argument '" + tensor.name +
                         "': " + expected.error().message(),
                     {tensor.span});
      if (*expected != shape[axis])
        return mismatch(m_signature, tensor, axis, *expected, shape[axis], variables);
    }
    return {};
  }

  const Signature &m_signature;
  std::span<const std::optional<Extents>> m_shapes;
  std::vector<std::optional<Origin>> m_origins;
};

} // namespace

Expected<std::vector<std::optional<int64_t>>>
solve_dims(const Signature &signature, std::span<const std::optional<Extents>> shapes,
           std::span<const std::optional<int64_t>> preset) {
  if (shapes.size() > signature.num_tensors())
    return Error(ErrorCode::invalid_argument, "more shapes than tensors");
  Solver solver(signature, shapes);
  if (Status status = solver.solve(preset); !status)
    return std::move(status.error());
  return solver.dims();
}

Expected<std::vector<Scalar>> complete_variables(const Signature &signature,
                                                 std::span<const int64_t> dims,
                                                 std::span<const std::optional<Scalar>> scalars) {
  std::vector<Scalar> variables(dims.begin(), dims.end());
  for (unsigned s = 0; s < signature.num_scalars(); ++s) {
    const Parameter &parameter = signature.scalar(s);
    Scalar value;
    if (s < scalars.size() && scalars[s]) {
      value = *scalars[s];
    } else if (parameter.has_default) {
      Expected<Scalar> computed = parameter.default_value.evaluate(variables);
      if (!computed)
        return Error(ErrorCode::overflow,
                     "default of '" + parameter.name + "': " + computed.error().message(),
                     {parameter.span});
      value = *computed;
    } else {
      return Error(ErrorCode::invalid_argument,
                   "missing argument '" + parameter.name + "': expected " + parameter.str(),
                   {parameter.span});
    }
    char bytes[8] = {};
    if (is_float(parameter.dtype)) {
      // What the kernel sees is the stored value; expressions over it must see the same.
      store_from_f64(parameter.dtype, bytes, value.as_double());
      variables.emplace_back(load_as_f64(parameter.dtype, bytes));
      continue;
    }
    if (value.is_float)
      return Error(ErrorCode::invalid_argument,
                   "argument '" + parameter.name + "': expected " +
                       std::string(name(parameter.dtype)) + ", got a float",
                   {parameter.span});
    convert(parameter.dtype, bytes, DType::i64, &value.i, 1);
    int64_t stored = 0;
    convert(DType::i64, &stored, parameter.dtype, bytes, 1);
    if (stored != value.i)
      return Error(ErrorCode::invalid_argument,
                   "argument '" + parameter.name + "': " + std::to_string(value.i) +
                       " does not fit " + std::string(name(parameter.dtype)),
                   {parameter.span});
    variables.emplace_back(stored);
  }
  return variables;
}

Status check_scalar_extents(const Signature &signature,
                            std::span<const std::optional<Extents>> shapes,
                            std::span<const Scalar> variables) {
  const size_t num_dims = signature.dims.size();
  for (unsigned t = 0; t < shapes.size(); ++t) {
    const Parameter &tensor = signature.tensor(t);
    for (unsigned axis = 0; shapes[t] && axis < tensor.shape.size(); ++axis) {
      const Extent &extent = tensor.shape[axis];
      if (!rests_on_scalars(extent.expr, num_dims))
        continue;
      Expected<int64_t> expected = extent.expr.evaluate_integer(variables);
      if (!expected)
        return Error(ErrorCode::overflow,
                     "extent '" + extent.text + "' of argument '" + tensor.name +
                         "': " + expected.error().message(),
                     {tensor.span});
      const int64_t got = (*shapes[t])[axis];
      if (int bare = extent.expr.bare_variable(); bare >= 0 && *expected != got) {
        const Parameter &scalar =
            signature.scalar(static_cast<unsigned>(bare) - static_cast<unsigned>(num_dims));
        return Error(ErrorCode::shape_mismatch,
                     "argument '" + scalar.name + "' is " + std::to_string(*expected) +
                         ", but argument '" + tensor.name + "' has the extent " +
                         std::to_string(got) + " (axis " + std::to_string(axis) + ")",
                     {scalar.span, tensor.span});
      }
      if (*expected != got)
        return mismatch(signature, tensor, axis, *expected, got, variables);
    }
  }
  return {};
}

Status run_checks(const Signature &signature, std::span<const Scalar> variables) {
  for (const Check &check : signature.checks) {
    Expected<int64_t> holds = check.condition.evaluate_integer(variables);
    std::string what = check.kind == Check::Kind::constraint ? "constraint '" + check.text + "'"
                                                             : "bounds check '" + check.text + "'";
    std::string values = values_of(check.condition, signature.variable_names(), variables);
    if (!values.empty())
      values = " with " + values;
    if (!holds)
      return Error(ErrorCode::constraint_failed,
                   what + " cannot be decided" + values + ": " + holds.error().message(),
                   {check.span});
    if (*holds == 0)
      return Error(ErrorCode::constraint_failed, what + " does not hold" + values, {check.span});
  }
  return {};
}

static std::vector<bool> which_hold(const std::vector<Check> &checks,
                                    std::span<const Scalar> variables) {
  std::vector<bool> holds;
  for (const Check &check : checks) {
    Expected<int64_t> value = check.condition.evaluate_integer(variables);
    holds.push_back(value && *value != 0);
  }
  return holds;
}

std::vector<bool> schedule_conditions(const Signature &signature,
                                      std::span<const Scalar> variables) {
  return which_hold(signature.schedules, variables);
}

std::vector<bool> scalar_cases(const Signature &signature, std::span<const Scalar> variables) {
  return which_hold(signature.cases, variables);
}

Expected<Extents> shape_of(const Parameter &tensor, std::span<const Scalar> variables) {
  Extents shape;
  for (const Extent &extent : tensor.shape) {
    Expected<int64_t> value = extent.expr.evaluate_integer(variables);
    if (!value)
      return Error(ErrorCode::overflow,
                   "extent '" + extent.text + "' of '" + tensor.name +
                       "': " + value.error().message(),
                   {tensor.span});
    if (*value < 0)
      return Error(ErrorCode::shape_mismatch,
                   "extent '" + extent.text + "' of '" + tensor.name +
                       "' is negative: " + std::to_string(*value),
                   {tensor.span});
    if (shape.size() == max_rank)
      return Error(ErrorCode::unsupported, "expected a tensor of rank at most 8", {tensor.span});
    shape.push_back(*value);
  }
  return shape;
}

} // namespace tk
