//===- PredictedCost.h - what a kernel costs at given sizes ------*- C++ -*-===//
#ifndef TK_COMPILER_PREDICTEDCOST_H
#define TK_COMPILER_PREDICTEDCOST_H

#include "compiler/LeastCost.h"
#include "compiler/ScheduleTiles.h"
#include "passes/machine/LaunchCost.h"

#include <map>
#include <string>

namespace tk {

/// A line of the source in the time of a launch.
struct LineTime {
  std::string file;
  unsigned line = 0; ///< from 1
  std::string text;
  double nanoseconds = 0; ///< of the launch's time behind its start
};

/// What a kernel costs at given sizes, and what it must do at the least.
struct PredictedCost {
  KernelCost kernel;
  double neededOperations = 0, neededBytes = 0; ///< see WorkCount
  LeastCost least;                              ///< of the program, whatever its plan is
  std::string device;                           ///< that the times are of
  std::string signature;                        ///< of the kernel
  std::map<std::string, std::string> plans;     ///< of functions by their names: see describePlan
  std::map<std::string, std::string> pipelines; ///< of functions by their names: describeStages
  /// Of functions by their names: the lines that they compute, those with the most time first.
  std::map<std::string, std::vector<LineTime>> lines;
  /// The tiles of functions by their names; none of a function that computes several statements,
  /// or whose tiles a schedule block cannot ask for.
  std::map<std::string, NamedTiles> tiles;
  int64_t accumulators = 0; ///< sums of products that a thread holds, of the function with most
};

} // namespace tk

#endif // TK_COMPILER_PREDICTEDCOST_H
