//===- Generator.h - random well-typed programs ----------------*- C++ -*-===//
#ifndef TK_TESTS_FUZZ_GENERATOR_H
#define TK_TESTS_FUZZ_GENERATOR_H

#include "tests/fuzz/Program.h"

namespace tk::fuzz {

struct GeneratorOptions {
  double maxCost = 3e5;        ///< scalar operations of a naive evaluation
  int64_t maxElements = 20000; ///< of any tensor
  bool gpuOnly = false;        ///< leave out what only the CPU has (f64)
  bool forms = false;          ///< begin with a form that kernels of models have
  bool named = false;          ///< names that are compared with themselves
  bool gradients = false;      ///< with the gradient by some of the inputs
};

/// The same program for the same seed, on every machine.
Program generate(uint64_t seed, const GeneratorOptions &options);

/// The same program with reduced dimensions split and merged (Regroup.cpp), also always the same.
Program regrouped(Program program, uint64_t seed);

} // namespace tk::fuzz

#endif // TK_TESTS_FUZZ_GENERATOR_H
