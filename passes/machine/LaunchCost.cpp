//===- LaunchCost.cpp - what the launches of a kernel cost ----------------===//
#include "passes/machine/LaunchCost.h"

#include "passes/machine/BlockWalk.h"
#include "passes/machine/Occupancy.h"
#include "passes/machine/OperationCost.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace tk {
namespace {

/// Blocks of a launch that are gone through.
constexpr int64_t mostSamples = 32;
/// Blocks of a wave whose accesses are compared.
constexpr int64_t mostCompared = 256;
/// The part of the second-level cache in which data stays from one use to the next.
constexpr double shareThatStays = 0.5;

/// A tensor of the kernel: a parameter, or a result of a launch.
struct Tensor {
  std::string name;
  double bytes = 0;
  bool isWritten = false; ///< by a launch before
};

/// Numbers that spread evenly over 0 .. count - 1, whatever the structure of the grid.
int64_t spread(int64_t sample, int64_t samples, int64_t count) {
  if (count <= samples)
    return sample;
  const double golden = 0.6180339887498949, place = double(sample) * golden;
  return std::min(int64_t((place - std::floor(place)) * double(count)), count - 1);
}

class KernelWalk {
public:
  KernelWalk(KernelOp kernel, const KernelSizes &sizes, const Machine &machine,
             BlocksAtOnce blocksAtOnce)
      : kernel(kernel), machine(machine), blocksAtOnce(blocksAtOnce), tables(sizes.tables) {
    for (auto [dim, size] : llvm::zip(kernel.getDimArguments(), sizes.dims))
      values.setScalar(dim, size);
    auto scalars = llvm::make_filter_range(kernel.getParamArguments(), [](Value value) {
      return !isa<RankedTensorType>(value.getType());
    });
    for (auto [value, number] : llvm::zip(scalars, sizes.scalars))
      if (number && value.getType().isIntOrIndex())
        values.setScalar(value, *number);
  }

  std::optional<KernelCost> run();

private:
  unsigned addTensor(Value value, StringRef name, OperandRange extents);
  StringRef nameOf(Value parameter);
  const std::vector<int64_t> *elementsOf(unsigned tensor) const;
  bool visitLaunch(gpu::LaunchOp launch);
  Arguments argumentsOf(gpu::LaunchOp launch, gpu::FuncOp function);
  void addMap(Arguments &to, Value argument, gpu::TensorMapOp map, gpu::LaunchOp launch);
  BlockCounts countBlocks(gpu::FuncOp function, const Arguments &arguments, BlockPlace grid,
                          double &heaviest, PlaceCounts &places);
  void addShares(LaunchCost &cost, const BlockCounts &all, PlaceCounts &places);
  llvm::DenseMap<unsigned, double> ownReads(gpu::FuncOp function, const Arguments &arguments,
                                            BlockPlace grid, int64_t together);
  void addTensors(LaunchCost &cost, const BlockCounts &counts,
                  const llvm::DenseMap<unsigned, double> &own);
  void addNotes(LaunchCost &cost);

