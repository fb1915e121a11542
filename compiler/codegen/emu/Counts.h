//===- Counts.h - what the blocks of a launch move and multiply --*- C++ -*-===//
//
// Bytes are counted as the hardware moves them to and from the second-level cache: in sectors, each
// once for one access of a warp. Lanes run one after the other here, so that the n-th access of a
// lane at a place of the text belongs to the n-th access of the other lanes there.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_EMU_COUNTS_H
#define TK_COMPILER_CODEGEN_EMU_COUNTS_H

#include "compiler/codegen/emu/Order.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tk::emu {

class Counts {
public:
  void access(const Access &mine, uintptr_t address, int bytes, bool isWrite);
  void multiplied(double multiplyAdds) { products += multiplyAdds; }
  /// Other threads run from now on.
  void endCluster();

  double read = 0, written = 0; ///< bytes
  double products = 0;          ///< multiply-adds of matrix units

private:
  using Sectors = std::vector<uintptr_t>;
  std::unordered_map<uint64_t, uint32_t> accessesOf; ///< by thread, place and kind
  std::unordered_map<uint64_t, Sectors> ofWarps;     ///< by warp, place, kind and number
};

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_COUNTS_H
