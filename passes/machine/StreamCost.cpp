//===- StreamCost.cpp - blocks that stream parts of a range ---------------===//
//
//   time = all terms * bytes of a term * byte + 2 * blocks * bytes of a state * byte
//          + terms * max(time of a term in a block alone - blocks of the last round * bytes of a
//                        term * byte, 0)
//
//===----------------------------------------------------------------------===//
#include "passes/machine/StreamCost.h"

#include "passes/machine/CostModel.h"

#include <algorithm>

namespace tk::cost {

double timeOfStream(const StreamWork &work) {
  const int64_t places = std::max<int64_t>(work.places, 1), rest = work.blocks % places;
  const double ofTerm = work.bytesOfTerm * byte;
  const double late =
      rest > 0 ? std::max(termOfWarp - static_cast<double>(rest) * ofTerm, 0.0) : 0.0;
  return work.allTerms * ofTerm + static_cast<double>(work.terms) * late +
         2 * static_cast<double>(work.blocks) * work.bytesOfState * byte;
}

} // namespace tk::cost
