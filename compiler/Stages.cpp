//===- Stages.cpp - the circular buffers of a function --------------------===//
#include "compiler/Stages.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tk {

using Names = llvm::SetVector<StringRef>;

/// The name of the argument that is copied from, without the ending of tensor maps.
static void addSource(Names &names, gpu::FuncOp function, Value source) {
  auto argument = dyn_cast<BlockArgument>(source);
  if (!argument || argument.getOwner() != function.getBlock())
    return;
  StringRef name = function.getArgName(argument.getArgNumber());
  if (isa<gpu::TensorMapType>(source.getType()))
    name.consume_back("_map");
  names.insert(name);
}

/// What is copied into a buffer, or into a stage of it.
static Names sourcesOf(gpu::FuncOp function, Value buffer) {
  Names names;
  for (Operation *user : buffer.getUsers()) {
    if (auto stage = dyn_cast<gpu::StageOp>(user)) {
      Names ofStage = sourcesOf(function, stage.getResult());
      names.insert_range(ofStage);
    } else if (auto copy = dyn_cast<gpu::BulkCopyOp>(user)) {
      addSource(names, function, copy.getMap());
    } else if (auto copy = dyn_cast<gpu::CopyAsyncOp>(user)) {
      addSource(names, function, copy.getBuffer());
    } else if (auto copy = dyn_cast<gpu::CopyPrivateOp>(user)) {
      addSource(names, function, copy.getBuffer());
    }
  }
  return names;
}

std::string describeStages(gpu::FuncOp function) {
  std::string text;
  llvm::raw_string_ostream out(text);
  int64_t most = 0;
  auto say = [&](Value buffer, int64_t stages, ArrayRef<int64_t> tile, Type element) {
    Names names = sourcesOf(function, buffer);
    if (names.empty() || stages < 2)
      return;
    most = std::max(most, stages);
    out << (text.empty() ? "" : ", ") << stages << " stages of ";
    llvm::interleave(tile, out, "x");
    out << " " << element << " from ";
    llvm::interleave(names, out, " and ");
  };
  function.walk([&](Operation *op) {
    if (auto alloc = dyn_cast<gpu::AllocSharedOp>(op)) {
      ArrayRef<int64_t> shape = alloc.getType().getShape();
      const bool isBuffer =
          llvm::any_of(alloc->getUsers(), [](Operation *user) { return isa<gpu::StageOp>(user); });
      if (isBuffer && shape.size() > 1)
        say(alloc, shape.front(), shape.drop_front(), alloc.getType().getElementType());
    } else if (auto alloc = dyn_cast<gpu::AllocPrivateOp>(op)) {
      RankedTensorType tile = alloc.getType().getTile();
      say(alloc, alloc.getType().getStages(), tile.getShape(), tile.getElementType());
    }
  });
  // The plan's number is an upper limit: buffers have as many stages as shared memory has room for.
  gpu::ScheduleAttr tiles = gpu::getTiles(function);
  if (most > 0 && tiles && tiles.getStages() > most)
    out << "; shared memory has no room for the plan's " << tiles.getStages();
  return text;
}

} // namespace tk
