// NumPy's .npy files, versions 1 and 2: what `tkc run` reads and writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tk/dtype.h"
#include "tk/error.h"
#include "tk/tensor.h"

namespace tk {

/// A dense row-major tensor in host memory that owns its elements.
struct HostTensor {
  DType dtype = DType::f32;
  Extents shape;
  std::vector<std::byte> bytes;

  /// Zeros of that shape; throws `overflow` or `out_of_memory`.
  static HostTensor zeros(DType dtype, const Extents &shape);
  TensorView view() { return TensorView(bytes.data(), dtype, shape); }
  /// The same values in another type; integers clamp.
  HostTensor converted(DType to) const;
};

/// Parses the bytes of a file: f64, f32, f16, i64, i32, i16, i8, u8 and bool, little endian;
/// unsigned 16 and 32 bit integers are widened to i32 and i64; Fortran order is converted. Fails
/// with `bad_file`.
Expected<HostTensor> parse_npy(std::string_view bytes);
/// The bytes of a file; bf16 and f8, which NumPy has not, as f32.
std::string format_npy(const HostTensor &tensor);

Expected<HostTensor> read_npy(const std::string &path);
Status write_npy(const std::string &path, const HostTensor &tensor);

} // namespace tk
