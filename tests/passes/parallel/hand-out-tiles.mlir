// RUN: tk-opt %s --tk-hand-out-tiles --split-input-file | FileCheck %s
#row = #tkgpu.layout<register = [[1], [2], [4], [32768], [65536]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024], [2048], [4096], [8192], [16384]]>
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
!memory = !tkgpu.private<1 x tensor<131072xbf16, #row>, vector = 8>

// A cluster's first row is that of its number; the next one is drawn, and known behind the meeting.
// What only loads with it, such as the next label, waits for that.
// CHECK-LABEL: tkgpu.func @next args ["x", "label", "rows", "counter", "s"]
// CHECK: %[[OWN:.*]] = tkgpu.program_id x
// CHECK: %[[COUNT:.*]] = arith.divsi %arg2, %{{.*}}
// CHECK: scf.while (%[[AT:.*]] = %[[OWN]], %[[LABEL:.*]] = %{{.*}}) : (index, i32)
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[AT]], %arg2
// CHECK-NEXT: scf.condition(%[[MORE]]) %[[AT]], %[[LABEL]]
// CHECK: ^bb0(%[[ROW:.*]]: index, %{{.*}}: i32):
// CHECK-NEXT: %[[DRAWN:.*]] = tkgpu.draw %arg3 to %[[COUNT]] : <i32>
// CHECK-NOT: tkgpu.load
// CHECK: tkgpu.private_load
// CHECK-NEXT: tkgpu.tell %[[DRAWN]]
// CHECK-NEXT: tkgpu.reduce
// CHECK-NEXT: %[[TOLD:.*]] = tkgpu.told
// CHECK: arith.muli %[[TOLD]], %{{.*}}
// CHECK-NEXT: arith.addi
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi
// CHECK: %[[R:.*]] = arith.divsi %[[NEXT]]
// CHECK: %[[L:.*]] = tkgpu.load %arg1[%[[R]]]
// CHECK: tkgpu.store %{{.*}}, %arg4[%{{.*}}]
// CHECK: tkgpu.copy_private %{{.*}}, %arg0[%[[R]]
// CHECK: scf.yield %[[NEXT]], %[[L]] : index, i32
// CHECK: %[[COUNTER:.*]] = tkgpu.counter : tensor<i32>
// CHECK: tkgpu.launch @next grid{{.*}} args({{.*}}, %[[COUNTER]] : {{.*}}, tensor<i32>)
module attributes {tkgpu.target = #target} {
  tkgpu.func @next args ["x", "label", "rows", "s"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %label: !tkgpu.buffer<i32>, %rows: index, %s: !tkgpu.buffer<bf16>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %none = arith.constant 0 : i32
    %C = arith.constant 131072 : index
    %j = tkgpu.iota : tensor<131072xindex, #row>
    %memory = tkgpu.alloc_private : !memory
    %n = tkgpu.num_programs x
    %own = tkgpu.program_id x
    %first = arith.divsi %own, %c16 : index
    tkgpu.copy_private %memory at %c0, %x[%first, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (!memory, index, !tkgpu.buffer<bf16>, index, tensor<131072xindex, #row>, index, index) -> ()
    tkgpu.async_commit
    %end = scf.for %a = %own to %rows step %n iter_args(%l = %none) -> (i32) {
      %b = arith.addi %a, %n : index
      %in = arith.cmpi slt, %b, %rows : index
      %next = arith.divsi %b, %c16 : index
      %after = tkgpu.load %label[%next] dims [array<i64>] strides(%c1) masks(%in) over [array<i64>] other(%none) : (!tkgpu.buffer<i32>, index, index, i1, i32) -> i32
      %r = arith.divsi %a, %c16 : index
      tkgpu.async_wait 0
      %v = tkgpu.private_load %memory at %c0 : !memory -> tensor<131072xbf16, #row>
      %m = tkgpu.reduce <max> %v axis 0 : tensor<131072xbf16, #row> -> bf16
      tkgpu.store %m, %s[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
      tkgpu.copy_private %memory at %c0, %x[%next, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64>] : (!memory, index, !tkgpu.buffer<bf16>, index, tensor<131072xindex, #row>, index, index, i1) -> ()
      tkgpu.async_commit
      scf.yield %after : i32
    }
    tkgpu.return
  } {num_warps = 128 : i64, cluster = 16 : i64, index_bits = 32 : i64, min_blocks = 3 : i64, shared_bytes = 32768 : i64}
  tk.kernel @f dims ["R", "C"] params [#tk.param<"x">, #tk.param<"label">] results ["s"] {
  ^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>, %label: tensor<?xi32>):
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    tk.bind %x[%R, %C] : tensor<?x?xbf16>
    tk.bind %label[%R] : tensor<?xi32>
    %tiles = arith.muli %R, %c16 : index
    %s = tkgpu.launch @next grid(%tiles, %c1, %c1) args(%x, %label, %tiles : tensor<?x?xbf16>, tensor<?xi32>, index) shapes(%R) {names = ["s"], resident} : tensor<?xbf16>
    tk.return %s : tensor<?xbf16>
  }
}

// -----
#row = #tkgpu.layout<register = [[1], [2], [4], [32768], [65536]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024], [2048], [4096], [8192], [16384]]>
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
!rows = !tkgpu.private<2 x tensor<131072xbf16, #row>, vector = 8>

// Rows that are brought two ahead are the first two of a cluster; one that is brought before the
// threads meet has to be known by then, which takes a third.
// CHECK-LABEL: tkgpu.func @ahead
// CHECK: %[[STEP:.*]] = tkgpu.num_programs x
// CHECK: %[[OWN:.*]] = tkgpu.program_id x
// CHECK: %[[SECOND:.*]] = arith.addi %[[OWN]], %[[STEP]]
// CHECK: scf.while (%{{.*}} = %[[OWN]], %{{.*}} = %[[SECOND]]) : (index, index)
// CHECK: ^bb0(%{{.*}}: index, %[[B:.*]]: index):
// CHECK: tkgpu.told
// CHECK: arith.muli %[[STEP]], %c2
// CHECK: arith.addi
// CHECK-NEXT: %[[C:.*]] = arith.addi
// CHECK: %[[R:.*]] = arith.divsi %[[C]]
// CHECK: tkgpu.copy_private %{{.*}}, %arg0[%[[R]]
// CHECK: scf.yield %[[B]], %[[C]]
// CHECK-LABEL: tkgpu.func @early
// CHECK: scf.while (%{{.*}}, %{{.*}}, %{{.*}}) : (index, index, index)
// CHECK: ^bb0(%{{.*}}: index, %[[B:.*]]: index, %[[C:.*]]: index):
// CHECK: %[[R:.*]] = arith.divsi %[[C]]
// CHECK: tkgpu.copy_private %{{.*}}, %arg0[%[[R]]
// CHECK: tkgpu.reduce
// CHECK-NEXT: tkgpu.told
// CHECK: arith.addi
// CHECK-NEXT: %[[D:.*]] = arith.addi
// CHECK: scf.yield %[[B]], %[[C]], %[[D]]

// Also where a cluster is alone on its multiprocessors; not where what is told finds no room in
// shared memory, nor where something else knows how far apart rows are.
// CHECK-LABEL: tkgpu.func @alone
// CHECK: scf.while
// CHECK: tkgpu.draw
// CHECK-LABEL: tkgpu.func @full
// CHECK-NOT: scf.while
// CHECK-LABEL: tkgpu.func @rounds
// CHECK-NOT: scf.while
// CHECK: tk.kernel
module attributes {tkgpu.target = #target} {
  tkgpu.func @ahead args ["x", "rows", "s"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %rows: index, %s: !tkgpu.buffer<bf16>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %C = arith.constant 131072 : index
    %j = tkgpu.iota : tensor<131072xindex, #row>
    %memory = tkgpu.alloc_private : !rows
    %n = tkgpu.num_programs x
    %own = tkgpu.program_id x
    %two = arith.muli %n, %c2 : index
    scf.for %a = %own to %rows step %n {
      %r = arith.divsi %a, %c16 : index
      tkgpu.async_wait 1
      %v = tkgpu.private_load %memory at %c0 : !rows -> tensor<131072xbf16, #row>
      %m = tkgpu.reduce <max> %v axis 0 : tensor<131072xbf16, #row> -> bf16
      tkgpu.store %m, %s[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
      %b = arith.addi %a, %two : index
      %in = arith.cmpi slt, %b, %rows : index
      %next = arith.divsi %b, %c16 : index
      tkgpu.copy_private %memory at %c0, %x[%next, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64>] : (!rows, index, !tkgpu.buffer<bf16>, index, tensor<131072xindex, #row>, index, index, i1) -> ()
      tkgpu.async_commit
    }
    tkgpu.return
  } {num_warps = 128 : i64, cluster = 16 : i64, index_bits = 32 : i64, min_blocks = 2 : i64, shared_bytes = 65536 : i64}
  tkgpu.func @early args ["x", "rows", "s"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %rows: index, %s: !tkgpu.buffer<bf16>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %C = arith.constant 131072 : index
    %j = tkgpu.iota : tensor<131072xindex, #row>
    %memory = tkgpu.alloc_private : !rows
    %n = tkgpu.num_programs x
    %own = tkgpu.program_id x
    %two = arith.muli %n, %c2 : index
    scf.for %a = %own to %rows step %n {
      %r = arith.divsi %a, %c16 : index
      tkgpu.async_wait 1
      %v = tkgpu.private_load %memory at %c0 : !rows -> tensor<131072xbf16, #row>
      %b = arith.addi %a, %two : index
      %in = arith.cmpi slt, %b, %rows : index
      %next = arith.divsi %b, %c16 : index
      tkgpu.copy_private %memory at %c0, %x[%next, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64>] : (!rows, index, !tkgpu.buffer<bf16>, index, tensor<131072xindex, #row>, index, index, i1) -> ()
      tkgpu.async_commit
      %m = tkgpu.reduce <max> %v axis 0 : tensor<131072xbf16, #row> -> bf16
      tkgpu.store %m, %s[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
    }
    tkgpu.return
  } {num_warps = 128 : i64, cluster = 16 : i64, index_bits = 32 : i64, min_blocks = 2 : i64, shared_bytes = 65536 : i64}
  tkgpu.func @alone args ["x", "rows", "s"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %rows: index, %s: !tkgpu.buffer<bf16>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %memory = tkgpu.alloc_private : !rows
    %n = tkgpu.num_programs x
    %own = tkgpu.program_id x
    scf.for %a = %own to %rows step %n {
      %r = arith.divsi %a, %c16 : index
      %v = tkgpu.private_load %memory at %c0 : !rows -> tensor<131072xbf16, #row>
      %m = tkgpu.reduce <max> %v axis 0 : tensor<131072xbf16, #row> -> bf16
      tkgpu.store %m, %s[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
    }
    tkgpu.return
  } {num_warps = 128 : i64, cluster = 16 : i64, index_bits = 32 : i64, shared_bytes = 65536 : i64}
  tkgpu.func @full args ["x", "rows", "s"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %rows: index, %s: !tkgpu.buffer<bf16>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %memory = tkgpu.alloc_private : !rows
    %n = tkgpu.num_programs x
    %own = tkgpu.program_id x
    scf.for %a = %own to %rows step %n {
      %r = arith.divsi %a, %c16 : index
      %v = tkgpu.private_load %memory at %c0 : !rows -> tensor<131072xbf16, #row>
      %m = tkgpu.reduce <max> %v axis 0 : tensor<131072xbf16, #row> -> bf16
      tkgpu.store %m, %s[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
    }
    tkgpu.return
  } {num_warps = 128 : i64, cluster = 16 : i64, index_bits = 32 : i64, shared_bytes = 232448 : i64}
  tkgpu.func @rounds args ["x", "rows", "s"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %rows: index, %s: !tkgpu.buffer<bf16>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %memory = tkgpu.alloc_private : !rows
    %n = tkgpu.num_programs x
    %own = tkgpu.program_id x
    scf.for %a = %own to %rows step %n {
      %round = arith.divsi %a, %n : index
      %v = tkgpu.private_load %memory at %c0 : !rows -> tensor<131072xbf16, #row>
      %m = tkgpu.reduce <max> %v axis 0 : tensor<131072xbf16, #row> -> bf16
      tkgpu.store %m, %s[%round] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
    }
    tkgpu.return
  } {num_warps = 128 : i64, cluster = 16 : i64, index_bits = 32 : i64, min_blocks = 2 : i64, shared_bytes = 65536 : i64}
  tk.kernel @f dims ["R", "C"] params [#tk.param<"x">] results ["s", "t", "u", "w", "v"] {
  ^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
    %c1 = arith.constant 1 : index
    tk.bind %x[%R, %C] : tensor<?x?xbf16>
    %s = tkgpu.launch @ahead grid(%R, %c1, %c1) args(%x, %R : tensor<?x?xbf16>, index) shapes(%R) {names = ["s"], resident} : tensor<?xbf16>
    %t = tkgpu.launch @early grid(%R, %c1, %c1) args(%x, %R : tensor<?x?xbf16>, index) shapes(%R) {names = ["t"], resident} : tensor<?xbf16>
    %u = tkgpu.launch @alone grid(%R, %c1, %c1) args(%x, %R : tensor<?x?xbf16>, index) shapes(%R) {names = ["u"], resident} : tensor<?xbf16>
    %w = tkgpu.launch @full grid(%R, %c1, %c1) args(%x, %R : tensor<?x?xbf16>, index) shapes(%R) {names = ["w"], resident} : tensor<?xbf16>
    %v = tkgpu.launch @rounds grid(%R, %c1, %c1) args(%x, %R : tensor<?x?xbf16>, index) shapes(%R) {names = ["v"], resident} : tensor<?xbf16>
    tk.return %s, %t, %u, %w, %v : tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>
  }
}
