//===- SharedMemory.h - a block's shared memory, checked ---------*- C++ -*-===//
#ifndef TK_COMPILER_TARGET_EMU_SHAREDMEMORY_H
#define TK_COMPILER_TARGET_EMU_SHAREDMEMORY_H

#include "compiler/target/emu/Shadow.h"
#include "compiler/target/emu/Sites.h"

#include <string>
#include <vector>

namespace tk::emu {

/// Methods that check return false and leave the reason in `complaint`.
class SharedMemory {
public:
  SharedMemory(const Order &order, const Sites &sites) : order(order), sites(sites) {}

  /// For a new block: nothing is written yet.
  void reset(size_t bytes);

  /// The address that kernels see. It belongs to no memory of this process.
  static void *address() { return reinterpret_cast<void *>(firstAddress); }
  static bool holds(const void *address) {
    return reinterpret_cast<uintptr_t>(address) >> 40 == firstAddress >> 40;
  }

  bool read(void *to, const void *from, int bytes, int alignment, Access mine);
  bool write(void *to, const void *from, int bytes, int alignment, Access mine);
  /// An asynchronous write to these bytes begins ...
  bool beginCopy(const void *to, int bytes, Access mine);
  /// ... takes effect ...
  void applyCopy(void *to, const void *data, int bytes);
  /// ... and is complete: as if `mine` had written.
  void endCopy(const void *to, int bytes, Access mine);

  std::string complaint;

private:
  static constexpr uintptr_t firstAddress = 0x4100'0080'0000'0000;
  struct Byte {
    Cell cell;
    Access flight; ///< the copy under way into this byte
  };

  bool locate(const void *address, int bytes, int alignment, const char *what, size_t &offset);
  bool clash(const char *what, size_t offset, const Access *other, bool otherWrites);
  bool inFlight(const char *what, size_t offset, const Access &copy);

  const Order &order;
  const Sites &sites;
  std::vector<unsigned char> data;
  std::vector<Byte> shadow;
};

/// "thread 37 (warp 1, lane 5)".
std::string threadText(unsigned thread);

} // namespace tk::emu

#endif // TK_COMPILER_TARGET_EMU_SHAREDMEMORY_H
