//===- Evaluation.h - one run of the reference -------------------*- C++ -*-===//
#ifndef TK_COMPILER_INTERP_EVALUATION_H
#define TK_COMPILER_INTERP_EVALUATION_H

#include "compiler/interp/Program.h"

namespace tk::interp::detail {

/// The elements of a computed tensor that have been asked for.
class Memo {
public:
  void reset(int64_t count);
  void clear();
  bool find(int64_t position, Cell &cell) const;
  void set(int64_t position, Cell cell);

private:
  // Up to this many elements a memo is an array and a bit each; above it, a hash map.
  static constexpr int64_t denseLimit = int64_t{1} << 26;
  bool dense = true;
  std::vector<Cell> cells;
  std::vector<bool> known;
  std::unordered_map<int64_t, Cell> sparse;
};

class Evaluation {
public:
  explicit Evaluation(KernelProgram &program) : program(program) {}

  Status bind(const std::vector<int64_t> &dims, const std::vector<TensorView> &tensors,
              const std::vector<Scalar> &scalars);
  const std::vector<int64_t> &shape(int tensor) const { return states[tensor].shape; }
  Cell element(int tensor, int64_t position);
  void redraw(unsigned draw);

private:
  struct TensorState {
    std::vector<int64_t> shape;
    CellTensor input; ///< of a parameter
    Memo memo;        ///< of a computed tensor
  };

  void forgetAll();
  Rounding *sumRounding() { return program.mode != Mode::F64 ? &rounding : nullptr; }
  bool isSummedInGroups(const Reduction &reduction) const {
    return reduction.isMatrixProduct && sumsAsMatrixUnit && program.mode == Mode::Typed;
  }
  void reduceTile(const TensorSlot &slot, ComputeProgram &compute,
                  llvm::ArrayRef<TileReduction::Axis> axes, Cell &all);
  void run(const Body &body);
  void execute(const Instruction &instruction);
  void load(const Instruction &instruction);
  void reduce(Reduction &reduction);
  void reduceStep(Reduction &reduction, std::vector<Cell> &accumulators, bool &first,
                  int64_t index);
  void reduceOver(Reduction &reduction, unsigned depth, std::vector<Cell> &accumulators,
                  bool &first);
  void scan(const Instruction &instruction);

  KernelProgram &program;
  std::vector<Cell> frame;
  std::vector<TensorState> states;
  Rounding rounding;
  bool sumsAsMatrixUnit = true;
  unsigned orderOfSums = 0; ///< 0: as written
};

} // namespace tk::interp::detail

#endif // TK_COMPILER_INTERP_EVALUATION_H
