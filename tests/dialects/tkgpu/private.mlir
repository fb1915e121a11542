// RUN: tk-opt %s --split-input-file --verify-diagnostics | tk-opt --split-input-file | FileCheck %s
// Tiles of which each thread keeps its part in shared memory.

#row = #tkgpu.layout<register = [[1], [2], [4], [256]], lane = [[8], [16], [32], [64], [128]], warp = []>
#half = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = []>

// CHECK-LABEL: tkgpu.func @rows
// CHECK: %[[ROWS:.*]] = tkgpu.alloc_private : <3 x tensor<512xbf16, #{{.*}}>, vector = 8>
// CHECK: tkgpu.copy_private %[[ROWS]] at %{{.*}}, %{{.*}}[%{{.*}}] dims [array<i64: 0>] strides(%{{.*}}) masks() over []
// CHECK: tkgpu.copy_private %[[ROWS]] {{.*}} {extents = array<i64: 256>, offsets = array<i64: 256>}
// CHECK: tkgpu.private_load %[[ROWS]] at %{{.*}} : <3 x tensor<512xbf16, #{{.*}}>, vector = 8> -> tensor<512xbf16, #{{.*}}>
// CHECK: tkgpu.private_store %{{.*}}, %[[ROWS]] at %{{.*}} : tensor<512xbf16, #{{.*}}> -> <3 x tensor<512xbf16, #{{.*}}>, vector = 8>
tkgpu.func @rows args ["x"] {
^bb0(%x: !tkgpu.buffer<bf16>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<512xindex, #row>
  %rows = tkgpu.alloc_private : <3 x tensor<512xbf16, #row>, vector = 8>
  tkgpu.copy_private %rows at %c0, %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.private<3 x tensor<512xbf16, #row>, vector = 8>, index, !tkgpu.buffer<bf16>, tensor<512xindex, #row>, index) -> ()
  %h = tkgpu.extract %j at [256] : tensor<512xindex, #row> -> tensor<256xindex, #half>
  tkgpu.copy_private %rows at %c0, %x[%h] dims [array<i64: 0>] strides(%c1) masks() over [] {extents = array<i64: 256>, offsets = array<i64: 256>} : (!tkgpu.private<3 x tensor<512xbf16, #row>, vector = 8>, index, !tkgpu.buffer<bf16>, tensor<256xindex, #half>, index) -> ()
  tkgpu.async_commit
  tkgpu.async_wait 0
  %v = tkgpu.private_load %rows at %c0 : <3 x tensor<512xbf16, #row>, vector = 8> -> tensor<512xbf16, #row>
  tkgpu.private_store %v, %rows at %c0 : tensor<512xbf16, #row> -> <3 x tensor<512xbf16, #row>, vector = 8>
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// -----

#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = []>
// expected-error @below {{expected at least one stage, got 0}}
func.func private @stages(!tkgpu.private<0 x tensor<256xbf16, #row>>)

// -----

// expected-error @below {{expected a tile of numbers with a layout, got 'tensor<256xbf16>'}}
func.func private @layout(!tkgpu.private<2 x tensor<256xbf16>>)

// -----

#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = []>
// expected-error @below {{expected vectors that divide a thread's 8 elements, got 16}}
func.func private @vector(!tkgpu.private<2 x tensor<256xbf16, #row>, vector = 16>)

// -----

#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = []>
tkgpu.func @narrow args ["x"] {
^bb0(%x: !tkgpu.buffer<bf16>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<256xindex, #row>
  %rows = tkgpu.alloc_private : <1 x tensor<256xbf16, #row>>
  // expected-error @below {{expected vectors of 4, 8 or 16 bytes, got 16 bits}}
  tkgpu.copy_private %rows at %c0, %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.private<1 x tensor<256xbf16, #row>>, index, !tkgpu.buffer<bf16>, tensor<256xindex, #row>, index) -> ()
  tkgpu.return
}

// -----

#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = []>
tkgpu.func @other args [] {
  %c0 = arith.constant 0 : index
  %rows = tkgpu.alloc_private : <1 x tensor<256xbf16, #row>>
  // expected-error @below {{expected a tile of '!tkgpu.private<1 x tensor<256xbf16}}
  %v = tkgpu.private_load %rows at %c0 : <1 x tensor<256xbf16, #row>> -> tensor<256xf32, #row>
  tkgpu.return
}

// -----

#row = #tkgpu.layout<register = [[1], [2], [4], [256]], lane = [[8], [16], [32], [64], [128]], warp = []>
#half = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = []>
tkgpu.func @part args [] {
  %c0 = arith.constant 0 : index
  %rows = tkgpu.alloc_private : <1 x tensor<512xbf16, #row>, vector = 8>
  // expected-error @below {{expected a part of whole vectors of '!tkgpu.private<1 x tensor<512xbf16}}
  %v = tkgpu.private_load %rows at %c0 {offsets = array<i64: 8>} : <1 x tensor<512xbf16, #row>, vector = 8> -> tensor<256xbf16, #half>
  tkgpu.return
}

// -----

#row = #tkgpu.layout<register = [[1], [2], [128]], lane = [[4], [8], [16], [32], [64]], warp = []>
#half = #tkgpu.layout<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = []>
tkgpu.func @part_of_vectors args [] {
  %c0 = arith.constant 0 : index
  %rows = tkgpu.alloc_private : <1 x tensor<256xbf16, #row>, vector = 8>
  // expected-error @below {{expected a part of whole vectors of}}
  %v = tkgpu.private_load %rows at %c0 {offsets = array<i64: 0>} : <1 x tensor<256xbf16, #row>, vector = 8> -> tensor<128xbf16, #half>
  tkgpu.return
}

// -----

#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = []>
tkgpu.func @stored args [] {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<0.0> : tensor<256xf32, #row>
  %rows = tkgpu.alloc_private : <1 x tensor<256xbf16, #row>, vector = 8>
  // expected-error @below {{expected a tile of '!tkgpu.private<1 x tensor<256xbf16}}
  tkgpu.private_store %v, %rows at %c0 : tensor<256xf32, #row> -> <1 x tensor<256xbf16, #row>, vector = 8>
  tkgpu.return
}

// -----

#row = #tkgpu.layout<register = [[1], [2], [4], [256]], lane = [[8], [16], [32], [64], [128]], warp = []>
#half = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = []>
tkgpu.func @copied_part args ["x"] {
^bb0(%x: !tkgpu.buffer<bf16>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<256xindex, #half>
  %rows = tkgpu.alloc_private : <1 x tensor<512xbf16, #row>, vector = 8>
  // expected-error @below {{expected 'extents' where there are 'offsets', and only there}}
  tkgpu.copy_private %rows at %c0, %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {offsets = array<i64: 0>} : (!tkgpu.private<1 x tensor<512xbf16, #row>, vector = 8>, index, !tkgpu.buffer<bf16>, tensor<256xindex, #half>, index) -> ()
  tkgpu.return
}

// -----

#row = #tkgpu.layout<register = [[1], [2], [4], [256]], lane = [[8], [16], [32], [64], [128]], warp = []>
#half = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = []>
tkgpu.func @copied_between args ["x"] {
^bb0(%x: !tkgpu.buffer<bf16>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<256xindex, #half>
  %rows = tkgpu.alloc_private : <1 x tensor<512xbf16, #row>, vector = 8>
  // expected-error @below {{expected a part of whole vectors of '!tkgpu.private<1 x tensor<512xbf16}}
  tkgpu.copy_private %rows at %c0, %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {extents = array<i64: 256>, offsets = array<i64: 8>} : (!tkgpu.private<1 x tensor<512xbf16, #row>, vector = 8>, index, !tkgpu.buffer<bf16>, tensor<256xindex, #half>, index) -> ()
  tkgpu.return
}
