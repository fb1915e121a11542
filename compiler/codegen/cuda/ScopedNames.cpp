//===- ScopedNames.cpp - identifiers of one CUDA function -----------------===//
#include "compiler/codegen/cuda/ScopedNames.h"

#include "llvm/ADT/StringExtras.h"

namespace tk::cuda {

std::string ScopedNames::fresh(llvm::StringRef hint, bool ofFunction) {
  std::string stem;
  for (char c : hint)
    stem += llvm::isAlnum(c) || c == '_' ? c : '_';
  if (stem.empty() || llvm::isDigit(stem[0]))
    stem = "v" + stem;
  // Names with two underscores are the implementation's, and macros such as __launch_bounds__.
  const llvm::StringRef word = stem;
  if (word.starts_with("_") || word.starts_with("TK_") || word.contains("__"))
    stem = "n" + stem;
  unsigned &number = numbers[stem];
  const unsigned before = number;
  std::string name = stem;
  while (number > 0 || taken.contains(name)) {
    number = std::max(number, 1u);
    name = stem + "_" + std::to_string(number);
    if (!taken.contains(name))
      break;
    ++number;
  }
  number = number ? number + 1 : 1;
  taken.insert(name);
  if (!ofFunction)
    declared.push_back({name, stem, before});
  return name;
}

void ScopedNames::release(size_t begin) {
  while (declared.size() > begin) {
    const Declared last = declared.pop_back_val();
    taken.erase(last.name);
    numbers[last.stem] = last.number;
  }
}

} // namespace tk::cuda
