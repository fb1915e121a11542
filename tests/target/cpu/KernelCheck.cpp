//===- KernelCheck.cpp - run a tk kernel on the CPU and compare -----------===//
#include "tests/target/cpu/KernelCheck.h"

#include "compiler/interp/Interpreter.h"
#include "compiler/interp/Tolerance.h"

#include "compiler/Pipeline.h"
#include "frontend/IRGen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Parser/Parser.h"

#include <cstring>
#include <iostream>
#include <random>
#include <thread>

using namespace mlir;
using namespace tk;
using namespace tk::test;

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static constexpr uint8_t guardByte = 0xA5;

HostTensor::HostTensor(DType dtype, std::vector<int64_t> shape, std::vector<int64_t> strides)
    : dtype(dtype), shape(std::move(shape)), strides(std::move(strides)) {
  if (this->strides.empty()) {
    this->strides.assign(this->shape.size(), 1);
    for (size_t i = this->shape.size(); i-- > 1;)
      this->strides[i - 1] = this->strides[i] * std::max<int64_t>(1, this->shape[i]);
  }
  int64_t count = 1;
  for (size_t i = 0; i < this->shape.size(); ++i)
    count += std::max<int64_t>(0, this->shape[i] - 1) * this->strides[i];
  // All bits set: a NaN in every float type, so that an element not written shows.
  bytes.assign(2 * guard + count * size_of(dtype), 0xFF);
  std::memset(bytes.data(), guardByte, guard);
  std::memset(bytes.data() + bytes.size() - guard, guardByte, guard);
}

TensorView HostTensor::view() {
  return TensorView(bytes.data() + guard, dtype, Extents(std::span<const int64_t>(shape)),
                    Extents(std::span<const int64_t>(strides)), Device::cpu());
}

bool HostTensor::guardsIntact() const {
  for (size_t i = 0; i < guard; ++i)
    if (bytes[i] != guardByte || bytes[bytes.size() - 1 - i] != guardByte)
      return false;
  return true;
}

DType tk::test::dtypeOf(Type element) {
  if (element.isF64())
    return DType::f64;
  if (element.isF32())
    return DType::f32;
  if (element.isF16())
    return DType::f16;
  if (element.isBF16())
    return DType::bf16;
  if (isa<Float8E4M3FNType>(element))
    return DType::f8e4m3;
  if (isa<Float8E5M2Type>(element))
    return DType::f8e5m2;
  if (element.isUnsignedInteger(8))
    return DType::u8;
  switch (element.getIntOrFloatBitWidth()) {
  case 1:
    return DType::boolean;
  case 8:
    return DType::i8;
  case 16:
    return DType::i16;
  case 32:
    return DType::i32;
  default:
    return DType::i64;
  }
}

OwningOpRef<ModuleOp> tk::test::loadKernels(MLIRContext &context, const std::string &path,
                                            bool fuse) {
  OwningOpRef<ModuleOp> module;
  if (StringRef(path).ends_with(".mlir")) {
    module = parseSourceFile<ModuleOp>(path, &context);
  } else {
    SourceManager sources;
    FileId file = sources.load(path);
    if (file == kNoFile)
      return {};
    Diagnostics diagnostics(sources);
    module = frontend::compileToTk(context, sources, file, diagnostics);
    diagnostics.render(std::cerr);
  }
  if (!module || !fuse)
    return module;
  return succeeded(runPipeline(*module, Stage::Tk, Stage::Fused, {})) ? std::move(module)
                                                                      : OwningOpRef<ModuleOp>();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static int64_t evaluate(Value value, const DenseMap<Value, int64_t> &dims) {
  if (auto it = dims.find(value); it != dims.end())
    return it->second;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  Operation *op = value.getDefiningOp();
  int64_t a = evaluate(op->getOperand(0), dims), b = evaluate(op->getOperand(1), dims);
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case([&](arith::AddIOp) { return a + b; })
      .Case([&](arith::SubIOp) { return a - b; })
      .Case([&](arith::MulIOp) { return a * b; })
      .Case([&](FloorDivOp) { return b ? int64_t(std::floor(double(a) / double(b))) : 0; })
      .Default([](Operation *) -> int64_t { std::abort(); });
}

static void fill(TensorView view, int64_t integerRange, std::mt19937 &engine) {
  std::normal_distribution<double> normal;
  int64_t count = 1;
  for (int64_t extent : view.shape)
    count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, offset = 0;
    for (unsigned axis = view.rank(); axis-- > 0;) {
      offset += rest % view.shape[axis] * view.strides[axis];
      rest /= view.shape[axis];
    }
    double value = is_float(view.dtype) ? normal(engine)
                   : view.dtype == DType::boolean
                       ? double(engine() % 2)
                       : double(engine() % std::max<int64_t>(1, integerRange));
    store_from_f64(view.dtype, static_cast<char *>(view.data) + offset * size_of(view.dtype),
                   value);
  }
}

