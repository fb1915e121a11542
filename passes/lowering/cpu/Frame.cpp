//===- Frame.cpp - one emitted function -----------------------------------===//
#include "passes/lowering/cpu/Frame.h"
#include "passes/lowering/cpu/ScalarExpand.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

// Positions of the members of tk_cpu_args, all of 8 bytes.
namespace {
enum ArgsMember { Tensors = 0, Ints = 1, Floats = 2, ParallelFor = 3, Pool = 4 };
} // namespace

static Type ptrType(OpBuilder &b) { return LLVM::LLVMPointerType::get(b.getContext()); }

/// Loads the `position`-th word behind `base` as `type`.
static Value loadWord(OpBuilder &b, Value base, unsigned position, Type type) {
  Location loc = base.getLoc();
  Value address = LLVM::GEPOp::create(b, loc, ptrType(b), b.getI64Type(), base,
                                      LLVM::GEPArg(int32_t(position)));
  return LLVM::LoadOp::create(b, loc, type, address);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Frame Frame::createEntry(ModuleOp module, KernelLayout &layout, StringRef name) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  Frame frame;
  frame.module = module;
  frame.layout = &layout;
  Location loc = layout.kernel.getLoc();
  auto type = b.getFunctionType({ptrType(b)}, {b.getI32Type()});
  frame.function = func::FuncOp::create(b, loc, name, type);
  Block *block = frame.function.addEntryBlock();
  b.setInsertionPointToStart(block);
  frame.args = block->getArgument(0);
  frame.onceEnd = arith::ConstantIntOp::create(b, loc, 0, 32); // the status, returned by finish
  return frame;
}

Frame Frame::createBody(ModuleOp module, KernelLayout &layout, StringRef name) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  Frame frame;
  frame.module = module;
  frame.layout = &layout;
  Location loc = layout.kernel.getLoc();
  auto type = b.getFunctionType({ptrType(b), b.getI64Type(), b.getI64Type()}, {});
  frame.function = func::FuncOp::create(b, loc, name, type);
  Block *block = frame.function.addEntryBlock();
  b.setInsertionPointToStart(block);
  frame.slots = block->getArgument(0);
  frame.args = loadWord(b, frame.slots, 0, ptrType(b));
  frame.begin = arith::IndexCastOp::create(b, loc, b.getIndexType(), block->getArgument(1));
  frame.end = arith::IndexCastOp::create(b, loc, b.getIndexType(), block->getArgument(2));
  frame.onceEnd = arith::ConstantIntOp::create(b, loc, 0, 32);
  return frame;
}

OpBuilder Frame::onceBuilder() { return OpBuilder(onceEnd); }

void Frame::finish(OpBuilder &b) {
  Location loc = function.getLoc();
  for (Value tile : heapTiles)
    memref::DeallocOp::create(b, loc, tile);
  if (function.getNumResults())
    func::ReturnOp::create(b, loc, onceEnd->getResult(0));
  else
    func::ReturnOp::create(b, loc);
}

//===----------------------------------------------------------------------===//
// Scalars of the kernel
//===----------------------------------------------------------------------===//

Value Frame::loadSlot(unsigned slot) {
  OpBuilder b = onceBuilder();
  return loadWord(b, slots, slot, ptrType(b));
}

Value Frame::loadArgument(unsigned array, unsigned position, Type type) {
  OpBuilder b = onceBuilder();
  Value &base = array == Tensors ? argTensors : array == Ints ? argInts : argFloats;
  if (!base)
    base = loadWord(b, args, array, ptrType(b));
  return loadWord(b, base, position, type);
}

Value Frame::scalarParam(Value param) {
  OpBuilder b = onceBuilder();
  Location loc = param.getLoc();
  Type type = param.getType();
  if (auto it = layout->floatPositions.find(param); it != layout->floatPositions.end()) {
    Value wide = loadArgument(Floats, it->second, b.getF64Type());
    if (type.isF64())
      return wide;
    return arith::TruncFOp::create(b, loc, type, wide);
  }
  Value wide = loadArgument(Ints, layout->intPositions.lookup(param), b.getI64Type());
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, wide);
  if (type.isInteger(64))
    return wide;
  if (auto integer = dyn_cast<IntegerType>(type); integer && integer.isUnsigned())
    type = IntegerType::get(b.getContext(), integer.getWidth());
  return arith::TruncIOp::create(b, loc, type, wide);
}

