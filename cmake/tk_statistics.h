// Included before anything else by all code that uses MLIR.
//
// llvm::Statistic, which passes hold, is another class in code with assertions than in LLVM's
// archives, which are built without: their constructors leave the counters of ours undefined. This
// takes the archives' class; our assertions stay.
#pragma once

#define NDEBUG
#include "llvm/ADT/Statistic.h"
#undef NDEBUG
#include <cassert>

static_assert(LLVM_ENABLE_STATS == 0, "another header has included llvm/ADT/Statistic.h before");
