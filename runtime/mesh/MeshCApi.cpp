// Meshes in the C interface.
#include <algorithm>

#include "runtime/CApiHandles.h"
#include "tk/mesh.h"
#include "tk/mesh_nccl.h"

struct tk_mesh {
  tk::Mesh mesh;
};

struct tk_mesh_kernel {
  tk_kernel own; ///< for the names of arguments
  tk::MeshKernel kernel;
  std::string plan;
};

using tk::c_api::guarded;
using tk::c_api::require;

namespace {

std::vector<tk::MeshAxis> axes_of(const tk_mesh_layout *layout) {
  require(layout && (layout->axes == 0 || (layout->names && layout->sizes)),
          "expected a layout with names and sizes, got NULL");
  std::vector<tk::MeshAxis> axes;
  for (size_t a = 0; a < layout->axes; ++a) {
    require(layout->names[a], "expected the name of an axis, got NULL");
    axes.push_back({layout->names[a], layout->sizes[a]});
  }
  return axes;
}

tk::MeshOptions options_of(const tk_mesh_layout *layout) {
  require(layout->timeout_ms > 0, "expected a time of 1 ms or more");
  tk::MeshOptions options;
  options.timeout = std::chrono::milliseconds(layout->timeout_ms);
  options.network = layout->network ? layout->network : "";
  return options;
}

} // namespace

tk_status tk_mesh_threads(const char *const *names, const int64_t *sizes, size_t axes,
                          int64_t timeout_ms, tk_mesh **meshes, size_t count) {
  return guarded([&] {
    require(names && sizes && meshes, "expected names, sizes and meshes, got NULL");
    const tk_mesh_layout layout{names, sizes, axes, timeout_ms, nullptr};
    std::vector<tk::Mesh> made = tk::Mesh::threads(axes_of(&layout), options_of(&layout));
    require(made.size() == count, "expected room for each rank of the mesh");
    std::vector<std::unique_ptr<tk_mesh>> handles;
    for (tk::Mesh &mesh : made)
      handles.push_back(std::make_unique<tk_mesh>(tk_mesh{std::move(mesh)}));
    for (size_t rank = 0; rank < count; ++rank)
      meshes[rank] = handles[rank].release();
  });
}

tk_status tk_mesh_process(const tk_mesh_layout *layout, const char *path, int64_t rank,
                          tk_mesh **mesh) {
  return guarded([&] {
    require(path && mesh, "expected a path and room for a mesh, got NULL");
    const std::vector<tk::MeshAxis> axes = axes_of(layout);
    *mesh = new tk_mesh{tk::Mesh::process(path, rank, axes, options_of(layout))};
  });
}

tk_status tk_nccl_unique_id(char id[TK_NCCL_ID_BYTES]) {
  return guarded([&] {
    require(id, "expected room for an id, got NULL");
    const std::string made = tk::nccl_unique_id();
    std::copy(made.begin(), made.end(), id);
  });
}

tk_status tk_mesh_join(const tk_mesh_layout *layout, const char id[TK_NCCL_ID_BYTES], int64_t rank,
                       int32_t device, tk_mesh **mesh) {
  return guarded([&] {
    require(id && mesh, "expected an id and room for a mesh, got NULL");
    const std::vector<tk::MeshAxis> axes = axes_of(layout);
    *mesh = new tk_mesh{
        tk::join_nccl(std::string(id, TK_NCCL_ID_BYTES), rank, axes, device, options_of(layout))};
  });
}

tk_status tk_mesh_of_communicator(const tk_mesh_layout *layout, void *communicator, int32_t device,
                                  tk_mesh **mesh) {
  return guarded([&] {
    require(communicator && mesh, "expected a communicator and room for a mesh, got NULL");
    const std::vector<tk::MeshAxis> axes = axes_of(layout);
    *mesh = new tk_mesh{tk::mesh_of_nccl(communicator, axes, device, options_of(layout))};
  });
}

void tk_mesh_free(tk_mesh *mesh) { delete mesh; }
int64_t tk_mesh_rank(const tk_mesh *mesh) { return mesh->mesh.rank(); }
int64_t tk_mesh_size(const tk_mesh *mesh) { return mesh->mesh.size(); }

tk_status tk_mesh_abort(const tk_mesh *mesh, const char *reason) {
  return guarded([&] {
    require(mesh, "expected a mesh, got NULL");
    mesh->mesh.abort(reason ? reason : "the group was aborted");
  });
}

tk_status tk_mesh_kernel_make(const tk_kernel *kernel, const tk_mesh *mesh, tk_mesh_kernel **made) {
  return guarded([&] {
    require(kernel && mesh && made, "expected kernel, mesh and room for a handle, got NULL");
    tk::MeshKernel onMesh(kernel->kernel, mesh->mesh);
    std::string plan = onMesh.plan().str(kernel->kernel.signature());
    *made = new tk_mesh_kernel{*kernel, std::move(onMesh), std::move(plan)};
  });
}

void tk_mesh_kernel_free(tk_mesh_kernel *kernel) { delete kernel; }
const char *tk_mesh_kernel_plan(const tk_mesh_kernel *kernel) { return kernel->plan.c_str(); }

tk_status tk_mesh_kernel_shape(const tk_mesh_kernel *kernel, size_t index, const tk_value *values,
                               size_t count, int64_t *shape, int32_t *rank) {
  return guarded([&] {
    require(kernel && shape && rank && (values || count == 0), "expected kernel, values and room");
    const tk::Signature &signature = kernel->kernel.signature();
    const size_t parameters = signature.params.size();
    require(index >= parameters && index - parameters < signature.results.size(),
            "expected the position of a result");
    const tk::Extents found = kernel->kernel.result_shapes(tk::c_api::named_values(
        &kernel->own, values, std::min(count, parameters)))[index - parameters];
    *rank = static_cast<int32_t>(found.size());
    std::copy(found.begin(), found.end(), shape);
  });
}

tk_status tk_mesh_kernel_launch(const tk_mesh_kernel *kernel, void *stream, const tk_value *values,
                                size_t count) {
  return guarded([&] {
    require(kernel && (values || count == 0), "expected kernel and values, got NULL");
    kernel->kernel(tk::Stream(stream), tk::c_api::named_values(&kernel->own, values, count), {});
  });
}
