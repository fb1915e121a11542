//===- Times.cpp - measured times in place of predicted ones --------------===//
#include "compiler/step/Rows.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using tk::network::Fault;
using tk::network::ObjectReader;

namespace tk::step {

Expected<std::map<std::string, double>> parseTimes(StringRef text) {
  constexpr network::Range range{0, 1e12};
  constexpr double nanosecondsOfMicrosecond = 1000;
  Expected<json::Value> value = network::parseJson(text, "the file of times");
  if (!value)
    return value.takeError();
  network::FaultLog faults;
  std::map<std::string, double> times;
  {
    ObjectReader reader(*value, "", faults);
    reader.choice("format", {"tk times 1"}, 0);
    reader.text("source", "");
    if (const json::Value *list = reader.value("microseconds", true)) {
      ObjectReader entries(*list, "microseconds", faults);
      for (const std::string &name : entries.takeNames())
        times[name] = nanosecondsOfMicrosecond * entries.number(name, range);
    }
  }
  if (faults.any())
    return faults.take();
  return times;
}

Error setMeasured(std::vector<Row> &rows, const std::map<std::string, double> &times) {
  std::vector<std::string> names;
  for (const Row &row : rows)
    names.push_back(row.name);
  for (const auto &[name, time] : times) {
    auto found = find_if(rows, [&](const Row &row) { return row.name == name; });
    if (found == rows.end())
      return network::faultAt(Fault::Unknown, "microseconds." + name,
                              "the step has no launch or collective of that name" +
                                  network::nearestHint(name, names));
    found->total = time;
    found->isMeasured = true;
  }
  return Error::success();
}

} // namespace tk::step
