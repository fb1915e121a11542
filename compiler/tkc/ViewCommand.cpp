//===- ViewCommand.cpp - tkc view: the compilation of a kernel on one page ===//
#include "compiler/tkc/Commands.h"
#include "compiler/tkc/MeshCost.h"
#include "compiler/tkc/Profile.h"
#include "compiler/tkc/Progress.h"
#include "compiler/tkc/ViewChoices.h"
#include "compiler/tkc/ViewDocument.h"

#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace tk::tkc {
namespace {

struct ViewOptions {
  SourceOptions source;
  std::string output;
  bool general = false; ///< assume nothing of sizes that are not given
  std::vector<std::string> compared;
  double tolerance = 0; ///< percent
  bool profile = false;
  bool quick = false;      ///< predicts no other choices
  std::string profileFrom; ///< a document whose profile is taken
  std::string stalls;      ///< a report of Nsight Compute
  std::vector<std::string> inputs;
  MeshChoice mesh;
};

Expected<llvm::json::Value> readDocument(const std::string &path) {
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.error();
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(*text);
  if (!value)
    return Error(ErrorCode::invalid_argument,
                 "'" + path + "' is no JSON: " + llvm::toString(value.takeError()));
  return std::move(*value);
}

int compare(const ViewOptions &options) {
  const bool json = options.source.json;
  Expected<llvm::json::Value> before = readDocument(options.compared[0]);
  if (!before)
    return report(before.error(), json);
  Expected<llvm::json::Value> after = readDocument(options.compared[1]);
  if (!after)
    return report(after.error(), json);
  auto compared = compareDocuments(*before, *after, options.tolerance);
  if (!compared)
    return report(compared.error(), json);
  std::string text = compared->text.empty() ? "no difference\n" : compared->text;
  if (json) {
    text.clear();
    llvm::raw_string_ostream(text)
        << llvm::json::Value(llvm::json::Object{{"grown", compared->grown},
                                                {"changes", std::move(compared->changes)}})
        << "\n";
  }
  std::cout << text;
  return compared->grown ? WrongInput : Done;
}

/// The dimensions of a kernel, up to the first that is not given.
std::vector<int64_t> knownDims(const GivenVariables &given, size_t numDims) {
  std::vector<int64_t> dims;
  for (const std::optional<Scalar> &dim : llvm::ArrayRef(given).take_front(numDims)) {
    if (!dim)
      break;
    dims.push_back(dim->i);
  }
  return dims;
}

/// Adds what was measured to a document: now, or as another document has it.
Status addProfile(llvm::json::Object &document, const ViewOptions &options,
                  const ChosenKernel &chosen, const std::string &target, const KernelView &made) {
  if (!options.profile && options.profileFrom.empty())
    return {};
  Expected<llvm::json::Object> profile = [&]() -> Expected<llvm::json::Object> {
    if (!options.profileFrom.empty())
      return readProfile(options.profileFrom, document.getString("kernel").value_or("").str(),
                         target, *document.getObject("dims"));
    ArgumentTexts texts;
    texts.dims = options.source.dimValues().value();
    texts.inputs = options.inputs;
    texts.scalars = options.source.scalars;
    Progress progress("measuring", options.source.json);
    return profileKernel(chosen, options.source, texts, target, made);
  }();
  if (!profile)
    return profile.error();
  if (!options.stalls.empty()) {
    Expected<std::string> csv = readFile(options.stalls);
    if (!csv)
      return csv.error();
    Expected<llvm::json::Object> stalls = readStalls(*csv, made);
    if (!stalls)
      return stalls.error();
    profile->erase("stalls_missing");
    (*profile)["stalls"] = std::move(*stalls);
  }
  document["profile"] = std::move(*profile);
  return {};
}

int view(ViewOptions &options) {
  const bool json = options.source.json;
  if (!options.compared.empty() || options.source.file.empty()) {
    if (options.compared.size() == 2 && options.source.file.empty())
      return compare(options);
    std::cerr << "tkc view: expected a .tk file, or --diff with two documents; tkc view --help "
                 "lists the options\n";
    return WrongUsage;
  }
  Expected<ChosenKernel> chosen = options.source.compileKernel();
  if (!chosen)
    return report(chosen.error(), json);
  auto &[source, kernel] = *chosen;
  const Signature &signature = source->signatures()[kernel];
  Expected<Facts> facts = options.source.factsFor(signature, options.general);
  if (!facts)
    return report(facts.error(), json);
  // What is measured is measured on a device, or on the emulator.
  Expected<std::string> target =
      options.profile ? resolve_target(options.source.target) : targetOfCode(options.source);
  if (!target)
    return report(target.error(), json);
  auto given = options.source.givenVariables(signature);
  if (!given)
    return report(given.error(), json);
  decideConditions(*source, kernel, *target, *given, *facts);
  const size_t numDims = signature.dims.size();
  std::vector<int64_t> dims = knownDims(*given, numDims);
  auto scalars = llvm::ArrayRef(*given).drop_front(numDims);
  if (dims.size() == numDims)
    if (auto all = complete_variables(signature, dims, scalars))
      if (Status met = run_checks(signature, *all); !met)
        return report(met.error(), json);
  Expected<KernelView> made = source->view(kernel, *target, *facts, dims, scalars);
  if (!made)
    return report(made.error(), json);
  std::map<std::string, int64_t> sizes;
  for (auto [name, size] : llvm::zip(signature.dims, llvm::ArrayRef(*given).take_front(numDims)))
    if (size)
      sizes[name] = size->i;
  // What the code assumes, which is less than what is given.
  const Facts assumed = source->relevant_facts(kernel, *target, *facts);
  llvm::json::Value document = documentOf(*made, {signature, assumed, *target, sizes});
  llvm::json::Object &members = *document.getAsObject();
  if (made->cost)
    members["schedule_plan"] = planWithBlock(options.source, *target, signature.name, *made);
  if (made->cost && !options.quick) {
    Progress progress("predicting other choices", json);
    members["choices"] = choicesOf(options.source, *target, signature.name, *made);
  }
  if (options.mesh.isGiven()) {
    Expected<MeshCost> onMesh = costOnMesh(*source, kernel, *target, options.mesh, *given);
    if (!onMesh)
      return report(onMesh.error(), json);
    members["mesh"] = jsonOf(*onMesh);
  }
  if (Status added = addProfile(members, options, *chosen, *target, *made); !added)
    return report(added.error(), json);
  std::string text;
  if (json)
    llvm::raw_string_ostream(text) << document << "\n";
  else
    text = pageOf(document);
  std::string path = options.output;
  if (path.empty())
    path = json ? "-" : signature.name + ".html";
  Status written = options.source.write(path, text);
  return written ? Done : report(written.error(), json);
}

} // namespace

