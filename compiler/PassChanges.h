//===- PassChanges.h - what each pass changes in a line ----------*- C++ -*-===//
#ifndef TK_COMPILER_PASSCHANGES_H
#define TK_COMPILER_PASSCHANGES_H

#include "compiler/Pipeline.h"
#include "compiler/StageText.h"

#include <map>
#include <string>
#include <vector>

namespace tk {

/// What a pass changed in the operations of one line of the source.
struct LineChange {
  unsigned place = 0;                   ///< in the table of places
  std::vector<unsigned> removed, added; ///< numbers of texts
};

struct PassChange {
  std::string pass;
  std::vector<LineChange> lines;
};

struct PassChanges {
  std::vector<std::string> texts; ///< lines of the IR, each once
  std::vector<PassChange> passes; ///< those that changed an operation of a line, in order
};

/// Compares the IR after each pass with the IR before it. Names of SSA values do not count: passes
/// number them anew.
class ChangeRecorder {
public:
  explicit ChangeRecorder(PlaceTable &places) : places(places) {}

  /// The IR before the first pass.
  void begin(mlir::ModuleOp module);
  /// The IR after a pass. Where passes run again, because what they planned did not fit, what they
  /// changed before is forgotten.
  void see(const PassRun &run, mlir::ModuleOp module);

  PassChanges take();

private:
  using Snapshot = std::map<unsigned, std::vector<std::string>>; ///< lines of the IR by place

  Snapshot snapshotOf(mlir::ModuleOp module);
  unsigned numberOf(const std::string &text);

  struct Step {
    unsigned first; ///< of the pass
    std::string pass;
    Snapshot after;
  };

  PlaceTable &places;
  Snapshot before;
  std::vector<Step> steps;
  std::map<std::string, unsigned> numbers;
  PassChanges changes;
};

} // namespace tk

#endif // TK_COMPILER_PASSCHANGES_H
