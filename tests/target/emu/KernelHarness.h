// Runs hand-written kernel texts on the emulator.
#ifndef TK_TESTS_TARGET_EMU_KERNELHARNESS_H
#define TK_TESTS_TARGET_EMU_KERNELHARNESS_H

#include "compiler/codegen/emu/CompileEmu.h"
#include "tests/unit/catch.h"

#include <string>
#include <vector>

namespace tk::test {

/// A launch of the kernel `k` of a text. Its parameters are the tensors and integers in the order
/// in which they are added.
class KernelHarness {
public:
  explicit KernelHarness(std::string body) : body(std::move(body)) {}

  std::string symbol = "k";
  unsigned threads = 32;
  int64_t grid = 1;
  unsigned cluster = 1;
  int64_t sharedBytes = 0;
  EmuOptions options;

  /// Adds a parameter that is read, or one that is written; named x, y, z ... in this order.
  template <class T> void in(std::vector<T> &values, DType type) {
    add(values.data(), values.size(), type, false);
  }
  template <class T> void out(std::vector<T> &values, DType type) {
    add(values.data(), values.size(), type, true);
  }
  /// Instead of a dense tensor: any view.
  void inView(const TensorView &view) { add(view, false); }
  void outView(const TensorView &view) { add(view, true); }

  /// The last tensor is handed over as a tensor map with this box, sides from the innermost
  /// outwards; swizzle as in a plan.
  void mapped(std::vector<uint32_t> box, uint8_t swizzle);
  /// Adds another map of the same tensor.
  void mappedAgain(std::vector<uint32_t> box, uint8_t swizzle);
  /// The last map begins so many rows (of axis 1) before its tensor.
  void beginBefore(uint32_t rows) { maps.back().before = rows; }
  /// Rows of the last map are places of windows.
  void atPlaces(std::vector<WindowPlaces> places) { maps.back().places = std::move(places); }
  /// Adds a parameter of 32 bits.
  void integer(int value);
  /// Adds a buffer of 4 bytes that is 0 before the launch, and after it has to be.
  void counter();

  /// Compiles and runs; returns "" or the message of the error, with its place before it.
  std::string run();
  /// Runs again what run() compiled.
  std::string again();

  /// After run(): what it takes to run the same elsewhere.
  const LaunchPlan &plan() const { return executable->plan; }
  const Signature &kernelSignature() const { return signature; }
  std::string text() const { return executable->cuda; }
  /// All of them, those that are written last.
  std::vector<TensorView> tensors() const;

private:
  void add(void *data, size_t count, DType type, bool written);
  void add(const TensorView &view, bool written);

  std::string body;
  Signature signature;
  std::vector<TensorView> inputs, outputs;
  std::vector<Arg> args;
  std::vector<TensorMap> maps;
  std::vector<Scratch> scratch;
  Expected<detail::Executable> executable = detail::Executable();
};

/// The emitted text's line numbers begin at 1 in file "k.tk".
std::string kernelText(const std::string &body);

/// 1, 2, … n.
std::vector<float> counting(size_t n);

} // namespace tk::test

#endif // TK_TESTS_TARGET_EMU_KERNELHARNESS_H
