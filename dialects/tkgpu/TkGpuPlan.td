//===- TkGpuPlan.td - what was decided about a kernel ---------------------===//
//
// docs/reference/plan.md is generated from this file. TkGpuPlan.h has the plan as a struct.
//
#ifndef TK_DIALECTS_TKGPU_TKGPUPLAN_TD
#define TK_DIALECTS_TKGPU_TKGPUPLAN_TD

include "dialects/tkgpu/TkGpuBase.td"

class TkGpu_PlanEnum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tk::gpu";
  let genSpecializedAttr = 0;
}

// A parameter of the plan: an enum whose first case is the default.
class TkGpu_Choice<TkGpu_PlanEnum info, string value, string desc> : EnumParameter<info> {
  let summary = desc;
  let defaultValue = "::tk::gpu::" # info.className # "::" # value;
}
class TkGpu_Flag<string desc> : DefaultValuedParameter<"bool", "false", desc>;
// Printed in full, so that the name says what the numbers are.
class TkGpu_Whole<string type, string desc> : OptionalParameter<type, desc> {
  let printer = "$_printer << $_self";
}
class TkGpu_Numbers<string desc> : OptionalParameter<"::mlir::DenseI64ArrayAttr", desc>;

//===----------------------------------------------------------------------===//
// The plan of a kernel
//===----------------------------------------------------------------------===//

def TkGpu_PlanFamily : TkGpu_PlanEnum<"PlanFamily", "the kernel family that the planner chose", [
    I32EnumAttrCase<"None", 0, "none">,
    I32EnumAttrCase<"Elementwise", 1, "elementwise">,
    I32EnumAttrCase<"RowReduction", 2, "row_reduction">,
    I32EnumAttrCase<"ColumnReduction", 3, "column_reduction">,
    I32EnumAttrCase<"SharedTerms", 4, "shared_terms">,
    I32EnumAttrCase<"Gemv", 5, "gemv">,
    I32EnumAttrCase<"Pairwise", 6, "pairwise">,
    I32EnumAttrCase<"Gemm", 7, "gemm">,
    I32EnumAttrCase<"FusedGemm", 8, "fused_gemm">,
    I32EnumAttrCase<"Histogram", 9, "histogram">]>;

def TkGpu_PlanUnit : TkGpu_PlanEnum<"PlanUnit", "the unit that multiplies", [
    I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Cores", 1, "cores">,
    I32EnumAttrCase<"Mma", 2, "mma">, I32EnumAttrCase<"Wgmma", 3, "wgmma">]>;

def TkGpu_WarpRoles : TkGpu_PlanEnum<"WarpRoles", "whether warps copy for others", [
    I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"One", 1, "one">,
    I32EnumAttrCase<"ProducerConsumer", 2, "producer_consumer">]>;

def TkGpu_WarpgroupOrder : TkGpu_PlanEnum<"WarpgroupOrder", "how the warpgroups of a block follow each other", [
    I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Cooperative", 1, "cooperative">,
    I32EnumAttrCase<"PingPong", 2, "ping_pong">, I32EnumAttrCase<"Staggered", 3, "staggered">,
    I32EnumAttrCase<"Unordered", 4, "unordered">]>;

def TkGpu_RowMaximum : TkGpu_PlanEnum<"RowMaximum", "when a softmax's running row maximum is updated", [
    I32EnumAttrCase<"EachStep", 0, "each_step">, I32EnumAttrCase<"Deferred", 1, "deferred">]>;

def TkGpu_MaximumType : TkGpu_PlanEnum<"MaximumType", "how row maxima are compared", [
    I32EnumAttrCase<"Float", 0, "float">, I32EnumAttrCase<"Integer", 1, "integer">]>;

def TkGpu_RowSums : TkGpu_PlanEnum<"RowSums", "who adds up a softmax's numerators", [
    I32EnumAttrCase<"Threads", 0, "threads">, I32EnumAttrCase<"Mma", 1, "mma">]>;

