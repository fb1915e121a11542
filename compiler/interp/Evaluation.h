//===- Evaluation.h - one run of the reference -------------------*- C++ -*-===//
#ifndef TK_COMPILER_INTERP_EVALUATION_H
#define TK_COMPILER_INTERP_EVALUATION_H

#include "compiler/interp/Program.h"
#include "runtime/Environment.h"

#include <algorithm>
#include <bitset>
#include <memory>

namespace tk::interp::detail {

/// The elements of a computed tensor that have been asked for, in pages that are made when an
/// element of theirs is.
class Memo {
public:
  /// Forgets all, for a tensor of that many elements. `total` counts the bytes of all memos.
  void reset(int64_t count, int64_t &total);
  void clear();
  bool find(int64_t position, Cell &cell) const;
  void set(int64_t position, Cell cell);

private:
  static constexpr int64_t pageCells = 1024;
  struct Page {
    Cell cells[pageCells];
    std::bitset<pageCells> known;
  };
  // Up to this many elements there is a table of pages; above it, a hash map.
  static constexpr int64_t mostElements = int64_t{1} << 32;
  std::vector<std::unique_ptr<Page>> pages;
  std::unordered_map<int64_t, Cell> sparse;
  int64_t bytes = 0;
  int64_t *total = nullptr;
};

/// What an evaluation has done.
struct Counts {
  double operations = 0;                 ///< on floats, as WorkCount counts them
  std::vector<std::vector<bool>> isRead; ///< of each parameter, by element
};

class Evaluation {
public:
  explicit Evaluation(KernelProgram &program) : program(program) {}

  Status bind(const std::vector<int64_t> &dims, const std::vector<TensorView> &tensors,
              const std::vector<Scalar> &scalars);
  const std::vector<int64_t> &shape(int tensor) const { return states[tensor].shape; }
  Cell element(int tensor, int64_t position);
  void takeAbsentTerms(bool takes);
  void redraw(unsigned draw);
  /// Counts from now on; after bind().
  void beginCounts();
  const Counts *getCounts() const { return counts.get(); }

private:
  struct TensorState {
    std::vector<int64_t> shape;
    CellTensor input; ///< of a parameter
    Memo memo;        ///< of a computed tensor
  };

  void forgetAll();
  void boundMemos();
  Rounding *sumRounding() { return program.mode != Mode::F64 ? &rounding : nullptr; }
  bool isSummedInGroups(const Reduction &reduction) const {
    return reduction.isMatrixProduct && sumsAsMatrixUnit && program.mode == Mode::Typed;
  }
  void reduceTile(const TensorSlot &slot, ComputeProgram &compute,
                  llvm::ArrayRef<TileReduction::Axis> axes, Cell &all);
  void run(const Body &body);
  void run(const std::vector<const Instruction *> &instructions);
  void execute(const Instruction &instruction);
  void load(const Instruction &instruction);
  void beginSteps(Reduction &reduction);
  void takeStep(const Reduction &reduction, int64_t index);
  void reduce(Reduction &reduction);
  void reduceStep(Reduction &reduction, std::vector<Cell> &accumulators, bool &first, int64_t index,
                  bool isOrdered);
  void reduceOver(Reduction &reduction, unsigned depth, std::vector<Cell> &accumulators,
                  bool &first);
  void scan(const Instruction &instruction);
  Cell termOf(const Reduction &reduction, size_t k) const;

  std::unique_ptr<Counts> counts; ///< null: nobody asks
  bool takesAbsentTerms = false;
  KernelProgram &program;
  int64_t memoBytes = 0;
  /// A share of the memory, since other references may be evaluated beside this one.
  const int64_t mostMemoBytes =
      static_cast<int64_t>(std::min(tk::detail::memory_bytes() / 8, uint64_t{4} << 30));
  std::vector<Cell> frame;
  std::vector<TensorState> states;
  Rounding rounding;
  bool sumsAsMatrixUnit = true;
  unsigned orderOfSums = 0; ///< 0: as written
};

} // namespace tk::interp::detail

#endif // TK_COMPILER_INTERP_EVALUATION_H
