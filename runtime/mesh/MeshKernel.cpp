// A sharded kernel on one rank: the steps of its plan, in order.
#include "tk/mesh.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "runtime/Kernel.h"
#include "runtime/mesh/Communicator.h"
#include "runtime/mesh/MeshProgram.h"

namespace tk {
namespace detail {

/// A block of rows of the tensors of a launch that are taken by blocks; by default all rows.
struct Block {
  int64_t number = 0, of = 1;
  TensorView part(TensorView tensor) const {
    if (of == 1)
      return tensor;
    tensor.shape[0] /= of;
    const int64_t bytes = byte_count(tensor.dtype, tensor.shape).value();
    tensor.data = static_cast<std::byte *>(tensor.data) + number * bytes;
    return tensor;
  }
};

/// The tensors of a plan on a rank, and the landing memory of each step (see Communicator).
struct PlacedTensors {
  std::shared_ptr<void> memory;
  std::vector<TensorView> tensors;
  std::vector<int64_t> landings; ///< where it begins in the memory; no_landing: there is none
  static constexpr int64_t no_landing = -1;
};

class MeshKernelImpl {
public:
  MeshKernelImpl(const Kernel &kernel, const Mesh &mesh)
      : m_kernel(kernel), m_mesh(mesh), m_program(find_program(KernelAccess::impl(kernel), mesh)) {
    if (!mesh.impl().takes(KernelAccess::impl(kernel).target()))
      throw Error(ErrorCode::invalid_argument,
                  "the ranks of this mesh do not run kernels for target '" +
                      KernelAccess::impl(kernel).target() + "'");
    for (const MeshAxis &axis : plan().axes)
      m_axes.push_back(axis_of_mesh(axis));
  }

  const Signature &signature() const { return m_kernel.signature(); }
  const MeshPlan &plan() const { return m_program->sharded.plan; }
  std::vector<Extents> result_shapes(std::span<const NamedValue> inputs) const;
  void launch(Stream stream, std::span<const NamedValue> inputs,
              std::span<const NamedValue> outputs);

private:
  size_t axis_of_mesh(const MeshAxis &axis) const;
  int64_t size_of_axis(const std::string &name) const;
  std::vector<Scalar> variables_of(const Arguments &arguments, bool has_results) const;
  void choose_program(std::span<const Scalar> variables);
  void check_shapes(const Arguments &arguments, std::span<const Scalar> variables) const;
  void compare_ranks(std::span<const Scalar> variables);
  PlacedTensors place_tensors(const Arguments &arguments, std::span<const Scalar> variables,
                              Stream stream) const;
  void run(const MeshStep &step, Stream stream, const PlacedTensors &placed,
           std::span<const Scalar> variables) const;
  CollectiveCall call_of(const MeshStep &step, const PlacedTensors &placed) const;
  size_t num_together(size_t first) const;
  void run_together(size_t first, size_t count, Stream stream, const PlacedTensors &placed) const;
  void launch_local(const MeshStep &step, Stream stream, std::span<const TensorView> tensors,
                    std::span<const Scalar> variables, Block block = {}) const;

