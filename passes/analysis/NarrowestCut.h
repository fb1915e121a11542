//===- NarrowestCut.h - what to keep of an expression -----------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_NARROWESTCUT_H
#define TK_PASSES_ANALYSIS_NARROWESTCUT_H

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace tk {

/// Values that are computed from each other, numbered as they are added. Which of them, of the
/// least bits together, is everything that is needed computed from?
class NarrowestCut {
public:
  unsigned add(int64_t bits);
  void addUse(unsigned operand, unsigned result) { connect(endOf(operand), startOf(result), all); }
  /// A value that is there from the beginning.
  void addSource(unsigned value) { connect(source, startOf(value), all); }
  void addNeed(unsigned value) { connect(endOf(value), sink, all); }

  /// The values in the order of their numbers; of several choices those next to the sources. Once.
  llvm::SmallVector<unsigned> find();

private:
  struct Edge {
    unsigned to;
    int64_t room;
  };
  static constexpr unsigned source = 0, sink = 1;
  static constexpr int64_t all = INT64_MAX / 2;

  static unsigned startOf(unsigned value) { return 2 * value + 2; }
  static unsigned endOf(unsigned value) { return 2 * value + 3; }
  void connect(unsigned from, unsigned to, int64_t room);
  int64_t push(unsigned node, int64_t most, llvm::BitVector &seen);

  llvm::SmallVector<Edge> edges; ///< each followed by the one back
  llvm::SmallVector<llvm::SmallVector<unsigned, 4>> edgesOf{2};
};

} // namespace tk

#endif // TK_PASSES_ANALYSIS_NARROWESTCUT_H
