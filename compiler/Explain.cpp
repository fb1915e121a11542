//===- Explain.cpp - what the passes say of a kernel ----------------------===//
#include "compiler/CompiledSource.h"

#include "compiler/Dump.h"
#include "compiler/InspectReport.h"
#include "compiler/PassDiagnostics.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/Notes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tk {

void CompiledSource::noteSchedules(KernelOp op, size_t kernel, std::string_view target,
                                   const Facts &facts) const {
  if (target == "cpu" && !schedules[kernel].empty())
    note(op, "schedules", Verdict::Declined,
         "schedule blocks have no effect on the CPU, which chooses its own loops");
  else if (!schedules[kernel].empty() && !chooseSchedule(schedules[kernel], target, facts))
    note(op, "schedules", Verdict::Declined,
         "no schedule block is for this target and these sizes");
}

Expected<std::vector<CompiledSource::Remark>>
CompiledSource::remarks(size_t kernel, std::string_view target, const Facts &given) {
  std::lock_guard lock(mutex);
  Facts facts = relevant_facts(kernel, target, given);
  Expected<OwningOpRef<ModuleOp>> copy = isolate(kernel, target, facts);
  if (!copy)
    return copy.error();
  auto op = (*copy)->lookupSymbol<KernelOp>(kernelNames[kernel]);
  Dump dump(kernelNames[kernel], target, facts);
  noteSchedules(op, kernel, target, facts);
  if (Status lowered = lower(**copy, target == "cpu" ? Stage::Fused : Stage::Gpu, dump); !lowered)
    return lowered.error();
  // Planned again, it is another operation.
  return remarksOf((*copy)->lookupSymbol<KernelOp>(kernelNames[kernel]));
}

/// The names of the tensors that a lowered kernel stores.
static llvm::StringSet<> tensorsOf(KernelOp op) {
  llvm::StringSet<> names;
  auto add = [&](ArrayAttr list) {
    for (Attribute name : list ? list.getValue() : ArrayRef<Attribute>())
      names.insert(cast<StringAttr>(name).getValue());
  };
  for (ComputeOp compute : op.getBody().getOps<ComputeOp>())
    add(compute.getNames());
  for (gpu::LaunchOp launch : op.getBody().getOps<gpu::LaunchOp>())
    add(launch->getAttrOfType<ArrayAttr>("names"));
  return names;
}

Expected<std::vector<std::string>>
CompiledSource::storedTensors(size_t kernel, std::string_view target, const Facts &given) {
  std::lock_guard lock(mutex);
  Facts facts = relevant_facts(kernel, target, given);
  Expected<OwningOpRef<ModuleOp>> copy = isolate(kernel, target, facts);
  if (!copy)
    return copy.error();
  if (Status fused = lower(**copy, Stage::Fused, Dump(kernelNames[kernel], target, facts)); !fused)
    return fused.error();
  std::vector<std::string> names;
  for (const auto &name : tensorsOf((*copy)->lookupSymbol<KernelOp>(kernelNames[kernel])))
    names.push_back(name.getKey().str());
  return names;
}

/// Facts of one line that name one reader each, as in "'p' is computed where 'o' reads it", become
/// one fact that names all readers.
static std::vector<CompiledSource::Remark>
joinReaders(std::vector<CompiledSource::Remark> remarks) {
  struct Readers {
    size_t at; ///< the position of the fact among those that are kept
    std::string before, after;
    std::vector<std::string> names;
  };
  std::vector<Readers> found;
  std::vector<CompiledSource::Remark> kept;
  for (CompiledSource::Remark &remark : remarks) {
    const StringRef text = remark.text, where = " is computed where ", reads = " reads it";
    const size_t begin = text.find(where), end = text.find(reads);
    if (begin == text.npos || end == text.npos || end < begin) {
      kept.push_back(std::move(remark));
      continue;
    }
    const std::string before = text.take_front(begin + where.size()).str();
    const std::string name = text.slice(begin + where.size(), end).str();
    const std::string after = text.drop_front(end + reads.size()).str();
    auto same = llvm::find_if(found, [&](const Readers &other) {
      const CompiledSource::Remark &fact = kept[other.at];
      return other.before == before && other.after == after && fact.line == remark.line &&
             fact.file == remark.file && fact.pass == remark.pass;
    });
    if (same == found.end()) {
      found.push_back({kept.size(), before, after, {name}});
      kept.push_back(std::move(remark));
    } else if (!llvm::is_contained(same->names, name)) {
      same->names.push_back(name);
    }
  }
  for (const Readers &readers : found)
    if (readers.names.size() > 1)
      kept[readers.at].text = readers.before +
                              llvm::join(ArrayRef(readers.names).drop_back(), ", ") + " and " +
                              readers.names.back() + " read it" + readers.after;
  return kept;
}

