// RUN: tk-opt --tk-expand-scalars %s | FileCheck %s

// No call stands for a function of f32.
// CHECK-LABEL: func.func @functions
// CHECK-NOT: math.{{exp|log|erf|sin|cos|powf|tanh}}
// CHECK: return
func.func @functions(%x: f32, %y: f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) {
  %a = math.exp %x : f32
  %b = math.exp2 %x : f32
  %c = math.expm1 %x : f32
  %d = math.log %x : f32
  %e = math.log2 %x : f32
  %f = math.log1p %x : f32
  %g = math.erf %x : f32
  %h = math.sin %x : f32
  %i = math.cos %x : f32
  %j = math.powf %x, %y : f32
  %k = math.tanh %x : f32
  return %a, %b, %c, %d, %e, %f, %g, %h, %i, %j, %k
      : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32
}

// Those of f64 are the library's.
// CHECK-LABEL: func.func @wide
// CHECK: math.exp %{{.*}} : f64
// CHECK: math.sin %{{.*}} : f64
func.func @wide(%x: f64) -> f64 {
  %a = math.exp %x : f64
  %b = math.sin %a : f64
  return %b : f64
}

// bf16 is the upper half of f32's bits.
// CHECK-LABEL: func.func @widen
// CHECK: %[[BITS:.*]] = arith.bitcast %{{.*}} : bf16 to i16
// CHECK: %[[WIDE:.*]] = arith.extui %[[BITS]] : i16 to i32
// CHECK: arith.shli %[[WIDE]]
// CHECK-NOT: arith.extf
func.func @widen(%x: bf16) -> f32 {
  %a = arith.extf %x : bf16 to f32
  return %a : f32
}

// CHECK-LABEL: func.func @divide
// CHECK-NOT: tk.floor_div
// CHECK: arith.divsi
func.func @divide(%x: index, %y: index) -> index {
  %a = tk.floor_div %x, %y : index
  return %a : index
}

// Machines have no conversion from integers to bf16 either.
// CHECK-LABEL: func.func @from_integers
// CHECK-NOT: i8 to bf16
// CHECK: arith.sitofp %{{.*}} : i8 to f32
// CHECK-NOT: i8 to bf16
// CHECK: arith.uitofp %{{.*}} : i8 to f32
// CHECK: arith.trunci %{{.*}} : i32 to i16
// CHECK: return
func.func @from_integers(%x: i8) -> (bf16, bf16) {
  %a = arith.sitofp %x : i8 to bf16
  %b = arith.uitofp %x : i8 to bf16
  return %a, %b : bf16, bf16
}

// An f64 is rounded once: to the f32 beside it whose last bit is 1, and then to the narrow type.
// CHECK-LABEL: func.func @once
// CHECK-SAME: (%[[X:.*]]: f64
// CHECK: %[[NEAREST:.*]] = arith.truncf %[[X]] : f64 to f32
// CHECK: %[[BACK:.*]] = arith.extf %[[NEAREST]] : f32 to f64
// CHECK: arith.cmpf one, %[[BACK]], %[[X]]
// CHECK: %[[BITS:.*]] = arith.addi
// CHECK: %[[ODD:.*]] = arith.select %{{.*}}, %[[BITS]], %{{.*}} : i32
// CHECK: %[[F:.*]] = arith.bitcast %[[ODD]] : i32 to f32
// CHECK: arith.truncf %[[F]] : f32 to f16
func.func @once(%x: f64) -> f16 {
  %a = arith.truncf %x : f64 to f16
  return %a : f16
}
