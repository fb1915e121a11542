//===- Notes.cpp - what a pass derived or declined, and why ---------------===//
#include "passes/analysis/Notes.h"
#include "passes/analysis/FusionChoices.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tk {

static constexpr StringLiteral notesName = "tk.notes";

void note(Operation *at, StringRef pass, Verdict verdict, const Twine &text) {
  noteAt(at->getLoc(), at, pass, verdict, text);
}

static void add(LocationAttr where, Operation *at, StringRef pass, Verdict verdict,
                const Twine &text, StringRef stored) {
  Operation *kernel = isa<KernelOp>(at) ? at : at->getParentOfType<KernelOp>();
  if (!kernel)
    return;
  Builder builder(at->getContext());
  SmallVector<NamedAttribute> members = {
      builder.getNamedAttr("pass", builder.getStringAttr(pass)),
      builder.getNamedAttr(verdict == Verdict::Derived ? "derived" : "declined",
                           builder.getStringAttr(text)),
      builder.getNamedAttr("at", where),
  };
  if (!stored.empty())
    members.push_back(builder.getNamedAttr("stored", builder.getStringAttr(stored)));
  Attribute entry = builder.getDictionaryAttr(members);
  SmallVector<Attribute> entries;
  if (auto list = kernel->getAttrOfType<ArrayAttr>(notesName))
    llvm::append_range(entries, list);
  if (llvm::is_contained(entries, entry))
    return;
  entries.push_back(entry);
  kernel->setAttr(notesName, builder.getArrayAttr(entries));
}

void noteAt(LocationAttr where, Operation *at, StringRef pass, Verdict verdict, const Twine &text) {
  add(where, at, pass, verdict, text, "");
}

static StringRef firstNameOf(ComputeOp compute) {
  return cast<StringAttr>(compute.getNames()[0]).getValue();
}

bool isPlural(ComputeOp compute) { return compute.getNames().size() > 1; }

void noteStored(ComputeOp compute, StringRef pass, const Twine &why) {
  add(compute.getLoc(), compute, pass, Verdict::Declined,
      describe(compute) + (isPlural(compute) ? " are stored: " : " is stored: ") + why,
      firstNameOf(compute));
}

void noteInlined(LoadOp load, ComputeOp compute, StringRef pass, const Twine &text) {
  add(load.getLoc(), load, pass, Verdict::Derived, text, firstNameOf(compute));
}

void noteMerge(ComputeOp a, ComputeOp b, StringRef pass, Verdict verdict, const Twine &text) {
  add(b.getLoc(), b, pass, verdict, text, (firstNameOf(a) + "+" + firstNameOf(b)).str());
}

SmallVector<Note> getNotes(KernelOp kernel) {
  SmallVector<Note> notes;
  auto list = kernel->getAttrOfType<ArrayAttr>(notesName);
  if (!list)
    return notes;
  for (Attribute attr : list) {
    auto entry = dyn_cast<DictionaryAttr>(attr);
    auto pass = entry ? entry.getAs<StringAttr>("pass") : StringAttr();
    auto where = entry ? entry.getAs<LocationAttr>("at") : LocationAttr();
    if (!pass || !where)
      continue;
    auto derived = entry.getAs<StringAttr>("derived"),
         declined = entry.getAs<StringAttr>("declined");
    auto stored = entry.getAs<StringAttr>("stored");
    if (derived || declined)
      notes.push_back({pass.getValue(), derived ? Verdict::Derived : Verdict::Declined,
                       (derived ? derived : declined).getValue(), where,
                       stored ? stored.getValue() : StringRef()});
  }
  return notes;
}

void dropNotes(KernelOp kernel) { kernel->removeAttr(notesName); }

/// "a", "a and b", "a, b and c".
static std::string listOf(ArrayRef<std::string> words) {
  std::string text;
  for (const auto &[i, word] : llvm::enumerate(words))
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + word;
  return text;
}

/// "max", "two sums", "max and two sums": reductions of one loop.
static std::string describeKinds(ArrayAttr kinds) {
  llvm::MapVector<StringRef, unsigned> counts;
  for (Attribute kind : kinds)
    ++counts[stringifyReduceKind(cast<ReduceKindAttr>(kind).getValue())];
  SmallVector<std::string> words;
  for (const auto &[kind, count] : counts)
    words.push_back(count == 1   ? kind.str()
                    : count == 2 ? "two " + kind.str() + "s"
                                 : std::to_string(count) + " " + kind.str() + "s");
  return listOf(words);
}

std::string describe(ReduceOp reduce) {
  SmallVector<std::string> indices;
  for (Attribute name : reduce.getIndexNames())
    indices.push_back(cast<StringAttr>(name).getValue().str());
  const std::string kinds = describeKinds(reduce.getKinds()),
                    over = " over " + llvm::join(indices, ", ");
  std::string text =
      reduce.getKinds().size() == 1 ? kinds + over : "loop" + over + " (" + kinds + ")";
  if (auto compute = reduce->getParentOfType<ComputeOp>())
    text += " in " + describe(compute);
  return text;
}

std::string describe(ComputeOp compute) {
  SmallVector<std::string> names;
  for (Attribute name : compute.getNames())
    names.push_back(("'" + cast<StringAttr>(name).getValue() + "'").str());
  return listOf(names);
}

} // namespace tk
