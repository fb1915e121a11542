//===- KernelView.h - all that the compiler knows of a kernel ----*- C++ -*-===//
#ifndef TK_COMPILER_KERNELVIEW_H
#define TK_COMPILER_KERNELVIEW_H

#include "compiler/CompiledSource.h"
#include "compiler/FusedOperations.h"
#include "compiler/Instructions.h"
#include "compiler/LaunchReport.h"
#include "compiler/PassChanges.h"
#include "compiler/PredictedCost.h"
#include "compiler/StageText.h"

#include <array>
#include <map>

namespace tk {

using InstructionCounts = std::array<unsigned, numInstructionKinds>;

struct KernelView {
  struct File {
    std::string name, text;
  };
  std::vector<File> files; ///< by FileId
  std::vector<SourcePlace> places;
  std::vector<StageText> stages; ///< from the tensor IR to the machine code
  detail::Executable executable; ///< as far as it could be made
  std::vector<LaunchReport> launches;
  std::map<std::string, std::vector<std::string>> arguments; ///< names in CUDA, by function
  std::map<std::string, std::string> plans;                  ///< by function
  /// The plan as a schedule block to begin with; empty where the kernel has no launch or several,
  /// or where a block cannot ask for such tiles.
  std::string scheduleBlock;
  /// By key of a schedule block: how the planners of the launches choose its value.
  std::map<std::string, std::string> rules;
  std::map<std::string, unsigned> definitions;  ///< of tensors: the line of the first file
  std::map<std::string, std::string> pipelines; ///< by function, see describeStages
  std::map<std::string, FusedOperations> fused; ///< by function
  std::vector<CompiledSource::Remark> remarks;
  PassChanges changes;
  std::unique_ptr<PredictedCost> cost; ///< null where a launch depends on what is not known
  /// The share of each place in a launch's predicted time, by function; the last is that of none.
  std::map<std::string, std::vector<double>> timeShares;
  /// Instructions of the last stage that has some, by place; those without a place come last.
  std::string countedStage;
  std::vector<InstructionCounts> instructions;
};

} // namespace tk

#endif // TK_COMPILER_KERNELVIEW_H