  KernelOp kernel;
  const Machine &machine;
  BlocksAtOnce blocksAtOnce;
  const TensorTables *tables;
  KnownValues values;
  std::vector<Tensor> tensors;
  llvm::DenseMap<Value, unsigned> numbers;
  KernelCost result;
};

unsigned KernelWalk::addTensor(Value value, StringRef name, OperandRange extents) {
  auto type = cast<RankedTensorType>(value.getType());
  double bytes = elementBytes(type.getElementType());
  for (Value extent : extents)
    bytes *= double(values.scalar(extent).value_or(1));
  numbers[value] = unsigned(tensors.size());
  tensors.push_back({name.str(), bytes});
  return numbers[value];
}

StringRef KernelWalk::nameOf(Value parameter) {
  for (auto [i, argument] : llvm::enumerate(kernel.getParamArguments()))
    if (argument == parameter)
      return kernel.getParam(unsigned(i)).getName();
  return "";
}

const std::vector<int64_t> *KernelWalk::elementsOf(unsigned tensor) const {
  if (!tables)
    return nullptr;
  auto known = tables->find(tensors[tensor].name);
  return known == tables->end() ? nullptr : &known->second;
}

void KernelWalk::addMap(Arguments &to, Value argument, gpu::TensorMapOp map, gpu::LaunchOp launch) {
  auto found = numbers.find(map.getTensorFor(launch));
  if (found == numbers.end())
    return;
  TensorArgument described{found->second};
  for (Value extent : map.getExtents())
    described.extents.push_back(values.scalar(extent).value_or(INT32_MAX));
  llvm::append_range(described.box, map.getBox());
  described.hasPlaces = !map.getPlaces().empty();
  to.tensors[argument] = described;
}

Arguments KernelWalk::argumentsOf(gpu::LaunchOp launch, gpu::FuncOp function) {
  Arguments arguments;
  Block *body = function.getBlock();
  for (auto [operand, argument] : llvm::zip(launch.getArgs(), body->getArguments())) {
    if (auto map = operand.getDefiningOp<gpu::TensorMapOp>())
      addMap(arguments, argument, map, launch);
    else if (isa<RankedTensorType>(operand.getType()) && numbers.contains(operand))
      arguments.tensors[argument] = {numbers[operand], {}, {}, false, elementsOf(numbers[operand])};
    else if (Known known = values.get(operand); known.isScalar())
      arguments.numbers[argument] = known;
  }
  const size_t numResults = launch.getNumResults();
  for (auto [value, argument] :
       llvm::zip(launch.getResults(), body->getArguments().take_back(numResults)))
    arguments.tensors[argument] = {numbers[value]};
  return arguments;
}

BlockPlace placeOf(BlockPlace grid, int64_t block) {
  grid.id[0] = block % grid.blocks[0];
  grid.id[1] = block / grid.blocks[0] % grid.blocks[1];
  grid.id[2] = block / grid.blocks[0] / grid.blocks[1];
  return grid;
}

/// Bytes of tensors that stay in the first-level cache beside what streams through it.
constexpr double mostTableBytes = 4096;

/// What a block takes of the machine, as one number: to compare blocks.
double weightOf(const BlockCounts &counts, const Machine &machine) {
  LaunchWork one = counts.work;
  one.blocks = 1;
  one.waits = one.barriers = 0;
  for (const auto &[tensor, moved] : counts.traffic)
    one.cacheBytes += moved.readBytes + moved.writtenBytes;
  return predict(one, machine).total - cost::launch;
}

/// All blocks' work from that of some; `heaviest` becomes the heaviest one's relative to the mean.
BlockCounts KernelWalk::countBlocks(gpu::FuncOp function, const Arguments &arguments,
                                    BlockPlace grid, double &heaviest, PlaceCounts &places) {
  const int64_t blocks = grid.blocks[0] * grid.blocks[1] * grid.blocks[2];
  const int64_t samples = std::min(blocks, mostSamples);
  // A spread function is the program of all blocks of a cluster.
  const double weightOfSample =
      double(blocks) / double(samples) / double(function.isSpread() ? function.getCluster() : 1);
  BlockCounts all;
  double most = 0, sum = 0, waits = 0, barriers = 0;
  for (int64_t s = 0; s < samples; ++s) {
    BlockPlace place = placeOf(grid, spread(s, samples, blocks));
    BlockCounts counts = BlockWalk(function, arguments, place).count(places, weightOfSample);
    // The first-level cache keeps a table that a block looks numbers up in.
    for (auto &[tensor, moved] : counts.traffic)
      if (tensors[tensor].bytes <= mostTableBytes)
        moved.readBytes = std::min(moved.readBytes, tensors[tensor].bytes);
    const double weight = weightOf(counts, machine);
    most = std::max(most, weight);
    sum += weight;
    waits = std::max(waits, counts.work.waits);
    barriers = std::max(barriers, counts.work.barriers);
    all.add(counts, weightOfSample);
  }
  heaviest = sum > 0 ? most * double(samples) / sum : 1;
  // Tiles that are handed out go to whoever has time.
  if (function.walk([](gpu::ToldOp) { return WalkResult::interrupt(); }).wasInterrupted())
    heaviest = 1;
  all.work.waits = waits;
  all.work.barriers = barriers;
  return all;
}

/// For each tensor the part of the places read by blocks that run together that differ: 1 if none
/// is shared.
llvm::DenseMap<unsigned, double> KernelWalk::ownReads(gpu::FuncOp function,
                                                      const Arguments &arguments, BlockPlace grid,
                                                      int64_t together) {
  const int64_t blocks = grid.blocks[0] * grid.blocks[1] * grid.blocks[2];
  const int64_t compared = std::min({blocks, together, mostCompared});
  Accesses accesses;
  for (int64_t block = 0; block < compared; ++block)
    BlockWalk(function, arguments, placeOf(grid, block)).record(accesses);
  llvm::DenseMap<unsigned, double> places, all;
  for (const auto &[op, seen] : accesses) {
    places[seen.tensor] += double(seen.places.size());
    all[seen.tensor] += double(compared);
  }
  for (auto &[tensor, count] : places)
    count = std::min(count / all[tensor], 1.0);
  return places;
}

void KernelWalk::addTensors(LaunchCost &cost, const BlockCounts &counts,
                            const llvm::DenseMap<unsigned, double> &own) {
  double sizes = 0;
  for (const auto &[number, moved] : counts.traffic)
    sizes += moved.readBytes > 0 ? tensors[number].bytes : 0;
  const double room = machine.device.cacheBytes() * shareThatStays;
  for (const auto &[number, moved] : counts.traffic) {
    Tensor &tensor = tensors[number];
    TensorCost &moves = cost.tensors.emplace_back();
    moves.name = tensor.name;
    moves.size = tensor.bytes;
    moves.cacheRead = moved.readBytes;
    moves.memoryWritten = moved.writtenBytes;
    const double once = std::min(moved.readBytes, tensor.bytes);
    const bool stays = sizes <= 2 * room || tensor.bytes <= room / 2;
    moves.memoryRead = stays ? once : std::max(once, moved.readBytes * own.lookup(number));
    // What a launch before has written and the cache still holds need not come from memory.
    if (tensor.isWritten && tensor.bytes <= room)
      moves.memoryRead = 0;
    cost.work.readBytes += moves.memoryRead;
    cost.work.writtenBytes += moves.memoryWritten;
    cost.work.cacheBytes += moved.readBytes + moved.writtenBytes;
  }
}

/// Each part of the time belongs to places as the work does that it is of.
void KernelWalk::addShares(LaunchCost &cost, const BlockCounts &all, PlaceCounts &places) {
  const std::array<double, numBounds> weights = sharesOfParts(cost.prediction);
  std::vector<Prediction> times;
  std::array<double, numBounds> sums = {};
  for (auto &[place, counts] : places) {
    LaunchWork &work = counts.work;
    work.blocks = cost.work.blocks;
    work.blocksAtOnce = cost.work.blocksAtOnce;
    work.warps = cost.work.warps;
    work.heaviest = cost.work.heaviest;
    for (auto [tensor, whole] : llvm::zip(all.traffic, cost.tensors)) {
      const Traffic moved = counts.traffic.lookup(tensor.first);
      work.cacheBytes += moved.readBytes + moved.writtenBytes;
      work.writtenBytes += moved.writtenBytes;
      if (tensor.second.readBytes > 0)
        work.readBytes += whole.memoryRead * moved.readBytes / tensor.second.readBytes;
    }
    times.push_back(predict(work, machine));
    for (size_t part = 0; part < numBounds; ++part)
      sums[part] += times.back().parts[part];
  }
  for (auto [place, time] : llvm::zip(places, times)) {
    double share = 0;
    for (size_t part = 0; part < numBounds; ++part)
      share += sums[part] > 0 ? weights[part] * time.parts[part] / sums[part] : 0;
    if (share > 0)
      cost.shares.emplace_back(place.first, share);
  }
}

void KernelWalk::addNotes(LaunchCost &cost) {
  const LaunchWork &work = cost.work;
  auto count = [](double number) { return std::to_string(std::llround(number)); };
  if (work.blocks < double(machine.device.processors) && cost.prediction.total > 2 * cost::launch)
    cost.notes.push_back("fewer blocks (" + count(work.blocks) + ") than multiprocessors (" +
                         count(double(machine.device.processors)) + ")");
  double read = 0, size = 0;
  for (const TensorCost &tensor : cost.tensors) {
    read += tensor.memoryRead;
    size += std::min(tensor.size, tensor.cacheRead);
  }
  if (read > 2 * size && cost.prediction.bound == Bound::Memory)
    cost.notes.push_back("reads its inputs " + count(read / size) +
                         " times: blocks do not share them in the L2 cache");
}

bool KernelWalk::visitLaunch(gpu::LaunchOp launch) {
  auto function = SymbolTable::lookupNearestSymbolFrom<gpu::FuncOp>(launch, launch.getKernelAttr());
  std::optional<int64_t> x = values.scalar(launch.getGridX()), y = values.scalar(launch.getGridY()),
                         z = values.scalar(launch.getGridZ());
  if (!function || !x || !y || !z)
    return false;
  unsigned extent = 0;
  for (auto [i, value] : llvm::enumerate(launch.getResults())) {
    const unsigned rank = unsigned(cast<RankedTensorType>(value.getType()).getRank());
    auto names = launch->getAttrOfType<ArrayAttr>("names");
    StringRef name = names && i < names.size() ? cast<StringAttr>(names[i]).getValue() : "";
    addTensor(value, name, launch.getShapes().slice(extent, rank));
    extent += rank;
  }
  LaunchCost &cost = result.launches.emplace_back();
  cost.symbol = launch.getKernel().str();
  LaunchWork &work = cost.work;
  work.warps = double(function.getBlockWarps() + int64_t(function.getProducerWarps()));
  unsigned atOnce = blocksAtOnce ? blocksAtOnce(cost.symbol) : 0;
  if (atOnce == 0)
    atOnce = occupancyOf(unsigned(machine.architecture->arch),
                         {unsigned(work.warps * lanesOfWarp), 0,
                          int64_t(function.getSharedBytes().value_or(0))})
                 .blocks;
  atOnce = std::max(atOnce, 1U);
  if (launch.getResident())
    x = std::min<int64_t>(*x, atOnce * machine.device.processors);
  BlockPlace grid;
  std::copy_n(std::array{*x, *y, *z}.begin(), 3, grid.blocks);
  grid.cluster = function.getCluster();
  const int64_t blocks = *x * *y * *z;
  BlockCounts counts;
  PlaceCounts places;
  if (blocks > 0) {
    Arguments arguments = argumentsOf(launch, function);
    double heaviest = 1;
    counts = countBlocks(function, arguments, grid, heaviest, places);
    LaunchWork shape = work;
    work = counts.work;
    work.warps = shape.warps;
    work.blocks = double(blocks);
    work.blocksAtOnce = atOnce;
    work.heaviest = heaviest;
    cost.operations = counts.operations;
    if (counts.hasUnknownLoop)
      cost.notes.push_back(
          "a loop runs as often as the elements of a tensor say, and counts as one "
          "iteration: the launch may take longer");
    addTensors(cost, counts,
               ownReads(function, arguments, grid, atOnce * machine.device.processors));
  }
  cost.prediction = predict(work, machine);
  cost.roofs = roofsOf(work, machine);
  cost.processors = machine.device.processors;
  addShares(cost, counts, places);
  addNotes(cost);
  for (Value value : launch.getResults())
    tensors[numbers[value]].isWritten = true;
  return true;
}

std::optional<KernelCost> KernelWalk::run() {
  for (Operation &op : kernel.getBody().front()) {
    if (auto launch = dyn_cast<gpu::LaunchOp>(op)) {
      if (!visitLaunch(launch))
        return std::nullopt;
    } else if (auto bind = dyn_cast<BindOp>(op)) {
      addTensor(bind.getTensor(), nameOf(bind.getTensor()), bind.getExtents());
    } else if (!isa<gpu::TensorMapOp>(op)) {
      values.evaluate(&op);
    }
  }
  llvm::DenseSet<Value> returned;
  returned.insert_range(kernel.getReturn().getOperands());
  for (auto [value, number] : numbers)
    if (value.getDefiningOp<gpu::LaunchOp>() && !returned.contains(value))
      result.scratchBytes += tensors[number].bytes;
  for (const LaunchCost &launch : result.launches) {
    result.nanoseconds += launch.prediction.total;
    result.operations += launch.operations;
  }
  return std::move(result);
}

} // namespace

std::optional<KernelCost> costOfKernel(KernelOp kernel, const KernelSizes &sizes,
                                       const Machine &machine, BlocksAtOnce blocksAtOnce) {
  return KernelWalk(kernel, sizes, machine, blocksAtOnce).run();
}

} // namespace tk