void addView(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand(
      "view", "Writes a page that shows a kernel's source beside each stage of its compilation, "
              "what its launches use and cost, and why. Needs no GPU.");
  auto options = std::make_shared<ViewOptions>();
  options->source.addTo(*command);
  command->get_option("FILE")->required(false);
  options->source.addScalarsTo(*command);
  auto *output = command->add_option(
      "-o", options->output,
      "Where to write it; - is standard output; default: KERNEL.html, and standard "
      "output for --json");
  auto *general = command->add_flag("--general", options->general,
                                    "Assume nothing of sizes that are not given");
  auto *quick = command->add_flag("--quick", options->quick,
                                  "Leave out the predicted times of what the compiler declined");
  auto *profile = command->add_flag(
      "--profile", options->profile,
      "Also measure each launch on the target, with random inputs; where Nsight Compute is "
      "installed, also sample why warps stall, by line");
  auto *from = command
                   ->add_option("--profile-from", options->profileFrom,
                                "Take what was measured from a document that --json wrote")
                   ->excludes(profile);
  command
      ->add_option("--in", options->inputs,
                   "With --profile: an input tensor, PATH.npy, random[:SEED[:LOW:HIGH]], zeros or "
                   "iota")
      ->type_name("NAME=SOURCE")
      ->allow_extra_args(false)
      ->needs(profile);
  auto *stalls = command->add_option(
      "--stalls", options->stalls,
      "With a profile: a report that ncu --section SourceCounters --page source --csv wrote");
  options->mesh.addTo(*command, "Also show the steps of one rank of a mesh with their predicted "
                                "times; needs all dimensions");
  auto *diff =
      command
          ->add_option("--diff", options->compared,
                       "Compare two documents that --json wrote; exit 1 if a predicted time grew")
          ->expected(2);
  for (CLI::Option *other : {output, general, quick, profile, from, stalls})
    diff->excludes(other);
  command
      ->add_option("--tolerance", options->tolerance,
                   "With --diff: by how many percent a predicted time may grow (default: 0)")
      ->check(notABound)
      ->needs(diff);
  command->callback([options, &status] { status = view(*options); });
}

} // namespace tk::tkc
