// RUN: tk-opt %s --tk-count-quotients | FileCheck %s

// The producer carries row and image of the pixel: the digits of a number to which each iteration adds those of 64.
// CHECK-LABEL: tkgpu.func @pixels
// CHECK: producer
// CHECK-DAG: %[[W:.*]] = arith.maxsi %arg1, %{{.*}} : index
// CHECK-DAG: %[[H:.*]] = arith.maxsi %arg2, %{{.*}} : index
// CHECK-DAG: %[[COLUMN:.*]] = tk.floor_mod %[[FIRST:.*]], %[[W]]
// CHECK-DAG: %[[LINE:.*]] = tk.floor_div %[[FIRST]], %[[W]]
// CHECK-DAG: %[[ROW:.*]] = tk.floor_mod %[[LINE]], %[[H]]
// CHECK-DAG: %[[IMAGE:.*]] = tk.floor_div %[[LINE]], %[[H]]
// CHECK: scf.for {{.*}} iter_args(%[[C:.*]] = %[[COLUMN]], %[[L:.*]] = %[[LINE]], %[[R:.*]] = %[[ROW]], %[[I:.*]] = %[[IMAGE]])
// CHECK-NOT: tk.floor
// CHECK: tkgpu.bulk_copy %{{.*}}, %{{.*}}[%[[I]], %[[R]], %[[C]]]
// CHECK: %[[SUM:.*]] = arith.addi %[[C]], %{{.*}} : index
// CHECK: %[[FULL:.*]] = arith.cmpi sge, %[[SUM]], %arg1 : index
// CHECK: %[[REST:.*]] = arith.subi %[[SUM]], %arg1 : index
// CHECK: arith.select %[[FULL]], %[[REST]], %[[SUM]]
// CHECK: scf.yield

// A divisor that is a constant stays, as does one that the loop changes.
// CHECK-LABEL: tkgpu.func @constant
// CHECK: scf.for
// CHECK: tk.floor_div
// CHECK: tk.floor_mod

// Slices are counted by the loop's counter over its step, which grows by one.
// CHECK-LABEL: tkgpu.func @slices
// CHECK: producer
// CHECK: scf.for {{.*}} iter_args(%[[PART:.*]] = %{{.*}}, %[[TAP:.*]] = %{{.*}})
// CHECK-NOT: arith.divsi
// CHECK-NOT: arith.remsi
// CHECK: tkgpu.bulk_copy %{{.*}}, %{{.*}}[%[[TAP]], %[[PART]]]
// CHECK: scf.yield

module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>} {
  tkgpu.func @pixels args ["n", "w", "h", "map"] {
  ^bb0(%n: index, %w: index, %h: index, %map: !tkgpu.tensor_map):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %s = tkgpu.alloc_shared : <[1, 1, 64], bf16 order = [2, 1, 0]>
    %full = tkgpu.alloc_phases arrivals 1 : <1>
    tkgpu.warp_roles producer {
      %id = tkgpu.program_id x
      %base = arith.muli %id, %n : index
      scf.for %i = %c0 to %n step %c64 {
        %p = arith.addi %base, %i : index
        %column = tk.floor_mod %p, %w : index
        %line = tk.floor_div %p, %w : index
        %row = tk.floor_mod %line, %h : index
        %image = tk.floor_div %line, %h : index
        tkgpu.bulk_copy %s, %map[%image, %row, %column] signals %full[%c0] : <[1, 1, 64], bf16 order = [2, 1, 0]>, !tkgpu.phases<1>
      }
    } consumer {
    }
    tkgpu.return
  } {producer_warps = 4 : i64}
  tkgpu.func @constant args ["n", "w", "map"] {
  ^bb0(%n: index, %w: index, %map: !tkgpu.tensor_map):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c64 = arith.constant 64 : index
    %s = tkgpu.alloc_shared : <[1, 64], bf16 order = [1, 0]>
    %full = tkgpu.alloc_phases arrivals 1 : <1>
    tkgpu.warp_roles producer {
      scf.for %i = %c0 to %n step %c64 {
        %a = tk.floor_div %i, %c3 : index
        %d = arith.addi %i, %c1 : index
        %b = tk.floor_mod %w, %d : index
        tkgpu.bulk_copy %s, %map[%a, %b] signals %full[%c0] : <[1, 64], bf16 order = [1, 0]>, !tkgpu.phases<1>
      }
    } consumer {
    }
    tkgpu.return
  } {producer_warps = 4 : i64}
  tkgpu.func @slices args ["n", "parts", "map"] {
  ^bb0(%n: index, %parts: index, %map: !tkgpu.tensor_map):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %s = tkgpu.alloc_shared : <[1, 64], bf16 order = [1, 0]>
    %full = tkgpu.alloc_phases arrivals 1 : <1>
    tkgpu.warp_roles producer {
      scf.for %i = %c0 to %n step %c64 {
        %slice = arith.divsi %i, %c64 : index
        %part = arith.remsi %slice, %parts : index
        %tap = arith.divsi %slice, %parts : index
        tkgpu.bulk_copy %s, %map[%tap, %part] signals %full[%c0] : <[1, 64], bf16 order = [1, 0]>, !tkgpu.phases<1>
      }
    } consumer {
    }
    tkgpu.return
  } {producer_warps = 4 : i64}
}
