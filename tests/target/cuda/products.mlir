// RUN: tk-emit-cuda %s | FileCheck %s
// A 64x64 product on tensor cores from swizzled shared memory filled by asynchronous copies.

#acc = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 32], [32, 0]]>
#a = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [16, 0], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 0], [32, 0]]>
#b = #tkgpu.layout<register = [[1, 0], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 32], [0, 0]]>
#copya = #tkgpu.layout<register = [[0, 1], [0, 2], [0, 4], [32, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]]>
#copyb = #tkgpu.layout<register = [[0, 1], [0, 2], [0, 4], [16, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#rowa = #tkgpu.layout<register = [[32]], lane = [[0], [0], [1], [2], [4]], warp = [[8], [16]]>
#cola = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [0], [0], [0]], warp = [[0], [0]]>
#rowb = #tkgpu.layout<register = [[16]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#colb = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rowc = #tkgpu.layout<register = [[8], [16]], lane = [[0], [0], [1], [2], [4]], warp = [[0], [32]]>
#colc = #tkgpu.layout<register = [[1], [8], [16]], lane = [[2], [4], [0], [0], [0]], warp = [[32], [0]]>

// CHECK-LABEL: gemm(
// CHECK: tk::u8 *const shared = tk::shared_memory();
// CHECK: reinterpret_cast<tk::bf16 *>(shared + 0)
// CHECK: reinterpret_cast<tk::bf16 *>(shared + 4096)
// CHECK: for (int {{.*}} = 0; {{.*}} < K; {{.*}} += 32) {
// CHECK: TK_UNROLL for (int r = 0; r < 16; r += 8) tk::copy_async<16>(&
// CHECK: tk::async_commit();
// CHECK: tk::async_wait<0>();
// CHECK: tk::barrier();
// CHECK: tk::load_matrix<4, false>(
// CHECK: tk::load_matrix<4, true>(
// CHECK: TK_UNROLL for (int k = 0; k < 2; ++k) TK_UNROLL for (int r = 0; r < 32; r += 4) tk::mma_m16n8(
// CHECK: tk::narrow(
// CHECK: tk::store<2>(&c[
tkgpu.func @gemm args ["a", "b", "c", "N", "K"] {
^bb0(%a: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %c: !tkgpu.buffer<bf16>, %N: index, %K: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %x = tkgpu.program_id x
  %y = tkgpu.program_id y
  %m0 = arith.muli %y, %c64 : index
  %n0 = arith.muli %x, %c64 : index
  %sa = tkgpu.alloc_shared : !tkgpu.shared<[64, 32], bf16 order = [1, 0] chunk = 8 per_phase = 2 phases = 4>
  %sb = tkgpu.alloc_shared : !tkgpu.shared<[32, 64], bf16 order = [1, 0] chunk = 8 per_phase = 1 phases = 8>
  %ia = tkgpu.iota : tensor<64xindex, #rowa>
  %ma = tkgpu.broadcast %m0 dims [] : index -> tensor<64xindex, #rowa>
  %ra = arith.addi %ma, %ia : tensor<64xindex, #rowa>
  %ja = tkgpu.iota : tensor<32xindex, #cola>
  %ib = tkgpu.iota : tensor<32xindex, #rowb>
  %jb = tkgpu.iota : tensor<64xindex, #colb>
  %nb = tkgpu.broadcast %n0 dims [] : index -> tensor<64xindex, #colb>
  %cb = arith.addi %nb, %jb : tensor<64xindex, #colb>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %sum = scf.for %k = %c0 to %K step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32, #acc>) {
    %ka = tkgpu.broadcast %k dims [] : index -> tensor<32xindex, #cola>
    %ca = arith.addi %ka, %ja : tensor<32xindex, #cola>
    %kb = tkgpu.broadcast %k dims [] : index -> tensor<32xindex, #rowb>
    %rb = arith.addi %kb, %ib : tensor<32xindex, #rowb>
    tkgpu.copy_async %sa, %a[%ra, %ca] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks() over [] layout #copya {vector = 8 : i64} : (!tkgpu.shared<[64, 32], bf16 order = [1, 0] chunk = 8 per_phase = 2 phases = 4>, !tkgpu.buffer<bf16>, tensor<64xindex, #rowa>, tensor<32xindex, #cola>, index, index) -> ()
    tkgpu.copy_async %sb, %b[%rb, %cb] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] layout #copyb {vector = 8 : i64} : (!tkgpu.shared<[32, 64], bf16 order = [1, 0] chunk = 8 per_phase = 1 phases = 8>, !tkgpu.buffer<bf16>, tensor<32xindex, #rowb>, tensor<64xindex, #colb>, index, index) -> ()
    tkgpu.async_commit
    tkgpu.async_wait 0
    tkgpu.barrier
    %fa = tkgpu.local_load %sa {matrix} : !tkgpu.shared<[64, 32], bf16 order = [1, 0] chunk = 8 per_phase = 2 phases = 4> -> tensor<64x32xbf16, #a>
    %fb = tkgpu.local_load %sb {matrix, transposed} : !tkgpu.shared<[32, 64], bf16 order = [1, 0] chunk = 8 per_phase = 1 phases = 8> -> tensor<32x64xbf16, #b>
    %d = tkgpu.dot %fa, %fb, %acc : tensor<64x32xbf16, #a>, tensor<32x64xbf16, #b> -> tensor<64x64xf32, #acc>
    tkgpu.barrier
    scf.yield %d : tensor<64x64xf32, #acc>
  }
  %r = arith.truncf %sum : tensor<64x64xf32, #acc> to tensor<64x64xbf16, #acc>
  %ic = tkgpu.iota : tensor<64xindex, #rowc>
  %jc = tkgpu.iota : tensor<64xindex, #colc>
  %mc = tkgpu.broadcast %m0 dims [] : index -> tensor<64xindex, #rowc>
  %nc = tkgpu.broadcast %n0 dims [] : index -> tensor<64xindex, #colc>
  %rc = arith.addi %mc, %ic : tensor<64xindex, #rowc>
  %cc = arith.addi %nc, %jc : tensor<64xindex, #colc>
  tkgpu.store %r, %c[%rc, %cc] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] {vector = 2 : i64} : (tensor<64x64xbf16, #acc>, !tkgpu.buffer<bf16>, tensor<64xindex, #rowc>, tensor<64xindex, #colc>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Two products add to what a third has computed: the one that comes first leaves it as it is.
// CHECK-LABEL: shared_accumulator(
// CHECK: tk::mma_m16n8(&[[SUM:[a-z_0-9]+]][r],
// CHECK: = [[SUM]][r];
// CHECK: tk::mma_m16n8(&[[FIRST:[a-z_0-9]+]][r],
// CHECK: = [[SUM]][r];
// CHECK: tk::mma_m16n8(&
tkgpu.func @shared_accumulator args ["y"] {
^bb0(%y: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %a = arith.constant dense<1.0> : tensor<64x32xbf16, #a>
  %b = arith.constant dense<2.0> : tensor<32x64xbf16, #b>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %sum = tkgpu.dot %a, %b, %zero : tensor<64x32xbf16, #a>, tensor<32x64xbf16, #b> -> tensor<64x64xf32, #acc>
  %first = tkgpu.dot %a, %b, %sum : tensor<64x32xbf16, #a>, tensor<32x64xbf16, #b> -> tensor<64x64xf32, #acc>
  %second = tkgpu.dot %a, %b, %sum : tensor<64x32xbf16, #a>, tensor<32x64xbf16, #b> -> tensor<64x64xf32, #acc>
  %d = arith.mulf %first, %second : tensor<64x64xf32, #acc>
  %i = tkgpu.iota : tensor<64xindex, #rowc>
  %j = tkgpu.iota : tensor<64xindex, #colc>
  tkgpu.store %d, %y[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c64, %c1) masks() over [] : (tensor<64x64xf32, #acc>, !tkgpu.buffer<f32>, tensor<64xindex, #rowc>, tensor<64xindex, #colc>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}
