//===- Promises.h - results that hold exactly ------------------*- C++ -*-===//
#ifndef TK_TESTS_FUZZ_PROMISES_H
#define TK_TESTS_FUZZ_PROMISES_H

#include "tests/fuzz/Program.h"
#include "tk/npy.h"

namespace tk::fuzz {

/// What the program promises of a result, if anything.
const Promise *promiseOf(const Program &program, const std::string &result);

/// The first element or row that breaks the promise; empty if none does.
std::string findBroken(const Promise &promise, const HostTensor &tensor);

} // namespace tk::fuzz

#endif // TK_TESTS_FUZZ_PROMISES_H
