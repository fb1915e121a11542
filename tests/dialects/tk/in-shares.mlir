// Where shares begin is a row of i32.
// RUN: tk-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// CHECK: tk.in_shares %{{.*}}[%i] of 132 : tensor<?xi32>
tk.kernel @shared dims ["N"] params [#tk.param<"first">] results ["y"] {
^bb0(%N: index, %first: tensor<?xi32>):
  %y = tk.compute ["i"] in(%N) {
  ^bb0(%i: index):
    %s = tk.in_shares %first[%i] of 132 : tensor<?xi32>
    %v = tk.load %first[%s] : tensor<?xi32>
    tk.yield %v : i32
  } names ["y"] : tensor<?xi32>
  tk.return %y : tensor<?xi32>
}

// -----

tk.kernel @wide dims ["N"] params [#tk.param<"first">] results ["y"] {
^bb0(%N: index, %first: tensor<?xi64>):
  %y = tk.compute ["i"] in(%N) {
  ^bb0(%i: index):
    // expected-error @below {{operand #0 must be 1D tensor of 32-bit signless integer values}}
    %s = tk.in_shares %first[%i] of 132 : tensor<?xi64>
    %v = tk.load %first[%s] : tensor<?xi64>
    tk.yield %v : i64
  } names ["y"] : tensor<?xi64>
  tk.return %y : tensor<?xi64>
}
