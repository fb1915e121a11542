// RUN: tk-opt --tk-split-reductions %s | FileCheck %s

// CHECK-LABEL: @total
// CHECK: tk.compute ["i.chunk"]
// CHECK: tk.reduce [#tk.kind<sum>] ["i"]
// CHECK: names ["s.partial"]
// CHECK: tk.compute []
// CHECK: tk.reduce [#tk.kind<sum>] ["i.chunk"]
tk.kernel @total dims ["N"]
    params [#tk.param<"x">]
    results ["s"] {
^bb0(%N: index, %x: tensor<?xf32>):
  tk.bind %x[%N] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %s = tk.compute [] in () {
  ^bb0():
    %t = tk.reduce [#tk.kind<sum>] ["i"] from (%zero) to (%N) {
    ^bb0(%i: index):
    %a = tk.load %x[%i] : tensor<?xf32>
    tk.yield %a : f32
    } : f32
    tk.yield %t : f32
  } names ["s"] : tensor<f32>
  tk.return %s : tensor<f32>
}

// Few columns, as the facts say.
// CHECK-LABEL: @columns
// CHECK: tk.compute ["c", "r.chunk"]
// CHECK: tk.compute ["c"]
tk.kernel @columns dims ["R", "C"]
    params [#tk.param<"x">]
    results ["s"] facts [#tk.fact<divisor = 1, upper = -1>, #tk.fact<divisor = 1, upper = 8>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %s = tk.compute ["c"] in (%C) {
  ^bb0(%c: index):
    %t = tk.reduce [#tk.kind<max>] ["r"] from (%zero) to (%R) {
    ^bb0(%r: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    tk.yield %t : f32
  } names ["s"] : tensor<?xf32>
  tk.return %s : tensor<?xf32>
}

// On a GPU the sums of many columns are too few blocks; the rows of each are divided.
module attributes {tkgpu.target = #tkgpu.target<arch = 90, processors = 132>} {
// CHECK-LABEL: @wide
// CHECK: %[[SIZE:.*]] = arith.constant 2048 : index
// CHECK: tk.compute ["r.chunk", "c"]
// CHECK: names ["s.partial"]
// CHECK: tk.compute ["c"]
// CHECK: tk.load %{{.*}}[%{{.*}}, %{{.*}}]
tk.kernel @wide dims ["R", "C"]
    params [#tk.param<"x">]
    results ["s"] facts [#tk.fact<divisor = 16384, upper = 16384>, #tk.fact<divisor = 128, upper = 4096>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %s = tk.compute ["c"] in (%C) {
  ^bb0(%c: index):
    %t = tk.reduce [#tk.kind<sum>] ["r"] from (%zero) to (%R) {
    ^bb0(%r: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    tk.yield %t : f32
  } names ["s"] : tensor<?xf32>
  tk.return %s : tensor<?xf32>
}

// Of several indices that is divided of which there are most parts: rows of which there are many,
// or else neighbours in long rows, a part of which is then the outer loop.
// CHECK-LABEL: @rows_of_all
// CHECK: %[[LENGTH:.*]] = arith.constant 64 : index
// CHECK: tk.compute ["r.chunk"]
// CHECK: arith.muli %{{.*}}, %[[LENGTH]]
// CHECK: tk.reduce [#tk.kind<sum>] ["c", "r"] from(%c0{{.*}}, %{{.*}}) to
tk.kernel @rows_of_all dims ["R", "C"]
    params [#tk.param<"x">]
    results ["s"] facts [#tk.fact<divisor = 65536, upper = 65536>, #tk.fact<divisor = 1024, upper = 1024>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %s = tk.compute [] in () {
  ^bb0():
    %t = tk.reduce [#tk.kind<sum>] ["c", "r"] from (%zero, %zero) to (%C, %R) {
    ^bb0(%c: index, %r: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    tk.yield %t : f32
  } names ["s"] : tensor<f32>
  tk.return %s : tensor<f32>
}

// CHECK-LABEL: @neighbours
// CHECK: %[[LENGTH:.*]] = arith.constant 1024 : index
// CHECK: tk.compute ["c.chunk"]
// CHECK: %[[FIRST:.*]] = arith.addi
// CHECK: tk.reduce [#tk.kind<sum>] ["c", "r"] from(%[[FIRST]], %
// CHECK-NEXT: ^bb0(%[[C:.*]]: index, %[[R:.*]]: index):
// CHECK-NEXT: tk.load %{{.*}}[%[[R]], %[[C]]]
tk.kernel @neighbours dims ["R", "C"]
    params [#tk.param<"x">]
    results ["s"] facts [#tk.fact<divisor = 64, upper = 64>, #tk.fact<divisor = 1048576, upper = 1048576>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %s = tk.compute [] in () {
  ^bb0():
    %t = tk.reduce [#tk.kind<sum>] ["r", "c"] from (%zero, %zero) to (%R, %C) {
    ^bb0(%r: index, %c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    tk.yield %t : f32
  } names ["s"] : tensor<f32>
  tk.return %s : tensor<f32>
}

// Sums of columns over two indices, of which the outer one is divided.
// CHECK-LABEL: @columns_of_planes
// CHECK: tk.compute ["b.chunk", "c"]
// CHECK: tk.reduce [#tk.kind<sum>] ["b", "r"]
tk.kernel @columns_of_planes dims ["B", "R", "C"]
    params [#tk.param<"x">]
    results ["s"] facts [#tk.fact<divisor = 64, upper = 64>, #tk.fact<divisor = 64, upper = 64>, #tk.fact<divisor = 128, upper = 1024>] {
^bb0(%B: index, %R: index, %C: index, %x: tensor<?x?x?xf32>):
  tk.bind %x[%B, %R, %C] : tensor<?x?x?xf32>
  %zero = arith.constant 0 : index
  %s = tk.compute ["c"] in (%C) {
  ^bb0(%c: index):
    %t = tk.reduce [#tk.kind<sum>] ["b", "r"] from (%zero, %zero) to (%B, %R) {
    ^bb0(%b: index, %r: index):
    %a = tk.load %x[%b, %r, %c] : tensor<?x?x?xf32>
    tk.yield %a : f32
    } : f32
    tk.yield %t : f32
  } names ["s"] : tensor<?xf32>
  tk.return %s : tensor<?xf32>
}

// Rows are enough blocks as they are.
// CHECK-LABEL: @rows
// CHECK-NOT: chunk
// CHECK: tk.return
tk.kernel @rows dims ["R", "C"]
    params [#tk.param<"x">]
    results ["s"] facts [#tk.fact<divisor = 128, upper = 4096>, #tk.fact<divisor = 16384, upper = 16384>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %s = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %t = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    tk.yield %t : f32
  } names ["s"] : tensor<?xf32>
  tk.return %s : tensor<?xf32>
}

// A variance: each part has squares about its own mean, from distances from a sample. The parts of
// the sum that the mean of all is computed from are those that tell each part's. They are no more than
// those of a plain sum: what blocks read behind their sample comes early.
// CHECK-LABEL: @variance
// CHECK: arith.constant 2048 : index
// CHECK-NOT: names ["v.partial"]
// CHECK: %[[P:.*]]:2 = tk.compute ["r.chunk", "c"]
// CHECK: %[[END:.*]] = arith.addi %[[FIRST:.*]], %c64
// CHECK: %[[SAMPLE_END:.*]] = arith.minsi %[[END]], %[[LAST:.*]] : index
// CHECK: %[[FEW:.*]] = tk.reduce [#tk.kind<sum>] ["r"] from(%[[FIRST]]) to(%[[SAMPLE_END]])
// CHECK: %[[SAMPLE:.*]] = arith.divf %[[FEW]]
// CHECK: %[[SHIFTED:.*]] = tk.reduce [#tk.kind<sum>] ["r"] from(%[[FIRST]]) to(%[[LAST]])
// CHECK: arith.subf %{{.*}}, %[[SAMPLE]]
// CHECK: %[[SUM:.*]] = tk.reduce [#tk.kind<sum>] ["r"] from(%[[FIRST]]) to(%[[LAST]])
// CHECK-NOT: arith.subf
// CHECK: %[[ABOUT:.*]] = tk.reduce [#tk.kind<sum>] ["r"] from(%[[FIRST]]) to(%[[LAST]])
// CHECK: arith.subf %{{.*}}, %[[SAMPLE]]
// CHECK: %[[COUNT:.*]] = arith.sitofp
// CHECK: %[[STEP:.*]] = arith.divf %[[SHIFTED]], %[[COUNT]]
// CHECK: %[[EXCESS:.*]] = arith.mulf %[[SHIFTED]], %[[STEP]]
// CHECK: %[[DIFFERENCE:.*]] = arith.subf %[[ABOUT]], %[[EXCESS]]
// CHECK: %[[SQUARES:.*]] = arith.maximumf %[[DIFFERENCE]]
// CHECK: tk.yield %[[SUM]], %[[SQUARES]]
// CHECK: names ["v.sums", "v.squares"]
// CHECK: tk.compute ["c"]
// CHECK: tk.reduce [#tk.kind<sum>] ["r.chunk"]
// CHECK: tk.load %[[P]]#0
// CHECK: %[[ALL:.*]] = arith.divf
// CHECK: tk.reduce [#tk.kind<sum>] ["r.chunk"]
// CHECK: %[[T:.*]] = tk.load %[[P]]#0
// CHECK: %[[Q:.*]] = tk.load %[[P]]#1
// CHECK: %[[M:.*]] = arith.divf %[[T]]
// CHECK: %[[AWAY:.*]] = arith.subf %[[M]], %[[ALL]]
// CHECK: arith.mulf %[[AWAY]], %[[AWAY]]
// CHECK: arith.addf %[[Q]]
tk.kernel @variance dims ["R", "C"]
    params [#tk.param<"x">]
    results ["v"] facts [#tk.fact<divisor = 16384, upper = 16384>, #tk.fact<divisor = 128, upper = 4096>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %n = arith.constant 16384.0 : f32
  %v = tk.compute ["c"] in (%C) {
  ^bb0(%c: index):
    %t = tk.reduce [#tk.kind<sum>] ["r"] from (%zero) to (%R) {
    ^bb0(%r: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %m = arith.divf %t, %n : f32
    %u = tk.reduce [#tk.kind<sum>] ["r"] from (%zero) to (%R) {
    ^bb0(%r: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %d = arith.subf %a, %m : f32
    %q = arith.mulf %d, %d : f32
    tk.yield %q : f32
    } : f32
    tk.yield %u : f32
  } names ["v"] : tensor<?xf32>
  tk.return %v : tensor<?xf32>
}

// Other terms of another reduction's result have to wait for it.
// CHECK-LABEL: @cubes
// CHECK-NOT: chunk
// CHECK: tk.return
tk.kernel @cubes dims ["R", "C"]
    params [#tk.param<"x">]
    results ["v"] facts [#tk.fact<divisor = 16384, upper = 16384>, #tk.fact<divisor = 128, upper = 4096>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %v = tk.compute ["c"] in (%C) {
  ^bb0(%c: index):
    %t = tk.reduce [#tk.kind<sum>] ["r"] from (%zero) to (%R) {
    ^bb0(%r: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %u = tk.reduce [#tk.kind<sum>] ["r"] from (%zero) to (%R) {
    ^bb0(%r: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %d = arith.subf %a, %t : f32
    %q = arith.mulf %d, %d : f32
    %w = arith.mulf %q, %d : f32
    tk.yield %w : f32
    } : f32
    tk.yield %u : f32
  } names ["v"] : tensor<?xf32>
  tk.return %v : tensor<?xf32>
}

// One row times a matrix is a sum of columns: the row is the same for all of them. There are blocks
// enough for 8 on each processor, whose parts have one length ...
// CHECK-LABEL: @one_row
// CHECK: arith.addi %{{.*}}, %c1023
// CHECK: %[[LENGTH:.*]] = arith.muli %{{.*}}, %c64
// CHECK: %[[PARTS:.*]] = arith.minsi %{{.*}}, %c16{{.*}}
// CHECK: tk.compute ["r.chunk", "m", "c"] in(%[[PARTS]], %M, %C)
// CHECK: arith.muli %r.chunk, %[[LENGTH]]
// CHECK: tk.compute ["m", "c"]
tk.kernel @one_row dims ["M", "R", "C"]
    params [#tk.param<"w">, #tk.param<"x">]
    results ["s"] facts [#tk.fact<divisor = 1, upper = 1>, #tk.fact<divisor = 16384, upper = 16384>, #tk.fact<divisor = 128, upper = 4096>] {
^bb0(%M: index, %R: index, %C: index, %w: tensor<?x?xf32>, %x: tensor<?x?xf32>):
  tk.bind %w[%M, %R] : tensor<?x?xf32>
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %s = tk.compute ["m", "c"] in (%M, %C) {
  ^bb0(%m: index, %c: index):
    %t = tk.reduce [#tk.kind<sum>] ["r"] from (%zero) to (%R) {
    ^bb0(%r: index):
    %a = tk.load %w[%m, %r] : tensor<?x?xf32>
    %b = tk.load %x[%r, %c] : tensor<?x?xf32>
    %p = arith.mulf %a, %b : f32
    tk.yield %p : f32
    } : f32
    tk.yield %t : f32
  } names ["s"] : tensor<?x?xf32>
  tk.return %s : tensor<?x?xf32>
}

// ... which two rows are not.
// CHECK-LABEL: @two_rows
// CHECK-NOT: chunk
// CHECK: tk.return
tk.kernel @two_rows dims ["M", "R", "C"]
    params [#tk.param<"w">, #tk.param<"x">]
    results ["s"] facts [#tk.fact<divisor = 1, upper = 2>, #tk.fact<divisor = 16384, upper = 16384>, #tk.fact<divisor = 128, upper = 4096>] {
^bb0(%M: index, %R: index, %C: index, %w: tensor<?x?xf32>, %x: tensor<?x?xf32>):
  tk.bind %w[%M, %R] : tensor<?x?xf32>
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %s = tk.compute ["m", "c"] in (%M, %C) {
  ^bb0(%m: index, %c: index):
    %t = tk.reduce [#tk.kind<sum>] ["r"] from (%zero) to (%R) {
    ^bb0(%r: index):
    %a = tk.load %w[%m, %r] : tensor<?x?xf32>
    %b = tk.load %x[%r, %c] : tensor<?x?xf32>
    %p = arith.mulf %a, %b : f32
    tk.yield %p : f32
    } : f32
    tk.yield %t : f32
  } names ["s"] : tensor<?x?xf32>
  tk.return %s : tensor<?x?xf32>
}
}
