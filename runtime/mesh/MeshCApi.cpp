// Meshes in the C interface.
#include <algorithm>

#include "runtime/CApiHandles.h"
#include "tk/mesh.h"

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

tk_status tk_mesh_threads(const char *const *names, const int64_t *sizes, size_t axes,
                          int64_t timeout_ms, tk_mesh **meshes, size_t count) {
  return guarded([&] {
    require(names && sizes && meshes, "expected names, sizes and meshes, got NULL");
    std::vector<tk::MeshAxis> all;
    for (size_t a = 0; a < axes; ++a) {
      require(names[a], "expected the name of an axis, got NULL");
      all.push_back({names[a], sizes[a]});
    }
    require(timeout_ms > 0, "expected a time of 1 ms or more");
    std::vector<tk::Mesh> made =
        tk::Mesh::threads(all, tk::MeshOptions{std::chrono::milliseconds(timeout_ms)});
    require(made.size() == count, "expected room for each rank of the mesh");
    std::vector<std::unique_ptr<tk_mesh>> handles;
    for (tk::Mesh &mesh : made)
      handles.push_back(std::make_unique<tk_mesh>(tk_mesh{std::move(mesh)}));
    for (size_t rank = 0; rank < count; ++rank)
      meshes[rank] = handles[rank].release();
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
