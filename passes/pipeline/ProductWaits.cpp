//===- ProductWaits.cpp - where products are waited for -------------------===//
#include "passes/pipeline/ProductWaits.h"

using namespace tk;
using namespace tk::gpu;

WarpgroupWaitOp tk::findPlainWait(WarpgroupDotOp dot) {
  if (!dot->hasOneUse())
    return {};
  auto wait = dyn_cast<WarpgroupWaitOp>(*dot->user_begin());
  bool isPlain = wait && wait.getPending() == 0 && wait.getNumResults() == 1 &&
                 wait->getBlock() == dot->getBlock();
  return isPlain ? wait : WarpgroupWaitOp();
}
