//===- Dump.h - files that show what a compilation did -----------*- C++ -*-===//
#ifndef TK_COMPILER_DUMP_H
#define TK_COMPILER_DUMP_H

#include "tk/plan.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace tk {

/// TK_DUMP: every stage of every kernel compiled, as DIR/KERNEL.TARGET.FACTS.STAGE.
class Dump {
public:
  Dump() = default; ///< writes nothing
  Dump(std::string_view kernel, std::string_view target, const Facts &facts);
  bool enabled() const { return !prefix.empty(); }
  /// Writes a stage; the first failure is a warning.
  void write(std::string_view stage, std::string_view text) const;

private:
  std::string prefix;
};

/// All that it takes to meet an internal error again.
struct Reproducer {
  const std::string &source;
  const std::string &file;
  std::string kernel, target, stage;
  const Facts &facts;
  std::set<std::string> disabledPasses;
  std::vector<std::string> fusionFlags; ///< see PipelineOptions
  std::string error;
  const Signature &signature;
  std::optional<std::string> schedule; ///< in place of the program's own
  bool sizeClasses;                    ///< see `tkc build --size-classes`
};

/// Writes the program with its options as a .tk file, below TK_DUMP or the directory for temporary
/// files. Returns its path, or "" where it could not.
std::string writeReproducer(const Reproducer &reproducer);

} // namespace tk

#endif // TK_COMPILER_DUMP_H
