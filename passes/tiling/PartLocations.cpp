//===- PartLocations.cpp - the line of one of several results -------------===//
//
// 1. The place of the operation that computes a part's value names the statement, if the fused
//    location has that line.
// 2. Otherwise the parts are counted: a fused location has them in order, if it has one for each.
// 3. Otherwise it stays the location of the whole.
//
//===----------------------------------------------------------------------===//
#include "passes/tiling/PartLocations.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

using namespace mlir;

static SmallVector<FileLineColLoc> linesOf(Location where) {
  SmallVector<FileLineColLoc> lines;
  where->walk([&](Location inner) {
    if (auto line = dyn_cast<FileLineColLoc>(inner))
      lines.push_back(line);
    return WalkResult::advance();
  });
  return lines;
}

static bool isSameLine(FileLineColLoc a, FileLineColLoc b) {
  return a.getFilename() == b.getFilename() && a.getLine() == b.getLine();
}

Location tk::locationOfPart(Location whole, Value value, unsigned number, unsigned count) {
  SmallVector<FileLineColLoc> lines = linesOf(whole);
  if (lines.size() < 2)
    return whole;
  if (Operation *op = value.getDefiningOp())
    for (FileLineColLoc own : linesOf(op->getLoc()))
      for (FileLineColLoc line : lines)
        if (isSameLine(line, own))
          return line;
  return lines.size() == count ? Location(lines[number]) : whole;
}

void tk::nameValue(Value value, const Twine &name) {
  Operation *op = value.getDefiningOp();
  if (op && !op->hasTrait<OpTrait::ConstantLike>() && !isa<NameLoc>(op->getLoc()))
    op->setLoc(named(name, op->getLoc()));
}

Location tk::named(const Twine &name, Location where) {
  return NameLoc::get(StringAttr::get(where.getContext(), name), where);
}