Value Frame::get(Value value) {
  if (Value known = values.lookup(value))
    return known;
  Value result;
  if (isa<BlockArgument>(value)) {
    result = scalarParam(value);
  } else {
    Operation *op = value.getDefiningOp();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(get(operand));
    OpBuilder b = onceBuilder();
    result = expandScalar(b, op, operands);
  }
  values[value] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Value Frame::dataPointer(Value tensor) {
  TensorPlace place = layout->places.lookup(tensor);
  OpBuilder b = onceBuilder();
  if (place.kind == TensorPlace::Kind::Argument)
    return loadArgument(Tensors, place.index, ptrType(b));
  if (Value pointer = scratchPointers.lookup(tensor))
    return pointer;
  return loadSlot(1 + place.index);
}

Value Frame::makeMemRef(Value pointer, MemRefType type, ValueRange sizes, ValueRange strides) {
  OpBuilder b = onceBuilder();
  Location loc = pointer.getLoc();
  Type i64 = b.getI64Type();
  SmallVector<Type> members = {ptrType(b), ptrType(b), i64};
  if (type.getRank() > 0)
    members.append(2, LLVM::LLVMArrayType::get(i64, type.getRank()));
  auto structType = LLVM::LLVMStructType::getLiteral(b.getContext(), members);
  Value descriptor = LLVM::PoisonOp::create(b, loc, structType);
  auto insert = [&](Value value, ArrayRef<int64_t> position) {
    descriptor = LLVM::InsertValueOp::create(b, loc, descriptor, value, position);
  };
  insert(pointer, {0});
  insert(pointer, {1});
  insert(LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(0)), {2});
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    insert(arith::IndexCastOp::create(b, loc, i64, sizes[axis]), {3, axis});
    insert(arith::IndexCastOp::create(b, loc, i64, strides[axis]), {4, axis});
  }
  return UnrealizedConversionCastOp::create(b, loc, TypeRange{type}, ValueRange{descriptor})
      .getResult(0);
}

Value Frame::memref(Value tensor) {
  if (Value known = memrefs.lookup(tensor))
    return known;
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t rank = type.getRank();
  TensorPlace place = layout->places.lookup(tensor);
  SmallVector<Value> sizes;
  for (Value extent : layout->extentsOf(tensor))
    sizes.push_back(get(extent));
  SmallVector<Value> strides(rank);
  SmallVector<int64_t> staticStrides(rank, ShapedType::kDynamic);
  Location loc = tensor.getLoc();
  OpBuilder b = onceBuilder();
  Value running = arith::ConstantIndexOp::create(b, loc, 1), count = running;
  int64_t staticRunning = 1;
  for (int64_t axis = rank - 1; axis >= 0; --axis) {
    if (place.strideBase >= 0 && axis + 1 < rank) {
      Value stride = loadArgument(Ints, place.strideBase + axis, b.getI64Type());
      b = onceBuilder();
      strides[axis] = arith::IndexCastOp::create(b, loc, b.getIndexType(), stride);
    } else {
      strides[axis] = running;
      staticStrides[axis] = staticRunning;
    }
    bool isStatic = !ShapedType::isDynamic(staticRunning) && !type.isDynamicDim(axis);
    staticRunning = isStatic ? staticRunning * type.getDimSize(axis) : ShapedType::kDynamic;
    b = onceBuilder();
    running = arith::MulIOp::create(b, loc, running, sizes[axis]);
    count = running;
  }
  auto layoutAttr = StridedLayoutAttr::get(b.getContext(), 0, staticStrides);
  auto memrefType =
      rank == 0 ? MemRefType::get({}, storageType(type.getElementType()))
                : MemRefType::get(type.getShape(), storageType(type.getElementType()), layoutAttr);
  // A tensor without elements may have no memory; a padded load still reads its first element.
  Value pointer = dataPointer(tensor);
  b = onceBuilder();
  if (rank > 0) {
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value empty = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, count, zero);
    Value dummy = args; // more bytes than an element has
    pointer = arith::SelectOp::create(b, loc, empty, dummy, pointer);
  }
  Value result = makeMemRef(pointer, memrefType, sizes, strides);
  memrefs[tensor] = result;
  return result;
}

