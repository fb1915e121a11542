//===- Report.h - a predicted step as text, JSON and a page -----*- C++ -*-===//
#ifndef TK_COMPILER_STEP_REPORT_H
#define TK_COMPILER_STEP_REPORT_H

#include "compiler/step/Step.h"

namespace tk::step {

std::string textOf(const StepPrediction &prediction);
llvm::json::Value jsonOf(const StepPrediction &prediction);

/// What collectives of arrays of so many bytes take on each axis of a mesh: times, and the
/// bandwidth of the links that they reach ("bus bandwidth").
std::string collectivesText(const network::Network &network, const network::Mesh &mesh,
                            llvm::ArrayRef<double> sizes);
llvm::json::Value collectivesJson(const network::Network &network, const network::Mesh &mesh,
                                  llvm::ArrayRef<double> sizes);

/// A picture of the network with the mesh on it, of the step's parts, and of each row's times.
std::string svgOf(const StepPrediction &prediction);
/// A page with the picture and the tables of the text. It needs no other file.
std::string pageOf(const StepPrediction &prediction);

/// "12.3 us": three digits, of the unit that suits.
std::string timeText(double nanoseconds);
std::string bytesText(double bytes);
/// What a row is bound by, and a limit: "matrix unit", "leaf network".
std::string boundOf(const StepPrediction &prediction, const Row &row);
std::string verdictOf(const Limit &limit);

/// The step's time by part, with what each is called.
std::vector<std::pair<std::string, double>> partsOf(const StepPrediction &prediction);

} // namespace tk::step

#endif // TK_COMPILER_STEP_REPORT_H
