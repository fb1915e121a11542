// What the compiler hands to the runtime: signatures, facts, launch plans. Plain data without LLVM;
// all of it serialises (see encode and decode), which is what bundles and the cache hold.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tk/dtype.h"
#include "tk/error.h"
#include "tk/expr.h"
#include "tk/tensor.h"

namespace tk {

// ---- Signatures
// ------------------------------------------------------------------------------------

/// One extent of a tensor type: the expression, and its text in the source, such as "2 * N".
struct Extent {
  DimExpr expr;
  std::string text;
  bool operator==(const Extent &) const = default;
};

/// A parameter or a result.
struct Parameter {
  std::string name;
  bool is_tensor = true; ///< else a scalar
  DType dtype = DType::f32;
  std::vector<Extent> shape;
  bool strided = false; ///< any strides; else dense row-major
  bool in_out = false;  ///< read, then overwritten
  bool has_default = false;
  ScalarExpr default_value; ///< over dimensions and earlier scalars
  std::string default_text;
  SourceSpan span;

  /// "q: bf16[B, H, S, D]" or "scale: f32 = rsqrt(D)".
  std::string str() const;
  bool operator==(const Parameter &) const = default;
};

/// A condition on dimensions and integer scalars, decided before anything is launched.
struct Check {
  enum class Kind : uint8_t {
    constraint, ///< a `where` clause
    bounds,     ///< an access that is inside its tensor for some sizes only
    schedule,   ///< the `when` clause of a schedule block: it selects a variant, and may fail
    scalar,     ///< what code for some values of scalars rests on: so does this
    extent,     ///< the same of one size that a scalar is
  };
  Kind kind = Kind::constraint;
  DimExpr condition; ///< holds where not 0
  std::string text;  ///< "H % G == 0", or for bounds "p + r < H for x[n, c, p + r]"
  SourceSpan span;
  bool operator==(const Check &) const = default;
};

/// A kernel as its caller sees it.
struct Signature {
  std::string name;
  std::vector<std::string> dims; ///< names by position: variable n of every expression
  std::vector<Parameter> params; ///< tensors and scalars, in the order of the source
  std::vector<Parameter> results;
  std::vector<Check> checks;
  std::vector<Check> schedules; ///< the conditions that choose between schedule blocks
  std::vector<Check> cases;     ///< conditions on scalars under which there is other code
  SourceSpan span;