  static constexpr size_t no_axis = ~size_t{0};
  Kernel m_kernel;
  Mesh m_mesh;
  std::shared_ptr<const MeshProgram> m_program;                         ///< of the last call
  std::map<std::string, std::shared_ptr<const MeshProgram>> m_programs; ///< by sizes
  std::set<std::string> m_compared; ///< with the other ranks: programs with sizes
  std::vector<size_t> m_axes;       ///< of the mesh, for each of the plan; no_axis: one rank
};

size_t MeshKernelImpl::axis_of_mesh(const MeshAxis &axis) const {
  for (size_t a = 0; a < m_mesh.axes().size(); ++a)
    if (m_mesh.axes()[a].name == axis.name)
      return a;
  return no_axis;
}

int64_t MeshKernelImpl::size_of_axis(const std::string &name) const {
  for (const MeshAxis &axis : plan().axes)
    if (axis.name == name)
      return axis.size;
  return 1;
}

/// Dimensions, which are global, from the shapes of a rank's shares.
std::vector<Scalar> MeshKernelImpl::variables_of(const Arguments &arguments,
                                                 bool has_results) const {
  std::vector<std::optional<Extents>> shapes(signature().num_tensors());
  for (const MeshTensor &tensor : plan().tensors) {
    if (tensor.kind == MeshTensor::Kind::temporary ||
        (tensor.kind == MeshTensor::Kind::result && !has_results))
      continue;
    const Parameter &param = signature().tensor(tensor.index);
    const std::optional<TensorView> &view = arguments.tensors[tensor.index];
    if (!view)
      throw Error(ErrorCode::invalid_argument,
                  "argument '" + param.name + "' of '" + signature().name + "' is missing",
                  {param.span});
    if (view->rank() != tensor.shape.size() || view->dtype != tensor.dtype)
      throw Error(ErrorCode::invalid_argument,
                  "argument '" + param.name + "': expected " + param.str() + ", got " + view->str(),
                  {param.span});
    Extents whole = view->shape;
    for (unsigned d = 0; d < whole.size(); ++d)
      if (__builtin_mul_overflow(whole[d], size_of_axis(tensor.sharding[d]), &whole[d]))
        throw Error(ErrorCode::overflow, "argument '" + param.name + "': an extent overflows");
    shapes[tensor.index] = whole;
  }
  std::vector<std::optional<int64_t>> found = solve_dims(signature(), shapes).value();
  std::vector<int64_t> dims;
  for (size_t d = 0; d < found.size(); ++d) {
    if (!found[d])
      throw Error(ErrorCode::invalid_argument,
                  "dimension '" + signature().dims[d] + "' follows from no argument");
    dims.push_back(*found[d]);
  }
  std::vector<Scalar> variables = complete_variables(signature(), dims, arguments.scalars).value();
  if (Status fits = check_scalar_extents(signature(), shapes, variables); !fits)
    throw fits.error();
  if (Status holds = run_checks(signature(), variables); !holds)
    throw holds.error();
  for (const Check &check : plan().checks)
    if (check.condition.evaluate_integer(variables).value() == 0)
      throw Error(ErrorCode::constraint_failed,
                  "kernel '" + signature().name + "': the mesh needs " + check.text, {check.span});
  return variables;
}

Extents shape_on_rank(const MeshTensor &tensor, std::span<const Scalar> variables) {
  Extents shape;
  for (const DimExpr &extent : tensor.shape)
    shape.push_back(extent.evaluate_integer(variables).value());
  return shape;
}

std::vector<Extents> MeshKernelImpl::result_shapes(std::span<const NamedValue> inputs) const {
  const std::vector<Scalar> variables =
      variables_of(sort_named(signature(), inputs), /*has_results=*/false);
  std::vector<Extents> shapes(signature().results.size());
  const size_t first = signature().num_tensors() - shapes.size();
  for (const MeshTensor &tensor : plan().tensors)
    if (tensor.kind == MeshTensor::Kind::result)
      shapes[tensor.index - first] = shape_on_rank(tensor, variables);
  return shapes;
}

void MeshKernelImpl::check_shapes(const Arguments &arguments,
                                  std::span<const Scalar> variables) const {
  for (const MeshTensor &tensor : plan().tensors) {
    if (tensor.kind == MeshTensor::Kind::temporary)
      continue;
    const TensorView &view = *arguments.tensors[tensor.index];
    const Extents shape = shape_on_rank(tensor, variables);
    if (view.shape == shape)
      continue;
    const TensorView expected(nullptr, tensor.dtype, shape);
    throw Error(ErrorCode::shape_mismatch,
                "argument '" + tensor.name + "': expected this rank's share, " + expected.str() +
                    ", got " + view.str(),
                {signature().tensor(tensor.index).span});
  }
}

/// The program for these sizes, each rounded up to a power of two.
void MeshKernelImpl::choose_program(std::span<const Scalar> variables) {
  std::vector<int64_t> dims;
  std::string key;
  for (size_t d = 0; d < signature().dims.size(); ++d) {
    dims.push_back(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(variables[d].i))));
    key += std::to_string(dims.back()) + ",";
  }
  std::shared_ptr<const MeshProgram> &program = m_programs[key];
  if (!program)
    program = find_program(KernelAccess::impl(m_kernel), m_mesh, dims);
  m_program = program;
}

/// Fails where another rank runs another program, or has other sizes.
void MeshKernelImpl::compare_ranks(std::span<const Scalar> variables) {
  std::string own = signature().name + " " + m_program->digest;
  for (const Scalar &value : variables)
    own += " " + (value.is_float ? std::to_string(value.f) : std::to_string(value.i));
  if (m_mesh.impl().compares_once() && m_compared.count(own))
    return;
  const std::vector<std::string> all = m_mesh.impl().exchange(own);
  const std::string &mine = all[static_cast<size_t>(m_mesh.rank())]; // a digest, or the text
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != mine)
      throw Error(ErrorCode::mesh_mismatch,
                  "rank " + std::to_string(rank) +
                      " of the mesh runs another program, or has other "
                      "sizes, than rank " +
                      std::to_string(m_mesh.rank()) + ", which runs '" + signature().name + "'",
                  {signature().span});
  m_compared.insert(own);
}

