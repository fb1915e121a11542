//===- TkGpuDialect.cpp - registration, attributes and types --------------===//
#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuCountOps.h"
#include "dialects/tkgpu/TkGpuFiniteOps.h"
#include "dialects/tkgpu/TkGpuHistogramOps.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "dialects/tkgpu/TkGpuSortOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk::gpu;

#include "dialects/tkgpu/TkGpuDialect.cpp.inc"
#include "dialects/tkgpu/TkGpuEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/tkgpu/TkGpuAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/tkgpu/TkGpuTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuOps.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuPrivateOps.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuCountOps.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuFiniteOps.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuHistogramOps.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuRecurrenceOps.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuSortOps.cpp.inc"

void TkGpuDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/tkgpu/TkGpuAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/tkgpu/TkGpuTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/tkgpu/TkGpuOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/tkgpu/TkGpuPrivateOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/tkgpu/TkGpuCountOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/tkgpu/TkGpuFiniteOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/tkgpu/TkGpuHistogramOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/tkgpu/TkGpuRecurrenceOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/tkgpu/TkGpuSortOps.cpp.inc"
      >();
}

Operation *TkGpuDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                             Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

static ParseResult parseSizes(AsmParser &parser, SmallVectorImpl<int64_t> &sizes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parser.parseInteger(sizes.emplace_back()); });
}

// schedule ::= `<` `tile` `=` sizes `,` `reduce` `=` sizes (`,` key `=` integer)* `>`
Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> tile, reduce;
  SmallVector<int64_t> step;
  int64_t loop = -1, warps = 4, perThread = 1, vector = 16, stages = 1, group = 1, persistent = 0,
          cluster = 1, teams = 1;
  if (parser.parseLess() || parser.parseKeyword("tile") || parser.parseEqual() ||
      parseSizes(parser, tile) || parser.parseComma() || parser.parseKeyword("reduce") ||
      parser.parseEqual() || parseSizes(parser, reduce))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef key;
    SMLoc keyLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return {};
    if (key == "step") {
      if (parseSizes(parser, step))
        return {};
      continue;
    }
    int64_t *slot = llvm::StringSwitch<int64_t *>(key)
                        .Case("loop", &loop)
                        .Case("warps", &warps)
                        .Case("per_thread", &perThread)
                        .Case("vector", &vector)
                        .Case("stages", &stages)
                        .Case("group", &group)
                        .Case("persistent", &persistent)
                        .Case("cluster", &cluster)
                        .Case("teams", &teams)
                        .Default(nullptr);
    if (!slot) {
      parser.emitError(keyLoc, "expected step, loop, warps, per_thread, vector, stages, group, "
                               "persistent, cluster or teams, got ")
          << key;
      return {};
    }
    if (parser.parseInteger(*slot))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ScheduleAttr>(loc, parser.getContext(), tile, reduce, loop, warps,
                                         perThread, vector, stages, group, persistent, cluster,
                                         step, teams);
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << "<tile = [";
  llvm::interleaveComma(getTile(), printer);
  printer << "], reduce = [";
  llvm::interleaveComma(getReduce(), printer);
  printer << ']';
  if (!getStep().empty()) {
    printer << ", step = [";
    llvm::interleaveComma(getStep(), printer);
    printer << ']';
  }
  if (getLoop() >= 0)
    printer << ", loop = " << getLoop();
  printer << ", warps = " << getWarps() << ", per_thread = " << getPerThread()
          << ", vector = " << getVector() << ", stages = " << getStages();
  if (getGroup() != 1)
    printer << ", group = " << getGroup();
  if (getPersistent())
    printer << ", persistent = " << getPersistent();
  if (getCluster() != 1)
    printer << ", cluster = " << getCluster();
  if (getTeams() != 1)
    printer << ", teams = " << getTeams();
  printer << '>';
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<int64_t> tile, ArrayRef<int64_t> reduce, int64_t loop,
                                   int64_t warps, int64_t, int64_t, int64_t stages, int64_t,
                                   int64_t persistent, int64_t cluster, ArrayRef<int64_t> step,
                                   int64_t teams) {
  for (ArrayRef<int64_t> sizes : {tile, reduce})
    for (int64_t size : sizes)
      if (size < 1 || !llvm::isPowerOf2_64(size))
        return emitError() << "expected tiles that are powers of two, got " << size;
  if (loop < -1 || loop >= static_cast<int64_t>(tile.size()))
    return emitError() << "expected loop to be the position of an index or -1, got " << loop;
  if (warps < 1 || warps > 32 * cluster || !llvm::isPowerOf2_64(warps))
    return emitError() << "expected a power of two of at most " << 32 * cluster << " warps, got "
                       << warps;
  if (stages < 1)
    return emitError() << "expected at least one stage, got " << stages;
  if (persistent < 0)
    return emitError() << "expected persistent blocks for each multiprocessor, or 0, got "
                       << persistent;
  if (cluster < 1 || cluster > 16 || !llvm::isPowerOf2_64(cluster))
    return emitError() << "expected a cluster of 1, 2, 4, 8 or 16 blocks, got " << cluster;
  if (teams < 1 || teams * warps > 32 * cluster || (teams > 1 && !step.empty()))
    return emitError() << "expected teams that have tiles of their own and 32 warps together, got "
                       << teams << " of " << warps << " warps";
  if (step.empty())
    return success();
  if (step.size() != tile.size())
    return emitError() << "expected a step for each of " << tile.size() << " tiles, got "
                       << step.size();
  unsigned shorter = 0;
  for (auto [apart, size] : llvm::zip_equal(step, tile)) {
    // The columns of a wgmma instruction are a multiple of 8.
    if (apart < 1 || apart > size || (warps * (size - apart) % size != 0 && apart % 8 != 0))
      return emitError() << "expected a step that leaves whole warps, or groups of 8 columns, of a "
                         << "tile of " << size << " to the next one, got " << apart;
    shorter += apart < size;
  }
  if (shorter > 1)
    return emitError() << "expected one step shorter than its tile, got " << shorter;
  return success();
}

