// RUN: tk-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected a unit for gemm, fused_gemm and pairwise alone, got none for gemm}}
module attributes {x = #tkgpu.plan<family = gemm, tiles = <tile = [64], reduce = [64]>>} {}

// -----

// expected-error @below {{expected a unit for gemm, fused_gemm and pairwise alone, got mma for row_reduction}}
module attributes {x = #tkgpu.plan<family = row_reduction, unit = mma, tiles = <tile = [64], reduce = [64]>>} {}

// -----

// expected-error @below {{expected tiles for the family elementwise}}
module attributes {x = #tkgpu.plan<family = elementwise>} {}

// -----

// expected-error @below {{expected merged_rows to be a range of several of the tiled indices}}
module attributes {x = #tkgpu.plan<tiles = <tile = [64, 64], reduce = []>, merged_rows = [1, 2]>} {}

// -----

// expected-error @below {{expected merged_rows to be a range of several of the tiled indices}}
module attributes {x = #tkgpu.plan<tiles = <tile = [64, 64], reduce = []>, merged_rows = [0, 3]>} {}

// -----

// expected-error @below {{expected unit or #tkgpu.tile_reduction for each result, got 1 : i64}}
module attributes {x = #tkgpu.plan<tile_reductions = [1]>} {}

// -----

// expected-error @below {{expected counters below the number of tiled indices, 1}}
module attributes {x = #tkgpu.plan<tiles = <tile = [64], reduce = []>,
  tile_reductions = [#tkgpu.tile_reduction<kind = <max>, counters = [1], indices = [0], sizes = [64]>]>} {}

// -----

// expected-error @below {{expected work_units to be an argument and a positive count}}
module attributes {x = #tkgpu.plan<work_units = [1, 0]>} {}

// -----

// expected-error @below {{expected blocks to go through work units or to carry tiles, not both}}
module attributes {x = #tkgpu.plan<work_units = [1, 4], carries_tiles = true>} {}

// -----

// expected-error @below {{expected tkgpu.warp_roles for the plan's roles, order or row maxima, got none}}
tkgpu.func @f args [] {
  tkgpu.return
} {tkgpu.plan = #tkgpu.plan<order = ping_pong>}

// -----

// expected-error @below {{expected tkgpu.warp_roles for the plan's roles, order or row maxima, got none}}
tkgpu.func @f args [] {
  tkgpu.return
} {tkgpu.plan = #tkgpu.plan<row_maximum = deferred>}

// -----

// expected-error @below {{expected work_units of one of 1 arguments, got 1}}
tkgpu.func @f args ["n"] {
^bb0(%n: index):
  tkgpu.return
} {tkgpu.plan = #tkgpu.plan<work_units = [1, 132]>}

// -----

// expected-error @below {{expected ::tk::gpu::WarpgroupOrder to be one of: none, cooperative, ping_pong, staggered, unordered}}
// expected-error @below {{failed to parse TkGpu_PlanAttr parameter 'order'}}
module attributes {x = #tkgpu.plan<order = turns>} {}

// -----

// expected-error @below {{duplicate or unknown struct parameter name: stages}}
module attributes {x = #tkgpu.plan<stages = 4>} {}

// -----

// expected-error @below {{expected as many counters, indices and sizes, and at least one, got 1, 2 and 1}}
module attributes {x = #tkgpu.tile_reduction<kind = <sum>, counters = [2], indices = [0, 1], sizes = [64]>} {}

// -----

// expected-error @below {{expected positive sizes}}
module attributes {x = #tkgpu.tile_reduction<kind = <sum>, counters = [2], indices = [0], sizes = [0]>} {}

// -----

// expected-error @below {{expected once, common or kept_from}}
module attributes {x = #tkgpu.cache<>} {}

// -----

// expected-error @below {{expected a number of blocks of at least 0, got -1}}
module attributes {x = #tkgpu.cache<once = true, kept_from = -1>} {}

// -----

// expected-error @below {{expected approx beside wide}}
module attributes {x = #tkgpu.math<rescale, wide>} {}

// -----

// expected-error @below {{expected 1, 2 or 4 neighbours, got 3}}
module attributes {x = #tkgpu.random<neighbours = 3>} {}
