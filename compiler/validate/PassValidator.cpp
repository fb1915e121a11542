//===- PassValidator.cpp - the first pass that changes a value ------------===//
#include "compiler/validate/PassValidator.h"

#include "compiler/Pipeline.h"
#include "compiler/validate/Reproducer.h"
#include "passes/analysis/StrideAxes.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace mlir;

namespace tk {
namespace {

/// All positions of a small tensor; of a large one, its ends and an even spread between them. The
/// spread's step is odd against tile sizes because it is made from the count itself.
std::vector<int64_t> chosenPositions(int64_t count, int64_t limit) {
  std::vector<int64_t> list;
  if (count <= limit || limit < 2) {
    for (int64_t i = 0; i < count; ++i)
      list.push_back(i);
    return list;
  }
  for (int64_t i = 0; i < limit; ++i)
    list.push_back(static_cast<int64_t>(static_cast<__int128>(count - 1) * i / (limit - 1)));
  return list;
}

bool isSame(double was, double is, double allowed) {
  if (std::isnan(was) || std::isnan(is))
    return std::isnan(was) && std::isnan(is);
  if (std::isinf(was) || std::isinf(is))
    return was == is;
  return std::fabs(was - is) <= allowed;
}

std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out);
  return text;
}

} // namespace

Expected<interp::Reference> PassValidator::evaluateKernel(KernelOp kernel,
                                                          interp::Mode mode) const {
  Expected<interp::Reference> reference = interp::Reference::create(kernel, mode);
  // The axes of strided tensors are in the order that the kernel has them.
  std::vector<TensorView> views = tensors;
  for (auto [number, view] : llvm::enumerate(views)) {
    const TensorView declared = view;
    for (auto [axis, caller] : llvm::enumerate(getCallerAxes(kernel, number))) {
      view.shape[axis] = declared.shape[static_cast<unsigned>(caller)];
      view.strides[axis] = declared.strides[static_cast<unsigned>(caller)];
    }
  }
  if (reference)
    if (Status bound = reference->bind(dims, views, scalars); !bound)
      return bound.error();
  return reference;
}

/// The caller's axes of a result in the order that the kernel has them; empty if it is the
/// caller's.
static SmallVector<int64_t> axesOfResult(KernelOp kernel, unsigned result) {
  std::optional<unsigned> number = getTensorNumber(kernel, kernel.getReturn().getResults()[result]);
  return number ? getCallerAxes(kernel, *number) : SmallVector<int64_t>();
}

/// Where `kernel` has the element of a sample: a pass may bring a strided result's axes into
/// memory's order.
int64_t PassValidator::positionIn(KernelOp kernel, const interp::Reference &reference,
                                  const Sample &sample) const {
  const SmallVector<int64_t> made = axesOfResults[sample.result],
                             now = axesOfResult(kernel, sample.result);
  if (made == now)
    return sample.position;
  const std::vector<int64_t> &shape = rounded->resultShape(sample.result),
                             &shapeNow = reference.resultShape(sample.result);
  auto callerAxis = [](ArrayRef<int64_t> axes, size_t axis) {
    return axes.empty() ? axis : static_cast<size_t>(axes[axis]);
  };
  std::vector<int64_t> place(shape.size()); // by the caller's axes
  int64_t rest = sample.position;
  for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
    place[callerAxis(made, axis)] = rest % shape[axis];
  int64_t position = 0;
  for (size_t axis = 0; axis < shapeNow.size(); ++axis)
    position = position * shapeNow[axis] + place[callerAxis(now, axis)];
  return position;
}

Status PassValidator::arm(KernelOp kernel, const std::vector<int64_t> &kernelDims,
                          const std::vector<TensorView> &kernelTensors,
                          const std::vector<Scalar> &kernelScalars) {
  kernelName = kernel.getSymName().str();
  dims = kernelDims;
  dimNames.clear();
  for (Attribute name : kernel.getDimNames())
    dimNames.push_back(cast<StringAttr>(name).str());
  tensors = kernelTensors;
  scalars = kernelScalars;
  samples.clear();
  scales.clear();
  checked = 0;
  before = print(kernel->getParentOfType<ModuleOp>());
  Expected<interp::Reference> reference = evaluateKernel(kernel, interp::Mode::F64);
  if (!reference)
    return reference.error();
  Expected<interp::Reference> arithmetic = evaluateKernel(kernel, interp::Mode::Arithmetic);
  if (!arithmetic)
    return arithmetic.error();
  rounded.emplace(std::move(*arithmetic));
  roundingErrors.assign(reference->numResults(), std::nullopt);
  axesOfResults.clear();
  for (unsigned result = 0; result < reference->numResults(); ++result)
    axesOfResults.push_back(axesOfResult(kernel, result));
  for (unsigned result = 0; result < reference->numResults(); ++result) {
    int64_t count = 1;
    for (int64_t extent : reference->resultShape(result))
      count *= extent;
    // As in docs/reference/numerics.md: what cancels entirely is 0 but for roundings.
    double scale = 1e-3;
    for (int64_t position : chosenPositions(count, options.maxElements)) {
      interp::Cell value = reference->element(result, position);
      samples.push_back({result, position, value});
      if (reference->resultIsFloat(result) && std::isfinite(value.f))
        scale = std::max(scale, std::fabs(value.f));
    }
    scales.push_back(scale);
  }
  withAbsentTerms.emplace(std::move(*reference));
  withAbsentTerms->takeAbsentTerms(true);
  return {};
}