int64_t ScheduleAttr::getSpareWarps() {
  int64_t spare = 0;
  for (auto [i, size] : llvm::enumerate(getTile()))
    spare += getWarps() * (size - getStepOf(i)) / size;
  return spare;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

Type BufferType::getValueType() {
  Type element = getElementType();
  if (element.isUnsignedInteger())
    return IntegerType::get(getContext(), element.getIntOrFloatBitWidth());
  return element;
}

LogicalResult SharedType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, Type element, ArrayRef<int64_t> order,
                                 int64_t padding, int64_t chunk, int64_t perPhase, int64_t phases,
                                 int64_t panel, int64_t interleave, int64_t ones, int64_t pitch) {
  if (!order.empty() && order.size() != shape.size())
    return emitError() << "expected an order of " << shape.size() << " axes, got " << order.size();
  for (int64_t axis : order)
    if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
      return emitError() << "expected axes below " << shape.size() << " in order, got " << axis;
  for (int64_t value : {chunk, perPhase, phases})
    if (value < 1 || !llvm::isPowerOf2_64(value))
      return emitError() << "expected powers of two for chunk, per_phase and phases, got " << value;
  if (padding < 0)
    return emitError() << "expected padding of at least 0, got " << padding;
  if (interleave != 1) {
    int64_t rows = shape.size() < 2 ? 0 : order.empty() ? shape[shape.size() - 2] : shape[order[1]];
    if (interleave < 1 || rows == 0 || rows % (2 * interleave) != 0)
      return emitError() << "expected rows that divide into pairs for each part, got interleave = "
                         << interleave << " for " << rows;
  }
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  bool areRows = panel == 0 && !order.empty() && last > 0 && order[1] == last;
  bool isPanel = last > 0 && (order.empty() || order.front() == last);
  if (ones < 0 || (ones > 0 && ((!areRows && !isPanel) || padding != 0 || pitch != 0)))
    return emitError()
           << "expected ones behind whole rows, or rows of ones, along the last axis of "
           << "a tile without padding, got ones = " << ones;
  if (pitch != 0 && (shape.size() != 2 || panel <= 0 || interleave != 1 ||
                     pitch < shape[order.empty() ? 0 : order[1]]))
    return emitError() << "expected rows of two axes' panels as far apart as they have rows, got "
                       << "pitch = " << pitch;
  if (panel == 0)
    return success();
  int64_t contiguous = order.empty() ? shape.size() - 1 : order.front();
  if (shape.size() < 2 || panel < 0 || shape[contiguous] % panel != 0 || padding != 0)
    return emitError() << "expected unpadded panels that divide the contiguous axis of at least two"
                       << ", got panel = " << panel;
  return success();
}

LogicalResult PhasesType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t stages) {
  if (stages < 1)
    return emitError() << "expected at least one stage, got " << stages;
  return success();
}

