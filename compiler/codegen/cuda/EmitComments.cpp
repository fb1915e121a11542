//===- EmitComments.cpp - what the lines of the source compute ------------===//
//
// A comment says which line of the source the code below it computes, what the code does, and the
// tile. It stands where a tile is loaded, multiplied, reduced or stored, and where the line or what
// is done changes.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/Comments.h"

#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tk::cuda {

std::string commentText(std::string_view text, size_t longest) {
  std::string comment;
  for (char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    // A backslash at the end would make the next line a comment.
    comment += c == '\\' ? '/' : byte < 0x20 || byte >= 0x7F ? '?' : c;
  }
  return text.size() > longest ? comment + " ..." : comment;
}

std::string commentLines(std::string_view text) {
  constexpr size_t width = 100;
  const std::string whole = commentText(text, text.size());
  std::string lines, line = "//";
  llvm::StringRef rest = whole;
  while (!rest.empty()) {
    const size_t comma = rest.find(", ");
    const llvm::StringRef part = rest.take_front(comma == rest.npos ? comma : comma + 1);
    if (line.size() > 2 && line.size() + 1 + part.size() > width) {
      lines += line + "\n";
      line = "//  ";
    }
    line += " " + part.str();
    rest = rest.drop_front(std::min(part.size() + 1, rest.size()));
  }
  return lines + line + "\n";
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

/// What an operation does with a tile; empty where no comment is due.
static std::string actionOf(Operation *op) {
  using Name = std::string;
  return llvm::TypeSwitch<Operation *, Name>(op)
      .Case<gpu::LoadOp, gpu::CopyAsyncOp, gpu::BulkCopyOp, gpu::CopyPrivateOp>(
          [](Operation *) { return Name("load"); })
      .Case<gpu::DotOp, gpu::WarpgroupDotOp>([](Operation *) { return Name("product"); })
      .Case<gpu::ReduceOp, gpu::ReduceRunsOp, gpu::ReduceInThreadsOp, gpu::ArgReduceOp>(
          [](auto reduce) { return stringifyReduceKind(reduce.getKind()).str(); })
      .Case([](gpu::MomentsOp) { return Name("mean and variance"); })
      .Case([](gpu::WeightsOp) { return Name("exponentials and sum"); })
      .Case([](gpu::ScanOp) { return Name("scan"); })
      .Case([](gpu::RecurrenceOp) { return Name("recurrence"); })
      .Case<gpu::StoreOp, gpu::BulkStoreOp>([](Operation *) { return Name("store"); })
      .Default([](Operation *) { return Name(); });
}

void KernelEmitter::commentPhase(Operation *op) {
  const std::string action = options.sourceLine ? actionOf(op) : "";
  if (action.empty())
    return;
  auto place = op->getLoc()->findInstanceOf<FileLineColLoc>();
  if (!place)
    return;
  std::tuple<Block *, unsigned, std::string> phase(op->getBlock(), place.getLine(), action);
  if (std::exchange(commented, phase) == phase)
    return;
  const std::string source = options.sourceLine(place.getFilename(), place.getLine());
  const std::string tile = tileOf(op);
  if (source.empty() || tile.empty())
    return;
  flushGroup();
  body.append(indent * 2, ' ');
  body += "// " + std::to_string(place.getLine()) + ": " + commentText(source) + "  [" + action +
          " " + tile + "]\n";
  ++nextLine;
}

} // namespace tk::cuda
