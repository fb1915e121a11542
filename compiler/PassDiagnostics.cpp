//===- PassDiagnostics.cpp - what passes report ---------------------------===//
#include "compiler/PassDiagnostics.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tk {

PassDiagnostics::PassDiagnostics(MLIRContext *context)
    : handler(context, [this](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          collect(diagnostic);
        return success();
      }) {}

void PassDiagnostics::collect(mlir::Diagnostic &diagnostic) {
  if (std::optional<Refusal> kind = refusalOf(diagnostic)) {
    Refused refused{*kind, diagnostic.getLocation(), diagnostic.str(), {}};
    for (mlir::Diagnostic &note : diagnostic.getNotes())
      refused.advice.push_back(note.str());
    refusals.push_back(std::move(refused));
    return;
  }
  llvm::raw_string_ostream out(failures);
  diagnostic.getLocation().print(out);
  out << ": " << diagnostic << "\n";
}

void PassDiagnostics::reportRefusals(Diagnostics &diags) const {
  for (const Refused &refused : refusals) {
    Diag id = Diag::ScheduleDoesNotFit;
    switch (refused.kind) {
    case Refusal::ScheduleDoesNotFit:
      id = Diag::ScheduleDoesNotFit;
      break;
    case Refusal::NeedsNewerMachine:
      id = Diag::NeedsNewerMachine;
      break;
    }
    DiagBuilder builder = diags.error(id, spanOf(diags.sources(), refused.place));
    builder << refused.message;
    for (const std::string &advice : refused.advice)
      builder.help(advice);
  }
}

Error compileError(const Diagnostics &diags, RenderOptions render) {
  std::vector<SourceSpan> spans;
  for (const Diagnostic *diagnostic : diags.sorted()) {
    Span span = diagnostic->span;
    if (diagnostic->severity != Severity::Error || !span.valid())
      continue;
    const SourceFile &file = diags.sources().file(span.file);
    LineColumn begin = file.lineColumn(span.begin), end = file.lineColumn(span.end);
    spans.push_back({file.name(), begin.line, begin.column, end.line, end.column});
  }
  return Error(ErrorCode::compile_failed, diags.text(render), std::move(spans));
}

Span spanOf(const SourceManager &sources, Location place) {
  FileLineColLoc found;
  place->walk([&](Location inner) {
    found = dyn_cast<FileLineColLoc>(inner);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  const FileId id = found ? sources.labelled(found.getFilename().getValue()) : kNoFile;
  if (id != kNoFile && found.getLine() <= sources.file(id).lineCount()) {
    const SourceFile &file = sources.file(id);
    std::string_view text = file.text();
    // Columns count characters: the bytes that continue one are skipped.
    uint32_t begin = file.lineStart(found.getLine());
    for (unsigned column = 1; column < found.getColumn() && begin < text.size(); ++column)
      for (++begin; begin < text.size() && (text[begin] & 0xC0) == 0x80; ++begin) {
      }
    uint32_t end = begin;
    while (end < text.size() && (llvm::isAlnum(text[end]) || text[end] == '_'))
      ++end;
    return {id, begin, end};
  }
  return {};
}

} // namespace tk
