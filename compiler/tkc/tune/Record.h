//===- Record.h - what tkc tune has measured so far --------------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_TUNE_RECORD_H
#define TK_COMPILER_TKC_TUNE_RECORD_H

#include "tk/error.h"

#include <map>
#include <string>

namespace tk::tkc {

struct Measurement {
  double milliseconds = 0;
  double ratio = 0;    ///< of the time of the program as it is, measured in alternation
  bool applies = true; ///< is the block for this target and these sizes?
  bool right = true;
  /// Bytes of local memory a thread, more than the program as it is has. Not 0: it was not run.
  int64_t spilled = 0;
};

/// Measurements of schedules in a file of JSON lines, so that a search that was stopped goes on.
/// Without a path, in memory.
class TuneRecord {
public:
  /// Reads the file if there is one. Lines of another `context` stay in the file and are not used.
  /// Fails with `invalid_argument` where the file holds something else, with `io` where it cannot
  /// be read.
  static Expected<TuneRecord> open(const std::string &path, const std::string &context);

  /// What was measured of a schedule block, or null.
  const Measurement *find(const std::string &block) const;
  /// Adds a measurement, and writes it.
  Status add(const std::string &block, const Measurement &measurement);

private:
  std::string path, context, text;
  std::map<std::string, Measurement> measured;
};

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_TUNE_RECORD_H