PlacedTensors MeshKernelImpl::place_tensors(const Arguments &arguments,
                                            std::span<const Scalar> variables,
                                            Stream stream) const {
  PlacedTensors placed;
  std::vector<int64_t> offsets;
  int64_t total = 0;
  auto add = [&](int64_t bytes) { // returns where they begin
    constexpr int64_t alignment = 256;
    const int64_t begin = total;
    if (__builtin_add_overflow(total, (bytes + alignment - 1) / alignment * alignment, &total))
      throw Error(ErrorCode::overflow, "the tensors between kernels are too large");
    return begin;
  };
  for (const MeshTensor &tensor : plan().tensors) {
    offsets.push_back(total);
    if (tensor.kind != MeshTensor::Kind::temporary) {
      placed.tensors.push_back(*arguments.tensors[tensor.index]);
      continue;
    }
    const Extents shape = shape_on_rank(tensor, variables);
    add(byte_count(tensor.dtype, shape).value());
    placed.tensors.emplace_back(nullptr, tensor.dtype, shape, m_mesh.impl().device());
  }
  bool has_blocks = false;
  for (const MeshStep &step : plan().steps) {
    placed.landings.push_back(PlacedTensors::no_landing);
    if (!step.communicates() || m_axes[step.axis] == no_axis)
      continue;
    const bool is_temporary = plan().tensors[step.to].kind == MeshTensor::Kind::temporary;
    const int64_t bytes = m_mesh.impl().landing_bytes(call_of(step, placed), is_temporary);
    if (bytes > 0)
      placed.landings.back() = add(bytes);
    has_blocks |= bytes > 0 || step.kind != MeshStep::Kind::all_reduce;
  }
  if (total > 0)
    placed.memory = m_mesh.impl().temporaries(total, stream, has_blocks);
  for (size_t t = 0; t < placed.tensors.size(); ++t)
    if (plan().tensors[t].kind == MeshTensor::Kind::temporary)
      placed.tensors[t].data = static_cast<std::byte *>(placed.memory.get()) + offsets[t];
  return placed;
}

void MeshKernelImpl::launch_local(const MeshStep &step, Stream stream,
                                  std::span<const TensorView> tensors,
                                  std::span<const Scalar> variables, Block block) const {
  const Kernel &kernel = m_program->kernels[step.kernel];
  auto part = [&](const TensorView &tensor, const std::vector<uint8_t> &sliced, size_t i) {
    return i < sliced.size() && sliced[i] != 0 ? block.part(tensor) : tensor;
  };
  const Signature &local = kernel.signature();
  std::vector<NamedValue> inputs, outputs;
  size_t next_tensor = 0, next_scalar = 0;
  for (const Parameter &param : local.params) {
    if (param.is_tensor) {
      inputs.emplace_back(param.name,
                          part(tensors[step.inputs[next_tensor]], step.sliced_inputs, next_tensor));
      ++next_tensor;
      continue;
    }
    const MeshScalar &scalar = step.scalars[next_scalar++];
    switch (scalar.kind) {
    case MeshScalar::Kind::argument:
      inputs.emplace_back(param.name, variables[signature().dims.size() + scalar.index]);
      break;
    case MeshScalar::Kind::rank: {
      const size_t axis = m_axes[scalar.index];
      inputs.emplace_back(param.name, Scalar(axis == no_axis ? int64_t{0} : m_mesh.position(axis)));
      break;
    }
    case MeshScalar::Kind::value:
      inputs.emplace_back(param.name, Scalar(scalar.value.evaluate_integer(variables).value()));
      break;
    }
  }
  for (size_t r = 0; r < local.results.size(); ++r)
    outputs.emplace_back(local.results[r].name,
                         part(tensors[step.outputs[r]], step.sliced_outputs, r));
  kernel(stream, inputs, outputs);
}

void MeshKernelImpl::run(const MeshStep &step, Stream stream, const PlacedTensors &placed,
                         std::span<const Scalar> variables) const {
  const std::vector<TensorView> &tensors = placed.tensors;
  if (step.kind == MeshStep::Kind::launch)
    return launch_local(step, stream, tensors, variables);
  const CollectiveCall call = call_of(step, placed);
  if (step.launches()) {
    const int64_t blocks = call.axis == no_axis ? 1 : m_mesh.axes()[call.axis].size;
    return m_mesh.impl().run_by_rows(call, stream, [&](size_t block) {
      launch_local(step, stream, tensors, variables, {static_cast<int64_t>(block), blocks});
    });
  }
  if (call.axis != no_axis)
    return m_mesh.impl().run(call, stream);
  m_mesh.impl().run_alone(call, stream);
}

