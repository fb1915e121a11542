//===- Picture.cpp - a predicted step as a picture ------------------------===//
//
// From the top: the levels of the network, each with what its links carry; the parts of the step as
// one bar; a bar for each row with the times of its parts. All as SVG text; no program runs in it.
//
//===----------------------------------------------------------------------===//
#include "compiler/step/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace llvm;

namespace tk::step {
namespace {

constexpr double pageWidth = 1000, margin = 20, lineHeight = 18, labelWidth = 330;
constexpr StringLiteral ink = "#1f2933", muted = "#616e7c", line = "#7b8794";
constexpr StringLiteral mathColour = "#3b6ea8", memoryColour = "#3c8250", commsColour = "#b0453f",
                        hiddenColour = "#f6d4d2", idleColour = "#e9edf1";
constexpr StringLiteral partColours[] = {"#3b6ea8", "#7ea3cf", "#b0453f", "#e9edf1",
                                         "#d98880", "#c98b2b", "#3c8250"};

std::string escaped(StringRef text) {
  std::string out;
  for (char c : text)
    switch (c) {
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '&':
      out += "&amp;";
      break;
    case '"':
      out += "&quot;";
      break;
    default: // XML has no control characters
      out += c >= 0 && c < ' ' ? ' ' : c;
    }
  return out;
}

class Picture {
public:
  explicit Picture(const StepPrediction &prediction) : prediction(prediction), os(parts) {}
  std::string run();

private:
  void text(double x, double y, StringRef words, double size = 13, StringRef anchor = "start",
            StringRef colour = ink);
  void box(double x, double y, double width, double height, StringRef fill, StringRef title = "");
  void levels();
  void stepBar();
  void rows();

