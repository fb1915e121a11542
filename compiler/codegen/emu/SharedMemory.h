//===- SharedMemory.h - a block's shared memory, checked ---------*- C++ -*-===//
#ifndef TK_COMPILER_CODEGEN_EMU_SHAREDMEMORY_H
#define TK_COMPILER_CODEGEN_EMU_SHAREDMEMORY_H

#include "compiler/codegen/emu/Shadow.h"
#include "compiler/codegen/emu/Sites.h"

#include <string>
#include <vector>

namespace tk::emu {

/// Kernels see one window of addresses for their own block's shared memory and one for that of each
/// block of the cluster; none of them belongs to memory of this process. What is checked here takes
/// offsets in bytes; methods that check return false and leave the reason in `complaint`.
class SharedMemory {
public:
  SharedMemory(const Order &order, const Sites &sites) : order(order), sites(sites) {}

  /// For a new block: nothing is written yet.
  void reset(size_t bytes);
  size_t size() const { return data.size(); }

  static void *address(int64_t offset = 0) {
    return reinterpret_cast<void *>(firstAddress + static_cast<uintptr_t>(offset));
  }
  /// The same place in the window of block `rank`.
  static void *remoteAddress(int64_t offset, unsigned rank) {
    return address(offset + (static_cast<int64_t>(rank + 1) << windowBits));
  }
  static bool holds(const void *address) {
    return reinterpret_cast<uintptr_t>(address) >> 40 == firstAddress >> 40;
  }
  /// Where in its block's shared memory an address is, and the block's rank; -1: the own one.
  struct Place {
    int64_t offset;
    int rank;
  };
  static Place locate(const void *address);

  bool read(void *to, int64_t from, int bytes, int alignment, Access mine, const Viewer &viewer);
  bool write(int64_t to, const void *from, int bytes, int alignment, Access mine,
             const Viewer &viewer);

  /// Adds atomically to a word.
  bool add(int64_t to, uint32_t value, Access mine, const Viewer &viewer);

  /// How chunks of 16 bytes are permuted, as tensor maps count, or that nobody knows.
  static constexpr uint8_t anySwizzle = 0xff;
  /// An asynchronous write to these bytes begins (`bulk`: through the asynchronous proxy) ...
  bool beginWrite(int64_t to, int bytes, int alignment, bool bulk, uint8_t swizzle, Access mine,
                  const Viewer &viewer);
  /// ... takes effect ...
  void apply(int64_t to, const void *data, int bytes);
  /// ... and is complete: as if `mine` had written.
  void endWrite(int64_t to, int bytes, Access mine);

  /// A read of these bytes through the asynchronous proxy begins ...
  bool beginRead(int64_t from, int bytes, int alignment, uint8_t swizzle, Access mine,
                 const Viewer &viewer);
  /// ... happens ...
  const unsigned char *at(int64_t from) const { return &data[static_cast<size_t>(from)]; }
  /// ... and is complete: as if `mine` had read.
  void endRead(int64_t from, int bytes, Access mine, const Viewer &viewer);

  /// These bytes hold a barrier from here on: nothing else may access them.
  bool reserve(int64_t at, int bytes, Access mine, const Viewer &viewer);

  std::string complaint;

private:
  static constexpr uintptr_t firstAddress = 0x4100'0080'0000'0000;
  static constexpr unsigned windowBits = 32;
  struct Byte {
    Cell cell;
    Access flight;        ///< the asynchronous write under way into this byte
    Access reader;        ///< one of the asynchronous reads under way
    uint16_t readers = 0; ///< how many there are
    bool barrier = false;
    uint8_t swizzle = anySwizzle; ///< how what is in flight or written last was permuted
  };

  bool inside(int64_t offset, int bytes, int alignment, const char *what);
  bool clash(const char *what, size_t offset, const Access *other, bool otherWrites);
  bool busy(const char *what, size_t offset, const Byte &byte, bool writes);
  bool unfenced(const char *what, size_t offset, const Access &write);

  const Order &order;
  const Sites &sites;
  std::vector<unsigned char> data;
  std::vector<Byte> shadow;
};

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_SHAREDMEMORY_H
