//===- CodeReport.cpp - what the GPU compiler said of its code ------------===//
//
//   ptxas info    : Compiling entry function 'gemm_0' for 'sm_90a'
//   ptxas info    : Function properties for gemm_0
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 122 registers, used 1 barriers, 16 bytes smem
//
//===----------------------------------------------------------------------===//
#include "compiler/CodeReport.h"

#include "llvm/ADT/StringRef.h"

using namespace llvm;

namespace tk {
namespace {

/// The number that stands before `unit`, as in "122 registers"; 0 where there is none.
int64_t numberBefore(StringRef line, StringRef unit) {
  size_t at = line.find((" " + unit).str());
  if (at == StringRef::npos)
    return 0;
  StringRef digits = line.take_front(at);
  size_t begin = digits.find_last_not_of("0123456789");
  int64_t value = 0;
  digits.drop_front(begin == StringRef::npos ? 0 : begin + 1).getAsInteger(10, value);
  return value;
}

} // namespace

std::map<std::string, FunctionReport> readCodeReport(std::string_view log) {
  std::map<std::string, FunctionReport> functions;
  FunctionReport *current = nullptr;
  for (StringRef rest(log); !rest.empty();) {
    auto [line, next] = rest.split('\n');
    rest = next;
    if (size_t at = line.find("entry function '"); at != StringRef::npos) {
      StringRef name = line.drop_front(at).split('\'').second.split('\'').first;
      current = &functions[name.str()];
    }
    if (!current)
      continue;
    if (line.contains("bytes stack frame")) {
      current->stackBytes = numberBefore(line, "bytes stack frame");
      current->spillStores = numberBefore(line, "bytes spill stores");
      current->spillLoads = numberBefore(line, "bytes spill loads");
    } else if (line.contains(" registers")) {
      current->registers = static_cast<unsigned>(numberBefore(line, "registers"));
      current->staticShared = numberBefore(line, "bytes smem");
    }
  }
  return functions;
}

} // namespace tk
