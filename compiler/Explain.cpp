//===- Explain.cpp - what the passes say of a kernel ----------------------===//
#include "compiler/CompiledSource.h"

#include "compiler/Dump.h"
#include "passes/analysis/Notes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tk {

/// The place in a file behind a location, if there is one.
static FileLineColLoc placeOf(LocationAttr location) {
  FileLineColLoc place;
  Location(location)->walk([&](Location inner) {
    place = dyn_cast<FileLineColLoc>(inner);
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  return place;
}

Expected<std::string> CompiledSource::explain(size_t kernel, std::string_view target,
                                              const Facts &given) {
  std::lock_guard lock(mutex);
  Facts facts = relevant_facts(kernel, target, given);
  Expected<OwningOpRef<ModuleOp>> copy = isolate(kernel, target, facts);
  if (!copy)
    return copy.error();
  Dump dump(kernelNames[kernel], target, facts);
  if (Status lowered = lower(**copy, Stage::Fused, dump); !lowered)
    return lowered.error();
  SmallVector<StringRef> lines;
  StringRef(sourceText).split(lines, '\n');
  std::string text;
  llvm::raw_string_ostream out(text);
  unsigned shown = 0;
  for (const Note &note : getNotes((*copy)->lookupSymbol<KernelOp>(kernelNames[kernel]))) {
    FileLineColLoc place = placeOf(note.where);
    unsigned line = place ? place.getLine() : 0;
    if (line && line != shown && line <= lines.size())
      out << place.getFilename().getValue() << ':' << line << ": " << lines[line - 1].trim()
          << "\n";
    shown = line;
    out << "  " << (note.verdict == Verdict::Derived ? "" : "declined: ") << note.text << " ["
        << note.pass << "]\n";
  }
  return text;
}

} // namespace tk
