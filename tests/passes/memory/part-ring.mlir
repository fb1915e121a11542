// RUN: tk-opt %s --tk-refill-parts | FileCheck %s
#row = #tkgpu.layout<register = [[1], [2], [4], [1024], [2048]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>
#half = #tkgpu.layout<register = [[1], [2], [4], [1024]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>
#quarter = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>
#schedule = #tkgpu.schedule<tile = [1, 4096], reduce = [4096], warps = 4, per_thread = 32, persistent = 1>
!memory = !tkgpu.private<1 x tensor<4096xbf16, #row>, vector = 8>
!rows = !tkgpu.private<2 x tensor<4096xbf16, #row>, vector = 8>

// There is room for a third part: the first one of the next row comes before the loop, and what is
// read is replaced by the part behind the two that are there.
// CHECK-LABEL: tkgpu.func @row
// CHECK: %[[M:.*]] = tkgpu.alloc_private : <3 x tensor<2048xbf16
// CHECK: tkgpu.copy_private %[[M]] at %c0{{.*}}
// CHECK: tkgpu.copy_private %[[M]] at %c1{{.*}}
// CHECK: tkgpu.copy_private %[[M]] at %c2{{.*}}
// CHECK: scf.for %[[R:.*]] = {{.*}} iter_args(%[[S0:.*]] = %{{.*}})
// CHECK: %[[S1:.*]] = arith.select
// CHECK: tkgpu.async_wait 2
// CHECK-NEXT: %[[A:.*]] = tkgpu.private_load %[[M]] at %[[S0]]
// CHECK-NEXT: tkgpu.async_wait 1
// CHECK-NEXT: %[[B:.*]] = tkgpu.private_load %[[M]] at %[[S1]]
// CHECK-NEXT: tkgpu.join %[[A]], %[[B]]
// CHECK-NOT: tkgpu.async_wait
// CHECK: %[[NEXT:.*]] = arith.addi %[[R]]
// CHECK: %[[LATER:.*]] = arith.addi %[[R]]
// CHECK: %[[BEHIND:.*]] = arith.addi %[[LATER]]
// CHECK: tkgpu.private_load %[[M]] at %[[S0]]
// CHECK: tkgpu.copy_private %[[M]] at %[[S0]], %arg0[%[[NEXT]], %{{.*}}]
// CHECK-NEXT: tkgpu.async_commit
// CHECK: tkgpu.store
// CHECK: tkgpu.private_load %[[M]] at %[[S1]]
// CHECK: tkgpu.copy_private %[[M]] at %[[S1]], %arg0[%[[BEHIND]], %{{.*}}]
// CHECK-NEXT: tkgpu.async_commit
// CHECK: tkgpu.store
// CHECK-NOT: tkgpu.async_commit
// CHECK: scf.yield
#target = #tkgpu.target<arch = 90, shared = 12800, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
tkgpu.func @row args ["x", "y", "z", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %C = arith.constant 4096 : index
  %j = tkgpu.iota : tensor<4096xindex, #row>
  %memory = tkgpu.alloc_private : !memory
  tkgpu.copy_private %memory at %c0, %x[%c0, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (!memory, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index) -> ()
  tkgpu.async_commit
  scf.for %r = %c0 to %n step %c1 {
    tkgpu.async_wait 0
    %a = tkgpu.private_load %memory at %c0 : !memory -> tensor<4096xbf16, #row>
    %m = tkgpu.reduce <max> %a axis 0 : tensor<4096xbf16, #row> -> bf16
    tkgpu.store %m, %z[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
    %p0 = tkgpu.private_load %memory at %c0 {offsets = array<i64: 0>} : !memory -> tensor<2048xbf16, #half>
    %j0 = tkgpu.extract %j at [0] : tensor<4096xindex, #row> -> tensor<2048xindex, #half>
    tkgpu.store %p0, %y[%r, %j0] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<2048xbf16, #half>, !tkgpu.buffer<bf16>, index, tensor<2048xindex, #half>, index, index) -> ()
    %p1 = tkgpu.private_load %memory at %c0 {offsets = array<i64: 2048>} : !memory -> tensor<2048xbf16, #half>
    %j1 = tkgpu.extract %j at [2048] : tensor<4096xindex, #row> -> tensor<2048xindex, #half>
    tkgpu.store %p1, %y[%r, %j1] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<2048xbf16, #half>, !tkgpu.buffer<bf16>, index, tensor<2048xindex, #half>, index, index) -> ()
    %next = arith.addi %r, %c1 : index
    %in = arith.cmpi slt, %next, %n : index
    tkgpu.copy_private %memory at %c0, %x[%next, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64>] : (!memory, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index, i1) -> ()
    tkgpu.async_commit
  }
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64, tkgpu.plan = #tkgpu.plan<tiles = #schedule>}

// What the loop reads itself needs the room as a cache: parts are awaited alone, and no more come.
// CHECK-LABEL: tkgpu.func @weights
// CHECK: tkgpu.alloc_private : <2 x tensor<2048xbf16
// CHECK: tkgpu.async_wait 1
// CHECK: tkgpu.async_wait 0
// CHECK: tkgpu.copy_private
// CHECK-NEXT: tkgpu.async_commit
tkgpu.func @weights args ["x", "y", "z", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %C = arith.constant 4096 : index
  %j = tkgpu.iota : tensor<4096xindex, #row>
  %memory = tkgpu.alloc_private : !memory
  tkgpu.copy_private %memory at %c0, %x[%c0, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (!memory, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index) -> ()
  tkgpu.async_commit
  scf.for %r = %c0 to %n step %c1 {
    tkgpu.async_wait 0
    %a = tkgpu.private_load %memory at %c0 : !memory -> tensor<4096xbf16, #row>
    %m = tkgpu.reduce <max> %a axis 0 : tensor<4096xbf16, #row> -> bf16
    tkgpu.store %m, %z[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
    %p0 = tkgpu.private_load %memory at %c0 {offsets = array<i64: 0>} : !memory -> tensor<2048xbf16, #half>
    %j0 = tkgpu.extract %j at [0] : tensor<4096xindex, #row> -> tensor<2048xindex, #half>
    %w0 = tkgpu.load %z[%j0] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<2048xindex, #half>, index) -> tensor<2048xbf16, #half>
    %q0 = arith.mulf %p0, %w0 : tensor<2048xbf16, #half>
    tkgpu.store %q0, %y[%r, %j0] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<2048xbf16, #half>, !tkgpu.buffer<bf16>, index, tensor<2048xindex, #half>, index, index) -> ()
    %p1 = tkgpu.private_load %memory at %c0 {offsets = array<i64: 2048>} : !memory -> tensor<2048xbf16, #half>
    %j1 = tkgpu.extract %j at [2048] : tensor<4096xindex, #row> -> tensor<2048xindex, #half>
    tkgpu.store %p1, %y[%r, %j1] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<2048xbf16, #half>, !tkgpu.buffer<bf16>, index, tensor<2048xindex, #half>, index, index) -> ()
    %next = arith.addi %r, %c1 : index
    %in = arith.cmpi slt, %next, %n : index
    tkgpu.copy_private %memory at %c0, %x[%next, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64>] : (!memory, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index, i1) -> ()
    tkgpu.async_commit
  }
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64, tkgpu.plan = #tkgpu.plan<tiles = #schedule>}

// Two rows of a block that has a multiprocessor to itself are a ring of parts, too.
// CHECK-LABEL: tkgpu.func @two
// CHECK: %[[M:.*]] = tkgpu.alloc_private : <4 x tensor<2048xbf16
// CHECK-COUNT-4: tkgpu.copy_private %[[M]] {{.*}}
// CHECK: scf.for %[[R:.*]] = {{.*}} iter_args(%[[S0:.*]] = %{{.*}})
// CHECK: tkgpu.async_wait 3
// CHECK: tkgpu.async_wait 2
// CHECK-NOT: tkgpu.async_wait
// CHECK: tkgpu.private_load %[[M]] at %[[S0]]
// CHECK: tkgpu.copy_private %[[M]] at %[[S0]], %arg0
// CHECK-NEXT: tkgpu.async_commit
// CHECK: tkgpu.copy_private
// CHECK-NEXT: tkgpu.async_commit
// CHECK: %[[END:.*]] = arith.addi %[[S0]], %c2
// CHECK: arith.subi %[[END]], %c4
// CHECK: %[[NEXT:.*]] = arith.select
// CHECK-NEXT: scf.yield %[[NEXT]] : index
tkgpu.func @two args ["x", "y", "z", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %C = arith.constant 4096 : index
  %j = tkgpu.iota : tensor<4096xindex, #row>
  %memory = tkgpu.alloc_private : !rows
  tkgpu.copy_private %memory at %c0, %x[%c0, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (!rows, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index) -> ()
  tkgpu.async_commit
  tkgpu.copy_private %memory at %c1, %x[%c1, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (!rows, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index) -> ()
  tkgpu.async_commit
  %last = scf.for %r = %c0 to %n step %c1 iter_args(%slot = %c0) -> index {
    tkgpu.async_wait 1
    %a = tkgpu.private_load %memory at %slot : !rows -> tensor<4096xbf16, #row>
    %m = tkgpu.reduce <max> %a axis 0 : tensor<4096xbf16, #row> -> bf16
    tkgpu.store %m, %z[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
    %p0 = tkgpu.private_load %memory at %slot {offsets = array<i64: 0>} : !rows -> tensor<2048xbf16, #half>
    %j0 = tkgpu.extract %j at [0] : tensor<4096xindex, #row> -> tensor<2048xindex, #half>
    tkgpu.store %p0, %y[%r, %j0] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<2048xbf16, #half>, !tkgpu.buffer<bf16>, index, tensor<2048xindex, #half>, index, index) -> ()
    %p1 = tkgpu.private_load %memory at %slot {offsets = array<i64: 2048>} : !rows -> tensor<2048xbf16, #half>
    %j1 = tkgpu.extract %j at [2048] : tensor<4096xindex, #row> -> tensor<2048xindex, #half>
    tkgpu.store %p1, %y[%r, %j1] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<2048xbf16, #half>, !tkgpu.buffer<bf16>, index, tensor<2048xindex, #half>, index, index) -> ()
    %next = arith.addi %r, %c2 : index
    %in = arith.cmpi slt, %next, %n : index
    tkgpu.copy_private %memory at %slot, %x[%next, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64>] : (!rows, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index, i1) -> ()
    tkgpu.async_commit
    %s1 = arith.addi %slot, %c1 : index
    %end = arith.cmpi eq, %s1, %c2 : index
    %s = arith.select %end, %c0, %s1 : index
    scf.yield %s : index
  }
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64, tkgpu.plan = #tkgpu.plan<tiles = #schedule>}

// Parts that are not all of a row do not bring it: what they leave out would never come.
// CHECK-LABEL: tkgpu.func @less
// CHECK: tkgpu.alloc_private : <1 x tensor<4096xbf16
// CHECK: scf.for
// CHECK: tkgpu.private_load {{.*}} {offsets = array<i64: 1024>}
// CHECK: tkgpu.store
// CHECK: tkgpu.copy_private {{.*}} tensor<4096xindex
tkgpu.func @less args ["x", "y", "z", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %C = arith.constant 4096 : index
  %j = tkgpu.iota : tensor<4096xindex, #row>
  %memory = tkgpu.alloc_private : !memory
  tkgpu.copy_private %memory at %c0, %x[%c0, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (!memory, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index) -> ()
  tkgpu.async_commit
  scf.for %r = %c0 to %n step %c1 {
    tkgpu.async_wait 0
    %a = tkgpu.private_load %memory at %c0 : !memory -> tensor<4096xbf16, #row>
    %m = tkgpu.reduce <max> %a axis 0 : tensor<4096xbf16, #row> -> bf16
    tkgpu.store %m, %z[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
    %p0 = tkgpu.private_load %memory at %c0 {offsets = array<i64: 0>} : !memory -> tensor<1024xbf16, #quarter>
    %j0 = tkgpu.extract %j at [0] : tensor<4096xindex, #row> -> tensor<1024xindex, #quarter>
    tkgpu.store %p0, %y[%r, %j0] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<1024xbf16, #quarter>, !tkgpu.buffer<bf16>, index, tensor<1024xindex, #quarter>, index, index) -> ()
    %p1 = tkgpu.private_load %memory at %c0 {offsets = array<i64: 1024>} : !memory -> tensor<1024xbf16, #quarter>
    %j1 = tkgpu.extract %j at [1024] : tensor<4096xindex, #row> -> tensor<1024xindex, #quarter>
    tkgpu.store %p1, %y[%r, %j1] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<1024xbf16, #quarter>, !tkgpu.buffer<bf16>, index, tensor<1024xindex, #quarter>, index, index) -> ()
    %next = arith.addi %r, %c1 : index
    %in = arith.cmpi slt, %next, %n : index
    tkgpu.copy_private %memory at %c0, %x[%next, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64>] : (!memory, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index, i1) -> ()
    tkgpu.async_commit
  }
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64, tkgpu.plan = #tkgpu.plan<tiles = #schedule>}

// What is only read as a whole, before the threads meet, is brought again before they do.
// CHECK-LABEL: tkgpu.func @early
// CHECK: scf.for
// CHECK: tkgpu.private_load
// CHECK: tkgpu.store
// CHECK: arith.addi
// CHECK: tkgpu.copy_private
// CHECK-NEXT: tkgpu.async_commit
// CHECK-NEXT: tkgpu.reduce
// CHECK-NOT: tkgpu.copy_private
// CHECK: tkgpu.func @late
// CHECK: scf.for
// CHECK: tkgpu.reduce
// CHECK: tkgpu.copy_private
tkgpu.func @early args ["x", "y", "z", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %C = arith.constant 4096 : index
  %j = tkgpu.iota : tensor<4096xindex, #row>
  %memory = tkgpu.alloc_private : !memory
  scf.for %r = %c0 to %n step %c1 {
    tkgpu.async_wait 0
    %a = tkgpu.private_load %memory at %c0 : !memory -> tensor<4096xbf16, #row>
    tkgpu.store %a, %y[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<4096xbf16, #row>, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index) -> ()
    %m = tkgpu.reduce <max> %a axis 0 : tensor<4096xbf16, #row> -> bf16
    tkgpu.store %m, %z[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
    %next = arith.addi %r, %c1 : index
    %in = arith.cmpi slt, %next, %n : index
    tkgpu.copy_private %memory at %c0, %x[%next, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64>] : (!memory, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index, i1) -> ()
    tkgpu.async_commit
  }
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64, tkgpu.plan = #tkgpu.plan<tiles = #schedule>}
// Not if it is read behind the reduction.
tkgpu.func @late args ["x", "y", "z", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %C = arith.constant 4096 : index
  %j = tkgpu.iota : tensor<4096xindex, #row>
  %memory = tkgpu.alloc_private : !memory
  scf.for %r = %c0 to %n step %c1 {
    tkgpu.async_wait 0
    %a = tkgpu.private_load %memory at %c0 : !memory -> tensor<4096xbf16, #row>
    %m = tkgpu.reduce <max> %a axis 0 : tensor<4096xbf16, #row> -> bf16
    tkgpu.store %m, %z[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
    %b = tkgpu.private_load %memory at %c0 : !memory -> tensor<4096xbf16, #row>
    tkgpu.store %b, %y[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<4096xbf16, #row>, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index) -> ()
    %next = arith.addi %r, %c1 : index
    %in = arith.cmpi slt, %next, %n : index
    tkgpu.copy_private %memory at %c0, %x[%next, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64>] : (!memory, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index, i1) -> ()
    tkgpu.async_commit
  }
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64, tkgpu.plan = #tkgpu.plan<tiles = #schedule>}
}
