//===- CodeReport.h - what the GPU compiler said of its code -----*- C++ -*-===//
#ifndef TK_COMPILER_CODEREPORT_H
#define TK_COMPILER_CODEREPORT_H

#include <map>
#include <string>
#include <string_view>

namespace tk {

/// What one function uses, by ptxas.
struct FunctionReport {
  unsigned registers = 0;
  int64_t staticShared = 0;                ///< bytes a block
  int64_t stackBytes = 0;                  ///< a thread
  int64_t spillStores = 0, spillLoads = 0; ///< bytes a thread
};

/// Reads the log of `ptxas -v`, by function.
std::map<std::string, FunctionReport> readCodeReport(std::string_view log);

} // namespace tk

#endif // TK_COMPILER_CODEREPORT_H
