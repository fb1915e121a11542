//===- PlanText.h - parts of a launch plan as text ---------------*- C++ -*-===//
#ifndef TK_RUNTIME_PLANTEXT_H
#define TK_RUNTIME_PLANTEXT_H

#include "tk/plan.h"

#include <string>

namespace tk::detail {

/// The argument of a launch, as LaunchPlan::str prints it.
std::string describe(const Arg &arg, const LaunchPlan &plan, const Signature &signature);

} // namespace tk::detail

#endif // TK_RUNTIME_PLANTEXT_H
