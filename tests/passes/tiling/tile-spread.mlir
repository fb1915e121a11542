// RUN: tk-opt %s --tk-convert-indices --tk-approximate-functions --tk-tile --tk-refine-tiles --canonicalize --cse | FileCheck %s

// The blocks of a cluster have one row together: as many blocks as rows times 4, and a block's row is
// its number divided by 4.
// CHECK: tkgpu.func @total_y
// CHECK: %[[ID:.*]] = tkgpu.program_id x
// CHECK: %[[ROW:.*]] = arith.divsi %[[ID]], %c4
// CHECK: tkgpu.load %{{.*}}[%[[ROW]], %{{.*}}] {{.*}} -> tensor<65536xf32>
// CHECK: tkgpu.reduce <sum>
// CHECK: cluster = 4 : i64
// CHECK-SAME: num_warps = 64 : i64
// CHECK: tk.kernel @total
// CHECK: %[[BLOCKS:.*]] = arith.muli %{{.*}}, %c4
// CHECK: tkgpu.launch @total_y grid(%[[BLOCKS]],
tk.kernel @total dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 65536, upper = 65536>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
      %v = tk.load %x[%r, %c] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [1], reduce = [65536], warps = 64, per_thread = 32, vector = 16, stages = 1, cluster = 4>>} : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}
