//===- Declines.cpp - why rewrites do not apply ---------------------------===//
#include "passes/analysis/Declines.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tk {

static thread_local DeclineLog *listener = nullptr;

DeclineLog::DeclineLog() : outer(listener) { listener = this; }
DeclineLog::~DeclineLog() { listener = outer; }

bool decline(Operation *at, StringRef pass, const Twine &why) {
  if (!listener)
    return false;
  Decline made{pass.str(), why.str(), at->getLoc()};
  const bool isKnown = llvm::any_of(listener->declines, [&](const Decline &other) {
    return other.pass == made.pass && other.why == made.why && other.where == made.where;
  });
  if (!isKnown)
    listener->declines.push_back(std::move(made));
  return false;
}

bool savesTime(Operation *at, StringRef pass, const Twine &what, double saved, double taken) {
  if (saved > taken)
    return true;
  auto text = [](double nanoseconds) {
    std::string digits;
    llvm::raw_string_ostream(digits) << llvm::format("%.3g us", nanoseconds * 1e-3);
    return digits;
  };
  return decline(at, pass, what + " would take " + text(taken) + " and save " + text(saved));
}

} // namespace tk
