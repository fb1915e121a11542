// RUN: tk-opt %s --tk-plan-shared-memory --verify-diagnostics --split-input-file

module attributes {tkgpu.target = #tkgpu.target<arch = 80, shared = 1024>} {
  // expected-error@+1 {{needs 16384 B of shared memory, sm_80 has 1024 B}}
  tkgpu.func @large args [] {
    %s = tkgpu.alloc_shared : <[128, 32], f32>
    tkgpu.return
  }
}

// -----

// What a schedule block asked for is reported at the block.
module attributes {tkgpu.target = #tkgpu.target<arch = 80, shared = 8192>} {
  tkgpu.func @large args ["y"] {
  ^bb0(%y: !tkgpu.buffer<f32>):
    %s = tkgpu.alloc_shared : <[128, 32], f32>
    tkgpu.return
  } {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [128], reduce = [], warps = 4, stages = 4>>}
  // expected-error@+2 {{the schedule needs 16384 B of shared memory, sm_80 has 8192 B}}
  // expected-note@+1 {{try smaller tiles}}
  tk.kernel @k dims [] params [] results ["y"] {
    %one = arith.constant 1 : index
    %y = tkgpu.launch @large grid (%one, %one, %one) args () shapes (%one) : tensor<?xf32>
    tk.return %y : tensor<?xf32>
  } {tk.schedules = [{stages = 4}]}
}
