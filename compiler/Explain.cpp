//===- Explain.cpp - what the passes say of a kernel ----------------------===//
#include "compiler/CompiledSource.h"

#include "compiler/Dump.h"
#include "compiler/PassDiagnostics.h"
#include "passes/analysis/Notes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tk {

Expected<std::string> CompiledSource::explain(size_t kernel, std::string_view target,
                                              const Facts &given) {
  std::lock_guard lock(mutex);
  Facts facts = relevant_facts(kernel, target, given);
  Expected<OwningOpRef<ModuleOp>> copy = isolate(kernel, target, facts);
  if (!copy)
    return copy.error();
  auto op = (*copy)->lookupSymbol<KernelOp>(kernelNames[kernel]);
  Dump dump(kernelNames[kernel], target, facts);
  if (target == "cpu" && !schedules[kernel].empty())
    note(op, "schedules", Verdict::Declined,
         "schedule blocks have no effect on the CPU, which chooses its own loops");
  else if (!schedules[kernel].empty() && !chooseSchedule(schedules[kernel], target, facts))
    note(op, "schedules", Verdict::Declined,
         "no schedule block is for this target and these sizes");
  if (Status lowered = lower(**copy, target == "cpu" ? Stage::Fused : Stage::Gpu, dump); !lowered)
    return lowered.error();
  op = (*copy)->lookupSymbol<KernelOp>(kernelNames[kernel]); // planned again, it is another one
  std::string text;
  llvm::raw_string_ostream out(text);
  std::pair<FileId, uint32_t> shown(kNoFile, 0);
  for (const Note &note : getNotes(op)) {
    Span place = spanOf(sources, note.where);
    std::pair<FileId, uint32_t> line(place.file, 0);
    if (place.valid()) {
      const SourceFile &file = sources.file(place.file);
      line.second = file.lineColumn(place.begin).line;
      if (line != shown)
        out << file.name() << ':' << line.second << ": " << StringRef(file.line(line.second)).trim()
            << "\n";
    }
    shown = line;
    out << "  " << (note.verdict == Verdict::Derived ? "" : "declined: ") << note.text << " ["
        << note.pass << "]\n";
  }
  return text;
}

} // namespace tk
