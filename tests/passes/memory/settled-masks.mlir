// RUN: tk-opt %s --tk-drop-registers | FileCheck %s

// A thread's four vectors begin 1024 elements apart. What lies before the least length is in the row
// in all threads, wherever it begins; the first vector of a rotated tile goes around the end.
#row = #tkgpu.layout<register = [[1], [2], [4], [1024], [2048]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>

// CHECK-LABEL: tkgpu.func @rows
// CHECK: arith.cmpi slt, %{{.*}} {tkgpu.settled = 16777215 : i64}
// CHECK: arith.cmpi slt, %{{.*}} {tkgpu.settled = 16777088 : i64}
// CHECK: arith.cmpi slt, %{{.*}} {tkgpu.settled = 16776960 : i64}
tkgpu.func @rows args ["x", "y", "C"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<upper = 4096>] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<i1>, %C: index):
  %c1 = arith.constant 1 : index
  %behind = arith.constant dense<4088> : tensor<4096xindex, #row>
  %last = arith.constant dense<4095> : tensor<4096xindex, #row>
  %row = tkgpu.program_id x
  %s = tkgpu.misalignment[%row] strides(%C) of 8
  %i = tkgpu.iota : tensor<4096xindex, #row>
  %j = tkgpu.rotated_iota %s : tensor<4096xindex, #row>
  %b = arith.addi %i, %behind : tensor<4096xindex, #row>
  %before = arith.andi %b, %last : tensor<4096xindex, #row>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<4096xindex, #row>
  %plain = arith.cmpi slt, %i, %Cs : tensor<4096xindex, #row>
  %rotated = arith.cmpi slt, %j, %Cs : tensor<4096xindex, #row>
  %vector = arith.cmpi slt, %before, %Cs : tensor<4096xindex, #row>
  tkgpu.store %plain, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<4096xi1, #row>, !tkgpu.buffer<i1>, tensor<4096xindex, #row>, index) -> ()
  tkgpu.store %rotated, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<4096xi1, #row>, !tkgpu.buffer<i1>, tensor<4096xindex, #row>, index) -> ()
  tkgpu.store %vector, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<4096xi1, #row>, !tkgpu.buffer<i1>, tensor<4096xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64, tkgpu.least_sizes = array<i64: 0, 0, 3585>}

// Nothing is known of the length, and nothing of what a comparison is made with.
// CHECK-LABEL: tkgpu.func @any
// CHECK-NOT: tkgpu.settled
tkgpu.func @any args ["y", "C"] {
^bb0(%y: !tkgpu.buffer<i1>, %C: index):
  %c1 = arith.constant 1 : index
  %i = tkgpu.iota : tensor<4096xindex, #row>
  %row = tkgpu.program_id x
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<4096xindex, #row>
  %Rs = tkgpu.broadcast %row dims [] : index -> tensor<4096xindex, #row>
  %in = arith.cmpi slt, %i, %Cs : tensor<4096xindex, #row>
  %to = arith.cmpi sge, %i, %Rs : tensor<4096xindex, #row>
  %both = arith.andi %in, %to : tensor<4096xi1, #row>
  tkgpu.store %both, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<4096xi1, #row>, !tkgpu.buffer<i1>, tensor<4096xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// What a launch computes of sizes may be negative, as 0 - K is.
// CHECK-LABEL: tkgpu.func @shifted
// CHECK-NOT: tkgpu.settled
tkgpu.func @shifted args ["y", "n", "C"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<upper = 4096>] {
^bb0(%y: !tkgpu.buffer<i1>, %n: index, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0> : tensor<4096xindex, #row>
  %i = tkgpu.iota : tensor<4096xindex, #row>
  %ns = tkgpu.broadcast %n dims [] : index -> tensor<4096xindex, #row>
  %at = arith.addi %i, %ns : tensor<4096xindex, #row>
  %in = arith.cmpi sge, %at, %zero : tensor<4096xindex, #row>
  tkgpu.store %in, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<4096xi1, #row>, !tkgpu.buffer<i1>, tensor<4096xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64, tkgpu.least_sizes = array<i64: 0, 0, 3585>}
