// The examples of the operations in dialects/tkgpu/*.td, each in a function that gives its operands.
// RUN: tk-opt %s | tk-opt | FileCheck %s

#row = #tkgpu.layout<register = [[1], [2], [4], [256]], lane = [[8], [16], [32], [64], [128]], warp = []>
#one = #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = []>
#wide = #tkgpu.layout<register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
#narrow = #tkgpu.layout<register = [], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = []>
#t = #tkgpu.layout<register = [[0, 1], [0, 2], [0, 4], [8, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = []>
#u = #tkgpu.layout<register = [[1, 0], [2, 0], [4, 0], [8, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = []>
#slice = #tkgpu.layout<register = [], lane = [[0], [0], [1], [2], [4]], warp = []>
#rows = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [64, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#tile = #tkgpu.layout<register = [[0, 1], [0, 2], [16, 0], [32, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>

// CHECK-LABEL: tkgpu.func @program_id
// CHECK: tkgpu.program_id
tkgpu.func @program_id args [] {
  %id = tkgpu.program_id x
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @cluster_rank
// CHECK: tkgpu.cluster_rank
tkgpu.func @cluster_rank args [] {
  %rank = tkgpu.cluster_rank
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @num_programs
// CHECK: tkgpu.num_programs
tkgpu.func @num_programs args [] {
  %n = tkgpu.num_programs x
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @iota
// CHECK: tkgpu.iota
tkgpu.func @iota args [] {
  %j = tkgpu.iota to 5120 : tensor<8192xindex>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @misalignment
// CHECK: tkgpu.misalignment
tkgpu.func @misalignment args ["row", "C"] {
^bb0(%row: index, %C: index):
  %s = tkgpu.misalignment[%row] strides(%C) of 8
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @rotated_iota
// CHECK: tkgpu.rotated_iota
tkgpu.func @rotated_iota args ["s"] {
^bb0(%s: index):
  %j = tkgpu.rotated_iota %s : tensor<1024xindex>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @funnel
// CHECK: tkgpu.funnel
tkgpu.func @funnel args ["before", "here", "s"] {
^bb0(%before: tensor<1024xbf16>, %here: tensor<1024xbf16>, %s: index):
  %g = tkgpu.funnel %before, %here by %s in 8 : tensor<1024xbf16>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @rows_bound
// CHECK: tkgpu.rows_bound
tkgpu.func @rows_bound args ["whole", "first", "second"] {
^bb0(%whole: index, %first: index, %second: index):
  %end = tkgpu.rows_bound %whole parts(%first, %second)
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @broadcast
// CHECK: tkgpu.broadcast
tkgpu.func @broadcast args ["m"] {
^bb0(%m: tensor<16xf32>):
  %t = tkgpu.broadcast %m dims [0] : tensor<16xf32> -> tensor<16x8xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @transpose
// CHECK: tkgpu.transpose
tkgpu.func @transpose args ["x"] {
^bb0(%x: tensor<16x8xf32>):
  %t = tkgpu.transpose %x by [1, 0] : tensor<16x8xf32> -> tensor<8x16xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @extract
// CHECK: tkgpu.extract
tkgpu.func @extract args ["j"] {
^bb0(%j: tensor<512xindex>):
  %h = tkgpu.extract %j at [256] : tensor<512xindex> -> tensor<256xindex>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @join
// CHECK: tkgpu.join
tkgpu.func @join args ["x", "y"] {
^bb0(%x: tensor<64x8xf32>, %y: tensor<64x8xf32>):
  %r = tkgpu.join %x, %y axis 1 : tensor<64x8xf32>, tensor<64x8xf32> -> tensor<64x16xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @hold
// CHECK: tkgpu.hold
tkgpu.func @hold args ["x"] {
^bb0(%x: tensor<1024xbf16>):
  %h = tkgpu.hold %x : tensor<1024xbf16>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @select_at
// CHECK: tkgpu.select_at
tkgpu.func @select_at args ["less", "x", "n"] {
^bb0(%less: tensor<2048xf32>, %x: tensor<2048xf32>, %n: index):
  %r = tkgpu.select_at %less at %n else %x : tensor<2048xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @scaled_exp_diff
// CHECK: tkgpu.scaled_exp_diff
tkgpu.func @scaled_exp_diff args ["score", "max", "scale"] {
^bb0(%score: tensor<64xf32>, %max: tensor<64xf32>, %scale: tensor<64xf32>):
  %e = tkgpu.scaled_exp_diff %score, %max by %scale : tensor<64xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @scaled_exponent
// CHECK: tkgpu.scaled_exponent
tkgpu.func @scaled_exponent args ["score", "max", "scale"] {
^bb0(%score: tensor<64xf32>, %max: tensor<64xf32>, %scale: tensor<64xf32>):
  %x = tkgpu.scaled_exponent %score, %max by %scale : tensor<64xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @convert_layout
// CHECK: tkgpu.convert_layout
tkgpu.func @convert_layout args ["s"] {
^bb0(%s: tensor<16x32xf32, #t>):
  %o = tkgpu.convert_layout %s : tensor<16x32xf32, #t> -> tensor<16x32xf32, #u>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @reduce
// CHECK: tkgpu.reduce
tkgpu.func @reduce args ["x"] {
^bb0(%x: tensor<32x8xf32>):
  %m = tkgpu.reduce <max> %x axis 1 : tensor<32x8xf32> -> tensor<32xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @reduce_runs
// CHECK: tkgpu.reduce_runs
tkgpu.func @reduce_runs args ["x"] {
^bb0(%x: tensor<32x8xf32>):
  %y = tkgpu.reduce_runs <sum> %x axis 0 : tensor<32x8xf32> -> tensor<4x8xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @reduce_in_threads
// CHECK: tkgpu.reduce_in_threads
tkgpu.func @reduce_in_threads args ["x"] {
^bb0(%x: tensor<8x8xf32, #wide>):
  %y = tkgpu.reduce_in_threads <sum> %x axis 1 : tensor<8x8xf32, #wide> -> tensor<8x4xf32, #narrow>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @spread_in_threads
// CHECK: tkgpu.spread_in_threads
tkgpu.func @spread_in_threads args ["x"] {
^bb0(%x: tensor<8x4xf32, #narrow>):
  %y = tkgpu.spread_in_threads %x axis 1 : tensor<8x4xf32, #narrow> -> tensor<8x8xf32, #wide>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @first_in_threads
// CHECK: tkgpu.first_in_threads
tkgpu.func @first_in_threads args ["x"] {
^bb0(%x: tensor<8x8xf32, #wide>):
  %y = tkgpu.first_in_threads %x axis 1 : tensor<8x8xf32, #wide> -> tensor<8xf32, #slice>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @moments
// CHECK: tkgpu.moments
tkgpu.func @moments args ["x"] {
^bb0(%x: tensor<128xf32>):
  %mean, %squares = tkgpu.moments %x : tensor<128xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @weights
// CHECK: tkgpu.weights
tkgpu.func @weights args ["x"] {
^bb0(%x: tensor<2048xf32>):
  %max, %sum, %w, %g = tkgpu.weights %x : tensor<2048xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @arg_reduce
// CHECK: tkgpu.arg_reduce
tkgpu.func @arg_reduce args ["x", "j"] {
^bb0(%x: tensor<16x32xf32>, %j: tensor<16x32xi64>):
  %best, %where = tkgpu.arg_reduce <argmax> %x, %j axis 1 : tensor<16x32xf32>, tensor<16x32xi64> ->
      tensor<16xf32>, tensor<16xi64>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @scan
// CHECK: tkgpu.scan
tkgpu.func @scan args ["x"] {
^bb0(%x: tensor<16x32xf32>):
  %prefix, %total = tkgpu.scan <sum> %x axis 1 : tensor<16x32xf32> -> tensor<16xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @dot
// CHECK: tkgpu.dot
tkgpu.func @dot args ["x", "y", "sum"] {
^bb0(%x: tensor<64x32xf32>, %y: tensor<32x64xf32>, %sum: tensor<64x64xf32>):
  %d = tkgpu.dot %x, %y, %sum by {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.absf %0 : f32
    %2 = arith.addf %old, %1 : f32
    tk.yield %2 : f32
  } : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @launch_release
// CHECK: tkgpu.launch_release
tkgpu.func @launch_release args [] {
  tkgpu.launch_release
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @launch_wait
// CHECK: tkgpu.launch_wait
tkgpu.func @launch_wait args ["p"] {
^bb0(%p: !tkgpu.buffer<f32>):
  tkgpu.launch_wait %p : !tkgpu.buffer<f32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @alloc_phases
// CHECK: tkgpu.alloc_phases
tkgpu.func @alloc_phases args [] {
  %full = tkgpu.alloc_phases arrivals 1 : <4>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @phase_expect
// CHECK: tkgpu.phase_expect
tkgpu.func @phase_expect args ["full", "slot"] {
^bb0(%full: !tkgpu.phases<4>, %slot: index):
  tkgpu.phase_expect %full[%slot] bytes 49152 : <4>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @phase_arrive
// CHECK: tkgpu.phase_arrive
tkgpu.func @phase_arrive args ["empty", "slot"] {
^bb0(%empty: !tkgpu.phases<4>, %slot: index):
  tkgpu.phase_arrive %empty[%slot] : <4>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @arrive_before
// CHECK: tkgpu.arrive_before
tkgpu.func @arrive_before args ["empty", "slot", "f"] {
^bb0(%empty: !tkgpu.phases<4>, %slot: index, %f: tensor<128xf32>):
  %g = tkgpu.arrive_before %empty[%slot], %f : <4>, tensor<128xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @phase_wait
// CHECK: tkgpu.phase_wait
tkgpu.func @phase_wait args ["full", "slot", "parity"] {
^bb0(%full: !tkgpu.phases<4>, %slot: index, %parity: index):
  tkgpu.phase_wait %full[%slot] parity %parity : <4>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @bulk_copy
// CHECK: tkgpu.bulk_copy
tkgpu.func @bulk_copy args ["a", "map", "row", "k", "full", "slot"] {
^bb0(%a: !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, %map:
    !tkgpu.tensor_map, %row: index, %k: index, %full: !tkgpu.phases<4>, %slot: index):
  tkgpu.bulk_copy %a, %map[%row, %k] signals %full[%slot] : <[128, 64], bf16 order = [1, 0] chunk =
      8 phases = 8>, !tkgpu.phases<4>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @bulk_store
// CHECK: tkgpu.bulk_store
tkgpu.func @bulk_store args ["s", "map", "row", "column"] {
^bb0(%s: !tkgpu.shared<[64, 64], bf16 chunk = 8 phases = 8>, %map: !tkgpu.tensor_map, %row: index,
    %column: index):
  tkgpu.bulk_store %s, %map[%row, %column] {warpgroup_axis = 0 : i64} : <[64, 64], bf16 chunk = 8
      phases = 8>
  tkgpu.return
} {num_warps = 8 : i64}

// CHECK-LABEL: tkgpu.func @bulk_store_wait
// CHECK: tkgpu.bulk_store_wait
tkgpu.func @bulk_store_wait args [] {
  tkgpu.bulk_store_wait 0 {warpgroup}
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @async_fence
// CHECK: tkgpu.async_fence
tkgpu.func @async_fence args [] {
  tkgpu.async_fence
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @warpgroup_dot
// CHECK: tkgpu.warpgroup_dot
tkgpu.func @warpgroup_dot args ["a", "b", "zero"] {
^bb0(%a: !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, %b: !tkgpu.shared<[64,
    256], bf16 order = [1, 0] chunk = 8 phases = 8 panel = 64>, %zero: tensor<128x256xf32>):
  %d = tkgpu.warpgroup_dot %a, %b, %zero : !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8
      phases = 8>, <[64, 256], bf16 order = [1, 0] chunk = 8 phases = 8 panel = 64> ->
      tensor<128x256xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @warpgroup_sums
// CHECK: tkgpu.warpgroup_sums
tkgpu.func @warpgroup_sums args ["p", "v", "acc", "sums"] {
^bb0(%p: tensor<64x128xf8E4M3FN>, %v: !tkgpu.shared<[128, 64], f8E4M3FN order = [0, 1] chunk = 16
    phases = 8 ones = 8>, %acc: tensor<64x64xf32>, %sums: tensor<64x8xf32>):
  %o = tkgpu.warpgroup_dot %p, %v, %acc precision <fast> : tensor<64x128xf8E4M3FN>, <[128, 64],
      f8E4M3FN order = [0, 1] chunk = 16 phases = 8 ones = 8> -> tensor<64x64xf32>
  %s = tkgpu.warpgroup_sums %p, %v, %sums : tensor<64x128xf8E4M3FN>, <[128, 64], f8E4M3FN order =
      [0, 1] chunk = 16 phases = 8 ones = 8> -> tensor<64x8xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @clear
// CHECK: tkgpu.clear
tkgpu.func @clear args ["x"] {
^bb0(%x: tensor<64x8xf32>):
  %z = tkgpu.clear %x : tensor<64x8xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @undefined
// CHECK: tkgpu.undefined
tkgpu.func @undefined args [] {
  %u = tkgpu.undefined : tensor<64x64xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @warpgroup_wait
// CHECK: tkgpu.warpgroup_wait
tkgpu.func @warpgroup_wait args ["d"] {
^bb0(%d: tensor<128x256xf32>):
  %w = tkgpu.warpgroup_wait %d pending 0 : tensor<128x256xf32> -> tensor<128x256xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @warp_roles
// CHECK: tkgpu.warp_roles
tkgpu.func @warp_roles args ["full", "slot", "parity"] {
^bb0(%full: !tkgpu.phases<4>, %slot: index, %parity: index):
  tkgpu.warp_roles producer {
    tkgpu.phase_expect %full[%slot] bytes 49152 : <4>
  } consumer {
    tkgpu.phase_wait %full[%slot] parity %parity : <4>
  } {producer_registers = 24, consumer_registers = 240}
  tkgpu.return
} {producer_warps = 4 : i64}

// CHECK-LABEL: tkgpu.func @of_warpgroup
// CHECK: tkgpu.of_warpgroup
tkgpu.func @of_warpgroup args ["first", "second"] {
^bb0(%first: index, %second: index):
  %own = tkgpu.of_warpgroup %first, %second
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @turn
// CHECK: tkgpu.turn
tkgpu.func @turn args [] {
  tkgpu.turn take
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @none_negative
// CHECK: tkgpu.none_negative
tkgpu.func @none_negative args ["m"] {
^bb0(%m: tensor<32xf32, #one>):
  %all = tkgpu.none_negative %m : tensor<32xf32, #one>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @all_finite
// CHECK: tkgpu.all_finite %{{.*}} : tensor<32xf32, #{{.*}}>
tkgpu.func @all_finite args ["o"] {
^bb0(%o: tensor<32xf32, #one>):
  %all = tkgpu.all_finite %o : tensor<32xf32, #one>
  tkgpu.return
}

// CHECK: tkgpu.element "attention_o" result 0 arguments [0, 2, -1, -2] {
// CHECK: tkgpu.element_end %{{.*}} : f32
tkgpu.element "attention_o" result 0 arguments [0, 2, -1, -2] {
^bb0(%S: index, %v: !tkgpu.buffer<bf16>, %i: index, %e: index):
  %sum = arith.constant 0.0 : f32
  tkgpu.element_end %sum : f32
}

// CHECK: tkgpu.element "attention_state1" result 1 under 0 arguments [-1, -2] {
// CHECK: tkgpu.element_end %{{.*}} under %{{.*}} : f32
tkgpu.element "attention_state1" result 1 under 0 arguments [-1, -2] {
^bb0(%i: index, %e: index):
  %sum = arith.constant 0.0 : f32
  %max = arith.constant 1.0 : f32
  tkgpu.element_end %sum under %max : f32
}

// CHECK-LABEL: tkgpu.func @repair_under
// CHECK: tkgpu.repair %{{.*}} under %{{.*}} : tensor<32xf32, #{{.*}}> {
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[REFERENCE:.*]]: f32):
// CHECK: tkgpu.element_end %[[REFERENCE]] : f32
tkgpu.func @repair_under args ["o", "m"] {
^bb0(%o: tensor<32xf32, #one>, %m: tensor<32xf32, #one>):
  %p = tkgpu.repair %o under %m : tensor<32xf32, #one> {
  ^bb0(%place: index, %reference: f32):
    tkgpu.element_end %reference : f32
  } : tensor<32xf32, #one>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @repair
// CHECK: tkgpu.repair %{{.*}} {
// CHECK: tkgpu.element_end %{{.*}} : f32
// CHECK: } : tensor<32xf32, #{{.*}}>
tkgpu.func @repair args ["o", "sum"] {
^bb0(%o: tensor<32xf32, #one>, %sum: f32):
  %p = tkgpu.repair %o {
  ^bb0(%place: index):
    tkgpu.element_end %sum : f32
  } : tensor<32xf32, #one>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @repair_together
// CHECK: tkgpu.repair %{{.*}} together {
// CHECK: tkgpu.element_end %{{.*}} : f64
// CHECK: } : tensor<32xf64, #{{.*}}>
tkgpu.func @repair_together args ["o", "sum"] {
^bb0(%o: tensor<32xf64, #one>, %sum: f64):
  %p = tkgpu.repair %o together {
  ^bb0(%place: index):
    tkgpu.element_end %sum : f64
  } : tensor<32xf64, #one>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @repair_stored
// CHECK: tkgpu.repair %{{.*}} stored {
// CHECK-NEXT: ^bb0(%[[PLACE:.*]]: index):
// CHECK-NEXT: tkgpu.put_element %{{.*}}, %{{.*}}[%[[PLACE]]] : f32, <f32>
tkgpu.func @repair_stored args ["o", "sum", "y"] {
^bb0(%o: tensor<32xf32, #one>, %sum: f32, %y: !tkgpu.buffer<f32>):
  %p = tkgpu.repair %o stored {
  ^bb0(%place: index):
    tkgpu.put_element %sum, %y[%place] : f32, <f32>
    tkgpu.element_end %sum : f32
  } : tensor<32xf32, #one>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @keep_finite
// CHECK: tkgpu.noted %{{.*}} : <2>
// CHECK: tkgpu.keep_finite %{{.*}} after %{{.*}} : <[32, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, <2>
tkgpu.func @keep_finite args [] {
  %stage = tkgpu.alloc_shared : <[32, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
  %flags = tkgpu.alloc_phases arrivals 8 {notes} : <2>
  %clean = tkgpu.noted %flags : <2>
  %loaded = tkgpu.alloc_phases arrivals 1 {notes} : <2>
  tkgpu.keep_finite %stage after %loaded
      : <[32, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, <2>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @doubt
// CHECK: tkgpu.doubt
tkgpu.func @doubt args ["flags", "asked", "sum"] {
^bb0(%flags: !tkgpu.phases<2>, %asked: i1, %sum: tensor<32xf32, #one>):
  %is = tkgpu.doubt %flags if %asked : <2>, %sum from 0.5 to 2.0 : tensor<32xf32, #one>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @doubted
// CHECK: tkgpu.doubted
tkgpu.func @doubted args ["flags"] {
^bb0(%flags: !tkgpu.phases<2>):
  %again = tkgpu.doubted %flags : <2>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @load
// CHECK: tkgpu.load
tkgpu.func @load args ["x", "row", "j", "C", "c1", "in", "zero"] {
^bb0(%x: !tkgpu.buffer<bf16>, %row: index, %j: tensor<1024xindex>, %C: index, %c1: index, %in:
    tensor<1024xi1>, %zero: bf16):
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over
      [array<i64: 0>] other(%zero) {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index,
      tensor<1024xindex>, index, index, tensor<1024xi1>, bf16) -> tensor<1024xbf16>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @store
// CHECK: tkgpu.store
tkgpu.func @store args ["v", "y", "row", "j", "C", "c1", "in"] {
^bb0(%v: tensor<1024xbf16>, %y: !tkgpu.buffer<bf16>, %row: index, %j: tensor<1024xindex>, %C: index,
    %c1: index, %in: tensor<1024xi1>):
  tkgpu.store %v, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over
      [array<i64: 0>] {vector = 8 : i64} : (tensor<1024xbf16>, !tkgpu.buffer<bf16>, index,
      tensor<1024xindex>, index, index, tensor<1024xi1>) -> ()
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @alloc_shared
// CHECK: tkgpu.alloc_shared
tkgpu.func @alloc_shared args [] {
  %a = tkgpu.alloc_shared : <[4, 128, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @stage
// CHECK: tkgpu.stage
tkgpu.func @stage args ["a", "slot"] {
^bb0(%a: !tkgpu.shared<[4, 128, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8>, %slot: index):
  %stage = tkgpu.stage %a[%slot] : !tkgpu.shared<[4, 128, 64], bf16 order = [2, 1, 0] chunk = 8
      phases = 8> -> !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @local_load
// CHECK: tkgpu.local_load
tkgpu.func @local_load args ["s", "k"] {
^bb0(%s: !tkgpu.shared<[64, 32], f32>, %k: index):
  %x = tkgpu.local_load %s from %k axis 1 span 16 {offsets = array<i64: 0, 4>} : !tkgpu.shared<[64,
      32], f32> -> tensor<64x4xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @local_store
// CHECK: tkgpu.local_store
tkgpu.func @local_store args ["v", "s"] {
^bb0(%v: tensor<128x64xbf16, #rows>, %s: !tkgpu.shared<[128, 64], bf16 chunk = 8 phases = 8>):
  tkgpu.local_store %v, %s {matrix} : tensor<128x64xbf16, #rows>, !tkgpu.shared<[128, 64], bf16
      chunk = 8 phases = 8>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @copy_async
// CHECK: tkgpu.copy_async
tkgpu.func @copy_async args ["s", "x", "r", "c", "c32", "c1"] {
^bb0(%s: !tkgpu.shared<[64, 32], f32>, %x: !tkgpu.buffer<f32>, %r: tensor<64xindex>, %c:
    tensor<32xindex>, %c32: index, %c1: index):
  tkgpu.copy_async %s, %x[%r, %c] dims [array<i64: 0>, array<i64: 1>] strides(%c32, %c1) masks()
      over [] layout #tile {vector = 4 : i64} : (!tkgpu.shared<[64, 32], f32>, !tkgpu.buffer<f32>,
      tensor<64xindex>, tensor<32xindex>, index, index) -> ()
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @alloc_private
// CHECK: tkgpu.alloc_private
tkgpu.func @alloc_private args [] {
  %rows = tkgpu.alloc_private : <3 x tensor<512xbf16, #row>, vector = 8>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @copy_private
// CHECK: tkgpu.copy_private
tkgpu.func @copy_private args ["rows", "c0", "x", "j", "c1"] {
^bb0(%rows: !tkgpu.private<3 x tensor<512xbf16, #row>, vector = 8>, %c0: index, %x:
    !tkgpu.buffer<bf16>, %j: tensor<512xindex, #row>, %c1: index):
  tkgpu.copy_private %rows at %c0, %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] :
      (!tkgpu.private<3 x tensor<512xbf16, #row>, vector = 8>, index, !tkgpu.buffer<bf16>,
      tensor<512xindex, #row>, index) -> ()
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @private_load
// CHECK: tkgpu.private_load
tkgpu.func @private_load args ["rows", "c0"] {
^bb0(%rows: !tkgpu.private<3 x tensor<512xbf16, #row>, vector = 8>, %c0: index):
  %v = tkgpu.private_load %rows at %c0 : <3 x tensor<512xbf16, #row>, vector = 8> ->
      tensor<512xbf16, #row>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @private_store
// CHECK: tkgpu.private_store
tkgpu.func @private_store args ["v", "rows", "c0"] {
^bb0(%v: tensor<512xbf16, #row>, %rows: !tkgpu.private<3 x tensor<512xbf16, #row>, vector = 8>, %c0:
    index):
  tkgpu.private_store %v, %rows at %c0 : tensor<512xbf16, #row> -> <3 x tensor<512xbf16, #row>,
      vector = 8>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @async_commit
// CHECK: tkgpu.async_commit
tkgpu.func @async_commit args [] {
  tkgpu.async_commit
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @async_wait
// CHECK: tkgpu.async_wait
tkgpu.func @async_wait args [] {
  tkgpu.async_wait 0
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @barrier
// CHECK: tkgpu.barrier
tkgpu.func @barrier args [] {
  tkgpu.barrier {warpgroup}
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @last_block
// CHECK: tkgpu.last_block
tkgpu.func @last_block args ["counters", "group", "count", "parts"] {
^bb0(%counters: !tkgpu.buffer<i32>, %group: index, %count: index, %parts: !tkgpu.buffer<f32>):
  %last = tkgpu.last_block %counters[%group] of %count sees(%parts) : (!tkgpu.buffer<i32>, index,
      index, !tkgpu.buffer<f32>) -> i1
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @draw
// CHECK: tkgpu.draw
tkgpu.func @draw args ["counter", "n"] {
^bb0(%counter: !tkgpu.buffer<i32>, %n: index):
  %drawn = tkgpu.draw %counter to %n : <i32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @tell
// CHECK: tkgpu.tell
tkgpu.func @tell args ["drawn"] {
^bb0(%drawn: index):
  tkgpu.tell %drawn
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @told
// CHECK: tkgpu.told
tkgpu.func @told args [] {
  %told = tkgpu.told
  tkgpu.return
}
// CHECK-LABEL: tkgpu.func @role_end
// CHECK: tkgpu.warp_roles producer {
// CHECK-NEXT: } consumer {
// CHECK-NEXT: }
tkgpu.func @role_end args [] {
  tkgpu.warp_roles producer {
    tkgpu.role_end
  } consumer {
    tkgpu.role_end
  }
  tkgpu.return
} {producer_warps = 4 : i64}

// CHECK-LABEL: tkgpu.func @numbers
tkgpu.func @numbers args ["n", "counter", "y"] {
^bb0(%n: index, %counter: !tkgpu.buffer<i32>, %y: !tkgpu.buffer<f32>):
  %drawn = tkgpu.draw %counter to %n : <i32>
  tkgpu.tell %drawn
  %told = tkgpu.told
  tkgpu.return
} {num_warps = 64 : i64, cluster = 4 : i64}

// CHECK-LABEL: tk.kernel @launches
// CHECK: tkgpu.stride 0 axis 0
// CHECK: tkgpu.tensor_map
// CHECK: tkgpu.counter :
// CHECK: tkgpu.counters
// CHECK: tkgpu.launch @numbers
tk.kernel @launches dims ["N", "M", "K"] params [#tk.param<"a", strided = true>] results ["y"] {
^bb0(%N: index, %M: index, %K: index, %a: tensor<?x?xbf16>):
  tk.bind %a[%M, %K] : tensor<?x?xbf16>
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : index
  %groups = arith.constant 8 : index
  %ld = tkgpu.stride 0 axis 0
  %map = tkgpu.tensor_map %a : tensor<?x?xbf16> extents(%M, %K) strides(%K, %one) box [128, 64]
      swizzle 128
  %counter = tkgpu.counter : tensor<i32>
  %counters = tkgpu.counters %groups : tensor<?xi32>
  %y = tkgpu.launch @numbers grid(%N, %c1, %c1) args(%N, %counter : index, tensor<i32>) shapes(%N)
      : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func private @types
func.func private @types(
  !tkgpu.buffer<bf16>,
  !tkgpu.shared<[4, 64, 256], bf16 order = [2, 1, 0] chunk = 8 phases = 8 panel = 64>,
  !tkgpu.private<3 x tensor<512xbf16, #row>, vector = 8>,
  !tkgpu.phases<4>,
  !tkgpu.tensor_map
) attributes {
  target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>,
  schedule = #tkgpu.schedule<tile = [128, 256], reduce = [64], warps = 8, per_thread = 128, vector = 16,
      stages = 4, group = 8, persistent = 1, cluster = 2>,
  layout = #tkgpu.layout<register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]],
      warp = [[16, 0]]>
}

// CHECK-LABEL: tkgpu.func @histogram
// CHECK: tkgpu.histogram %{{.*}}, %{{.*}} : tensor<64x8xi32>, tensor<64x8xf32> -> tensor<32xf32>
tkgpu.func @histogram args [] {
  %bins = arith.constant dense<1> : tensor<64x8xi32>
  %weights = arith.constant dense<2.0> : tensor<64x8xf32>
  %sums = tkgpu.histogram %bins, %weights : tensor<64x8xi32>, tensor<64x8xf32> -> tensor<32xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @sort
// CHECK: tkgpu.sort %{{.*}} : tensor<4096xi64> -> tensor<4096xi64>
tkgpu.func @sort args [] {
  %keys = arith.constant dense<1> : tensor<4096xi64>
  %sorted = tkgpu.sort %keys : tensor<4096xi64> -> tensor<4096xi64>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @recurrence
// CHECK: tkgpu.recurrence %{{.*}}, %{{.*}} axis 1 : tensor<16x32xf32> -> tensor<16xf32>
tkgpu.func @recurrence args [] {
  %a = arith.constant dense<0.5> : tensor<16x32xf32>
  %x = arith.constant dense<1.0> : tensor<16x32xf32>
  %y, %last = tkgpu.recurrence %a, %x axis 1 : tensor<16x32xf32> -> tensor<16xf32>
  tkgpu.return
}

// CHECK-LABEL: tkgpu.func @counts
// CHECK: tkgpu.histogram
tkgpu.func @counts args [] {
  %bins = arith.constant dense<1> : tensor<4096xi32>
  %weights = arith.constant dense<2> : tensor<4096xi32>
  %h = tkgpu.histogram %bins, %weights : tensor<4096xi32>, tensor<4096xi32> -> tensor<512xi32>
  tkgpu.return
}
