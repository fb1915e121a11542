//===- CostReport.h - predicted times of launches as text --------*- C++ -*-===//
#ifndef TK_COMPILER_COSTREPORT_H
#define TK_COMPILER_COSTREPORT_H

#include "compiler/PredictedCost.h"

#include <string>

namespace tk {

/// Prints the plan of a launch's function (docs/reference/plan.md), as a line of tkc inspect.
void printPlan(const PredictedCost &cost, const std::string &symbol);
/// Prints what a launch costs, as lines of tkc inspect: times, bytes of tensors, lines of the
/// source.
void printCost(const PredictedCost &predicted, const LaunchCost &cost);
/// Prints what all launches cost together.
void printTotal(const PredictedCost &cost);

/// The same as members of a JSON object, without braces.
std::string planJson(const PredictedCost &cost, const std::string &symbol);
std::string costJson(const LaunchCost &cost);
std::string linesJson(const PredictedCost &cost, const std::string &symbol);
std::string totalJson(const PredictedCost &cost);

} // namespace tk

#endif // TK_COMPILER_COSTREPORT_H
