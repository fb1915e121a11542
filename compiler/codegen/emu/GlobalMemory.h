//===- GlobalMemory.h - tensors and scratch buffers, checked -----*- C++ -*-===//
#ifndef TK_COMPILER_CODEGEN_EMU_GLOBALMEMORY_H
#define TK_COMPILER_CODEGEN_EMU_GLOBALMEMORY_H

#include "compiler/codegen/emu/Counts.h"
#include "compiler/codegen/emu/Shadow.h"
#include "compiler/codegen/emu/Sites.h"
#include "runtime/device/emu/engine.h"
#include "tk/plan.h"
#include "tk/tensor.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace tk::emu {

enum class Contents {
  given,    ///< a parameter: may not be written
  updated,  ///< an `inout` parameter
  unwritten ///< a result or scratch: has to be written before it is read
};

/// The buffers of one run of a plan. Methods that check return false and leave the reason in
/// `complaint`.
class GlobalMemory {
public:
  GlobalMemory(const Order &order, const Sites &sites) : order(order), sites(sites) {}

  /// Adds a tensor, on its own memory; where unwritten, fills it with NaNs.
  void addTensor(const std::string &name, const TensorView &view, Contents contents);
  /// Adds a scratch buffer.
  void addScratch(const Scratch &scratch, int64_t bytes);

  /// The address that kernels see of a buffer. It belongs to no memory of this process.
  void *address(size_t buffer) const { return reinterpret_cast<void *>(buffers[buffer].address); }
  static bool holds(const void *address) {
    return reinterpret_cast<uintptr_t>(address) >> 56 == firstAddress >> 56;
  }

  /// Before a launch: nothing is accessed yet. Then once for each parameter.
  void beginLaunch();
  void addParameter(size_t buffer, const Parameter &parameter);

  bool read(void *to, const void *from, int bytes, int alignment, Access mine,
            const Viewer &viewer);
  bool write(void *to, const void *from, int bytes, int alignment, Access mine,
             const Viewer &viewer);
  /// Adds atomically. Its order with other accesses is not checked.
  bool add(void *to, const void *from, int bytes, DType type);
  /// The next of the numbers 0 to count - 1, after which the counter begins again. Its order with
  /// other accesses is not checked.
  bool draw(void *counter, int count, int &number);
  /// Checks a read as `read` does and returns where the bytes are, or nullptr.
  const void *locateRead(const void *from, int bytes, int alignment, Access mine,
                         const Viewer &viewer);

  /// After the last launch: whether every element of the results is written, and what has to be 0
  /// again is.
  bool complete();

  std::string complaint;
  Counts *counts = nullptr; ///< of the launch that runs; null: nobody asks

private:
  static constexpr uintptr_t firstAddress = 0x4000'0000'0000'0000;
  static constexpr unsigned slotBits = 44;
  struct Buffer {
    std::string name;
    bool isTensor = false;
    bool isRestored = false;
    TensorView view;
    Contents contents = Contents::given;
    uintptr_t address = 0;          ///< of element 0, as kernels see it
    char *data = nullptr;           ///< of element 0
    int64_t low = 0, high = 0;      ///< bytes around it
    std::vector<bool> outside;      ///< by byte: between the rows of a strided tensor
    std::vector<bool> written;      ///< by byte; empty: all
    int element = 1;                ///< bytes a cell
    std::vector<Cell> cells;        ///< where this launch may write
    std::unique_ptr<char[]> memory; ///< a scratch buffer's
  };

  Buffer *locate(const void *address, int bytes, int alignment, const char *what, int64_t &offset);
  bool refuse(const char *what, const Buffer &buffer, int64_t offset, const std::string &why);
  bool clash(const char *what, const Buffer &buffer, int64_t offset, const Access *other,
             bool otherWrites);
  static std::string elementText(const Buffer &buffer, int64_t offset);
  Buffer &add(const std::string &name);
  static uintptr_t addressOnDevice(const Buffer &buffer, int64_t offset);

  const Order &order;
  const Sites &sites;
  std::deque<Buffer> buffers;
};

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_GLOBALMEMORY_H
