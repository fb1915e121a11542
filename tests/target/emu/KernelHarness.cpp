#include "KernelHarness.h"

#include "runtime/emu/EmuLaunch.h"

#include <numeric>

namespace tk::test {

std::string kernelText(const std::string &body) {
  return "#include \"tk_device.cuh\"\n#line 1 \"k.tk\"\n" + body;
}

void KernelHarness::add(void *data, size_t count, DType type, bool written) {
  add(TensorView(data, type, Extents{static_cast<int64_t>(count)}), written);
}

void KernelHarness::add(const TensorView &view, bool written) {
  Parameter parameter;
  const size_t number = inputs.size() + outputs.size();
  parameter.name = std::string(1, static_cast<char>('x' + number));
  parameter.dtype = view.dtype;
  for (int64_t extent : view.shape)
    parameter.shape.push_back({DimExpr(extent), std::to_string(extent)});
  Arg arg;
  arg.kind = ArgKind::tensor;
  // Results are numbered after all parameters: they are added last.
  arg.index = static_cast<uint32_t>(number);
  args.push_back(arg);
  (written ? signature.results : signature.params).push_back(parameter);
  (written ? outputs : inputs).push_back(view);
}

void KernelHarness::mapped(std::vector<uint32_t> box, uint8_t swizzle) {
  Arg &arg = args.back();
  const TensorView &view = outputs.empty() ? inputs.back() : outputs.back();
  TensorMap map;
  map.index = static_cast<uint32_t>(inputs.size() + outputs.size() - 1);
  map.dtype = view.dtype;
  for (unsigned axis = view.rank(); axis-- > 0;) {
    map.extents.push_back(Expr(view.shape[axis]));
    if (axis + 1 < view.rank())
      map.strides.push_back(Expr(view.strides[axis]));
  }
  map.box = std::move(box);
  map.swizzle = swizzle;
  arg.kind = ArgKind::tensor_map;
  arg.index = static_cast<uint32_t>(maps.size());
  maps.push_back(map);
}

void KernelHarness::mappedAgain(std::vector<uint32_t> box, uint8_t swizzle) {
  args.push_back(args.back());
  mapped(std::move(box), swizzle);
}

void KernelHarness::integer(int value) {
  Arg arg;
  arg.kind = ArgKind::integer;
  arg.dtype = DType::i32;
  arg.value = Expr(int64_t{value});
  args.push_back(arg);
}

void KernelHarness::counter() {
  Arg arg;
  arg.kind = ArgKind::scratch;
  arg.index = static_cast<uint32_t>(scratch.size());
  args.push_back(arg);
  scratch.push_back({Expr(int64_t{4}), false, "counter", true});
}

std::string KernelHarness::run() {
  signature.name = "k";
  detail::Executable emitted;
  emitted.cuda = kernelText(body);
  Launch launch;
  launch.symbol = symbol;
  launch.grid[0] = grid;
  launch.block[0] = threads;
  launch.shared_bytes = sharedBytes;
  launch.args = args;
  launch.cluster[0] = cluster;
  emitted.plan.tensor_maps = maps;
  emitted.plan.scratch = scratch;
  emitted.plan.launches.push_back(launch);
  executable = compileForEmu(std::move(emitted), signature, options);
  if (!executable)
    return executable.error().what();
  return again();
}

std::vector<TensorView> KernelHarness::tensors() const {
  std::vector<TensorView> all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  return all;
}

std::string KernelHarness::again() {
  const std::vector<TensorView> views = tensors();
  try {
    std::vector<void *> pointers;
    for (const TensorView &view : views)
      pointers.push_back(view.data);
    emu::launch_plan(*executable->emulator,
                     emu::resolve_plan(executable->plan, signature, {}, views), pointers);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

std::vector<float> counting(size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

} // namespace tk::test
