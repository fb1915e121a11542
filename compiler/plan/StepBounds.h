//===- StepBounds.h - sizes from which transfers take other means -*- C++ -*-===//
#ifndef TK_COMPILER_PLAN_STEPBOUNDS_H
#define TK_COMPILER_PLAN_STEPBOUNDS_H

namespace tk {

/// Lets the runtime ask the cost model which means is the fastest for the steps of a plan.
void offerStepBounds();

} // namespace tk

#endif // TK_COMPILER_PLAN_STEPBOUNDS_H