LogicalResult PrivateType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t stages,
                                  RankedTensorType tile, int64_t vector) {
  if (stages < 1)
    return emitError() << "expected at least one stage, got " << stages;
  LayoutAttr layout = getLayout(tile);
  if (!layout || !tile.getElementType().isIntOrFloat())
    return emitError() << "expected a tile of numbers with a layout, got " << tile;
  if (!llvm::isPowerOf2_64(vector) || layout.getNumRegisters() % vector != 0)
    return emitError() << "expected vectors that divide a thread's " << layout.getNumRegisters()
                       << " elements, got " << vector;
  return success();
}

int64_t PrivateType::getBytesOfThread() {
  int64_t bits = getTile().getElementTypeBitWidth();
  return getStages() * getLayout(getTile()).getNumRegisters() * llvm::divideCeil(bits, 8);
}

SmallVector<int64_t> SharedType::getAxisOrder() {
  if (!getOrder().empty())
    return SmallVector<int64_t>(getOrder());
  return llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, getShape().size())));
}

/// By how much ones lengthen the axis at `position` of the order: the first by a panel, or the
/// second by rows.
static int64_t onesAt(SharedType type, size_t position) {
  if (type.hasPanelOfOnes())
    return position == 0 ? type.getRowLength() : 0;
  return position == 1 ? type.getOnes() : 0;
}

/// Panels come after the rows of one another: the axes beyond the second see them as longer rows.
SmallVector<int64_t> SharedType::getStrides() {
  SmallVector<int64_t> strides(getShape().size(), 1);
  int64_t stride = 1, panels = 1;
  for (auto [position, axis] : llvm::enumerate(getAxisOrder())) {
    strides[axis] = stride * (position > 1 ? panels : 1);
    if (position == 0)
      panels = (getShape()[axis] + onesAt(*this, position)) / getRowLength();
    stride *=
        position == 0 ? getRowLength() + getPadding() : getShape()[axis] + onesAt(*this, position);
  }
  return strides;
}

bool SharedType::hasPanelOfOnes() {
  return getOnes() > 0 && getAxisOrder().front() == static_cast<int64_t>(getShape().size()) - 1;
}

int64_t SharedType::getRowLength() {
  return getPanel() ? getPanel() : getShape()[getAxisOrder().front()];
}

int64_t SharedType::getPanelStride() {
  return getRowLength() * (getPitch() ? getPitch() : getNumRows());
}

std::optional<int64_t> SharedType::getHardwareSwizzle() {
  if (getPadding() != 0)
    return std::nullopt;
  if (getPhases() == 1)
    return 0;
  int64_t bytes = getElementType().getIntOrFloatBitWidth() / 8, row = getRowLength() * bytes;
  bool permutesWholeRows = getChunk() * bytes == 16 && getPhases() * 16 == row;
  if (!permutesWholeRows || row > 128 || getPerPhase() * row != 128)
    return std::nullopt;
  return row;
}

SharedType SharedType::withStages(int64_t stages) {
  SmallVector<int64_t> shape = {stages}, order;
  llvm::append_range(shape, getShape());
  for (int64_t axis : getAxisOrder())
    order.push_back(axis + 1);
  order.push_back(0);
  return get(getContext(), shape, getElementType(), order, getPadding(), getChunk(), getPerPhase(),
             getPhases(), getPanel(), getInterleave(), getOnes(), getPitch());
}

SharedType SharedType::withInterleave(int64_t parts) {
  return get(getContext(), getShape(), getElementType(), getOrder(), getPadding(), getChunk(),
             getPerPhase(), getPhases(), getPanel(), parts, getOnes(), getPitch());
}

SharedType SharedType::withOnes(int64_t count) {
  return get(getContext(), getShape(), getElementType(), getOrder(), getPadding(), getChunk(),
             getPerPhase(), getPhases(), getPanel(), getInterleave(), count, getPitch());
}

SharedType SharedType::withRows(int64_t rows) {
  SmallVector<int64_t> shape(getShape());
  shape[getAxisOrder()[1]] = rows;
  return get(getContext(), shape, getElementType(), getOrder(), getPadding(), getChunk(),
             getPerPhase(), getPhases(), getPanel(), getInterleave(), getOnes(),
             getPitch() ? getPitch() : getNumRows());
}

int64_t SharedType::getNumElements() {
  int64_t count = 1;
  for (auto [position, axis] : llvm::enumerate(getAxisOrder()))
    count *= getShape()[axis] + (position == 0 ? getPadding() : 0) + onesAt(*this, position);
  return count;
}

int64_t SharedType::getSizeInBytes() {
  Type element = getElementType();
  int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  return getNumElements() * llvm::divideCeil(bits, 8);
}