def TkGpu_TileReductionAttr : TkGpu_Attr<"TileReduction", "tile_reduction"> {
  let summary = "A result that reduces the elements of each tile";
  let description = [{
    One of the `tile_reductions` of a plan. The result has an element for each tile: the reduction
    of the yielded value over the tile's values of `indices`. For each of these, the index at the
    same place in `counters` counts tiles. With `carried`, the first counter counts blocks; each
    block goes through several tiles and stores one element for all of them.
  }];
  let parameters = (ins
    AttrParameter<"::tk::ReduceKindAttr", "what combines the elements">:$kind,
    AttrParameter<"::mlir::DenseI64ArrayAttr", "positions of the indices that count tiles">:$counters,
    AttrParameter<"::mlir::DenseI64ArrayAttr", "positions of the indices that are reduced">:$indices,
    AttrParameter<"::mlir::DenseI64ArrayAttr", "values of each reduced index in a tile">:$sizes,
    TkGpu_Flag<"a block reduces several tiles">:$carried);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def TkGpu_PlanAttr : TkGpu_Attr<"Plan", "plan"> {
  let summary = "The decisions about a kernel: `#tkgpu.plan<family = gemm, unit = wgmma, ...>`";
  let description = [{
    On a `tk.compute` as `tkgpu.plan`, and on its `tkgpu.func` once that exists. The planner writes
    the first group of parameters in phase 4 of the pipeline; `tk-tile` hands the plan on to the
    function. A later pass that makes one of the other decisions records it here. Passes and
    emission read decisions from here, and do not derive them again. A parameter that has its
    default is not printed.

    The families:

    * `elementwise`: no reduction.
    * `row_reduction`: reductions along memory, with rows in registers, shared memory or clusters.
    * `column_reduction`: reductions across memory.
    * `shared_terms`: several results reduce the same terms.
    * `gemv`: rows of a matrix are summed beside one row that all share.
    * `pairwise`: the elements of a reduction are functions of one value a row and one a column.
    * `gemm`: contractions. `unit` says which unit multiplies.
    * `fused_gemm`: a contraction whose operand is computed from another one, as in attention.
    * `histogram`: sums by a key, with a sum for each key in shared memory.

    The orders of warpgroups:

    * `cooperative`: the warpgroups share a tile, and synchronise at its pipeline stages.
    * `ping_pong`: one warpgroup multiplies while the other works on its results.
    * `staggered`: one warpgroup ends its contractions earlier, and stores under the other's last.
    * `unordered`: no warpgroup waits for another.

    ```mlir
    #tkgpu.plan<family = gemm, unit = wgmma, tiles = <tile = [128, 256], reduce = [64], warps = 8,
        per_thread = 128, stages = 4>, order = none>
    ```

    A kernel plan is not a launch plan. `tkc build --emit plan` prints the launch plan: which
    kernels the runtime launches, with which arguments.
  }];
  let parameters = (ins
    // Written by the planner.
    TkGpu_Choice<TkGpu_PlanFamily, "None", "kernel family">:$family,
    TkGpu_Choice<TkGpu_PlanUnit, "None", "the unit that multiplies">:$unit,
    TkGpu_Whole<"::tk::gpu::ScheduleAttr",
      "tiles, warps, stages of the copy pipeline, clusters: see #tkgpu.schedule">:$tiles,
    TkGpu_Flag<"a result replaces a parameter in memory, so that no block may read the parameter "
      "after another has stored">:$in_place,
    TkGpu_Numbers<"[first, end): indices of the compute op that tiles count through as one">:$merged_rows,
    TkGpu_Flag<"tiles count through all indices of the only reduction as one">:$merged_terms,
    OptionalParameter<"::mlir::ArrayAttr",
      "for each result a #tkgpu.tile_reduction, or unit if it is stored element by element">:$tile_reductions,
    // Written when the function is made.
    TkGpu_Flag<"blocks go through tiles, and carry tile reductions from one to the next">:$carries_tiles,
    TkGpu_Numbers<"[argument, count]: the function's argument that holds the first tile of each of "
      "`count` work units">:$work_units,
    // Written by the passes that partition loops and warps.
    TkGpu_Choice<TkGpu_WarpRoles, "None", "warp specialization">:$roles,
    TkGpu_Choice<TkGpu_WarpgroupOrder, "None", "order of the warpgroups">:$order,
    TkGpu_Choice<TkGpu_RowMaximum, "EachStep", "update of the softmax's row maximum">:$row_maximum,
    TkGpu_Choice<TkGpu_MaximumType, "Float", "comparison of row maxima">:$maximum_type,
    TkGpu_Choice<TkGpu_RowSums, "Threads", "sum of the softmax's numerators">:$row_sums);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Decisions about one operation
//===----------------------------------------------------------------------===//

def TkGpu_CacheAttr : TkGpu_Attr<"Cache", "cache"> {
  let summary = "How a load uses the caches: `#tkgpu.cache<once = true>`";
  let description = "On a tkgpu.load as `tkgpu.cache`.";
  let parameters = (ins
    TkGpu_Flag<"no other thread, block or iteration reads the same elements: evict them first">:$once,
    TkGpu_Flag<"other iterations read the same elements: load without a branch, so that equal loads "
      "become one">:$common,
    DefaultValuedParameter<"int64_t", "0", "from so many blocks of the launch on, lines stay in the "
      "L2 (evict last); 0: never">:$kept_from);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def TkGpu_BufferUse : TkGpu_PlanEnum<"BufferUse", "how a shared buffer and its stages are used", [
    I32EnumAttrCase<"HoldsResults", 0, "holds_results">,
    I32EnumAttrCase<"InStages", 1, "in_stages">]>;
def TkGpu_BufferAttr : EnumAttr<TkGpu_Dialect, TkGpu_BufferUse, "buffer"> {
  let summary = "Where results lie in shared memory: `#tkgpu.buffer<in_stages>`";
  let description = [{
    On a tkgpu.alloc_shared as `tkgpu.buffer`. A buffer that `holds_results` has stages in which a
    tile's results lie once its rows have been read. A buffer `in_stages` is those results: it lies
    where the other one does.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def TkGpu_MathMode : I32BitEnumAttr<"MathMode", "how a scalar operation is computed", [
    I32BitEnumAttrCaseBit<"Approx", 0, "approx">, I32BitEnumAttrCaseBit<"Wide", 1, "wide">,
    I32BitEnumAttrCaseBit<"Rescale", 2, "rescale">,
    I32BitEnumAttrCaseBit<"SharedRows", 3, "shared_rows">,
    I32BitEnumAttrCaseBit<"Reciprocal", 4, "reciprocal">,
    I32BitEnumAttrCaseBit<"Rounded", 5, "rounded">, I32BitEnumAttrCaseBit<"Exact", 6, "exact">]> {
  let cppNamespace = "::tk::gpu";
  let genSpecializedAttr = 0;
  let separator = ", ";
}
def TkGpu_MathModeAttr : EnumAttr<TkGpu_Dialect, TkGpu_MathMode, "math"> {
  let summary = "How a scalar operation is computed: `#tkgpu.math<approx, rescale>`";
  let description = [{
    On an operation of a compute op's body, or on a tile of its results, as `tkgpu.math`.

    * `approx`: computed with the hardware's approximation. The relative error is 2^-19 for
      `tk.exp_diff`, and 2^-22 for a quotient by a number with a normal reciprocal. For other
      functions the numerics reference gives it.
    * `wide`: the exponential holds for row maxima of any size. Without it, for maxima below 2^27.
    * `rescale`: the exponential of the difference between two running maxima. It is 1 in most steps.
    * `shared_rows`: the row maxima of neighbouring rows may be made equal if they differ by at
      most 1.
    * `reciprocal`: the quotient may be a product with the hardware's reciprocal.
    * `rounded`: the product is rounded before it is added to something. There is no fused
      multiply-add.
    * `exact`: f32 holds the value of the converted index, and of all numbers that it is a sum of.
  }];
  let assemblyFormat = "`<` $value `>`";
  let genVerifyDecl = 1;
}

def TkGpu_RandomAttr : TkGpu_Attr<"Random", "random"> {
  let summary = "How random numbers are drawn: `#tkgpu.random<neighbours = 4>`";
  let description = "On a tk.rand, and on comparisons of its words, as `tkgpu.random`.";
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "1",
      "consecutive registers that hold numbers of one Philox block: 1, 2 or 4">:$neighbours,
    TkGpu_Flag<"the numbers are only compared with limits: they stay words, compared as "
      "integers">:$words);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // TK_DIALECTS_TKGPU_TKGPUPLAN_TD
