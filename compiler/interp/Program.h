//===- Program.h - what the reference executes -------------------*- C++ -*-===//
//
// The scalar IR of a kernel, flattened: every SSA value has a slot in one frame, every operation is
// an instruction over slots, and the bodies of computes and reductions are lists of instructions.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_INTERP_PROGRAM_H
#define TK_COMPILER_INTERP_PROGRAM_H

#include "compiler/interp/Interpreter.h"
#include "passes/analysis/TileReductions.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace tk::interp::detail {

/// To what a floating-point result is rounded (Mode::Typed), or how wide an integer is.
enum class Width : uint8_t { F64, F32, F16, BF16, F8E4M3, F8E5M2, I64, I32, I16, I8, I1 };

enum class Code : uint8_t {
  Constant,
  // float × float
  AddF,
  SubF,
  MulF,
  DivF,
  RemF,
  MaximumF,
  MinimumF,
  MaxNumF,
  MinNumF,
  PowF,
  ExpDiff,
  DivOrZero,
  CopySign,
  // int × int
  AddI,
  SubI,
  MulI,
  DivS,
  DivU,
  RemS,
  RemU,
  FloorDiv,
  FloorMod,
  CeilDivS,
  MaxS,
  MinS,
  MaxU,
  MinU,
  And,
  Or,
  Xor,
  Shl,
  ShrS,
  ShrU,
  CmpF,
  CmpI,
  Select,
  // conversions
  RoundF,
  ToSigned,
  ToUnsigned,
  SignedToF,
  UnsignedToF,
  FToSigned,
  FToUnsigned,
  // functions of one float
  NegF,
  Exp,
  Exp2,
  ExpM1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sqrt,
  Rsqrt,
  Cbrt,
  Tanh,
  Erf,
  Sin,
  Cos,
  Tan,
  AbsF,
  Floor,
  Ceil,
  Round,
  RoundEven,
  Trunc,
  IsNaN,
  IsInf,
  IsFinite,
  AbsI,
  Fma,
  PowI,
  FPowI,
  Rand,
  Load,
  Reduce,
  Scan,
};

struct Body;
struct Reduction;
struct ScanState;

/// Whether a floating-point result is rounded to its width.
enum class Rounds : uint8_t {
  No,
  ToNearest,
  /// The place of the rounding among the operations is free: sums may be reassociated. To nearest,
  /// but up or down where another of the roundings that are allowed is asked for (Rounding).
  Freely,
};

struct Instruction {
  Code code = Code::Constant;
  Width width = Width::F64; ///< of the result
  Width from = Width::F64;  ///< of the first operand
  uint8_t predicate = 0;    ///< of a comparison
  bool cutsFactors = false; ///< MulF: they lose the bits that tf32 has not
  Rounds rounds = Rounds::No;
  int destination = 0;
  int a = -1, b = -1, c = -1; ///< operand slots
  Cell constant{};
  int tensor = -1;          ///< loads: which tensor
  std::vector<int> indices; ///< loads: index slots
  int pad = -1;             ///< loads: slot of the padding value
  std::unique_ptr<Reduction> reduction;
  std::unique_ptr<ScanState> scan;
};

struct Body {
  std::vector<Instruction> instructions;
  std::vector<int> arguments;
  std::vector<int> yields;
};

/// A load of a parameter whose place is the innermost loop's index along some axes, and the same
/// for all its steps along the others.
struct StepLoad {
  const Instruction *load = nullptr;
  std::vector<bool> isIndex;      ///< by axis
  const Cell *cells = nullptr;    ///< of index 0, while the loop runs; null: it is done as others
  int64_t stride = 0, extent = 0; ///< of the index
};

/// A reduction. Its last result is kept: of the elements of a row, most ask for the same one.
struct Reduction {
  std::vector<int> outer; ///< slots from outside that it depends on
  std::vector<Cell> lastOuter;
  std::vector<Cell> lastResults;
  std::vector<ReduceKind> kinds;
  std::vector<int> lower, upper, results;
  std::vector<Width> widths; ///< of the accumulators
  std::vector<bool> isFloat; ///< of the terms
  std::vector<int> present;  ///< slots of the conditions under which terms exist; -1: they all do
  /// Products of 16-bit or 8-bit floats, as a matrix unit sums them: see Evaluation::reduceStep.
  bool isMatrixProduct = false;
  bool hasByteFactors = false;  ///< both factors of 8 bits
  bool cutsAccumulator = false; ///< of these: sums stay in the matrix unit
  int64_t termsInGroup = 0;
  std::vector<double> group; ///< terms not yet added, of factors of 8 bits
  Body body, rescale;
  /// The body's instructions, by what changes their operands: neither the innermost loop nor an
  /// accumulator, that loop alone, and an accumulator.
  std::vector<const Instruction *> ofOuter, ofIndex, ofStates;
  std::vector<StepLoad> loads; ///< instead of those of ofIndex
};

/// Prefixes are usually asked for in order: the last one is kept and extended.
struct ScanState {
  ReduceKind kind = ReduceKind::Sum;
  bool isFloat = true;
  int lower = -1, upper = -1, position = -1;
  Body body;
  std::vector<int> outer; ///< slots that the prefix depends on besides the position
  std::vector<Cell> lastOuter;
  int64_t lastPosition = -1, lastLower = 0;
  Cell accumulator{};
  bool valid = false;
};

/// Fills the lists of the body's instructions. `isParameter` says of a tensor whether it is one.
void orderBody(Reduction &reduction, llvm::function_ref<bool(int)> isParameter);

/// A parameter or the result of a compute.
struct TensorSlot {
  int compute = -1; ///< which compute defines it, or -1 for a parameter
  unsigned result = 0;
  std::vector<unsigned> axes;             ///< positions of its indices in the compute
  std::vector<int> extents;               ///< slots of a parameter's, which may be fewer than given
  std::optional<TileReduction> overTiles; ///< axes that count tiles that are reduced
  Width storedAs = Width::F64;
  bool isFloat = true;
  bool isUnsigned = false;
};

struct ComputeProgram {
  std::vector<int> extents; ///< slots
  Body body;
  std::vector<int> tensors; ///< of each result
};

struct KernelProgram {
  Mode mode = Mode::F64;
  int numSlots = 0;
  std::vector<int> dimSlots;
  std::vector<int> scalarSlots;  ///< -1 for tensor parameters
  std::vector<int> paramTensors; ///< -1 for scalar parameters
  std::vector<Width> scalarWidths;
  std::vector<Instruction> prologue; ///< kernel-level scalars
  std::vector<std::pair<int, std::string>> assumptions;
  std::vector<ComputeProgram> computes;
  std::vector<TensorSlot> tensors;
  std::vector<int> results; ///< tensors that tk.return names
};

Expected<std::unique_ptr<KernelProgram>> translate(KernelOp kernel, Mode mode);

double roundTo(Width width, double value);

/// How arithmetic is rounded whose roundings are free.
class Rounding {
public:
  /// To nearest, or for another seed than 0 up or down at random, so that the mean is exact and
  /// what is representable stays as it is.
  void seed(uint64_t value);
  double operator()(Width width, double value);

private:
  uint64_t state = 0;
};

/// Executes one instruction that is neither a load nor a reduction nor a scan.
void executeScalar(const Instruction &instruction, Cell *frame, Rounding &rounding);
int64_t wrapTo(Width width, int64_t value);

} // namespace tk::interp::detail

#endif // TK_COMPILER_INTERP_PROGRAM_H