Launch tk::test::makeLaunch(KernelOp kernel, const Sizes &sizes, int64_t integerRange,
                            unsigned seed) {
  std::mt19937 engine(seed);
  Launch launch;
  DenseMap<Value, int64_t> dims;
  for (BlockArgument dim : kernel.getDimArguments()) {
    int64_t size = sizes.at(kernel.getDimName(dim).str());
    launch.dims.push_back(size);
    dims[dim] = size;
  }
  launch.ints = launch.dims;
  auto shapeOf = [&](ValueRange extents) {
    std::vector<int64_t> shape;
    for (Value extent : extents)
      shape.push_back(evaluate(extent, dims));
    return shape;
  };
  std::vector<int64_t> integerScalars;
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments())) {
    if (auto type = dyn_cast<RankedTensorType>(param.getType())) {
      std::vector<int64_t> shape = shapeOf(kernel.getBind(param).getExtents()), strides;
      if (kernel.getParam(i).getStrided()) {
        strides.assign(shape.size(), 1);
        for (size_t axis = shape.size(); axis-- > 1;)
          strides[axis - 1] = strides[axis] * shape[axis] + 3;
        launch.ints.insert(launch.ints.end(), strides.begin(), strides.end());
      }
      launch.tensors.emplace_back(dtypeOf(type.getElementType()), shape, strides);
      fill(launch.tensors.back().view(), integerRange, engine);
      launch.params.push_back(launch.tensors.back().view());
      continue;
    }
    if (isa<FloatType>(param.getType())) {
      launch.floats.push_back(0.375);
      launch.scalars.emplace_back(0.375);
    } else {
      integerScalars.push_back(3);
      launch.scalars.emplace_back(int64_t(3));
    }
  }
  launch.ints.insert(launch.ints.end(), integerScalars.begin(), integerScalars.end());
  ReturnOp ret = kernel.getReturn();
  for (unsigned r = 0; r < kernel.getResultNames().size(); ++r) {
    Value value = ret.getResults()[r];
    auto compute = value.getDefiningOp<ComputeOp>();
    SmallVector<Value> extents;
    if (compute)
      for (unsigned i : compute.getIndicesOf(cast<OpResult>(value).getResultNumber()))
        extents.push_back(compute.getExtents()[i]);
    else
      extents = SmallVector<Value>(kernel.getBind(value).getExtents());
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    launch.tensors.emplace_back(dtypeOf(element), shapeOf(extents));
  }
  return launch;
}

/// Real threads; chunks as even as they come.
static void parallelFor(void *pool, int64_t count, int64_t grain, tk_cpu_body body, void *context) {
  int64_t threads = *static_cast<unsigned *>(pool);
  int64_t chunk = std::max<int64_t>({1, grain, (count + threads - 1) / threads});
  std::vector<std::thread> workers;
  for (int64_t begin = chunk; begin < count; begin += chunk)
    workers.emplace_back(body, context, begin, std::min(begin + chunk, count));
  body(context, 0, std::min(chunk, count));
  for (std::thread &worker : workers)
    worker.join();
}

int32_t Launch::run(tk_cpu_entry entry, unsigned threads) {
  std::vector<void *> pointers;
  for (HostTensor &tensor : tensors)
    pointers.push_back(tensor.view().data);
  tk_cpu_args args{pointers.data(), ints.data(), floats.data(), parallelFor, &threads, threads};
  return entry(&args);
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

std::string tk::test::checkKernel(KernelOp kernel, cpu::CpuExecutable &executable,
                                  const Sizes &sizes, int64_t integerRange, unsigned threads) {
  Launch launch = makeLaunch(kernel, sizes, integerRange, 1);
  auto exact = interp::Reference::create(kernel, interp::Mode::F64);
  auto naive = interp::Reference::create(kernel, interp::Mode::Typed);
  if (!exact || !naive)
    return "the reference does not know the kernel";
  for (interp::Reference *reference : {&*exact, &*naive})
    if (Status status = reference->bind(launch.dims, launch.params, launch.scalars); !status)
      return "the reference refuses the arguments";
  if (launch.run(executable.entry(), threads) != 0)
    return "the kernel failed";
  for (HostTensor &tensor : launch.tensors)
    if (!tensor.guardsIntact())
      return "a write outside a tensor";
  size_t firstResult = launch.tensors.size() - kernel.getResultNames().size();
  SmallVector<HostTensor *> outputs;
  for (size_t r = firstResult; r < launch.tensors.size(); ++r)
    outputs.push_back(&launch.tensors[r]);
  size_t tensor = 0;
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments()))
    if (isa<RankedTensorType>(param.getType())) {
      if (kernel.getParam(i).getInout())
        outputs.push_back(&launch.tensors[tensor]);
      ++tensor;
    }
  int64_t length = 1;
  for (int64_t dim : launch.dims)
    length = std::max(length, dim);
  for (auto [r, output] : llvm::enumerate(outputs)) {
    TensorView view = output->view();
    DType coarsest = interp::coarsestRounding(kernel, view.dtype);
    interp::ComparisonOptions options;
    options.maxElements = 3000; // the reference takes its time over large reductions
    interp::Comparison result = interp::compare(view, r, *exact, *naive, coarsest, length, options);
    if (!result.ok)
      return "result " + std::to_string(r) + ": " + result.reason;
  }
  return {};
}
