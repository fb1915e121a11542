// RUN: tk-opt %s --tk-select-schedule --tk-coarsen-threads --tk-convert-indices --tk-approximate-functions --tk-tile --tk-refine-tiles --canonicalize --cse | FileCheck %s

// The numbers along a tile say where rows end, if that is before it; of an empty one there is nothing
// to say.
// CHECK-LABEL: tkgpu.func @short_s
// CHECK: tkgpu.iota to 5120 : tensor<8192xindex>
// CHECK-LABEL: tkgpu.func @empty_s
// CHECK: tkgpu.iota : tensor<1xindex>
// CHECK-NOT: iota to
tk.kernel @short dims ["R", "C"] params [#tk.param<"x">] results ["s"] facts [#tk.fact<>, #tk.fact<divisor = 1024, upper = 5120>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %s = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m = tk.reduce [#tk.kind<max>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
      %v = tk.load %x[%r, %c] : tensor<?x?xbf16>
      tk.yield %v : bf16
    } : bf16
    tk.yield %m : bf16
  } names ["s"] : tensor<?xbf16>
  tk.return %s : tensor<?xbf16>
}
tk.kernel @empty dims ["R", "C"] params [#tk.param<"x">] results ["s"] facts [#tk.fact<>, #tk.fact<divisor = 1048576, upper = 0>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %s = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m = tk.reduce [#tk.kind<max>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
      %v = tk.load %x[%r, %c] : tensor<?x?xbf16>
      tk.yield %v : bf16
    } : bf16
    tk.yield %m : bf16
  } names ["s"] : tensor<?xbf16>
  tk.return %s : tensor<?xbf16>
}
