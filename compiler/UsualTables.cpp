//===- UsualTables.cpp - what integer tensors hold, for predictions -------===//
#include "compiler/UsualTables.h"

#include "compiler/interp/Interpreter.h"
#include "compiler/plan/KernelSignature.h"
#include "passes/analysis/OffsetRanges.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/KnownValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"

#include <cstring>

using namespace mlir;

namespace tk {
namespace {

/// Elements of a table, and of all of them, that are computed; and of a parameter.
constexpr int64_t mostElements = 1 << 14, mostElementsTogether = 1 << 16;
constexpr int64_t mostOfParameter = 1 << 20;
/// Stands for a length that nothing but the program's own extents limits; sums of two fit 32 bits.
constexpr int64_t longest = 1 << 29;

/// The extents of a kernel at given sizes.
class SizesOfKernel {
public:
  SizesOfKernel(KernelOp kernel, ArrayRef<int64_t> dims) : kernel(kernel) {
    for (auto [dim, size] : llvm::zip(kernel.getBody().getArguments(), dims))
      known.setScalar(dim, size);
    for (Operation &op : kernel.getBody().front())
      if (op.getNumRegions() == 0)
        known.evaluate(&op);
  }

  std::optional<int64_t> extent(Value tensor, unsigned axis) const {
    return known.scalar(getExtents(kernel, tensor)[axis]);
  }
  std::optional<int64_t> value(Value size) const { return known.scalar(size); }
  /// The shape of a tensor with few elements.
  std::optional<SmallVector<int64_t>> smallShape(Value tensor, int64_t most = mostElements) const {
    SmallVector<int64_t> shape;
    int64_t count = 1;
    for (Value size : getExtents(kernel, tensor)) {
      std::optional<int64_t> number = known.scalar(size);
      if (!number || *number < 0 || *number > most)
        return std::nullopt;
      count *= *number;
      if (count > most)
        return std::nullopt;
      shape.push_back(*number);
    }
    return shape;
  }

private:
  KernelOp kernel;
  KnownValues known;
};

/// What a parameter's elements are used for. Begin and End are the ends of ranges that two tensors
/// hold.
struct Use {
  enum class Kind : uint8_t { Length, First, Offset, Begin, End, Number } kind = Kind::Length;
  int64_t limit = longest; ///< of numbers, and where the last range of offsets ends
};

/// The extent that an index of a compute op or a reduction runs over; where it is an index of a
/// tensor, the tensor's.
std::optional<int64_t> limitOf(const SizesOfKernel &sizes, BlockArgument index) {
  for (OpOperand &use : index.getUses())
    if (auto load = dyn_cast<LoadOp>(use.getOwner()); load && use.getOperandNumber() > 0)
      if (unsigned axis = use.getOperandNumber() - 1; axis < load.getIndices().size())
        return sizes.extent(load.getTensor(), axis);
  if (auto compute = dyn_cast<ComputeOp>(index.getOwner()->getParentOp()))
    return sizes.value(compute.getExtents()[index.getArgNumber()]);
  if (auto reduce = dyn_cast<ReduceOp>(index.getOwner()->getParentOp()))
    return sizes.value(reduce.getUpper()[index.getArgNumber()]);
  return std::nullopt;
}

/// The value that casts of a loaded integer come from.
Value withoutCasts(Value value) {
  while (
      isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Does the mask with `compare`, which bounds the terms of a reduction at `index` by an element of
/// one tensor, bound them at the other end by the same element of another one?
bool hasOtherEnd(arith::CmpIOp compare, BlockArgument index, Value bound) {
  auto own = withoutCasts(bound).getDefiningOp<LoadOp>();
  if (!own || !isa<ReduceOp>(index.getOwner()->getParentOp()))
    return false;
  return llvm::any_of(compare->getUsers(), [&](Operation *user) {
    auto both = dyn_cast<arith::AndIOp>(user);
    Value side = both ? (both.getLhs() == compare ? both.getRhs() : both.getLhs()) : Value();
    auto other = side ? side.getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
    if (!other)
      return false;
    const bool isLeft = withoutCasts(other.getLhs()) == index;
    if (!isLeft && withoutCasts(other.getRhs()) != index)
      return false;
    auto load = withoutCasts(isLeft ? other.getRhs() : other.getLhs()).getDefiningOp<LoadOp>();
    return load && load.getTensor() != own.getTensor() &&
           llvm::equal(load.getIndices(), own.getIndices());
  });
}

/// Follows a loaded integer to what decides its use.
class UseOfValues {
public:
  explicit UseOfValues(const SizesOfKernel &sizes) : sizes(sizes) {}

  void follow(Value value, unsigned depth = 0) {
    for (OpOperand &operand : value.getUses()) {
      Operation *user = operand.getOwner();
      if (auto load = dyn_cast<LoadOp>(user)) {
        if (unsigned axis = operand.getOperandNumber() - 1;
            operand.getOperandNumber() > 0 && axis < load.getIndices().size())
          note(Use::Kind::Number, sizes.extent(load.getTensor(), axis));
      } else if (auto compare = dyn_cast<arith::CmpIOp>(user)) {
        followComparison(compare, value);
      } else if (depth < 4 &&
                 isa<arith::IndexCastOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp,
                     arith::AddIOp, arith::SubIOp, arith::MaxSIOp, arith::MinSIOp, arith::MulIOp>(
                     user)) {
        follow(user->getResult(0), depth + 1);
      }
    }
  }

  Use use() const {
    if (found.kind == Use::Kind::Length && isFirst && !isEnd)
      return {Use::Kind::First, 0};
    return found;
  }

private:
  void note(Use::Kind kind, std::optional<int64_t> limit) {
    if (found.kind == Use::Kind::Length && limit && *limit > 0)
      found = {kind, *limit};
  }

  /// `i < length` bounds an index from above, `i >= first` from below, and what does both is an
  /// offset.
  void followComparison(arith::CmpIOp compare, Value value) {
    const bool isLeft = compare.getLhs() == value;
    auto index =
        dyn_cast<BlockArgument>(withoutCasts(isLeft ? compare.getRhs() : compare.getLhs()));
    if (!index)
      return;
    const bool isDivided = hasOtherEnd(compare, index, value);
    switch (compare.getPredicate()) {
    case arith::CmpIPredicate::eq:
      return note(Use::Kind::Number, limitOf(sizes, index));
    case arith::CmpIPredicate::slt:
    case arith::CmpIPredicate::sle:
      (isLeft ? isFirst : isEnd) = true;
      break;
    case arith::CmpIPredicate::sgt:
    case arith::CmpIPredicate::sge:
      (isLeft ? isEnd : isFirst) = true;
      break;
    default:
      return;
    }
    if (isFirst && isEnd)
      note(Use::Kind::Offset, limitOf(sizes, index));
    else if (isDivided)
      note(isFirst ? Use::Kind::Begin : Use::Kind::End, limitOf(sizes, index));
  }

  Use found;
  bool isFirst = false, isEnd = false;
  const SizesOfKernel &sizes;
};

/// Element `i` of `count`.
int64_t valueOf(const Use &use, int64_t i, int64_t count) {
  switch (use.kind) {
  case Use::Kind::Length:
    return longest;
  case Use::Kind::First:
    return 0;
  case Use::Kind::Offset:
    return use.limit * i / std::max<int64_t>(count - 1, 1);
  case Use::Kind::Begin:
    return use.limit * i / std::max<int64_t>(count, 1);
  case Use::Kind::End:
    return use.limit * (i + 1) / std::max<int64_t>(count, 1);
  case Use::Kind::Number:
    return i % use.limit;
  }
  return 0;
}

std::vector<int64_t> valuesFor(const Use &use, int64_t count) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(valueOf(use, i, count));
  return values;
}

/// Makes a kernel that returns the integer tensors alone.
class TableKernel {
public:
  TableKernel(KernelOp kernel, const SizesOfKernel &sizes) : kernel(kernel), sizes(sizes) {}

  /// The results that it has from now on; empty if there are none.
  SmallVector<Value> reduce(const llvm::StringSet<> &given) {
    SmallVector<Value> results;
    SmallVector<StringRef> names;
    int64_t together = 0;
    for (ComputeOp compute : kernel.getBody().getOps<ComputeOp>()) {
      if (!isOfTables(compute, given))
        continue;
      for (auto [result, name] : llvm::zip(compute.getResults(), compute.getNames())) {
        auto shape = sizes.smallShape(result);
        auto type = cast<RankedTensorType>(result.getType()).getElementType();
        if (!shape || !type.isInteger() || type.isInteger(1))
          continue;
        int64_t count = 1;
        for (int64_t size : *shape)
          count *= size;
        together += count;
        if (together > mostElementsTogether)
          return {};
        results.push_back(result);
        names.push_back(cast<StringAttr>(name).getValue());
      }
    }
    if (results.empty())
      return results;
    ReturnOp ret = kernel.getReturn();
    ret->setOperands(results);
    kernel.setResultNamesAttr(Builder(kernel.getContext()).getStrArrayAttr(names));
    dropUnused();
    return results;
  }

private:
  /// Does a compute op follow from parameters that are given, and from such compute ops?
  bool isOfTables(ComputeOp compute, const llvm::StringSet<> &given) {
    bool isTable = llvm::all_of(compute.getResults(),
                                [&](Value result) { return sizes.smallShape(result).has_value(); });
    compute.walk([&](LoadOp load) {
      if (auto before = load.getTensor().getDefiningOp<ComputeOp>()) {
        isTable &= tables.contains(before);
        return;
      }
      auto parameter = cast<BlockArgument>(load.getTensor());
      isTable &=
          given.contains(kernel.getParam(parameter.getArgNumber() - kernel.getNumDims()).getName());
    });
    if (isTable)
      tables.insert(compute);
    return isTable;
  }

  void dropUnused() {
    Block &body = kernel.getBody().front();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (isa<ComputeOp>(op) && op.use_empty())
        op.erase();
    SmallVector<Attribute> params;
    for (unsigned n = kernel.getParams().size(); n-- > 0;) {
      BlockArgument parameter = body.getArgument(kernel.getNumDims() + n);
      auto isBind = [](Operation *user) { return isa<BindOp>(user); };
      const bool isTensor = isa<RankedTensorType>(parameter.getType());
      if (!isTensor || !llvm::all_of(parameter.getUsers(), isBind)) {
        params.insert(params.begin(), kernel.getParams()[n]);
        continue;
      }
      for (Operation *user : llvm::make_early_inc_range(parameter.getUsers()))
        user->erase();
      body.eraseArgument(parameter.getArgNumber());
    }
    kernel.setParamsAttr(ArrayAttr::get(kernel.getContext(), params));
  }

  KernelOp kernel;
  const SizesOfKernel &sizes;
  llvm::SmallPtrSet<Operation *, 8> tables;
};

/// Elements of the tensors that the program computes, and that divide an axis into ranges: the
/// ranges are equally long. Tensors that have elements already keep them.
void addOffsets(KernelOp kernel, const SizesOfKernel &sizes, TensorTables &tables) {
  kernel.walk([&](ReduceOp reduce) {
    LoadOp offset = offsetOfRange(reduce);
    auto table = offset ? offset.getTensor().getDefiningOp<ComputeOp>() : ComputeOp();
    if (!table || offset.getIndices().size() != 1)
      return;
    const std::optional<int64_t> limit = limitOf(sizes, reduce.getIndex(0));
    const auto count = sizes.extent(offset.getTensor(), 0);
    if (!limit || *limit <= 0 || !count || *count <= 0 || *count > mostOfParameter)
      return;
    const unsigned number = cast<OpResult>(offset.getTensor()).getResultNumber();
    std::vector<int64_t> &values =
        tables[cast<StringAttr>(table.getNames()[number]).getValue().str()];
    if (values.empty())
      values = valuesFor({Use::Kind::Offset, *limit}, *count);
  });
}

Extents extentsOf(ArrayRef<int64_t> shape) {
  Extents extents;
  for (int64_t size : shape)
    extents.push_back(size);
  return extents;
}

/// Integers in the bytes of their type.
std::vector<std::byte> bytesOf(ArrayRef<int64_t> values, size_t size) {
  std::vector<std::byte> bytes(values.size() * size);
  for (auto [i, value] : llvm::enumerate(values))
    std::memcpy(bytes.data() + i * size, &value, size); // the low bytes come first
  return bytes;
}

/// Adds what the interpreter computes from `given` to `tables`, and leaves nothing else of the
/// kernel.
void addComputed(KernelOp kernel, const SizesOfKernel &sizes, const llvm::StringSet<> &given,
                 ArrayRef<int64_t> dims, ArrayRef<Scalar> scalars, TensorTables &tables) {
  SmallVector<Value> results = TableKernel(kernel, sizes).reduce(given);
  if (results.empty() || failed(verify(kernel)))
    return;
  std::vector<std::vector<std::byte>> memory;
  std::vector<TensorView> views;
  for (auto [n, parameter] : llvm::enumerate(kernel.getParamArguments())) {
    auto type = dyn_cast<RankedTensorType>(parameter.getType());
    if (!type)
      continue;
    const DType dtype = *dtypeOf(type.getElementType());
    const SmallVector<int64_t> shape = *sizes.smallShape(parameter);
    memory.push_back(bytesOf(tables[kernel.getParam(n).getName().str()], size_of(dtype)));
    views.emplace_back(memory.back().data(), dtype, extentsOf(shape), Device::cpu());
  }
  Expected<interp::Reference> reference = interp::Reference::create(kernel, interp::Mode::F64);
  if (!reference ||
      !reference->bind({dims.begin(), dims.end()}, views, {scalars.begin(), scalars.end()}))
    return;
  for (auto [r, name] : llvm::enumerate(kernel.getResultNames().getAsRange<StringAttr>())) {
    std::vector<int64_t> &values = tables[name.str()];
    if (!values.empty())
      continue; // of another tensor of that name
    int64_t count = 1;
    for (int64_t size : reference->resultShape(r))
      count *= size;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(reference->element(r, i).i);
  }
}

} // namespace

TensorTables usualTables(KernelOp program, ModuleOp fused, ArrayRef<int64_t> dims,
                         ArrayRef<Scalar> scalars) {
  TensorTables tables;
  auto kernel = fused.lookupSymbol<KernelOp>(program.getSymName());
  if (!kernel)
    return tables;
  const SizesOfKernel asWritten(program, dims), sizes(kernel, dims);
  llvm::StringSet<> given;
  for (unsigned n = 0; n < program.getParams().size(); ++n) {
    BlockArgument written = program.getParamArguments()[n];
    auto type = dyn_cast<RankedTensorType>(written.getType());
    if (program.getParam(n).getInout())
      return {};
    if (!type || !type.getElementType().isInteger() || type.getElementType().isInteger(1) ||
        !sizes.smallShape(kernel.getParamArguments()[n], mostOfParameter))
      continue;
    UseOfValues uses(asWritten);
    for (Operation *user : written.getUsers())
      if (auto load = dyn_cast<LoadOp>(user))
        uses.follow(load.getResult());
    const SmallVector<int64_t> shape =
        *sizes.smallShape(kernel.getParamArguments()[n], mostOfParameter);
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    std::string name = program.getParam(n).getName().str();
    tables[name] = valuesFor(uses.use(), count);
    if (count <= mostElements) // the interpreter goes through all that a table is made of
      given.insert(name);
  }
  TensorTables offsets; // what the interpreter computes comes first
  addOffsets(kernel, sizes, offsets);
  if (!given.empty())
    addComputed(kernel, sizes, given, dims, scalars, tables);
  for (auto &entry : offsets)
    tables.insert(entry);
  return tables;
}

} // namespace tk
