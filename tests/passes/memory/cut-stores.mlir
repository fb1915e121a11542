// RUN: tk-opt %s --tk-cut-stores | FileCheck %s
#row = #tkgpu.layout<register = [[1], [2], [4], [1024], [2048], [4096]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>
#half = #tkgpu.layout<register = [[1], [2], [4], [1024], [2048]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>

// What only the store needs is computed for 16 of a thread's elements at a time; what a reduction
// reads is a whole, and so is the one element's number, counted from where the part begins.
// CHECK-LABEL: tkgpu.func @row
// CHECK: %[[F:.*]] = arith.extf %{{.*}} : tensor<8192xbf16
// CHECK: %[[M:.*]] = tkgpu.reduce <max> %[[F]]
// CHECK-NOT: arith.subf {{.*}} : tensor<8192x
// CHECK: %[[F0:.*]] = tkgpu.extract %[[F]] at [0] : {{.*}} -> tensor<2048xf32
// CHECK: %[[D0:.*]] = arith.subf %[[F0]], %{{.*}} : tensor<2048xf32
// CHECK: %[[A0:.*]] = arith.subf %[[D0]], %{{.*}} : tensor<2048xf32
// CHECK: %[[S0:.*]] = tkgpu.select_at %[[A0]] at %{{.*}} else %[[D0]]
// CHECK: %[[O0:.*]] = arith.truncf %[[S0]]
// CHECK: %[[J0:.*]] = tkgpu.extract %[[J:.*]] at [0]
// CHECK: tkgpu.store %[[O0]], %{{.*}}[%[[J0]]] {{.*}}vector = 8
// CHECK: tkgpu.extract %[[F]] at [2048]
// CHECK: tkgpu.store
// CHECK: tkgpu.extract %[[F]] at [4096]
// CHECK: tkgpu.store
// CHECK: %[[FIRST:.*]] = arith.constant 6144 : index
// CHECK: %[[N:.*]] = arith.subi %arg2, %[[FIRST]]
// CHECK: tkgpu.extract %[[F]] at [6144]
// CHECK: tkgpu.select_at %{{.*}} at %[[N]] else
// CHECK: %[[J3:.*]] = tkgpu.extract %[[J]] at [6144]
// CHECK: tkgpu.store %{{.*}}, %{{.*}}[%[[J3]]]
tkgpu.func @row args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %n: index):
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<8192xf32, #row>
  %j = tkgpu.iota : tensor<8192xindex, #row>
  %a = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> tensor<8192xbf16, #row>
  %f = arith.extf %a : tensor<8192xbf16, #row> to tensor<8192xf32, #row>
  %m = tkgpu.reduce <max> %f axis 0 : tensor<8192xf32, #row> -> f32
  %ms = tkgpu.broadcast %m dims [] : f32 -> tensor<8192xf32, #row>
  %d = arith.subf %f, %ms : tensor<8192xf32, #row>
  %less = arith.subf %d, %one : tensor<8192xf32, #row>
  %s = tkgpu.select_at %less at %n else %d : tensor<8192xf32, #row>
  %o = arith.truncf %s : tensor<8192xf32, #row> to tensor<8192xbf16, #row>
  tkgpu.store %o, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<8192xbf16, #row>, !tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// CHECK-LABEL: tkgpu.func @short
// CHECK-NOT: tkgpu.extract
tkgpu.func @short args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<4096xindex, #half>
  %a = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<4096xindex, #half>, index) -> tensor<4096xbf16, #half>
  tkgpu.store %a, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<4096xbf16, #half>, !tkgpu.buffer<bf16>, tensor<4096xindex, #half>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Of memory that threads have for themselves the parts are read when they are needed, but if another
