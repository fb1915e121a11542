// RUN: tk-opt %s --tk-fuse-producers | FileCheck %s

// What both read is the same expression of the same elements: it is computed once.
// CHECK-LABEL: tk.kernel @shared
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp
// CHECK-LABEL: tk.kernel @chain
tk.kernel @shared dims ["N"] params [#tk.param<"x">] results ["y"] {
^bb0(%N: index, %x: tensor<?xf32>):
  tk.bind %x[%N] : tensor<?xf32>
  %a = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %v = tk.load %x[%i] : tensor<?xf32>
    %e = math.exp %v : f32
    tk.yield %e : f32
  } names ["a"] : tensor<?xf32>
  %b = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %v = tk.load %a[%i] : tensor<?xf32>
    %s = arith.mulf %v, %v : f32
    tk.yield %s : f32
  } names ["b"] : tensor<?xf32>
  %y = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %v = tk.load %a[%i] : tensor<?xf32>
    %w = tk.load %b[%i] : tensor<?xf32>
    %u = tk.load %a[%i] : tensor<?xf32>
    %p = arith.addf %v, %w : f32
    %q = arith.addf %p, %u : f32
    tk.yield %q : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// Each step is read at three places of the next one: some are stored.
// CHECK: tk.compute {{.*}}
// CHECK: names ["t{{[0-9]}}"]
// CHECK: names ["y"]
// CHECK: tk.notes = {{.*}}is stored: {{.*}}operations at 3 places for each element
tk.kernel @chain dims ["N"] params [#tk.param<"x">] results ["y"] {
^bb0(%N: index, %x: tensor<?xf32>):
  tk.bind %x[%N] : tensor<?xf32>
  %zero = arith.constant 0.0 : f32
  %t1 = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %c1 = arith.constant 1 : index
    %before = arith.subi %i, %c1 : index
    %behind = arith.addi %i, %c1 : index
    %l = tk.load %x[%before] pad %zero : f32 : tensor<?xf32>
    %m = tk.load %x[%i] : tensor<?xf32>
    %r = tk.load %x[%behind] pad %zero : f32 : tensor<?xf32>
    %s = arith.addf %l, %m : f32
    %v = arith.addf %s, %r : f32
    tk.yield %v : f32
  } names ["t1"] : tensor<?xf32>
  %t2 = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %c1 = arith.constant 1 : index
    %before = arith.subi %i, %c1 : index
    %behind = arith.addi %i, %c1 : index
    %l = tk.load %t1[%before] pad %zero : f32 : tensor<?xf32>
    %m = tk.load %t1[%i] : tensor<?xf32>
    %r = tk.load %t1[%behind] pad %zero : f32 : tensor<?xf32>
    %s = arith.addf %l, %m : f32
    %v = arith.addf %s, %r : f32
    tk.yield %v : f32
  } names ["t2"] : tensor<?xf32>
  %t3 = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %c1 = arith.constant 1 : index
    %before = arith.subi %i, %c1 : index
    %behind = arith.addi %i, %c1 : index
    %l = tk.load %t2[%before] pad %zero : f32 : tensor<?xf32>
    %m = tk.load %t2[%i] : tensor<?xf32>
    %r = tk.load %t2[%behind] pad %zero : f32 : tensor<?xf32>
    %s = arith.addf %l, %m : f32
    %v = arith.addf %s, %r : f32
    tk.yield %v : f32
  } names ["t3"] : tensor<?xf32>
  %t4 = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %c1 = arith.constant 1 : index
    %before = arith.subi %i, %c1 : index
    %behind = arith.addi %i, %c1 : index
    %l = tk.load %t3[%before] pad %zero : f32 : tensor<?xf32>
    %m = tk.load %t3[%i] : tensor<?xf32>
    %r = tk.load %t3[%behind] pad %zero : f32 : tensor<?xf32>
    %s = arith.addf %l, %m : f32
    %v = arith.addf %s, %r : f32
    tk.yield %v : f32
  } names ["t4"] : tensor<?xf32>
  %t5 = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %c1 = arith.constant 1 : index
    %before = arith.subi %i, %c1 : index
    %behind = arith.addi %i, %c1 : index
    %l = tk.load %t4[%before] pad %zero : f32 : tensor<?xf32>
    %m = tk.load %t4[%i] : tensor<?xf32>
    %r = tk.load %t4[%behind] pad %zero : f32 : tensor<?xf32>
    %s = arith.addf %l, %m : f32
    %v = arith.addf %s, %r : f32
    tk.yield %v : f32
  } names ["t5"] : tensor<?xf32>
  %t6 = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %c1 = arith.constant 1 : index
    %before = arith.subi %i, %c1 : index
    %behind = arith.addi %i, %c1 : index
    %l = tk.load %t5[%before] pad %zero : f32 : tensor<?xf32>
    %m = tk.load %t5[%i] : tensor<?xf32>
    %r = tk.load %t5[%behind] pad %zero : f32 : tensor<?xf32>
    %s = arith.addf %l, %m : f32
    %v = arith.addf %s, %r : f32
    tk.yield %v : f32
  } names ["t6"] : tensor<?xf32>
  %t7 = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %c1 = arith.constant 1 : index
    %before = arith.subi %i, %c1 : index
    %behind = arith.addi %i, %c1 : index
    %l = tk.load %t6[%before] pad %zero : f32 : tensor<?xf32>
    %m = tk.load %t6[%i] : tensor<?xf32>
    %r = tk.load %t6[%behind] pad %zero : f32 : tensor<?xf32>
    %s = arith.addf %l, %m : f32
    %v = arith.addf %s, %r : f32
    tk.yield %v : f32
  } names ["t7"] : tensor<?xf32>
  %t8 = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %c1 = arith.constant 1 : index
    %before = arith.subi %i, %c1 : index
    %behind = arith.addi %i, %c1 : index
    %l = tk.load %t7[%before] pad %zero : f32 : tensor<?xf32>
    %m = tk.load %t7[%i] : tensor<?xf32>
    %r = tk.load %t7[%behind] pad %zero : f32 : tensor<?xf32>
    %s = arith.addf %l, %m : f32
    %v = arith.addf %s, %r : f32
    tk.yield %v : f32
  } names ["t8"] : tensor<?xf32>
  %y = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %c1 = arith.constant 1 : index
    %before = arith.subi %i, %c1 : index
    %behind = arith.addi %i, %c1 : index
    %l = tk.load %t8[%before] pad %zero : f32 : tensor<?xf32>
    %m = tk.load %t8[%i] : tensor<?xf32>
    %r = tk.load %t8[%behind] pad %zero : f32 : tensor<?xf32>
    %s = arith.addf %l, %m : f32
    %v = arith.addf %s, %r : f32
    tk.yield %v : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}
