// RUN: tk-opt %s | tk-opt | FileCheck %s
// A plan prints the fields that are not at their defaults, and what it prints is read again.

// CHECK: t.compute = #tkgpu.plan<family = gemm, unit = wgmma, tiles = #tkgpu.schedule<tile = [128, 256], reduce = [64], warps = 8, per_thread = 128, vector = 16, stages = 4>>
// CHECK: t.empty = #tkgpu.plan<>
// CHECK: t.function = #tkgpu.plan<family = fused_gemm, unit = wgmma, tiles = #tkgpu.schedule<{{.*}}>, roles = producer_consumer, order = unordered, row_maximum = deferred, maximum_type = integer, row_sums = mma>
// CHECK: t.loads = [#tkgpu.cache<once = true>, #tkgpu.cache<common = true>, #tkgpu.cache<kept_from = 264>]
// CHECK: t.math = #tkgpu.math<approx, rescale>
// CHECK: t.merged = #tkgpu.plan<tiles = #tkgpu.schedule<{{.*}}>, merged_rows = [0, 3], merged_terms = true>
// CHECK: t.place = [#tkgpu.buffer<holds_results>, #tkgpu.buffer<in_stages>]
// CHECK: t.random = #tkgpu.random<neighbours = 4, words = true>
// CHECK: t.reductions = #tkgpu.plan<in_place = true, tile_reductions = [unit, #tkgpu.tile_reduction<kind = <sum>, counters = [2], indices = [0], sizes = [64], carried = true>], carries_tiles = true>
// CHECK: t.units = #tkgpu.plan<work_units = [3, 132]>
module attributes {
  t.compute = #tkgpu.plan<family = gemm, unit = wgmma, tiles = <tile = [128, 256], reduce = [64], warps = 8, per_thread = 128, stages = 4>, order = none>,
  t.empty = #tkgpu.plan<>,
  t.function = #tkgpu.plan<order = unordered, roles = producer_consumer, row_maximum = deferred, row_sums = mma,
    maximum_type = integer, family = fused_gemm, unit = wgmma, tiles = #tkgpu.schedule<tile = [128, 128], reduce = [128, 128], warps = 8>>,
  t.loads = [#tkgpu.cache<once = true>, #tkgpu.cache<common = true>, #tkgpu.cache<kept_from = 264>],
  t.math = #tkgpu.math<approx, rescale>,
  t.merged = #tkgpu.plan<tiles = <tile = [1, 1, 128, 128], reduce = [1, 64]>, merged_rows = [0, 3], merged_terms = true>,
  t.place = [#tkgpu.buffer<holds_results>, #tkgpu.buffer<in_stages>],
  t.random = #tkgpu.random<words = true, neighbours = 4>,
  t.reductions = #tkgpu.plan<in_place = true, carries_tiles = true,
    tile_reductions = [unit, #tkgpu.tile_reduction<kind = <sum>, counters = [2], indices = [0], sizes = [64], carried = true>]>,
  t.units = #tkgpu.plan<work_units = [3, 132]>
} {}