/// By how much values of a result may differ.
double PassValidator::allowedFor(unsigned result) {
  std::optional<double> &error = roundingErrors[result];
  if (!error) {
    error = 0;
    for (unsigned draw = 0; draw < options.roundings; ++draw) {
      rounded->redraw(draw);
      for (const Sample &sample : samples)
        if (sample.result == result)
          if (double off = std::fabs(rounded->element(result, sample.position).f - sample.value.f);
              std::isfinite(off))
            error = std::max(*error, off);
    }
  }
  return std::max(options.tolerance * scales[result], 2 * *error);
}

std::string PassValidator::firstDifference(KernelOp kernel, interp::Reference &reference) {
  for (const Sample &sample : samples) {
    interp::Cell now = reference.element(sample.result, positionIn(kernel, reference, sample));
    bool isFloat = reference.resultIsFloat(sample.result);
    bool same = isFloat
                    ? isSame(sample.value.f, now.f, options.tolerance * scales[sample.result]) ||
                          isSame(sample.value.f, now.f, allowedFor(sample.result))
                    : sample.value.i == now.i;
    // Where a pass has made a condition one that is not followed, 0 times what is absent is taken.
    if (isFloat && !same && std::isfinite(sample.value.f) && !std::isfinite(now.f))
      same = isSame(withAbsentTerms->element(sample.result, sample.position).f, now.f, 0);
    if (same)
      continue;
    char text[160];
    if (isFloat)
      std::snprintf(text, sizeof text, "result %u, element %lld: %.17g became %.17g", sample.result,
                    static_cast<long long>(sample.position), sample.value.f, now.f);
    else
      std::snprintf(text, sizeof text, "result %u, element %lld: %lld became %lld", sample.result,
                    static_cast<long long>(sample.position), static_cast<long long>(sample.value.i),
                    static_cast<long long>(now.i));
    return text;
  }
  return "";
}

std::string PassValidator::sizes() const {
  std::string text;
  for (size_t dim = 0; dim < dims.size(); ++dim)
    text += (dim ? ", " : "") + dimNames[dim] + " = " + std::to_string(dims[dim]);
  return text;
}

/// Does `pass` change values within what docs/reference/numerics.md allows? Whole kernels are
/// compared with that tolerance.
static bool isApproximate(StringRef name) {
  return llvm::any_of(pipelineSteps(), [&](const PipelineStep &step) {
    return step.name == name && step.pass == "tk-approximate-functions";
  });
}

LogicalResult PassValidator::after(StringRef pass, ModuleOp module) {
  auto kernel = module.lookupSymbol<KernelOp>(kernelName);
  if (!kernel || kernelName.empty())
    return success();
  std::string difference;
  // From tk-tile on there are operations that the reference does not know.
  Expected<interp::Reference> reference = evaluateKernel(kernel, interp::Mode::F64);
  if (!reference && reference.error().code() == ErrorCode::unsupported)
    return success();
  if (!reference)
    difference = "it cannot be evaluated any more: " + reference.error().message();
  else
    difference = firstDifference(kernel, *reference);
  approximated |= isApproximate(pass) && reference && !difference.empty();
  if (approximated)
    return success();
  ++checked;
  if (difference.empty()) {
    before = print(module);
    return success();
  }
  const std::string command =
      writePassReproducer(options.directory, kernelName, pass,
                          difference + (dims.empty() ? "" : "\nwhere " + sizes()), before);
  return module.emitError("pass '")
         << pass << "' changes what kernel '" << kernelName << "' computes: " << difference
         << (command.empty() ? "" : "; " + command);
}

} // namespace tk
