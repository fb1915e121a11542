//===- MeshPasses.td - the passes that place kernels on a mesh -------------===//
#ifndef TK_PASSES_MESH_MESHPASSES_TD
#define TK_PASSES_MESH_MESHPASSES_TD

include "mlir/Pass/PassBase.td"

def PlaceCollectives : Pass<"tk-place-collectives", "::mlir::ModuleOp"> {
  let summary = "Give each rank its share of a sharded kernel, and place the collectives between";
  let description = [{
    The pass rewrites kernels that have `tk.mesh` and `tk.mesh_sizes`. Extents become those of one
    rank. Each compute op gets at most one index for each axis of the mesh, which the ranks of that
    axis divide among themselves. The collectives follow from the index:

    - A reduction over that index leaves partial results: `tk.all_reduce`, or `tk.reduce_scatter` if
      the axis shards the result.
    - An operand that the axis shards along another dimension: `tk.all_gather`, or `tk.all_to_all` if
      the index stands in the operand.
    - A result that the axis is to shard otherwise: `tk.all_to_all`, or `tk.all_gather`.
    - A softmax over keys that the axis shards: each rank's partial softmax states, or the keys, are
      gathered.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def SplitAtCollectives : Pass<"tk-split-at-collectives", "::mlir::ModuleOp"> {
  let summary = "Outline the compute ops between collectives into local kernels";
  let description = [{
    The placed kernel keeps the collectives and one `tk.launch` for each local kernel. A local kernel
    is an ordinary `tk.kernel`. Its dimensions are the extents of the tensors that it reads; other
    sizes and the rank are integer parameters.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def OverlapCollectives : Pass<"tk-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "Run launches block by block beside the transfer of their rows";
  let description = [{
    A launch that reads a gathered tensor by rows runs for the rank's own block of rows, and then for
    each block that arrives. A launch that makes by rows what a `tk.exchange` sends runs for one block
    after the other, and each block is sent while the next one is computed. The pass compares the
    predicted time of both orders and leaves a note.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif // TK_PASSES_MESH_MESHPASSES_TD
