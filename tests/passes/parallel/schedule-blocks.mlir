// RUN: tk-opt %s --tk-select-schedule --tk-coarsen-threads | FileCheck %s
// RUN: tk-opt %s --tk-split-reductions | FileCheck %s --check-prefix=SPLIT
// What a kernel's own schedule block sets.

module attributes {tkgpu.target = #tkgpu.target<arch = 90>} {
// Tiles of one output a thread, 16 x 16, grow by what each thread is to have.
// CHECK-LABEL: tk.kernel @coarsen
// CHECK: #tkgpu.schedule<tile = [64, 128], reduce = [16], warps = 8, per_thread = 32,
tk.kernel @coarsen dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
  tk.bind %a[%M, %K] : tensor<?x?xf32>
  tk.bind %b[%K, %N] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %c = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %x = tk.load %a[%i, %k] : tensor<?x?xf32>
      %y = tk.load %b[%k, %j] : tensor<?x?xf32>
      %p = arith.mulf %x, %y : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["c"] : tensor<?x?xf32>
  tk.return %c : tensor<?x?xf32>
} {tk.schedules = [{coarsen = {i = 4, j = 8}}]}

// A tile that is set keeps its size: then it takes fewer threads.
// CHECK-LABEL: tk.kernel @both
// CHECK: #tkgpu.schedule<tile = [32, 64], reduce = [16], warps = 4, per_thread = 16,
tk.kernel @both dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
  tk.bind %a[%M, %K] : tensor<?x?xf32>
  tk.bind %b[%K, %N] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %c = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %x = tk.load %a[%i, %k] : tensor<?x?xf32>
      %y = tk.load %b[%k, %j] : tensor<?x?xf32>
      %p = arith.mulf %x, %y : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["c"] : tensor<?x?xf32>
  tk.return %c : tensor<?x?xf32>
} {tk.schedules = [{coarsen = {i = 4, j = 4}, tile = {i = 32, j = 64}}]}

// CHECK-LABEL: tk.kernel @rows
// CHECK-NOT: group
// CHECK-LABEL: tk.kernel @columns
tk.kernel @rows dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
  tk.bind %a[%M, %K] : tensor<?x?xf32>
  tk.bind %b[%K, %N] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %c = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %x = tk.load %a[%i, %k] : tensor<?x?xf32>
      %y = tk.load %b[%k, %j] : tensor<?x?xf32>
      %p = arith.mulf %x, %y : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["c"] : tensor<?x?xf32>
  tk.return %c : tensor<?x?xf32>
} {tk.schedules = [{raster = "rows"}]}
// CHECK: group = 0>
tk.kernel @columns dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
  tk.bind %a[%M, %K] : tensor<?x?xf32>
  tk.bind %b[%K, %N] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %c = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %x = tk.load %a[%i, %k] : tensor<?x?xf32>
      %y = tk.load %b[%k, %j] : tensor<?x?xf32>
      %p = arith.mulf %x, %y : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["c"] : tensor<?x?xf32>
  tk.return %c : tensor<?x?xf32>
} {tk.schedules = [{raster = "columns"}]}
// CHECK-LABEL: tk.kernel @grouped
// CHECK: group = 3>
tk.kernel @grouped dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
  tk.bind %a[%M, %K] : tensor<?x?xf32>
  tk.bind %b[%K, %N] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %c = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %x = tk.load %a[%i, %k] : tensor<?x?xf32>
      %y = tk.load %b[%k, %j] : tensor<?x?xf32>
      %p = arith.mulf %x, %y : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["c"] : tensor<?x?xf32>
  tk.return %c : tensor<?x?xf32>
} {tk.schedules = [{raster = 3}]}

// Keys that mean nothing here are noted at their places.
// CHECK-LABEL: tk.kernel @unused
// CHECK: derived = "this schedule block applies"
// CHECK-SAME: at = #loc{{[0-9]*}}, declined = "'tile z' has no effect: no statement is left with that index"
tk.kernel @unused dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
  tk.bind %a[%M, %K] : tensor<?x?xf32>
  tk.bind %b[%K, %N] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %c = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %x = tk.load %a[%i, %k] : tensor<?x?xf32>
      %y = tk.load %b[%k, %j] : tensor<?x?xf32>
      %p = arith.mulf %x, %y : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["c"] : tensor<?x?xf32>
  tk.return %c : tensor<?x?xf32>
} {tk.schedules = [{tile = {z = 16}, at = loc("s.tk":1:1), places = {tile = loc("s.tk":2:3)}}]}

// Three parts of K, each of whole lines; then their sum. Products of matrices are cut by tk-split-contractions.
// SPLIT-LABEL: tk.kernel @split
// SPLIT: %[[UNITS:.*]] = tk.floor_div %{{.*}}, %c192
// SPLIT: %[[MOST:.*]] = arith.maxsi %[[UNITS]], %c1
// SPLIT: %[[LENGTH:.*]] = arith.muli %[[MOST]], %c64
// SPLIT: %[[PARTS:.*]] = arith.minsi %{{.*}}, %c3
// SPLIT: tk.compute ["i", "j", "k.chunk"] in(%M, %N, %[[PARTS]])
// SPLIT: tk.reduce [#tk.kind<sum>] ["k"]
// SPLIT: tk.compute ["i", "j"] in(%M, %N)
// SPLIT: tk.reduce [#tk.kind<sum>] ["k.chunk"] from(%{{.*}}) to(%[[PARTS]])
tk.kernel @split dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
  tk.bind %a[%M, %K] : tensor<?x?xf32>
  tk.bind %b[%K, %N] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %c = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %x = tk.load %a[%i, %k] : tensor<?x?xf32>
      %y = tk.load %b[%k, %j] : tensor<?x?xf32>
      %p = arith.maximumf %x, %y : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["c"] : tensor<?x?xf32>
  tk.return %c : tensor<?x?xf32>
} {tk.schedules = [{split = {k = 3}}]}
}
