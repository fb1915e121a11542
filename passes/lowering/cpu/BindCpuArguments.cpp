//===- BindCpuArguments.cpp - calling convention of the CPU target --------===//
//
// The runtime calls a compiled kernel with one pointer to a `tk_cpu_args` struct (tk/cpu_abi.h).
// The lowered function still takes tensors. This pass gives the function the runtime's convention.
//
// 1. Load dimensions and scalars from the arrays of the struct. The array of integers holds the
//    dimensions, then the strides of strided parameters, then the integer scalars.
// 2. Turn each `tk.bind` into a memref with strides, seen as a tensor. A tensor is dense unless its
//    parameter is strided. A tensor without elements gets a valid dummy pointer, because a padded
//    load may still read its first element.
// 3. Write each returned tensor to the memref of its result or of its `inout` parameter.
// 4. Return the status 0, and put `tk_entry_` in front of the function's name.
//
// Before: func.func @k(%N: index, %x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32>
// After:  func.func @tk_entry_k(%args: !llvm.ptr) -> i32
//
//===----------------------------------------------------------------------===//
#include "dialects/tk/TkDialect.h"
#include "passes/lowering/cpu/CpuPasses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace tk {
#define GEN_PASS_DEF_BINDCPUARGUMENTS
#include "passes/lowering/cpu/CpuPasses.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

// Positions of the members of tk_cpu_args, all of 8 bytes.
namespace {
enum ArgsMember { Tensors = 0, Ints = 1, Floats = 2 };

class EntryBuilder {
public:
  explicit EntryBuilder(func::FuncOp function) : function(function), b(function.getContext()) {}
  void run();

private:
  void placeArguments();
  Value loadScalar(BlockArgument argument);
  Value memrefOf(BindOp bind);
  Value stridesOf(BindOp bind, SmallVector<Value> &strides, SmallVector<int64_t> &known);

  func::FuncOp function;
  OpBuilder b;
  Value args, arrays[3];
  DenseMap<Value, unsigned> positions;   ///< of an argument in the array of its class
  DenseMap<Value, unsigned> strideBases; ///< of a strided one: where its strides stand
  DenseMap<Value, Value> memrefs;
};

struct BindCpuArguments : ::tk::impl::BindCpuArgumentsBase<BindCpuArguments> {
  void runOnOperation() override {
    for (func::FuncOp function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      EntryBuilder(function).run();
  }
};
} // namespace

/// Loads the `position`-th word behind `base` as `type`.
static Value loadWord(OpBuilder &b, Location loc, Value base, unsigned position, Type type) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value address =
      LLVM::GEPOp::create(b, loc, pointer, b.getI64Type(), base, LLVM::GEPArg(int32_t(position)));
  return LLVM::LoadOp::create(b, loc, type, address);
}

/// Integers are the dimensions, then the strides, then the integer scalars.
void EntryBuilder::placeArguments() {
  unsigned ints = 0, floats = 0, tensors = 0;
  for (BlockArgument argument : function.getArguments())
    if (argument.getType().isIndex())
      positions[argument] = ints++;
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    positions[argument] = tensors++;
    if (function.getArgAttr(argument.getArgNumber(), "tk.strided")) {
      strideBases[argument] = ints;
      ints += type.getRank();
    }
  }
  for (BlockArgument argument : function.getArguments()) {
    if (isa<FloatType>(argument.getType()))
      positions[argument] = floats++;
    else if (isa<IntegerType>(argument.getType()))
      positions[argument] = ints++;
  }
}

Value EntryBuilder::loadScalar(BlockArgument argument) {
  Location loc = argument.getLoc();
  Type type = argument.getType();
  if (isa<FloatType>(type)) {
    Value wide = loadWord(b, loc, arrays[Floats], positions[argument], b.getF64Type());
    return type.isF64() ? wide : arith::TruncFOp::create(b, loc, type, wide).getResult();
  }
  Value wide = loadWord(b, loc, arrays[Ints], positions[argument], b.getI64Type());
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, wide);
  return type.isInteger(64) ? wide : arith::TruncIOp::create(b, loc, type, wide).getResult();
}

/// The strides of a tensor, as values and, where they are known, as numbers (else dynamic).
/// Returns how many elements it has.
Value EntryBuilder::stridesOf(BindOp bind, SmallVector<Value> &strides,
                              SmallVector<int64_t> &known) {
  auto type = cast<RankedTensorType>(bind.getTensor().getType());
  Location loc = bind.getLoc();
  int64_t rank = type.getRank(), knownCount = 1;
  strides.resize(rank);
  known.assign(rank, ShapedType::kDynamic);
  auto strided = strideBases.find(bind.getTensor());
  Value count = arith::ConstantIndexOp::create(b, loc, 1);
  // For each axis the number of the caller's whose stride it has.
  ArrayRef<int64_t> axes;
  if (strided != strideBases.end())
    axes = function
               .getArgAttrOfType<DenseI64ArrayAttr>(
                   cast<BlockArgument>(bind.getTensor()).getArgNumber(), "tk.strided")
               .asArrayRef();
  for (int64_t axis = rank - 1; axis >= 0; --axis) {
    if (!axes.empty() && axes[axis] >= 0) {
      Value stride = loadWord(b, loc, arrays[Ints], strided->second + axes[axis], b.getI64Type());
      strides[axis] = arith::IndexCastOp::create(b, loc, b.getIndexType(), stride);
    } else {
      strides[axis] = count;
      known[axis] = knownCount;
    }
    bool isKnown = !ShapedType::isDynamic(knownCount) && !type.isDynamicDim(axis);
    knownCount = isKnown ? knownCount * type.getDimSize(axis) : ShapedType::kDynamic;
    count = arith::MulIOp::create(b, loc, count, bind.getExtents()[axis]);
  }
  return count;
}