Value Frame::denseArgument(Value like, unsigned argument) {
  auto type = cast<RankedTensorType>(like.getType());
  OpBuilder b = onceBuilder();
  Location loc = like.getLoc();
  SmallVector<Value> sizes, strides(type.getRank());
  for (Value extent : layout->extentsOf(like))
    sizes.push_back(get(extent));
  b = onceBuilder();
  Value running = arith::ConstantIndexOp::create(b, loc, 1);
  for (int64_t axis = type.getRank() - 1; axis >= 0; --axis) {
    strides[axis] = running;
    running = arith::MulIOp::create(b, loc, running, sizes[axis]);
  }
  SmallVector<int64_t> dynamic(type.getRank(), ShapedType::kDynamic);
  Type element = storageType(type.getElementType());
  auto memrefType = type.getRank() == 0
                        ? MemRefType::get({}, element)
                        : MemRefType::get(type.getShape(), element,
                                          StridedLayoutAttr::get(b.getContext(), 0, dynamic));
  return makeMemRef(loadArgument(Tensors, argument, ptrType(b)), memrefType, sizes, strides);
}

Value Frame::allocate(MemRefType type) {
  OpBuilder b = onceBuilder();
  Location loc = function.getLoc();
  int64_t bytes = type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
  IntegerAttr alignment = b.getI64IntegerAttr(64);
  if (bytes <= 4096)
    return memref::AllocaOp::create(b, loc, type, alignment);
  Value tile = memref::AllocOp::create(b, loc, type, alignment);
  heapTiles.push_back(tile);
  return tile;
}

//===----------------------------------------------------------------------===//
// Slots and the parallel loop
//===----------------------------------------------------------------------===//

static void storeWord(OpBuilder &b, Value base, unsigned position, Value value) {
  Location loc = base.getLoc();
  Value address = LLVM::GEPOp::create(b, loc, ptrType(b), b.getI64Type(), base,
                                      LLVM::GEPArg(int32_t(position)));
  LLVM::StoreOp::create(b, loc, value, address);
}

static Value pointerOf(OpBuilder &b, Value buffer) {
  Location loc = buffer.getLoc();
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer);
  Value word = arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(b, loc, ptrType(b), word);
}

void Frame::setUp() {
  OpBuilder b = onceBuilder();
  Location loc = function.getLoc();
  Value count = LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                         b.getI64IntegerAttr(firstFreeSlot() + extraSlots));
  slots = LLVM::AllocaOp::create(b, loc, ptrType(b), b.getI64Type(), count);
  storeWord(b, slots, 0, args);
  for (auto [i, tensor] : llvm::enumerate(layout->scratch)) {
    auto type = cast<RankedTensorType>(tensor.getType());
    Value elements = arith::ConstantIndexOp::create(b, loc, 1);
    for (Value extent : layout->extentsOf(tensor)) {
      Value size = get(extent);
      b = onceBuilder();
      elements = arith::MulIOp::create(b, loc, elements, size);
    }
    auto bufferType = MemRefType::get({ShapedType::kDynamic}, storageType(type.getElementType()));
    Value buffer =
        memref::AllocOp::create(b, loc, bufferType, ValueRange{elements}, b.getI64IntegerAttr(64));
    heapScratch.push_back(buffer);
    Value pointer = pointerOf(b, buffer);
    scratchPointers[tensor] = pointer;
    storeWord(b, slots, 1 + i, pointer);
  }
}

void Frame::tearDown(OpBuilder &b) {
  for (Value buffer : heapScratch)
    memref::DeallocOp::create(b, function.getLoc(), buffer);
}

void Frame::publish(OpBuilder &b, unsigned slot, Value buffer) {
  storeWord(b, slots, slot, pointerOf(b, buffer));
}

Value Frame::published(unsigned slot, MemRefType type) {
  return makeMemRef(loadSlot(slot), type, {}, {});
}

void Frame::callParallelFor(OpBuilder &b, Value count, Value grain, StringRef body) {
  Location loc = function.getLoc();
  Type i64 = b.getI64Type();
  Value callee = loadWord(b, args, ParallelFor, ptrType(b));
  Value pool = loadWord(b, args, Pool, ptrType(b));
  auto bodyType = b.getFunctionType({ptrType(b), i64, i64}, {});
  Value function = func::ConstantOp::create(b, loc, bodyType, body);
  Value address =
      UnrealizedConversionCastOp::create(b, loc, TypeRange{ptrType(b)}, ValueRange{function})
          .getResult(0);
  Value count64 = arith::IndexCastOp::create(b, loc, i64, count);
  Value grain64 = arith::IndexCastOp::create(b, loc, i64, grain);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                          {ptrType(b), i64, i64, ptrType(b), ptrType(b)});
  LLVM::CallOp::create(b, loc, type, ValueRange{callee, pool, count64, grain64, address, slots});
}