CollectiveCall MeshKernelImpl::call_of(const MeshStep &step, const PlacedTensors &placed) const {
  const std::vector<TensorView> &tensors = placed.tensors;
  const TensorView &from = tensors[step.from], &to = tensors[step.to];
  if (!from.is_contiguous() || !to.is_contiguous())
    throw Error(ErrorCode::unsupported, "argument '" + plan().tensors[step.from].name +
                                            "': a collective needs a dense tensor");
  const size_t axis = step.kind == MeshStep::Kind::copy ? no_axis : m_axes[step.axis];
  CollectiveCall call{&step, axis, from.dtype, from.shape, to.shape, from.data, to.data};
  if (step.sent != MeshStep::no_tensor)
    call.sent = tensors[step.sent].data, call.received = tensors[step.received].data;
  const auto number = static_cast<size_t>(&step - plan().steps.data());
  if (!m_program->bounds.empty())
    call.bounds = m_program->bounds[number];
  if (placed.memory && placed.landings[number] != PlacedTensors::no_landing)
    call.landing = static_cast<std::byte *>(placed.memory.get()) + placed.landings[number];
  return call;
}

/// How many steps from `first` on are collectives over one axis of which none reads what another
/// one of them makes.
size_t MeshKernelImpl::num_together(size_t first) const {
  const std::vector<MeshStep> &steps = plan().steps;
  std::set<uint32_t> made;
  size_t end = first;
  for (; end < steps.size(); ++end) {
    const MeshStep &step = steps[end];
    if (step.launches() || !step.communicates() || m_axes[step.axis] == no_axis ||
        step.axis != steps[first].axis || step.sent != MeshStep::no_tensor || made.count(step.from))
      break;
    made.insert(step.to);
  }
  return end - first;
}

void MeshKernelImpl::run_together(size_t first, size_t count, Stream stream,
                                  const PlacedTensors &placed) const {
  std::vector<CollectiveCall> calls;
  for (size_t i = first; i < first + count; ++i)
    calls.push_back(call_of(plan().steps[i], placed));
  m_mesh.impl().run_together(calls, stream);
}

void MeshKernelImpl::launch(Stream stream, std::span<const NamedValue> inputs,
                            std::span<const NamedValue> outputs) {
  try {
    std::vector<NamedValue> all(inputs.begin(), inputs.end());
    all.insert(all.end(), outputs.begin(), outputs.end());
    const Arguments arguments = sort_named(signature(), all);
    const std::vector<Scalar> variables = variables_of(arguments, /*has_results=*/true);
    check_shapes(arguments, variables);
    choose_program(variables);
    compare_ranks(variables);
    const PlacedTensors placed = place_tensors(arguments, variables, stream);
    const std::vector<MeshStep> &steps = plan().steps;
    for (size_t i = 0; i < steps.size();) {
      const size_t together = num_together(i);
      if (together > 1)
        run_together(i, together, stream, placed);
      else
        run(steps[i], stream, placed, variables);
      i += std::max<size_t>(together, 1);
    }
  } catch (const std::exception &error) {
    // The others would wait for this rank.
    m_mesh.abort("rank " + std::to_string(m_mesh.rank()) + " failed: " + error.what());
    throw;
  }
}

} // namespace detail

MeshKernel::MeshKernel(const Kernel &kernel, const Mesh &mesh)
    : m_impl(std::make_shared<detail::MeshKernelImpl>(kernel, mesh)) {}
const Signature &MeshKernel::signature() const { return detail::held(m_impl).signature(); }
const MeshPlan &MeshKernel::plan() const { return detail::held(m_impl).plan(); }
std::vector<Extents> MeshKernel::result_shapes(std::span<const NamedValue> inputs) const {
  return detail::held(m_impl).result_shapes(inputs);
}
void MeshKernel::operator()(Stream stream, std::span<const NamedValue> inputs,
                            std::span<const NamedValue> outputs) const {
  detail::held(m_impl).launch(stream, inputs, outputs);
}
Status MeshKernel::try_launch(Stream stream, std::span<const NamedValue> inputs,
                              std::span<const NamedValue> outputs) const {
  return detail::capture([&] { (*this)(stream, inputs, outputs); });
}

} // namespace tk
