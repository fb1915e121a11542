//===- EmitComments.cpp - what the lines of the source compute ------------===//
//
// A comment says which line of the source the code below it computes, and the tile. It stands where
// a tile is loaded, multiplied, reduced or stored, once for each line and loop.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/Comments.h"
#include "compiler/codegen/cuda/KernelEmitter.h"

using namespace mlir;

namespace tk::cuda {

std::string commentText(std::string_view text) {
  constexpr size_t longest = 100;
  std::string comment;
  for (char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    // A backslash at the end would make the next line a comment.
    comment += c == '\\' ? '/' : byte < 0x20 || byte >= 0x7F ? '?' : c;
  }
  return text.size() > longest ? comment + " ..." : comment;
}

/// The shape of the tile that an operation makes, takes or moves; empty where it has none.
static std::string tileOf(Operation *op) {
  for (TypeRange types : {TypeRange(op->getResultTypes()), TypeRange(op->getOperandTypes())})
    for (Type type : types) {
      llvm::ArrayRef<int64_t> shape;
      Type element;
      if (auto tile = dyn_cast<RankedTensorType>(type))
        shape = tile.getShape(), element = tile.getElementType();
      else if (auto stage = dyn_cast<gpu::SharedType>(type))
        shape = stage.getShape(), element = stage.getElementType();
      if (!element)
        continue;
      std::string text;
      llvm::raw_string_ostream out(text);
      llvm::interleave(shape, out, "x");
      out << (shape.empty() ? "" : " ") << element;
      return text;
    }
  return "";
}

void KernelEmitter::commentPhase(Operation *op) {
  if (!options.sourceLine ||
      !isa<gpu::LoadOp, gpu::CopyAsyncOp, gpu::BulkCopyOp, gpu::DotOp, gpu::WarpgroupDotOp,
           gpu::ReduceOp, gpu::ReduceRunsOp, gpu::ReduceInThreadsOp, gpu::ArgReduceOp,
           gpu::MomentsOp, gpu::WeightsOp, gpu::ScanOp, gpu::StoreOp, gpu::BulkStoreOp>(op))
    return;
  auto place = op->getLoc()->findInstanceOf<FileLineColLoc>();
  if (!place || !commented.insert({op->getBlock(), place.getLine()}).second)
    return;
  const std::string source = options.sourceLine(place.getFilename(), place.getLine());
  const std::string tile = tileOf(op);
  if (source.empty() || tile.empty())
    return;
  flushGroup();
  body.append(indent * 2, ' ');
  body +=
      "// " + std::to_string(place.getLine()) + ": " + commentText(source) + "  [" + tile + "]\n";
  ++nextLine;
}

} // namespace tk::cuda
