// RUN: tk-opt %s --tk-plan-shared-memory --verify-diagnostics

module attributes {tkgpu.target = #tkgpu.target<arch = 80, shared = 1024>} {
  // expected-error@+1 {{needs 16384 B of shared memory, the target has 1024 B; choose smaller tiles}}
  tkgpu.func @large args [] {
    %s = tkgpu.alloc_shared : <[128, 32], f32>
    tkgpu.return
  }
}