Value EntryBuilder::memrefOf(BindOp bind) {
  auto type = cast<RankedTensorType>(bind.getTensor().getType());
  Location loc = bind.getLoc();
  int64_t rank = type.getRank();
  SmallVector<Value> strides;
  SmallVector<int64_t> known;
  Value count = stridesOf(bind, strides, known);
  Type pointerType = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  Value pointer = loadWord(b, loc, arrays[Tensors], positions[bind.getTensor()], pointerType);
  SmallVector<Type> members = {pointerType, pointerType, i64};
  MemRefType memref = MemRefType::get({}, type.getElementType());
  if (rank > 0) {
    // A tensor without elements may have no memory; a padded load still reads its first element.
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value empty = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, count, zero);
    pointer = arith::SelectOp::create(b, loc, empty, args, pointer);
    members.append(2, LLVM::LLVMArrayType::get(i64, rank));
    memref = MemRefType::get(type.getShape(), type.getElementType(),
                             StridedLayoutAttr::get(b.getContext(), 0, known));
  }
  Value descriptor =
      LLVM::PoisonOp::create(b, loc, LLVM::LLVMStructType::getLiteral(b.getContext(), members));
  auto insert = [&](Value value, ArrayRef<int64_t> position) {
    descriptor = LLVM::InsertValueOp::create(b, loc, descriptor, value, position);
  };
  insert(pointer, {0});
  insert(pointer, {1});
  insert(LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(0)), {2});
  for (int64_t axis = 0; axis < rank; ++axis) {
    insert(arith::IndexCastOp::create(b, loc, i64, bind.getExtents()[axis]), {3, axis});
    insert(arith::IndexCastOp::create(b, loc, i64, strides[axis]), {4, axis});
  }
  return UnrealizedConversionCastOp::create(b, loc, TypeRange{memref}, ValueRange{descriptor})
      .getResult(0);
}

void EntryBuilder::run() {
  Location loc = function.getLoc();
  placeArguments();
  Block *body = &function.getBody().front();
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  unsigned count = body->getNumArguments();
  args = body->addArgument(pointer, loc);
  b.setInsertionPointToStart(body);
  for (unsigned array : {Tensors, Ints, Floats})
    arrays[array] = loadWord(b, loc, args, array, pointer);
  for (BlockArgument argument : body->getArguments().take_front(count))
    if (!isa<RankedTensorType>(argument.getType()))
      argument.replaceAllUsesWith(loadScalar(argument));
  for (BindOp bind : llvm::make_early_inc_range(body->getOps<BindOp>())) {
    b.setInsertionPoint(bind);
    auto argument = cast<BlockArgument>(bind.getTensor());
    bool isWritten = function.getArgAttr(argument.getArgNumber(), "tk.result") ||
                     function.getArgAttr(argument.getArgNumber(), "tk.inout");
    Value memref = memrefs[argument] = memrefOf(bind);
    Value tensor = bufferization::ToTensorOp::create(b, bind.getLoc(), argument.getType(), memref,
                                                     /*restrict=*/true, /*writable=*/isWritten);
    bind.erase();
    argument.replaceAllUsesWith(tensor);
  }
  // Declared results come first among those returned, and last among the arguments.
  SmallVector<Value> targets, inouts;
  for (BlockArgument argument : body->getArguments().take_front(count)) {
    if (function.getArgAttr(argument.getArgNumber(), "tk.result"))
      targets.push_back(memrefs[argument]);
    if (function.getArgAttr(argument.getArgNumber(), "tk.inout"))
      inouts.push_back(memrefs[argument]);
  }
  llvm::append_range(targets, inouts);
  Operation *end = body->getTerminator();
  b.setInsertionPoint(end);
  for (auto [value, target] : llvm::zip_equal(end->getOperands(), targets))
    bufferization::MaterializeInDestinationOp::create(b, value.getLoc(), /*result=*/Type(), value,
                                                      target, /*restrict=*/true,
                                                      /*writable=*/true);
  Value status = arith::ConstantIntOp::create(b, loc, 0, 32);
  func::ReturnOp::create(b, loc, status);
  end->erase();
  body->eraseArguments(0, count);
  function.setName(("tk_entry_" + function.getSymName()).str());
  function.removeArgAttrsAttr();
  function.setType(b.getFunctionType({pointer}, {b.getI32Type()}));
}
