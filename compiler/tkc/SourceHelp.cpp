//===- SourceHelp.cpp - the options that several commands share -----------===//
#include "compiler/tkc/Commands.h"

#include <CLI/CLI.hpp>

#include <tuple>

namespace tk::tkc {

void SourceOptions::addTo(CLI::App &command) {
  command.add_option("FILE", file, "The .tk file; - is standard input")->required();
  command.add_option("--kernel", kernel, "Which kernel of the file; needed if it has several")
      ->type_name("NAME");
  command
      .add_option("--target", target,
                  "cpu, gpu (this machine's), sm_80, sm_90a, …, emu or emu-sm_80 (the CUDA text on "
                  "the CPU); default: gpu if there is one, else cpu")
      ->type_name("TARGET");
  command.add_option("--dim", dims, "The size of one dimension; give the option for each")
      ->type_name("NAME=INT")
      ->allow_extra_args(false);
  command.add_flag("--checked", checked,
                   "Report gathers outside their bounds, and assertions that fail");
  command.add_flag("--json", json, "Diagnostics and reports as JSON lines");
  addChoicesTo(command);
}

void SourceOptions::addChoicesTo(CLI::App &command) {
  static constexpr const char *group = "Options that replace a choice of the compiler";
  command
      .add_option("--device", device,
                  "The GPU that plans and predictions are for, such as H100 or h100-pcie; default: "
                  "what is assumed for the target")
      ->type_name("GPU")
      ->group(group);
  command
      .add_option("--schedule", scheduleFile,
                  "A file with schedule blocks that replace the program's")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--disable-pass", disabledPasses,
                  "Leave out a pass, a pattern of a pass (PASS:PATTERN) or a group, such as fusion")
      ->type_name("NAME")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(group);
  for (auto [flag, names, value, help] :
       {std::tuple("--inline", &inlined, "NAME",
                   "Compute a local or a result where it is read (fuse it), whatever the cost rule "
                   "of tk-fuse-producers says"),
        std::tuple("--store", &stored, "NAME",
                   "Store a local or a result in memory, whatever the cost rule says"),
        std::tuple("--merge", &merged, "NAME+NAME",
                   "Compute two results over equal indices in one loop nest, whatever the rule of "
                   "tk-merge-computes says"),
        std::tuple("--apart", &apart, "NAME+NAME", "Do not compute two results in one loop nest")})
    command.add_option(flag, *names, help)
        ->type_name(value)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->group(group);
  command
      .add_flag("--size-classes", sizeClasses,
                "Compile for a class of sizes, as a call with few_keys does; else for the exact "
                "sizes")
      ->group(group);
  command
      .add_option("--print-after", printAfter,
                  "Print the IR after a pass, or PASS:PATTERN, to standard error; all: after each")
      ->type_name("PASS")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(group);
}

void SourceOptions::addScalarsTo(CLI::App &command) {
  command
      .add_option("--arg", scalars,
                  "A scalar argument, if an extent or a condition of the code depends on it")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

} // namespace tk::tkc
