//===- TensorBox.h - a tensor map at a launch --------------------*- C++ -*-===//
#ifndef TK_COMPILER_CODEGEN_EMU_TENSORBOX_H
#define TK_COMPILER_CODEGEN_EMU_TENSORBOX_H

#include "compiler/codegen/emu/GlobalMemory.h"
#include "tk/backend.h"

namespace tk::emu {

/// The offset in shared memory where the hardware puts what belongs at `offset`: within rows of 128
/// bytes, chunks of 16 change places in spans of 32, 64 or 128 bytes (swizzle 1, 2, 3; 0: none).
inline int64_t swizzled(int64_t offset, unsigned swizzle) {
  const int64_t mask = (int64_t{1} << swizzle) - 1;
  return offset ^ ((offset >> 7 & mask) << 4);
}

/// A tensor in global memory and the box of it that one copy moves. Axes go from the innermost
/// outwards.
struct TensorBox {
  static constexpr unsigned maxAxes = 5;
  /// A kernel's tensor map is this word and the number of the map.
  static constexpr uint64_t mark = 0x746b'656d'755f'6d70;

  TensorBox() = default;
  TensorBox(const TensorMap &map, const detail::ResolvedMap &resolved, void *address);

  unsigned axes = 0;
  DType dtype = DType::f32;
  int64_t extents[maxAxes] = {1, 1, 1, 1, 1};
  int64_t strides[maxAxes] = {}; ///< bytes
  int64_t box[maxAxes] = {1, 1, 1, 1, 1};
  unsigned swizzle = 0;
  bool fillNan = false;
  bool roundsToTf32 = false;
  bool empty = false;
  /// Rows are places of windows: by axis but the first and the last, `counts` of them, `steps`
  /// apart from `lower` on.
  bool hasPlaces = false;
  int64_t lower[maxAxes] = {}, steps[maxAxes] = {}, counts[maxAxes] = {};
  char *address = nullptr; ///< as kernels see it

  int bytes() const;
  int64_t rowBytes() const { return box[0] * static_cast<int64_t>(size_of(dtype)); }

  /// The box at `at`, as it will be in shared memory from offset `to` on. False if global memory
  /// refuses.
  /// Of windows (`by`, else null) it is what lies at that distance from each place.
  bool load(GlobalMemory &global, const int *at, const int *by, int64_t to, Access mine,
            const Viewer &viewer, std::vector<unsigned char> &data) const;
  /// Is there a place of a window at `at`?
  bool isPlace(const int *at) const;
  /// Writes (or adds) what is in shared memory from offset `from` on to the box at `at`.
  bool store(GlobalMemory &global, const int *at, int64_t from, const unsigned char *data, bool add,
             Access mine, const Viewer &viewer) const;

private:
  /// Is no element of the box at `at` in the tensor? An H200 then reads the map's base address, and
  /// raises an illegal address where no memory is mapped there.
  bool isOutside(const int *at) const;
  /// Calls visit(element of the box, address or nullptr where outside, elements) for runs along the
  /// innermost axis; stops where it returns false.
  template <class Visit> bool forEachRun(const int *at, Visit visit) const;
  /// The same for windows at the distance `by` from places that are counted through from `at` on.
  template <class Visit> bool forEachWindow(const int *at, const int *by, Visit visit) const;
  /// Calls visit for what lies at `at` along the innermost axis.
  template <class Visit> bool visitRow(int64_t element, const int64_t *at, Visit visit) const;
};

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_TENSORBOX_H