std::vector<CompiledSource::Remark> CompiledSource::remarksOf(KernelOp op) const {
  std::vector<Remark> remarks;
  auto remark = [&](Location where, StringRef pass, std::string text, bool declined,
                    StringRef tensor = "") {
    Remark made{{}, 0, {}, pass.str(), std::move(text), declined, tensor.str()};
    Span place = spanOf(sources, where);
    if (place.valid()) {
      const SourceFile &file = sources.file(place.file);
      made.file = file.name();
      made.line = file.lineColumn(place.begin).line;
      made.lineText = StringRef(file.line(made.line)).trim().str();
    }
    remarks.push_back(std::move(made));
  };
  const llvm::StringSet<> tensors = tensorsOf(op);
  for (const Note &note : getNotes(op)) {
    std::string text = note.text.str();
    // A later pass has left nothing of the tensor but what is reduced of it.
    if (!note.stored.empty() && !tensors.contains(note.stored))
      for (auto [stored, instead] :
           {std::pair<StringRef, StringRef>(" is stored: ", " is not computed where it is read: "),
            {" are stored: ", " are not computed where they are read: "}})
        if (const size_t at = text.find(stored); at != text.npos)
          text.replace(at, stored.size(), instead);
    remark(note.where, note.pass, std::move(text), note.verdict != Verdict::Derived, note.stored);
  }
  for (gpu::LaunchOp launch : op.getBody().getOps<gpu::LaunchOp>())
    if (auto function =
            SymbolTable::lookupNearestSymbolFrom<gpu::FuncOp>(launch, launch.getKernelAttr()))
      remark(launch.getLoc(), "tk-choose-schedule",
             ("plan of " + launch.getKernel() + ": " + gpu::describePlan(function)).str(), false);
  return joinReaders(std::move(remarks));
}

bool CompiledSource::scheduleApplies(size_t kernel, std::string_view target,
                                     const Facts &facts) const {
  return chooseSchedule(schedules[kernel], target, facts).has_value();
}

std::string CompiledSource::textOf(llvm::ArrayRef<Remark> remarks) {
  std::string text;
  llvm::raw_string_ostream out(text);
  std::pair<StringRef, unsigned> shown;
  for (const Remark &remark : remarks) {
    std::pair<StringRef, unsigned> line(remark.file, remark.line);
    if (remark.line > 0 && line != shown)
      out << remark.file << ':' << remark.line << ": " << remark.lineText << "\n";
    shown = line;
    out << "  " << (remark.declined ? "declined: " : "") << remark.text << " [" << remark.pass
        << "]\n";
  }
  return text;
}

Expected<std::string> CompiledSource::explain(size_t kernel, std::string_view target,
                                              const Facts &facts) {
  auto all = remarks(kernel, target, facts);
  if (!all)
    return all.error();
  return textOf(*all);
}

Expected<std::string> CompiledSource::text_for(size_t kernel, std::string_view stage,
                                               std::string_view target,
                                               std::span<const std::optional<int64_t>> dims) {
  const Facts facts = factsAt(kernelSignatures[kernel], dims);
  if (stage == "explain")
    return explain(kernel, target, facts);
  if (stage == "inspect" || stage == "cost")
    return inspectKernel(*this, kernel, target, dims, stage == "cost");
  return stage_text(kernel, stage, target, facts);
}

} // namespace tk
