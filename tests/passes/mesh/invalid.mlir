// RUN: tk-opt %s --tk-place-collectives --split-input-file --verify-diagnostics

// expected-error @+1 {{expected the sizes of the mesh's axes in tk.mesh_sizes}}
tk.kernel @no_sizes dims ["N"] params [#tk.param<"x">] results [] {
^bb0(%N: index, %x: tensor<?xf32>):
  tk.bind %x[%N] : tensor<?xf32>
  tk.return
} {tk.mesh = ["tp"], tk.shardings = [["tp"]]}

// -----

// expected-error @+1 {{expected tk.shardings to have 1 lists of axes}}
tk.kernel @no_shardings dims ["N"] params [#tk.param<"x">] results [] {
^bb0(%N: index, %x: tensor<?xf32>):
  tk.bind %x[%N] : tensor<?xf32>
  tk.return
} {tk.mesh = ["tp"], tk.mesh_sizes = array<i64: 2>}

// -----

// expected-error @+1 {{expected a positive size in tk.mesh_sizes for each axis}}
tk.kernel @bad_sizes dims ["N"] params [#tk.param<"x">] results [] {
^bb0(%N: index, %x: tensor<?xf32>):
  tk.bind %x[%N] : tensor<?xf32>
  tk.return
} {tk.mesh = ["tp"], tk.mesh_sizes = array<i64: 0>, tk.shardings = [["tp"]]}
