// RUN: tk-opt %s --tk-select-schedule --tk-coarsen-threads | FileCheck %s
module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>} {
// Blocks of a cluster go through rows that fill their tiles, two to a multiprocessor.
// CHECK-LABEL: tk.kernel @rows_in_turn
// CHECK: #tkgpu.schedule<tile = [1], reduce = [131072], {{.*}} persistent = 2, cluster = 8>
tk.kernel @rows_in_turn dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 131072, upper = 131072>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<max>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
      %v = tk.load %x[%r, %c] : tensor<?x?xbf16>
      tk.yield %v : bf16
    } : bf16
    tk.yield %s : bf16
  } names ["y"] : tensor<?xbf16>
  tk.return %y : tensor<?xbf16>
}
// CHECK-LABEL: tk.kernel @short_rows_in_turn
// CHECK: #tkgpu.schedule<tile = [1], reduce = [131072],
// CHECK-NOT: persistent
// CHECK: tk.return
tk.kernel @short_rows_in_turn dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 1024, upper = 81920>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<max>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
      %v = tk.load %x[%r, %c] : tensor<?x?xbf16>
      tk.yield %v : bf16
    } : bf16
    tk.yield %s : bf16
  } names ["y"] : tensor<?xbf16>
  tk.return %y : tensor<?xbf16>
}
}
