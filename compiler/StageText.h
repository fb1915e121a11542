//===- StageText.h - the text of a stage, with lines of the source -*- C++ -*-===//
//
// Each line of a stage's text comes from lines of the `.tk` files: those of the IR by the locations
// of the operations, those of CUDA by its #line directives, those of PTX by its .loc directives,
// and those of SASS by the places that the disassembler prints. Directives are left out of the
// texts.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_STAGETEXT_H
#define TK_COMPILER_STAGETEXT_H

#include "frontend/Source.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

namespace tk {

/// A line of a source file.
struct SourcePlace {
  FileId file = 0;
  unsigned line = 0; ///< from 1
  bool operator==(const SourcePlace &) const = default;
};

/// Numbers the lines of the sources that the stages come from.
class PlaceTable {
public:
  explicit PlaceTable(const SourceManager &sources) : sources(sources) {}

  /// The number of a line; nothing if `file` is no source, or has no such line. A path that ends in
  /// a source's name names that source.
  std::optional<unsigned> number(llvm::StringRef file, unsigned line);
  /// The lines that a location names.
  std::vector<unsigned> numbers(mlir::Location where);
  llvm::ArrayRef<SourcePlace> places() const { return list; }

private:
  const SourceManager &sources;
  std::vector<SourcePlace> list;
};

/// A module as text, without the elements of large constants.
std::string printModule(mlir::ModuleOp module);

struct StageText {
  std::string name;
  std::string text;
  std::string missing; ///< why there is no text, or empty
  /// For each line of the text the numbers of the places that it comes from.
  std::vector<std::vector<unsigned>> lines;
};

StageText stageOfModule(llvm::StringRef name, mlir::ModuleOp module, PlaceTable &places);
StageText stageOfCuda(llvm::StringRef text, PlaceTable &places);
/// PTX with the comment that stands before each kernel in CUDA.
std::string withHeads(llvm::StringRef ptx, llvm::StringRef cuda);
StageText stageOfPtx(llvm::StringRef text, PlaceTable &places);
/// `text` is the disassembler's, with places.
StageText stageOfSass(llvm::StringRef text, PlaceTable &places);

} // namespace tk

#endif // TK_COMPILER_STAGETEXT_H
