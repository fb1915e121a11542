// RUN: tk-opt %s --tk-align-rows --tk-coalesce-accesses --canonicalize --cse | FileCheck %s
// Blocks that go through rows are launched, and so go on, in vectors of 8: all rows of one are
// misaligned alike, and what is joined by that is known before the loop.

// CHECK-LABEL: tkgpu.func @many
// CHECK: %[[EIGHT:.*]] = arith.constant 8 : index
// CHECK: %[[FIRST:.*]] = tkgpu.program_id
// CHECK: %[[SHIFT:.*]] = tkgpu.misalignment[%[[FIRST]]] strides(%{{.*}}) of 8
// CHECK: %[[J:.*]] = tkgpu.rotated_iota %[[SHIFT]]
// CHECK: %[[COUNT:.*]] = tkgpu.num_programs
// CHECK: %[[VECTORS:.*]] = tk.floor_div %[[COUNT]], %[[EIGHT]]
// CHECK: %[[STEP:.*]] = arith.muli %[[VECTORS]], %[[EIGHT]]
// CHECK: tkgpu.funnel %{{.*}}, %{{.*}} by %[[SHIFT]] in 8
// CHECK: scf.for %[[ROW:.*]] = %[[FIRST]] to %{{.*}} step %[[STEP]]
// CHECK: tkgpu.load %{{.*}}[%[[ROW]], %[[J]]] {{.*}} {run = 8 : i64, vector = 8 : i64}
// CHECK: tkgpu.store %{{.*}}[%[[ROW]], %[[J]]] {{.*}} {run = 8 : i64, vector = 8 : i64}
// CHECK: tk.kernel
// CHECK: %[[MORE:.*]] = arith.addi %{{.*}}, %c7
// CHECK: %[[GROUPS:.*]] = tk.floor_div %[[MORE]], %[[UNIT:.*]] :
// CHECK: %[[BLOCKS:.*]] = arith.muli %[[GROUPS]], %[[UNIT]]
// CHECK: tkgpu.launch @many grid(%[[BLOCKS]],
// CHECK-NOT: resident
module {
  tkgpu.func @many args ["x", "g", "C", "rows", "y"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %C: index, %rows: index, %y: !tkgpu.buffer<bf16>):
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : bf16
    %j = tkgpu.iota : tensor<4096xindex>
    %Cs = tkgpu.broadcast %C dims [] : index -> tensor<4096xindex>
    %in = arith.cmpi slt, %j, %Cs : tensor<4096xindex>
    %w = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, tensor<4096xindex>, index, tensor<4096xi1>, bf16) -> tensor<4096xbf16>
    %b = arith.extf %w : tensor<4096xbf16> to tensor<4096xf32>
    %first = tkgpu.program_id x
    %step = tkgpu.num_programs x
    scf.for %row = %first to %rows step %step {
      %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index, tensor<4096xi1>, bf16) -> tensor<4096xbf16>
      %a = arith.extf %v : tensor<4096xbf16> to tensor<4096xf32>
      %s = tkgpu.reduce <sum> %a axis 0 : tensor<4096xf32> -> f32
      %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<4096xf32>
      %p = arith.mulf %ss, %b : tensor<4096xf32>
      %q = arith.mulf %p, %a : tensor<4096xf32>
      %r = arith.truncf %q : tensor<4096xf32> to tensor<4096xbf16>
      tkgpu.store %r, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] : (tensor<4096xbf16>, !tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index, tensor<4096xi1>) -> ()
    }
    tkgpu.return
  } {num_warps = 4 : i64, index_bits = 32 : i64}
  tk.kernel @f dims ["R", "C"] params [#tk.param<"x">, #tk.param<"g">] results ["y"] {
  ^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>, %g: tensor<?xbf16>):
    %c1 = arith.constant 1 : index
    tk.bind %x[%R, %C] : tensor<?x?xbf16>
    tk.bind %g[%C] : tensor<?xbf16>
    %y = tkgpu.launch @many grid(%R, %c1, %c1) args(%x, %g, %C, %R : tensor<?x?xbf16>, tensor<?xbf16>, index, index) shapes(%R, %C) {names = ["y"], resident} : tensor<?x?xbf16>
    tk.return %y : tensor<?x?xbf16>
  }
}