  /// Tensors are numbered through: tensor parameters in order, then results.
  unsigned num_tensors() const;
  const Parameter &tensor(unsigned index) const;
  /// Scalars are numbered on their own.
  unsigned num_scalars() const;
  const Parameter &scalar(unsigned index) const;
  /// How a dimension or a tensor of that name is numbered, or nullopt.
  std::optional<unsigned> find_dim(std::string_view name) const;
  std::optional<unsigned> find_tensor(std::string_view name) const;
  std::optional<unsigned> find_scalar(std::string_view name) const;
  /// Dimension names, then scalar names: what Expr::str takes.
  std::vector<std::string> variable_names() const;
  std::string str() const;
  bool operator==(const Signature &) const = default;
};

/// Finds dimensions from shapes: each is bound at its first bare occurrence, else at the first
/// extent that is a literal multiple of it; every other use is checked, but for those that rest on
/// scalars. `shapes[t]` is tensor t's shape, or nullopt where not known yet; `preset[d]` a value
/// given by name. Leaves nullopt for dimensions that nothing determines. Fails with
/// `shape_mismatch` ("dimension 'K' is 64 in argument 'a' (axis 1) and 32 in 'b' (axis 0)").
Expected<std::vector<std::optional<int64_t>>>
solve_dims(const Signature &signature, std::span<const std::optional<Extents>> shapes,
           std::span<const std::optional<int64_t>> preset = {});

/// The values of all variables (dimensions, then scalars): fills in defaults, rounds scalars to
/// their types.
Expected<std::vector<Scalar>> complete_variables(const Signature &signature,
                                                 std::span<const int64_t> dims,
                                                 std::span<const std::optional<Scalar>> scalars);

/// Checks the extents that rest on scalars, of the tensors whose shape is known; solve_dims leaves
/// these out, as it has no scalars. Fails with `shape_mismatch`.
Status check_scalar_extents(const Signature &signature,
                            std::span<const std::optional<Extents>> shapes,
                            std::span<const Scalar> variables);

/// Runs every check of the signature; fails with `constraint_failed`.
Status run_checks(const Signature &signature, std::span<const Scalar> variables);

/// Which of the conditions of schedule blocks hold; one that cannot be evaluated does not.
std::vector<bool> schedule_conditions(const Signature &signature,
                                      std::span<const Scalar> variables);
/// The same of the conditions on scalars.
std::vector<bool> scalar_cases(const Signature &signature, std::span<const Scalar> variables);

/// A tensor's shape for given variables; fails where an extent is negative or overflows.
Expected<Extents> shape_of(const Parameter &tensor, std::span<const Scalar> variables);

// ---- Facts: what a compiled variant may assume
// -----------------------------------------------------

/// What is known of one dimension.
struct DimFact {
  uint32_t divisor = 1; ///< the largest power of two up to 2^20 that divides it (2^20 for 0)
  /// An upper bound (-1: not known). Of a size it is the next multiple of 128 and of a sixteenth
  /// of the next power of two, but not more than that power (0 for 0).
  int64_t upper = 0;
  std::optional<int64_t> exact; ///< the size itself, of small ones
  /// The code is to serve all sizes up to the bound, not only those that have no lower bound of
  /// their own.
  bool serves_shorter = false;
  /// The size is one that was prepared by itself: it has a key of its own, and no class of sizes.
  bool own_key = false;
  bool operator==(const DimFact &) const = default;
};

/// Which axis of a tensor has stride 1: a number, the last one, or none.
inline constexpr int32_t last_axis = -1, no_axis = -2;

/// What is known of one tensor's address and strides.
struct TensorFact {
  uint32_t alignment = 1; ///< largest power of two up to 128 dividing its address, in bytes
  /// The largest power of two up to 128 dividing all strides but that of the unit axis.
  uint32_t stride_divisor = 1;
  int32_t unit_axis = last_axis; ///< of a strided tensor; axes of extent 1 do not count
  /// A strided tensor's elements lie one behind the other, in row-major order once the unit axis is
  /// the last one.
  bool dense = false;
  std::string key() const;
  bool operator==(const TensorFact &) const = default;
};

/// Sizes, strides and element counts below this leave room for 32-bit offsets, those of tiles that
/// reach past an end included.
inline constexpr int64_t small_tensor_limit = int64_t{1} << 30;

struct Facts {
  std::vector<DimFact> dims;
  std::vector<TensorFact> tensors; ///< empty: dense, and aligned for their element type only
  /// Every size, stride and number of elements, of buffers between launches too, is below
  /// small_tensor_limit.
  bool small_tensors = false;
  std::vector<bool> schedules = {}; ///< of Signature::schedules, those that hold; empty: none
  std::vector<bool> cases = {};     ///< of Signature::cases, likewise
  /// The canonical text that keys a variant, such as "128,<=4096;16,<=256|16/8".
  std::string key() const;
  bool operator==(const Facts &) const = default;
};

DimFact fact_for(int64_t size);
Facts facts_for(std::span<const int64_t> dims);
Facts facts_for(std::span<const int64_t> dims, std::span<const TensorView> tensors);

/// What nearly every launch satisfies, for code that is made before the sizes are known: tensors
/// are small, and a dimension that is the last one of a tensor makes rows of whole 16-byte vectors.
/// `known[d]` is the size of a dimension that is known.
Facts usual_facts(const Signature &signature, std::span<const std::optional<int64_t>> known);

// ---- Launch plans
// ----------------------------------------------------------------------------------

enum class ArgKind : uint8_t {
  tensor,     ///< address of tensor `index`
  scratch,    ///< address of scratch buffer `index`
  integer,    ///< `value`, as `dtype`: i64, i32, boolean, or a float type
  stride,     ///< stride of axis `axis` of tensor `index`, in elements, as `dtype`
  scalar,     ///< scalar parameter `index`, as its declared type
  tensor_map, ///< TMA descriptor `index` of the plan, passed by value (GPU only)
};

struct Arg {
  ArgKind kind = ArgKind::tensor;
  uint32_t index = 0;
  uint32_t axis = 0;
  DType dtype = DType::i64;
  DimExpr value;
  bool operator==(const Arg &) const = default;
};

/// Places of windows along one axis of a tensor map: `count` of them, `step` elements apart, of
/// which the first is at `lower`.
struct WindowPlaces {
  int32_t lower = 0;
  uint32_t step = 1;
  DimExpr count;
  bool operator==(const WindowPlaces &) const = default;
};

/// A TMA tensor map, encoded at launch (cuTensorMapEncodeTiled, or cuTensorMapEncodeIm2col with
/// `places`). Axes go from the innermost outwards.
struct TensorMap {
  bool of_scratch = false;
  uint32_t index = 0; ///< tensor or scratch buffer
  DType dtype = DType::bf16;
  std::vector<DimExpr> extents;
  std::vector<DimExpr> strides; ///< in elements, of axes 1, 2, …
  /// Where set, the stride is that axis of tensor `index` instead of `strides[i]`.
  std::vector<int32_t> stride_axes;
  std::vector<uint32_t> box;
  uint8_t swizzle = 0; ///< 0 none, 1 32 B, 2 64 B, 3 128 B
  bool fill_nan = false;
  bool rounds_to_tf32 = false; ///< what is loaded, of f32
  /// The map begins so many steps of axis 1 before the tensor. What lies there is not read.
  uint32_t before = 0;
  /// Of axis 1 to the last but one, or empty. The box's rows, `box[1]` of them, then are places
  /// that are counted through, those of axis 1 first and those of the last axis one by one.
  std::vector<WindowPlaces> places;
  bool operator==(const TensorMap &) const = default;
};

/// One kernel launch. On the CPU the grid, block and shared memory are ignored.
struct Launch {
  std::string symbol;
  DimExpr grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t cluster[3] = {1, 1, 1};
  DimExpr shared_bytes; ///< dynamic shared memory
  /// Blocks go through what there is to do: a grid with more in its first dimension than run at
  /// once is cut to those.
  bool resident = false;
  /// Its blocks may begin before the launches before it have ended, and wait for that themselves.
  bool overlapped = false;
  std::vector<Arg> args;
  SourceSpan span;
  bool operator==(const Launch &) const = default;
};

/// Temporary device memory between launches. Every buffer is aligned to 256 bytes.
struct Scratch {
  DimExpr bytes;
  bool zeroed = false; ///< set to 0 before the first launch
  std::string purpose; ///< for people: "row statistics m"
  /// 0 when a run begins, and left so by its launches: set to 0 only when it is allocated.
  bool restored = false;
  bool operator==(const Scratch &) const = default;
};

struct LaunchPlan {
  std::vector<Launch> launches; ///< in order
  std::vector<Scratch> scratch;
  std::vector<TensorMap> tensor_maps;
  /// Readable text, one line a launch and a buffer.
  std::string str(const Signature &signature) const;
  bool operator==(const LaunchPlan &) const = default;
};

/// Checks that every index and expression of a plan stays inside its signature; false for a plan
/// that is damaged or forged.
bool well_formed(const LaunchPlan &plan, const Signature &signature);

// ---- Serialisation
// ---------------------------------------------------------------------------------

// Little-endian, versioned by whoever stores it. decode returns nullopt for bytes that are not
// exactly one value: truncated, trailing or with impossible counts.
std::string encode(const Signature &signature);
std::string encode(const LaunchPlan &plan);
std::optional<Signature> decode_signature(std::string_view bytes);
std::optional<LaunchPlan> decode_plan(std::string_view bytes);

} // namespace tk
