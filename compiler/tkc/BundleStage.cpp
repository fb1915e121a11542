//===- BundleStage.cpp - tkc build --emit bundle --------------------------===//
#include "compiler/tkc/BundleStage.h"

#include "compiler/bundle/BuildBundle.h"
#include "compiler/bundle/BundleSource.h"

#include <CLI/CLI.hpp>

#include <filesystem>

namespace tk::tkc {
namespace {

std::vector<std::string> splitAtCommas(const std::string &text) {
  std::vector<std::string> parts;
  for (llvm::StringRef part : llvm::split(text, ','))
    parts.push_back(part.trim().str());
  return parts;
}

/// Which kernels, architectures and variants the options ask for.
Expected<BundleRequest> requestOf(const SourceOptions &options, const BundleOptions &bundle,
                                  const CompiledSource &source) {
  BundleRequest request;
  if (!options.kernel.empty() || source.signatures().size() == 1) {
    Expected<size_t> kernel = options.kernelOf(source);
    if (!kernel)
      return kernel.error();
    request.kernels.push_back(*kernel);
  } else {
    for (size_t k = 0; k < source.signatures().size(); ++k)
      request.kernels.push_back(k);
  }
  for (const std::string &target : splitAtCommas(options.target)) {
    Expected<std::optional<std::string>> level = cpuArch(target);
    if (!level)
      return level.error();
    Expected<std::string> arch = *level ? std::move(**level) : resolve_target(target);
    if (!arch)
      return arch.error();
    request.archs.push_back(*arch);
  }
  Expected<std::map<std::string, int64_t>> common = options.dimValues();
  if (!common)
    return common.error();
  for (const std::string &text : bundle.variants) {
    Expected<std::vector<VariantRequest>> variants = parseVariants(text);
    if (!variants)
      return variants.error();
    for (VariantRequest &variant : *variants) {
      for (const auto &[name, size] : *common)
        if (!variant.classes.count(name))
          variant.sizes.emplace(name, size);
      request.variants.push_back(std::move(variant));
    }
  }
  // What serves the sizes that no variant was asked for.
  request.variants.push_back({*common, /*general=*/false});
  request.variants.push_back({*common, /*general=*/true});
  return request;
}

Status writeSources(const SourceOptions &options, const BundleOptions &bundle,
                    const std::string &bundlePath, const Bundle &contents) {
  namespace fs = std::filesystem;
  BundleSourceOptions names;
  names.tkFile = fs::path(options.file).filename().string();
  names.nameSpace = bundle.nameSpace.empty() ? cxxIdentifier(fs::path(options.file).stem().string())
                                             : bundle.nameSpace;
  names.headerName = fs::path(bundle.sourceBase).filename().string() + ".h";
  names.bundlePath = fs::absolute(bundlePath).string();
  std::vector<Signature> signatures;
  for (const BundleKernel &kernel : contents.kernels)
    signatures.push_back(kernel.signature);
  BundleSource text = printBundleSource(signatures, names);
  if (Status written = writeFile(bundle.sourceBase + ".h", text.header); !written)
    return written;
  return writeFile(bundle.sourceBase + ".cpp", text.source);
}

} // namespace

void BundleOptions::addTo(CLI::App &command) {
  command
      .add_option("--variant", variants,
                  "With --emit bundle: add code for such sizes, or for a range "
                  "NAME=FIRST..LAST[:STEP] (at most four variants). A call runs the first variant "
                  "that fits it")
      ->type_name("NAME=INT,…")
      ->allow_extra_args(false);
  command
      .add_option("--cpp", sourceBase,
                  "With --emit bundle: write BASE.h, a function a kernel, and BASE.cpp, which "
                  "embeds the bundle")
      ->type_name("BASE");
  command
      .add_option("--depfile", depfile,
                  "Write a rule for make that says which files the output was made from")
      ->type_name("FILE");
  command
      .add_option("--namespace", nameSpace,
                  "With --cpp: the namespace of these functions; default: the file's name")
      ->type_name("NAME");
}

int emitBundle(SourceOptions &options, const BundleOptions &bundle, const std::string &output) {
  std::string path = output;
  if (path.empty())
    path = std::filesystem::path(options.file).stem().string() + ".tkb";
  if (path == "-" && !bundle.sourceBase.empty())
    return report(Error(ErrorCode::invalid_argument, "--cpp embeds a file: give -o PATH"),
                  options.json);
  // The frontend needs no target, and the list of several is none.
  SourceOptions frontend = options;
  frontend.target.clear();
  Expected<std::shared_ptr<CompiledSource>> source = frontend.compile();
  if (!source)
    return report(source.error(), options.json);
  Expected<BundleRequest> request = requestOf(options, bundle, **source);
  if (!request)
    return report(request.error(), options.json);
  Expected<Bundle> contents = buildBundle(**source, *request);
  if (!contents)
    return report(contents.error(), options.json);
  Status written = frontend.write(path, encode(*contents));
  if (written && !bundle.sourceBase.empty())
    written = writeSources(options, bundle, path, *contents);
  if (written && !bundle.depfile.empty())
    written = writeDepfile(bundle.depfile, path, **source);
  return written ? Done : report(written.error(), options.json);
}

} // namespace tk::tkc