  const StepPrediction &prediction;
  std::string parts;
  raw_string_ostream os;
  double y = margin;
};

void Picture::text(double x, double at, StringRef words, double size, StringRef anchor,
                   StringRef colour) {
  os << format("<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.0f\" ", x, at, size) << "text-anchor=\""
     << anchor << "\" fill=\"" << colour << "\">" << escaped(words) << "</text>\n";
}

void Picture::box(double x, double at, double width, double height, StringRef fill,
                  StringRef title) {
  os << format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" ", x, at,
               std::max(width, 0.0), height)
     << "fill=\"" << fill << "\" stroke=\"" << line << "\" stroke-width=\"0.5\">";
  if (!title.empty())
    os << "<title>" << escaped(title) << "</title>";
  os << "</rect>\n";
}

/// The axes whose groups send through a level's links.
std::string axesOf(const Placement &at, size_t level) {
  std::string names;
  for (Parallelism of :
       {Parallelism::Tensor, Parallelism::Experts, Parallelism::Data, Parallelism::Pipeline})
    if (at.size(of) > 1 && at.group(of).spans[level].isUsed())
      names += (names.empty() ? "" : ", ") + nameOf(of).str();
  return names.empty() ? "unused" : names;
}

/// One row of boxes a level, from the top: as many as the level has units in the mesh, up to those
/// that can be seen.
void Picture::levels() {
  constexpr double height = 26, gap = 30, leastWidth = 6;
  const Placement &at = prediction.placement;
  const auto devices = double(at.mesh.numDevices());
  for (size_t i = at.network.levels.size() + 1; i-- > 0;) {
    const double below = double(at.network.devicesOfChild(i));
    const double units = std::ceil(devices / below);
    const double width = pageWidth - 2 * margin - labelWidth;
    const double shown = std::min(units, std::floor(width / leastWidth));
    for (int u = 0; u < int(shown); ++u)
      box(margin + labelWidth + double(u) * width / shown, y, width / shown - 1, height,
          i == 0 ? "#d5ecd9" : "#d6e4f5");
    std::string name = i == 0 ? "GPU" : at.network.levels[i - 1].name, label;
    raw_string_ostream(label) << format("%.0f ", units) << name
                              << (shown < units ? " (not all are drawn)" : "");
    text(margin, y + height / 2 + 4, label);
    y += height;
    if (i == 0)
      break;
    const network::Level &level = at.network.levels[i - 1];
    std::string links;
    raw_string_ostream(links) << format("%g links of %g GB/s a direction: ", double(level.links),
                                        std::min(level.up, level.down))
                              << axesOf(at, i - 1);
    text(margin + labelWidth, y + gap / 2 + 4, links, 12, "start", muted);
    y += gap;
  }
  y += margin;
}

void Picture::stepBar() {
  constexpr double height = 34;
  const double width = pageWidth - 2 * margin, whole = prediction.time.step;
  text(margin, y + 12, "training step: " + timeText(whole), 15);
  y += 22;
  double x = margin;
  const auto list = partsOf(prediction);
  for (const auto &[i, part] : enumerate(list)) {
    const double length = width * part.second / whole;
    box(x, y, length, height, partColours[i], part.first + " " + timeText(part.second));
    x += length;
  }
  y += height + 16;
  double left = margin;
  for (const auto &[i, part] : enumerate(list)) {
    if (part.second <= 0)
      continue;
    const std::string label = part.first + " " + timeText(part.second);
    const double length = 24 + 6.6 * double(label.size());
    if (left + length > pageWidth - margin) {
      left = margin;
      y += lineHeight;
    }
    box(left, y - 10, 11, 11, partColours[i]);
    text(left + 15, y, label, 12);
    left += length;
  }
  y += margin + 10;
}

/// Bars of what a row takes in a microbatch, on one scale.
void Picture::rows() {
  const double width = pageWidth - 2 * margin - labelWidth - 90;
  double most = 0;
  for (const Row &row : prediction.rows)
    most = std::max(most, row.count * row.total);
  text(margin, y + 12,
       "launches and collectives of a microbatch, and of the step's update (count times time)", 15);
  y += 22;
  double left = margin + labelWidth;
  for (const auto &[name, colour] :
       {std::pair("T_math", mathColour), std::pair("T_memory", memoryColour),
        std::pair("T_comms", commsColour), std::pair("hidden beside launches", hiddenColour)}) {
    box(left, y - 2, 11, 11, colour);
    text(left + 15, y + 8, name, 12);
    left += 40 + 6.6 * double(StringRef(name).size());
  }
  y += lineHeight;
  for (const Row &row : prediction.rows) {
    const double scale = width * row.count / most;
    text(margin, y + 12, row.name, 12);
    const double x = margin + labelWidth;
    if (row.isCollective()) {
      box(x, y + 2, scale * row.total, 13, hiddenColour, "hidden " + timeText(row.hidden));
      box(x, y + 2, scale * (row.total - row.hidden), 13, commsColour,
          nameOf(row.collective).str() + " of " + bytesText(row.arrayBytes));
    } else {
      box(x, y + 2, scale * row.total, 13, idleColour, timeText(row.total));
      box(x, y + 2, scale * std::min(row.launch.math, row.total), 7, mathColour,
          "T_math " + timeText(row.launch.math));
      box(x, y + 9, scale * std::min(row.launch.memory, row.total), 6, memoryColour,
          "T_memory " + timeText(row.launch.memory));
    }
    text(x + scale * row.total + 6, y + 12,
         std::to_string(int64_t(row.count)) + " × " + timeText(row.total) +
             (row.isMeasured ? " (measured)" : ""),
         11, "start", muted);
    y += lineHeight;
  }
  y += margin;
}

std::string Picture::run() {
  levels();
  stepBar();
  rows();
  const Placement &at = prediction.placement;
  std::string svg;
  raw_string_ostream(svg)
      << format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" ", pageWidth,
                y)
      << "role=\"img\" font-family=\"Helvetica, Arial, sans-serif\">\n<title>"
      << escaped(at.block.name + " on " + at.network.name) << "</title>\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      << parts << "</svg>\n";
  return svg;
}

} // namespace

std::string svgOf(const StepPrediction &prediction) { return Picture(prediction).run(); }

} // namespace tk::step
