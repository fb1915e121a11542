// RUN: tk-opt --tk-outline-parallel --split-input-file --verify-diagnostics %s | FileCheck %s

// The body's function finds what it uses in a struct, and the indices from the iteration's number.
// CHECK-LABEL: func.func @entry(
// CHECK: %[[CONTEXT:.*]] = llvm.alloca
// CHECK: llvm.store
// CHECK: %[[BODY:.*]] = constant @entry.part0
// CHECK: %[[ADDRESS:.*]] = builtin.unrealized_conversion_cast %[[BODY]]
// CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %[[ADDRESS]], %[[CONTEXT]])
// CHECK-NOT: scf.forall
// CHECK-LABEL: func.func private @entry.part0(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK: scf.for %[[N:.*]] =
// CHECK: arith.remui %[[N]]
// CHECK: arith.divui %[[N]]
// CHECK: memref.store
func.func @entry(%args: !llvm.ptr) -> i32 {
  %m = llvm.load %args : !llvm.ptr -> i64
  %rows = arith.index_cast %m : i64 to index
  %x = memref.alloc(%rows) : memref<?x8xf32>
  %zero = arith.constant 0.0 : f32
  scf.forall (%i, %j) in (%rows, 8) {
    memref.store %zero, %x[%i, %j] : memref<?x8xf32>
  }
  %status = arith.constant 0 : i32
  return %status : i32
}

// -----

// expected-error @+1 {{expected a function with the convention of tk/cpu_abi.h}}
func.func @other(%x: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (8) {
    memref.store %zero, %x[%i] : memref<8xf32>
  }
  return
}
