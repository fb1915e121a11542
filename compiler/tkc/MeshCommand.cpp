//===- MeshCommand.cpp - tkc mesh: a step on many GPUs --------------------===//
#include "compiler/step/Report.h"
#include "compiler/tkc/Commands.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace tk::tkc {

namespace {

struct MeshOptions {
  std::string file, axes, order, network = "h100-superpod", device, measured, output, overlap;
  bool json = false;
  bool collectives = false;
  std::vector<double> bytes = {0x1p13, 0x1p19, 0x1p25, 0x1p30}; ///< of --collectives
};

/// An error of a description as one of tkc's: the file, the field and what is wrong.
Error errorOf(const std::string &path, llvm::Error error) {
  return {ErrorCode::bad_file, path + ": " + llvm::toString(std::move(error))};
}

template <typename Read> auto readWith(const std::string &path, Read read) {
  using Result = Expected<typename decltype(read(llvm::StringRef()))::value_type>;
  Expected<std::string> text = readFile(path);
  if (!text)
    return Result(text.error());
  auto value = read(llvm::StringRef(*text));
  return value ? Result(std::move(*value)) : Result(errorOf(path, value.takeError()));
}

Expected<network::Network> networkOf(const MeshOptions &options) {
  std::optional<llvm::StringRef> shipped = network::shippedNetwork(options.network);
  if (!shipped)
    return readWith(options.network, network::parseNetwork);
  llvm::Expected<network::Network> network = network::parseNetwork(*shipped);
  if (!network)
    return errorOf(options.network, network.takeError());
  return std::move(*network);
}

/// The device of --device, else of the network, with the first architecture that has it.
Expected<Machine> machineFor(const MeshOptions &options, const network::Network &network) {
  const std::string &name = options.device.empty() ? network.device : options.device;
  const DeviceSpec *device = findDevice(name);
  if (!device)
    return Error(ErrorCode::invalid_argument,
                 "unknown device '" + name + "'; docs/reference/tkc.md lists the devices");
  const Architecture *found = nullptr;
  for (const Architecture &row : allArchitectures())
    if (row.arch == device->arch && (!found || row.features > found->features))
      found = &row;
  if (!found)
    return Error(ErrorCode::unsupported, "no architecture of the device '" + name + "'");
  return machineOf(*found, *device);
}

Error usageError(llvm::Error error) {
  return {ErrorCode::invalid_argument, "--mesh: " + llvm::toString(std::move(error))};
}

Expected<step::StepPrediction> predictionFor(const MeshOptions &options) {
  Expected<step::Block> block = readWith(options.file, step::parseBlock);
  if (!block)
    return block.error();
  Expected<network::Network> network = networkOf(options);
  if (!network)
    return network.error();
  Expected<Machine> machine = machineFor(options, *network);
  if (!machine)
    return machine.error();
  llvm::Expected<std::vector<network::Axis>> axes = network::parseAxes(options.axes);
  if (!axes)
    return usageError(axes.takeError());
  llvm::Expected<step::Placement> placement =
      step::place(std::move(*block), std::move(*network), *machine, *axes, options.order);
  if (!placement)
    return usageError(placement.takeError());
  step::StepOptions stepOptions;
  stepOptions.overlap = llvm::StringSwitch<step::Overlap>(options.overlap)
                            .Case("none", step::Overlap::None)
                            .Case("all", step::Overlap::All)
                            .Default(step::Overlap::Gradients);
  if (!options.measured.empty()) {
    auto times = readWith(options.measured, step::parseTimes);
    if (!times)
      return times.error();
    stepOptions.measured = std::move(*times);
  }
  llvm::Expected<step::StepPrediction> prediction = step::predictStep(*placement, stepOptions);
  if (!prediction)
    return errorOf(options.measured, prediction.takeError());
  return std::move(*prediction);
}

void print(const llvm::json::Value &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value << "\n";
  std::fputs(text.c_str(), stdout);
}

/// The table of collectives, which needs no model.
int collectives(const MeshOptions &options) {
  Expected<network::Network> network = networkOf(options);
  if (!network)
    return report(network.error(), options.json);
  llvm::Expected<std::vector<network::Axis>> axes = network::parseAxes(options.axes);
  if (!axes)
    return report(usageError(axes.takeError()), options.json);
  llvm::Expected<network::Mesh> mesh = step::meshFor(*axes, options.order);
  if (!mesh)
    return report(usageError(mesh.takeError()), options.json);
  if (llvm::Error error = network::checkFits(*network, *mesh))
    return report(usageError(std::move(error)), options.json);
  if (options.json)
    print(step::collectivesJson(*network, *mesh, options.bytes));
  else
    std::fputs(step::collectivesText(*network, *mesh, options.bytes).c_str(), stdout);
  return Done;
}

int mesh(const MeshOptions &options) {
  if (options.collectives != options.file.empty()) {
    std::fputs("tkc mesh: expected a model, or --collectives without one; tkc mesh --help lists "
               "the options\n",
               stderr);
    return WrongUsage;
  }
  if (options.collectives)
    return collectives(options);
  Expected<step::StepPrediction> prediction = predictionFor(options);
  if (!prediction)
    return report(prediction.error(), options.json);
  if (!options.output.empty()) {
    const bool isPicture = llvm::StringRef(options.output).ends_with(".svg");
    Status written =
        writeFile(options.output, isPicture ? step::svgOf(*prediction) : step::pageOf(*prediction));
    if (!written)
      return report(written.error(), options.json);
    if (!options.json)
      return Done;
  }
  if (options.json)
    print(step::jsonOf(*prediction));
  else
    std::fputs(step::textOf(*prediction).c_str(), stdout);
  return Done;
}

} // namespace

void addMesh(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand(
      "mesh", "Predicts a training step and a forward step of a transformer on many GPUs: each "
              "launch and collective, and what limits each kind of parallelism. Needs no GPU.");
  auto options = std::make_shared<MeshOptions>();
  options->overlap = "gradients";
  command->add_option("FILE", options->file, "The model, as JSON; - is standard input");
  command
      ->add_option("--mesh", options->axes,
                   "Sizes of the axes of parallelism, such as dp=16,tp=8,ep=8,pp=4; ep divides dp")
      ->required();
  command->add_option("--network", options->network,
                      "The network, as JSON, or h100-superpod (default), h100-node or h200-pair");
  command->add_option("--order", options->order,
                      "Axes from neighbouring GPUs outwards; default: tp,ep,dp,pp");
  command->add_option("--device", options->device, "The GPU, in place of the network's");
  command
      ->add_option("--overlap", options->overlap,
                   "Collectives that run beside launches: none, gradients (default) or all")
      ->check(CLI::IsMember({"none", "gradients", "all"}));
  command->add_option("--measured", options->measured,
                      "Measured times of launches and collectives, as JSON, in place of predicted");
  command->add_option("-o", options->output,
                      "Write a page, or a picture if the name ends in .svg, instead of the table");
  command->add_flag("--collectives", options->collectives,
                    "Print what collectives take on each axis; needs no model");
  command
      ->add_option("--bytes", options->bytes,
                   "With --collectives: sizes of the array; default: 8 KiB, 512 KiB, 32 MiB, 1 GiB")
      ->delimiter(',')
      ->check(CLI::Range(1.0, 1e18));
  command->add_flag("--json", options->json, "Print the prediction as JSON");
  command->callback([options, &status] { status = mesh(*options); });
}

} // namespace tk::tkc
