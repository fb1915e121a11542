//===- ScheduleTiles.h - a plan's tiles by the names of indices --*- C++ -*-===//
#ifndef TK_COMPILER_SCHEDULETILES_H
#define TK_COMPILER_SCHEDULETILES_H

#include "dialects/tk/TkDialect.h"
#include "dialects/tkgpu/TkGpuDialect.h"

#include <string>
#include <utility>
#include <vector>

namespace tk {

/// The tile along each index, by the name that a schedule block gives the index.
using NamedTiles = std::vector<std::pair<std::string, int64_t>>;

/// The names of the indices of each statement of a module as a plan's tiles count them: the
/// statement's own, then those of its reductions, in the order in which they stand.
std::vector<std::vector<std::string>> tileNamesOf(mlir::ModuleOp module);

/// Each index once: of a reused name the left side's. Empty where the names are not those of the
/// tiles, or a tile is larger than a schedule block can ask for.
NamedTiles namedTiles(gpu::ScheduleAttr tiles, llvm::ArrayRef<std::string> names);

} // namespace tk

#endif // TK_COMPILER_SCHEDULETILES_H
