// RUN: tk-opt --tk-linalg-to-loops --verify-diagnostics %s

func.func @tensors(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{expected a linalg operation on buffers, got one on tensors}}
  %z = linalg.copy ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) -> tensor<?xf32>
  return %z : tensor<?xf32>
}