// copy begins before.
// CHECK-LABEL: tkgpu.func @kept
// CHECK-NOT: tkgpu.private_load
// CHECK: %[[P0:.*]] = tkgpu.private_load %{{.*}} at %c0 {offsets = array<i64: 0>} : {{.*}} -> tensor<2048xbf16
// CHECK-NEXT: arith.negf %[[P0]]
// CHECK: tkgpu.store
// CHECK: tkgpu.private_load %{{.*}} at %c0 {offsets = array<i64: 2048>}
// CHECK-LABEL: tkgpu.func @overwritten
// CHECK: tkgpu.private_load %{{.*}} at %c0 : {{.*}} -> tensor<8192xbf16
// CHECK: tkgpu.copy_private
// CHECK-NOT: tkgpu.private_load
!kept = !tkgpu.private<1 x tensor<8192xbf16, #row>, vector = 8>
tkgpu.func @kept args ["y"] {
^bb0(%y: !tkgpu.buffer<bf16>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<8192xindex, #row>
  %memory = tkgpu.alloc_private : !kept
  %a = tkgpu.private_load %memory at %c0 : !kept -> tensor<8192xbf16, #row>
  %o = arith.negf %a : tensor<8192xbf16, #row>
  tkgpu.store %o, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<8192xbf16, #row>, !tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
tkgpu.func @overwritten args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<8192xindex, #row>
  %memory = tkgpu.alloc_private : !kept
  %a = tkgpu.private_load %memory at %c0 : !kept -> tensor<8192xbf16, #row>
  tkgpu.copy_private %memory at %c0, %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (!kept, index, !tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> ()
  %o = arith.negf %a : tensor<8192xbf16, #row>
  tkgpu.store %o, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<8192xbf16, #row>, !tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Large blocks load what the first part needs before they meet, but not what several registers of a
// funnel come from: those are read for 16 elements at a time.
#long = #tkgpu.layout<register = [[1], [2], [4], [4096], [8192], [16384]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024], [2048]]>

// CHECK-LABEL: tkgpu.func @met
// CHECK: %[[G0:.*]] = tkgpu.load %arg1[{{.*}}] {{.*}} -> tensor<8192xbf16
// CHECK: tkgpu.reduce <max>
// CHECK-NOT: tkgpu.load
// CHECK: arith.mulf %{{.*}}, %[[G0]]
// CHECK: tkgpu.store
// CHECK: tkgpu.load %arg1[{{.*}}] {{.*}} -> tensor<8192xbf16
tkgpu.func @met args ["x", "g", "y"] {
^bb0(%x: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<32768xindex, #long>
  %a = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<32768xindex, #long>, index) -> tensor<32768xbf16, #long>
  %m = tkgpu.reduce <max> %a axis 0 : tensor<32768xbf16, #long> -> bf16
  %ms = tkgpu.broadcast %m dims [] : bf16 -> tensor<32768xbf16, #long>
  %w = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<32768xindex, #long>, index) -> tensor<32768xbf16, #long>
  %o = arith.mulf %ms, %w : tensor<32768xbf16, #long>
  tkgpu.store %o, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<32768xbf16, #long>, !tkgpu.buffer<bf16>, tensor<32768xindex, #long>, index) -> ()
  tkgpu.return
} {num_warps = 16 : i64, index_bits = 32 : i64}

// CHECK-LABEL: tkgpu.func @funnelled
// CHECK: tkgpu.reduce <max>
// CHECK: %[[B0:.*]] = tkgpu.load %arg1
// CHECK: %[[H0:.*]] = tkgpu.load %arg1
// CHECK: tkgpu.funnel %[[B0]], %[[H0]] by %arg3 in 8 : tensor<8192xbf16
// CHECK: tkgpu.store
// CHECK: tkgpu.funnel
tkgpu.func @funnelled args ["x", "g", "y", "s"] {
^bb0(%x: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %s: index):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<32768xindex, #long>
  %behind = arith.addi %j, %j : tensor<32768xindex, #long>
  %a = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<32768xindex, #long>, index) -> tensor<32768xbf16, #long>
  %m = tkgpu.reduce <max> %a axis 0 : tensor<32768xbf16, #long> -> bf16
  %ms = tkgpu.broadcast %m dims [] : bf16 -> tensor<32768xbf16, #long>
  %b = tkgpu.load %g[%behind] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<32768xindex, #long>, index) -> tensor<32768xbf16, #long>
  %h = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<32768xindex, #long>, index) -> tensor<32768xbf16, #long>
  %w = tkgpu.funnel %b, %h by %s in 8 : tensor<32768xbf16, #long>
  %o = arith.mulf %ms, %w : tensor<32768xbf16, #long>
  tkgpu.store %o, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<32768xbf16, #long>, !tkgpu.buffer<bf16>, tensor<32768xindex, #long>, index) -> ()
  tkgpu.return
} {num_warps = 16 : i64, index_bits = 32 : i64}

// What two loads give is loaded for two parts at once, before it is joined, where it goes to shared
// memory.
// CHECK-LABEL: tkgpu.func @kept_weights
// CHECK-COUNT-4: tkgpu.load %arg0
// CHECK-NOT: tkgpu.load
// CHECK: tkgpu.funnel
// CHECK: tkgpu.private_store %{{.*}} {offsets = array<i64: 0>}
// CHECK-NOT: tkgpu.load
// CHECK: tkgpu.funnel
// CHECK: tkgpu.private_store %{{.*}} {offsets = array<i64: 8192>}
// CHECK-COUNT-4: tkgpu.load %arg0
// CHECK-NOT: tkgpu.load
// CHECK: tkgpu.private_store %{{.*}} {offsets = array<i64: 16384>}
// CHECK-NOT: tkgpu.load
// CHECK: tkgpu.private_store %{{.*}} {offsets = array<i64: 24576>}
tkgpu.func @kept_weights args ["g", "s"] {
^bb0(%g: !tkgpu.buffer<bf16>, %s: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<32768xindex, #long>
  %behind = arith.addi %j, %j : tensor<32768xindex, #long>
  %b = tkgpu.load %g[%behind] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<32768xindex, #long>, index) -> tensor<32768xbf16, #long>
  %h = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<32768xindex, #long>, index) -> tensor<32768xbf16, #long>
  %w = tkgpu.funnel %b, %h by %s in 8 : tensor<32768xbf16, #long>
  %kept = tkgpu.alloc_private : <1 x tensor<32768xbf16, #long>, vector = 8>
  tkgpu.private_store %w, %kept at %c0 : tensor<32768xbf16, #long> -> <1 x tensor<32768xbf16, #long>, vector = 8>
  tkgpu.return
} {num_warps = 16 : i64, index_bits = 32 : i64}

// What is kept in a thread's shared memory is computed in parts, too; only what is read there is read
// as a whole, by the reduction.
// CHECK-LABEL: tkgpu.func @kept_sum
// CHECK: %[[KEPT:.*]] = tkgpu.alloc_private
// CHECK-NOT: tkgpu.load {{.*}} -> tensor<8192x
// CHECK: %[[A0:.*]] = tkgpu.load %arg0{{.*}} -> tensor<2048xbf16
// CHECK: %[[S0:.*]] = arith.addf %[[A0]], %{{.*}} : tensor<2048xbf16
// CHECK: tkgpu.private_store %[[S0]], %[[KEPT]] at %{{.*}} {offsets = array<i64: 0>}
// CHECK: tkgpu.private_store {{.*}} {offsets = array<i64: 2048>}
// CHECK: tkgpu.private_store {{.*}} {offsets = array<i64: 4096>}
// CHECK: tkgpu.private_store {{.*}} {offsets = array<i64: 6144>}
// CHECK: %[[READ:.*]] = tkgpu.private_load %[[KEPT]]
// CHECK: tkgpu.reduce <max> %[[READ]]
tkgpu.func @kept_sum args ["x", "y", "z"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<8192xindex, #row>
  %kept = tkgpu.alloc_private : <1 x tensor<8192xbf16, #row>, vector = 8>
  %a = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> tensor<8192xbf16, #row>
  %b = tkgpu.load %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> tensor<8192xbf16, #row>
  %s = arith.addf %a, %b : tensor<8192xbf16, #row>
  tkgpu.private_store %s, %kept at %c0 : tensor<8192xbf16, #row> -> <1 x tensor<8192xbf16, #row>, vector = 8>
  %r = tkgpu.private_load %kept at %c0 : <1 x tensor<8192xbf16, #row>, vector = 8> -> tensor<8192xbf16, #row>
  %m = tkgpu.reduce <max> %r axis 0 : tensor<8192xbf16, #row> -> bf16
  tkgpu.store %m, %z[%c0] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// What is put into shared memory behind a read of it is not what parts would read.
// CHECK-LABEL: tkgpu.func @put_later
// CHECK: %[[READ:.*]] = tkgpu.private_load %{{.*}} -> tensor<8192xbf16
// CHECK: tkgpu.private_store
// CHECK: tkgpu.extract %[[READ]]
tkgpu.func @put_later args ["x", "z"] {
^bb0(%x: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<8192xindex, #row>
  %zero = arith.constant dense<0.0> : tensor<8192xbf16, #row>
  %kept = tkgpu.alloc_private : <1 x tensor<8192xbf16, #row>, vector = 8>
  %r = tkgpu.private_load %kept at %c0 : <1 x tensor<8192xbf16, #row>, vector = 8> -> tensor<8192xbf16, #row>
  tkgpu.private_store %zero, %kept at %c0 : tensor<8192xbf16, #row> -> <1 x tensor<8192xbf16, #row>, vector = 8>
  tkgpu.store %r, %z[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<8192xbf16, #row>, !tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// The memory of a row that the next one takes is read in four parts, also where a thread has few
// elements; that of several stages is not.
!one = !tkgpu.private<1 x tensor<4096xbf16, #half>, vector = 8>
!two = !tkgpu.private<2 x tensor<4096xbf16, #half>, vector = 8>
// CHECK-LABEL: tkgpu.func @refilled
// CHECK: tkgpu.reduce
// CHECK: tkgpu.private_load %{{.*}} at %c0 {offsets = array<i64: 0>} : {{.*}} -> tensor<1024xbf16
// CHECK: tkgpu.store
// CHECK: tkgpu.private_load %{{.*}} at %c0 {offsets = array<i64: 1024>}
// CHECK: tkgpu.store
// CHECK: tkgpu.private_load %{{.*}} at %c0 {offsets = array<i64: 2048>}
// CHECK: tkgpu.store
// CHECK: tkgpu.private_load %{{.*}} at %c0 {offsets = array<i64: 3072>}
// CHECK: tkgpu.store
// CHECK: tkgpu.copy_private
// CHECK-LABEL: tkgpu.func @two_stages
// CHECK-NOT: offsets
tkgpu.func @refilled args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %C = arith.constant 4096 : index
  %j = tkgpu.iota : tensor<4096xindex, #half>
  %memory = tkgpu.alloc_private : !one
  scf.for %r = %c0 to %n step %c1 {
    tkgpu.async_wait 0
    %a = tkgpu.private_load %memory at %c0 : !one -> tensor<4096xbf16, #half>
    %m = tkgpu.reduce <max> %a axis 0 : tensor<4096xbf16, #half> -> bf16
    %b = tkgpu.private_load %memory at %c0 : !one -> tensor<4096xbf16, #half>
    %ms = tkgpu.broadcast %m dims [] : bf16 -> tensor<4096xbf16, #half>
    %o = arith.subf %b, %ms : tensor<4096xbf16, #half>
    tkgpu.store %o, %y[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<4096xbf16, #half>, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #half>, index, index) -> ()
    tkgpu.copy_private %memory at %c0, %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (!one, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #half>, index, index) -> ()
    tkgpu.async_commit
  }
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
tkgpu.func @two_stages args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %C = arith.constant 4096 : index
  %j = tkgpu.iota : tensor<4096xindex, #half>
  %memory = tkgpu.alloc_private : !two
  scf.for %r = %c0 to %n step %c1 {
    %b = tkgpu.private_load %memory at %c0 : !two -> tensor<4096xbf16, #half>
    %o = arith.negf %b : tensor<4096xbf16, #half>
    tkgpu.store %o, %y[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<4096xbf16, #half>, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #half>, index, index) -> ()
    tkgpu.copy_private %memory at %c0, %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (!two, index, !tkgpu.buffer<bf16>, index, tensor<4096xindex, #half>, index, index) -> ()
    tkgpu.async_commit
  }
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
