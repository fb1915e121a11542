//===- Page.cpp - a predicted step as a page ------------------------------===//
#include "compiler/step/Report.h"

#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tk::step {

static constexpr StringLiteral style =
    "body{font:15px/1.5 Helvetica,Arial,sans-serif;color:#1f2933;max-width:1040px;margin:2em auto;"
    "padding:0 1em}h1{font-size:1.4em}pre{background:#f4f6f8;padding:1em;overflow-x:auto;"
    "font-size:12px}svg{width:100%;height:auto}";

static std::string escaped(StringRef text) {
  std::string out;
  for (char c : text)
    out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

std::string pageOf(const StepPrediction &prediction) {
  const Placement &at = prediction.placement;
  const std::string title = escaped(at.block.name + " on " + at.network.name);
  std::string page;
  raw_string_ostream(page) << "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
                           << "<title>" << title << "</title>\n<style>" << style
                           << "</style></head>\n<body>\n<h1>" << title << "</h1>\n"
                           << svgOf(prediction) << "<h2>Tables</h2>\n<pre>"
                           << escaped(textOf(prediction)) << "</pre>\n"
                           << "<h2>Sources of the network</h2>\n<ul>\n<li>"
                           << escaped(at.network.source) << "</li>\n";
  std::string items;
  for (const network::Level &level : at.network.levels)
    items += "<li>" + escaped(level.name) + ": " + escaped(level.source) + "</li>\n";
  return page + items + "</ul>\n</body>\n</html>\n";
}

} // namespace tk::step
