//===- Reproducer.cpp - the IR that a wrong pass got ----------------------===//
#include "compiler/validate/Reproducer.h"

#include "compiler/Pipeline.h"
#include "runtime/Files.h"

#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

std::string tk::writePassReproducer(StringRef directory, StringRef kernel, StringRef pass,
                                    StringRef wrong, StringRef ir) {
  SmallString<128> path(directory);
  if (path.empty())
    sys::path::system_temp_directory(/*erasedOnReboot=*/true, path);
  std::string name = (kernel + "-before-" + pass + ".mlir").str();
  std::replace(name.begin(), name.end(), ':', '.');
  sys::path::append(path, name);
  std::string text;
  raw_string_ostream out(text);
  const std::string command = ("tk-opt " + tkOptFlag(pass) + " " + path).str();
  out << "// RUN: " << command << "\n";
  SmallVector<StringRef> lines;
  wrong.split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    out << "// " << line << "\n";
  out << ir << "\n";
  return tk::detail::write_file(path.str().str(), text) ? command : "";
}
