//===- Interpreter.h - the reference -----------------------------*- C++ -*-===//
//
// Walks the tensor-level IR element by element. It shares no lowering code with any target, so that
// what it computes is evidence; it runs before and after every tk pass, so that the first pass that
// changes a value can be named.
//
// Values are demanded: the element of a result asks for the elements that it needs, and those of
// intermediate tensors are remembered. A few sampled elements of a large kernel are therefore
// cheap.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_INTERP_INTERPRETER_H
#define TK_COMPILER_INTERP_INTERPRETER_H

#include "dialects/tk/TkDialect.h"
#include "tk/error.h"
#include "tk/expr.h"
#include "tk/tensor.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace tk::interp {

/// How floating-point values are held.
enum class Mode {
  /// Everything in f64; inputs as stored, results unrounded. The reference.
  F64,
  /// As F64, but arithmetic is rounded to its type: what may become of any part of a kernel whose
  /// operands are constants, once these are folded. Roundings to types of storage are left out.
  Arithmetic,
  /// Every operation rounded to its IR type: a naive program in the same types, whose error is the
  /// yardstick for ours.
  Typed,
};

/// One number, of the kind that its IR type says.
union Cell {
  double f;
  int64_t i;
};

/// A dense row-major copy of a tensor. Small ones are held as cells; large ones, whose cells would
/// take up to eight times the memory, in their own type.
class CellTensor {
public:
  CellTensor() = default;
  /// Reads a view on the CPU, whatever its strides.
  explicit CellTensor(const TensorView &view);

  Cell operator[](int64_t position) const {
    return cells.empty() ? convert(position) : cells[position];
  }
  /// The cells of a small tensor; else null.
  const Cell *data() const { return cells.empty() ? nullptr : cells.data(); }
  std::vector<int64_t> shape;

private:
  Cell convert(int64_t position) const;

  DType dtype = DType::f32;
  std::vector<std::byte> bytes;
  std::vector<Cell> cells;
};

namespace detail {
struct KernelProgram;
class Evaluation;
} // namespace detail

/// A kernel translated once, to be evaluated on any inputs.
class Reference {
public:
  /// Fails with `unsupported` if the kernel holds an operation that the reference does not know.
  static Expected<Reference> create(KernelOp kernel, Mode mode);
  ~Reference();
  Reference(Reference &&) noexcept;

  /// Gives dimensions (in the order of `dim_names`) and parameters (in the order of `params`; for a
  /// tensor, `tensors` holds it, for a scalar `scalars`). Views are read at once. Fails with
  /// `constraint_failed` if an assumption of the kernel does not hold.
  Status bind(const std::vector<int64_t> &dims, const std::vector<TensorView> &tensors,
              const std::vector<Scalar> &scalars);

  /// How many values the kernel returns (results, then inout parameters), and their shapes.
  unsigned numResults() const;
  const std::vector<int64_t> &resultShape(unsigned result) const;
  bool resultIsFloat(unsigned result) const;

  /// The element of a returned tensor at a row-major position. The first of them are kept, so that
  /// a second run is compared with the same elements at no cost.
  Cell element(unsigned result, int64_t position);

  /// Where arithmetic is rounded: evaluates anew, with other roundings that the language allows.
  /// Draw 0 is the program as it was made; draw 1 adds products of narrow factors one at a time,
  /// where that adds them as a matrix unit does; the others do so in another order, and round what
  /// they compute in f32 up or down at random, by a chance such that the mean is exact.
  void redraw(unsigned draw);

  /// Counts what elements that are asked for from now on need, after bind(): operations on floats,
  /// each term of a reduction one of them, and how many elements of each tensor parameter are read.
  void beginCounts();
  double countedOperations() const;
  std::vector<int64_t> countedReads() const;

  /// Evaluates anew, with terms that masks leave out as products of 0 with what stands there, or
  /// without. A matrix unit takes such terms where other rows of its tile have them.
  void takeAbsentTerms(bool takes);

private:
  Reference();
  std::unique_ptr<detail::KernelProgram> m_program;
  std::unique_ptr<detail::Evaluation> m_evaluation;
  std::map<std::pair<unsigned, int64_t>, Cell> m_known; ///< by result and position
};

} // namespace tk::interp

#endif // TK_COMPILER_INTERP_INTERPRETER_H
