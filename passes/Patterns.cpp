//===- Patterns.cpp - rewrites of a pass that have names ------------------===//
#include "passes/Patterns.h"

using namespace mlir;

namespace tk {

ArrayRef<PatternInfo> patternsOf(StringRef pass) {
  (void)pass;
  return {};
}

std::string nearestOf(StringRef word, ArrayRef<std::string> words) {
  unsigned least = 1 + static_cast<unsigned>(word.size()) / 3;
  std::string nearest;
  for (const std::string &candidate : words) {
    const unsigned distance = word.edit_distance(candidate, /*AllowReplacements=*/true, least);
    if (distance < least || (distance == least && nearest.empty())) {
      nearest = candidate;
      least = distance;
    }
  }
  return nearest;
}

LogicalResult NamedPatterns::verify() {
  std::vector<std::string> names;
  for (const PatternInfo &info : patternsOf(pass))
    names.push_back(info.name.str());
  for (ArrayRef<std::string> option : {disable, only})
    for (const std::string &name : option) {
      if (llvm::is_contained(names, name))
        continue;
      InFlightDiagnostic error = emitError(root->getLoc());
      error << "unknown pattern '" << name << "' of " << pass;
      if (std::string nearest = nearestOf(name, names); !nearest.empty())
        error << "; did you mean '" << nearest << "'?";
      return error;
    }
  return success();
}

bool NamedPatterns::isOn(StringRef pattern) const {
  assert(llvm::any_of(patternsOf(pass), [&](const PatternInfo &p) { return p.name == pattern; }) &&
         "a pattern that Patterns.cpp does not name");
  return only.empty() ? !llvm::is_contained(disable, pattern) : llvm::is_contained(only, pattern);
}

void NamedPatterns::run(StringRef pattern, llvm::function_ref<void()> rewrite) {
  if (!isOn(pattern))
    return;
  root->getContext()->executeAction<PatternAction>(rewrite, {IRUnit(root)}, pass, pattern);
}

} // namespace tk
