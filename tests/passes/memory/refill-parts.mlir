// RUN: tk-opt %s --tk-refill-parts | FileCheck %s
#row = #tkgpu.layout<register = [[1], [2], [4], [1024], [2048]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>
#half = #tkgpu.layout<register = [[1], [2], [4], [1024]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>
!memory = !tkgpu.private<1 x tensor<4096xbf16, #row>, vector = 8>

// Each part of the next row takes the place of this one's as soon as that has been read, and all
// are one group.
// CHECK-LABEL: tkgpu.func @row
// CHECK: tkgpu.reduce
// CHECK: %[[NEXT:.*]] = arith.addi
// CHECK: %[[IN:.*]] = arith.cmpi slt, %[[NEXT]]
// CHECK: tkgpu.private_load %[[M:.*]] at %{{.*}} {offsets = array<i64: 0>}
// CHECK-NEXT: %[[J0:.*]] = tkgpu.extract %{{.*}} at [0]
// CHECK-NEXT: tkgpu.copy_private %[[M]] at %{{.*}}, %arg0[%[[NEXT]], %[[J0]]] {{.*}} masks(%[[IN]]) over [array<i64>] {extents = array<i64: 2048>, offsets = array<i64: 0>}
// CHECK: tkgpu.store
// CHECK: tkgpu.private_load %[[M]] at %{{.*}} {offsets = array<i64: 2048>}
// CHECK: tkgpu.copy_private %[[M]] {{.*}} {extents = array<i64: 2048>, offsets = array<i64: 2048>}
// CHECK: tkgpu.store
// CHECK-NEXT: tkgpu.async_commit
// CHECK-NOT: tkgpu.copy_private
tkgpu.func @row args ["x", "y", "z", "n"] {
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
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Not where a part is read twice and another is not, nor where the whole is read again.
// CHECK-LABEL: tkgpu.func @twice
// CHECK-NOT: extents
tkgpu.func @twice args ["x", "y", "z", "n"] {
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
    %p0 = tkgpu.private_load %memory at %c0 {offsets = array<i64: 0>} : !memory -> tensor<2048xbf16, #half>
    %j0 = tkgpu.extract %j at [0] : tensor<4096xindex, #row> -> tensor<2048xindex, #half>
    tkgpu.store %p0, %y[%r, %j0] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<2048xbf16, #half>, !tkgpu.buffer<bf16>, index, tensor<2048xindex, #half>, index, index) -> ()
    %p1 = tkgpu.private_load %memory at %c0 {offsets = array<i64: 0>} : !memory -> tensor<2048xbf16, #half>
    %j1 = tkgpu.extract %j at [2048] : tensor<4096xindex, #row> -> tensor<2048xindex, #half>
    tkgpu.store %p1, %y[%r, %j1] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<2048xbf16, #half>, !tkgpu.buffer<bf16>, index, tensor<2048xindex, #half>, index, index) -> ()
    %next = arith.addi %r, %c1 : index
    %in = arith.cmpi slt, %next, %n : index
    tkgpu.copy_private %memory at %c0, %x[%next, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64>] : (!memory, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index, i1) -> ()
    tkgpu.async_commit
  }
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
// CHECK-LABEL: tkgpu.func @again
// CHECK-NOT: extents
tkgpu.func @again args ["x", "y", "z", "n"] {
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
    %p0 = tkgpu.private_load %memory at %c0 {offsets = array<i64: 0>} : !memory -> tensor<2048xbf16, #half>
    %j0 = tkgpu.extract %j at [0] : tensor<4096xindex, #row> -> tensor<2048xindex, #half>
    tkgpu.store %p0, %y[%r, %j0] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<2048xbf16, #half>, !tkgpu.buffer<bf16>, index, tensor<2048xindex, #half>, index, index) -> ()
    %late = tkgpu.private_load %memory at %c0 : !memory -> tensor<4096xbf16, #row>
    tkgpu.store %late, %z[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<4096xbf16, #row>, !tkgpu.buffer<bf16>, tensor<4096xindex, #row>, index) -> ()
    %p1 = tkgpu.private_load %memory at %c0 {offsets = array<i64: 2048>} : !memory -> tensor<2048xbf16, #half>
    %j1 = tkgpu.extract %j at [2048] : tensor<4096xindex, #row> -> tensor<2048xindex, #half>
    tkgpu.store %p1, %y[%r, %j1] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<2048xbf16, #half>, !tkgpu.buffer<bf16>, index, tensor<2048xindex, #half>, index, index) -> ()
    %next = arith.addi %r, %c1 : index
    %in = arith.cmpi slt, %next, %n : index
    tkgpu.copy_private %memory at %c0, %x[%next, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64>] : (!memory, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #row>, index, index, i1) -> ()
    tkgpu.async_commit
  }
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// The only row of a large block comes in four parts, of which each is read as soon as it is there;
// that of a small block comes at once.
#large = #tkgpu.layout<register = [[1], [2], [4], [4096], [8192]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024], [2048]]>
!large = !tkgpu.private<1 x tensor<16384xbf16, #large>, vector = 8>
// CHECK-LABEL: tkgpu.func @large_block
// CHECK: tkgpu.copy_private %[[M:.*]] at %{{.*}} {extents = array<i64: 4096>, offsets = array<i64: 0>}
// CHECK-NEXT: tkgpu.async_commit
// CHECK: tkgpu.copy_private %[[M]] {{.*}} {extents = array<i64: 4096>, offsets = array<i64: 12288>}
// CHECK-NEXT: tkgpu.async_commit
// CHECK-NEXT: tkgpu.async_wait 3
// CHECK-NEXT: %[[P0:.*]] = tkgpu.private_load %[[M]] at %{{.*}} {offsets = array<i64: 0>}
// CHECK-NEXT: tkgpu.async_wait 2
// CHECK: tkgpu.async_wait 0
// CHECK-NEXT: %[[P3:.*]] = tkgpu.private_load %[[M]] at %{{.*}} {offsets = array<i64: 12288>}
// CHECK-NEXT: %[[A:.*]] = tkgpu.join %[[P0]], {{.*}}, %[[P3]]
// CHECK: tkgpu.reduce <max> %[[A]]
// CHECK: tkgpu.private_load %[[M]] at %c0 :
tkgpu.func @large_block args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<16384xindex, #large>
  %memory = tkgpu.alloc_private : !large
  tkgpu.copy_private %memory at %c0, %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (!large, index, !tkgpu.buffer<bf16>, tensor<16384xindex, #large>, index) -> ()
  tkgpu.async_commit
  tkgpu.async_wait 0
  %a = tkgpu.private_load %memory at %c0 : !large -> tensor<16384xbf16, #large>
  %m = tkgpu.reduce <max> %a axis 0 : tensor<16384xbf16, #large> -> bf16
  %b = tkgpu.private_load %memory at %c0 : !large -> tensor<16384xbf16, #large>
  %ms = tkgpu.broadcast %m dims [] : bf16 -> tensor<16384xbf16, #large>
  %o = arith.subf %b, %ms : tensor<16384xbf16, #large>
  tkgpu.store %o, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<16384xbf16, #large>, !tkgpu.buffer<bf16>, tensor<16384xindex, #large>, index) -> ()
  tkgpu.return
} {num_warps = 16 : i64, index_bits = 32 : i64}
// CHECK-LABEL: tkgpu.func @small_block
// CHECK: tkgpu.async_wait 0
// CHECK-NOT: offsets
tkgpu.func @small_block args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<4096xindex, #row>
  %memory = tkgpu.alloc_private : !memory
  tkgpu.copy_private %memory at %c0, %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (!memory, index, !tkgpu.buffer<bf16>, tensor<4096xindex, #row>, index) -> ()
  tkgpu.async_commit
  tkgpu.async_wait 0
  %a = tkgpu.private_load %memory at %c0 : !memory -> tensor<4096xbf16, #row>
  tkgpu.store %a, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<4096xbf16, #row>, !tkgpu.buffer<bf16>, tensor<4096xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
