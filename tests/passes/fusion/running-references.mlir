// RUN: tk-opt --tk-simplify %s | FileCheck %s

// Weights under the greater of the maximum and a sink get the maximum as their reference, where they are of what
// it is the maximum of.
// CHECK-LABEL: @own
// CHECK: tk.reduce
// CHECK-NEXT: ^bb0(%j: index, %[[MAX:.*]]: f32):
// CHECK-NOT: maximumf
// CHECK: tk.exp_diff %{{.*}}, %[[MAX]]
// CHECK: tk.yield
tk.kernel @own dims ["R", "C"] params [#tk.param<"x">, #tk.param<"sink">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %sink: f32):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s:2 = tk.reduce [#tk.kind<max>, #tk.kind<sum>] ["j"] from (%zero) to (%C) {
    ^bb0(%j: index, %running: f32):
      %a = tk.load %x[%r, %j] : tensor<?x?xf32>
      %reference = arith.maximumf %running, %sink : f32
      %w = tk.exp_diff %a, %reference : f32
      tk.yield %a, %w : f32, f32
    } rescale {
    ^bb0(%old: f32, %new: f32):
      %before = arith.maximumf %old, %sink : f32
      %after = arith.maximumf %new, %sink : f32
      %factor = tk.exp_diff %before, %after : f32
      tk.yield %factor : f32
    } : f32, f32
    tk.yield %s#1 : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// Other values may be above the maximum: under it their weights could be infinite.
// CHECK-LABEL: @others
// CHECK: tk.reduce
// CHECK-NEXT: ^bb0(%j: index, %[[MAX:.*]]: f32):
// CHECK: %[[GREATER:.*]] = arith.maximumf %[[MAX]], %sink
// CHECK: tk.exp_diff %{{.*}}, %[[GREATER]]
// CHECK: tk.yield
tk.kernel @others dims ["R", "C"] params [#tk.param<"x">, #tk.param<"z">, #tk.param<"sink">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %z: tensor<?x?xf32>, %sink: f32):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %z[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s:2 = tk.reduce [#tk.kind<max>, #tk.kind<sum>] ["j"] from (%zero) to (%C) {
    ^bb0(%j: index, %running: f32):
      %a = tk.load %x[%r, %j] : tensor<?x?xf32>
      %b = tk.load %z[%r, %j] : tensor<?x?xf32>
      %reference = arith.maximumf %running, %sink : f32
      %w = tk.exp_diff %b, %reference : f32
      tk.yield %a, %w : f32, f32
    } rescale {
    ^bb0(%old: f32, %new: f32):
      %before = arith.maximumf %old, %sink : f32
      %after = arith.maximumf %new, %sink : f32
      %factor = tk.exp_diff %before, %after : f32
      tk.yield %factor : f32
    } : f32, f32
    tk.yield %s#1 : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}
