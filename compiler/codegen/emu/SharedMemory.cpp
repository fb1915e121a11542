//===- SharedMemory.cpp - a block's shared memory, checked ----------------===//
#include "compiler/codegen/emu/SharedMemory.h"

#include <cstring>

namespace tk::emu {

void SharedMemory::reset(size_t bytes) {
  // Ones are a NaN in every floating-point type.
  data.assign(bytes, 0xff);
  shadow.assign(bytes, Byte());
}

SharedMemory::Place SharedMemory::locate(const void *address) {
  const auto offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(address) - firstAddress);
  // Offsets may be a little below the beginning of their window.
  const int64_t half = int64_t{1} << (windowBits - 1), window = (offset + half) >> windowBits;
  return {offset - (window << windowBits), static_cast<int>(window) - 1};
}

bool SharedMemory::inside(int64_t offset, int bytes, int alignment, const char *what) {
  // Every access comes here, and to `busy` with each of its bytes: only a complaint costs a text.
  if (offset >= 0 && offset + bytes <= static_cast<int64_t>(data.size()) && offset % alignment == 0)
    return true;
  const std::string range =
      std::to_string(bytes) + " bytes at byte " + std::to_string(offset) + " of shared memory";
  if (offset < 0 || offset + bytes > static_cast<int64_t>(data.size())) {
    complaint =
        std::string(what) + " " + range + ", which has " + std::to_string(data.size()) + " bytes";
    return false;
  }
  complaint = std::string(what) + " " + range + ", which is not aligned to " +
              std::to_string(alignment) + " bytes";
  return false;
}

bool SharedMemory::clash(const char *what, size_t offset, const Access *other, bool otherWrites) {
  complaint = std::string(what) + " byte " + std::to_string(offset) + " of shared memory, which " +
              order.text(other->agent) + (otherWrites ? " wrote at " : " read at ") +
              sites.text(other->site) + " with no barrier in between";
  return false;
}

/// Whether what goes on beside the threads, or a barrier, forbids an access.
bool SharedMemory::busy(const char *what, size_t offset, const Byte &byte, bool writes) {
  if (!byte.flight && !byte.barrier && !(writes && byte.readers))
    return false;
  const std::string subject =
      std::string(what) + " byte " + std::to_string(offset) + " of shared memory";
  if (byte.flight) {
    complaint = subject + " while an asynchronous copy into it is in flight, begun by " +
                order.text(byte.flight.agent) + " at " + sites.text(byte.flight.site) +
                " and not yet waited for";
    return true;
  }
  if (writes && byte.readers) {
    complaint = subject + " while it is still being read by what " + order.text(byte.reader.agent) +
                " began at " + sites.text(byte.reader.site) + " and has not waited for";
    return true;
  }
  complaint = subject + ", which holds a phase barrier";
  return true;
}

bool SharedMemory::unfenced(const char *what, size_t offset, const Access &write) {
  complaint = std::string(what) + " byte " + std::to_string(offset) + " of shared memory, which " +
              order.text(write.agent) + " wrote at " + sites.text(write.site) +
              " with no fence_async_proxy after it";
  return false;
}

bool SharedMemory::read(void *to, int64_t from, int bytes, int alignment, Access mine,
                        const Viewer &viewer) {
  if (!inside(from, bytes, alignment, "reads"))
    return false;
  const auto offset = static_cast<size_t>(from);
  for (size_t i = offset; i < offset + static_cast<size_t>(bytes); ++i) {
    Byte &byte = shadow[i];
    if (busy("reads", i, byte, false))
      return false;
    if (!byte.cell.write) {
      complaint = "reads byte " + std::to_string(i) + " of shared memory, which is not written yet";
      return false;
    }
    if (const Access *other = byte.cell.read(order, mine, viewer))
      return clash("reads", i, other, true);
  }
  std::memcpy(to, &data[offset], static_cast<size_t>(bytes));
  return true;
}

bool SharedMemory::write(int64_t to, const void *from, int bytes, int alignment, Access mine,
                         const Viewer &viewer) {
  if (!inside(to, bytes, alignment, "writes"))
    return false;
  const auto offset = static_cast<size_t>(to);
  for (size_t i = offset; i < offset + static_cast<size_t>(bytes); ++i) {
    Byte &byte = shadow[i];
    if (busy("writes", i, byte, true))
      return false;
    if (const Access *other = byte.cell.overwrite(order, mine, viewer))
      return clash("writes", i, other, !byte.cell.isRead(other));
    byte.swizzle = anySwizzle;
  }
  std::memcpy(&data[offset], from, static_cast<size_t>(bytes));
  return true;
}

bool SharedMemory::add(int64_t to, uint32_t value, Access mine, const Viewer &viewer) {
  if (!inside(to, sizeof(value), sizeof(value), "adds to"))
    return false;
  const auto offset = static_cast<size_t>(to);
  for (size_t i = offset; i < offset + sizeof(value); ++i) {
    Byte &byte = shadow[i];
    if (busy("adds to", i, byte, true))
      return false;
    if (!byte.cell.write) {
      complaint =
          "adds to byte " + std::to_string(i) + " of shared memory, which is not written yet";
      return false;
    }
    if (const Access *other = byte.cell.add(order, mine, viewer))
      return clash("adds to", i, other, !byte.cell.isRead(other));
  }
  uint32_t sum;
  std::memcpy(&sum, &data[offset], sizeof(sum));
  sum += value;
  std::memcpy(&data[offset], &sum, sizeof(sum));
  return true;
}

bool SharedMemory::beginWrite(int64_t to, int bytes, int alignment, bool bulk, uint8_t swizzle,
                              Access mine, const Viewer &viewer) {
  if (!inside(to, bytes, alignment, "copies to"))
    return false;
  constexpr const char *what = "begins to copy to";
  const auto offset = static_cast<size_t>(to);
  for (size_t i = offset; i < offset + static_cast<size_t>(bytes); ++i) {
    Byte &byte = shadow[i];
    if (busy(what, i, byte, true))
      return false;
    const Access previous = byte.cell.write;
    if (const Access *other = byte.cell.overwrite(order, mine, viewer))
      return clash(what, i, other, !byte.cell.isRead(other));
    if (bulk && previous && !order.fenced(previous, viewer))
      return unfenced(what, i, previous);
    byte.flight = mine;
    byte.swizzle = swizzle;
  }
  return true;
}

void SharedMemory::apply(int64_t to, const void *from, int bytes) {
  std::memcpy(&data[static_cast<size_t>(to)], from, static_cast<size_t>(bytes));
}

void SharedMemory::endWrite(int64_t to, int bytes, Access mine) {
  const auto offset = static_cast<size_t>(to);
  for (size_t i = offset; i < offset + static_cast<size_t>(bytes); ++i) {
    shadow[i].flight = Access();
    shadow[i].cell.write = mine;
  }
}

static std::string swizzleText(unsigned swizzle) {
  return swizzle ? "with a swizzle of " + std::to_string(16 << swizzle) + " bytes"
                 : "without a swizzle";
}

bool SharedMemory::beginRead(int64_t from, int bytes, int alignment, uint8_t swizzle, Access mine,
                             const Viewer &viewer) {
  constexpr const char *what = "begins to read";
  if (!inside(from, bytes, alignment, what))
    return false;
  const auto offset = static_cast<size_t>(from);
  for (size_t i = offset; i < offset + static_cast<size_t>(bytes); ++i) {
    Byte &byte = shadow[i];
    if (busy(what, i, byte, false))
      return false;
    const Access &write = byte.cell.write;
    if (!write) {
      complaint = std::string(what) + " byte " + std::to_string(i) +
                  " of shared memory, which is not written yet";
      return false;
    }
    if (!order.before(write, viewer))
      return clash(what, i, &write, true);
    if (!order.fenced(write, viewer))
      return unfenced(what, i, write);
    if (swizzle != anySwizzle && byte.swizzle != anySwizzle && swizzle != byte.swizzle) {
      complaint = std::string(what) + " byte " + std::to_string(i) + " of shared memory " +
                  swizzleText(swizzle) + ", which " + order.text(write.agent) + " wrote at " +
                  sites.text(write.site) + " " + swizzleText(byte.swizzle);
      return false;
    }
    byte.reader = mine;
    ++byte.readers;
  }
  return true;
}

void SharedMemory::endRead(int64_t from, int bytes, Access mine, const Viewer &viewer) {
  const auto offset = static_cast<size_t>(from);
  for (size_t i = offset; i < offset + static_cast<size_t>(bytes); ++i) {
    --shadow[i].readers;
    shadow[i].cell.read(order, mine, viewer);
  }
}

bool SharedMemory::reserve(int64_t at, int bytes, Access mine, const Viewer &viewer) {
  if (!inside(at, bytes, bytes, "initialises a barrier of"))
    return false;
  const auto offset = static_cast<size_t>(at);
  for (size_t i = offset; i < offset + static_cast<size_t>(bytes); ++i) {
    if (busy("initialises a barrier in", i, shadow[i], true))
      return false;
    if (const Access *other = shadow[i].cell.overwrite(order, mine, viewer))
      return clash("initialises a barrier in", i, other, !shadow[i].cell.isRead(other));
    shadow[i].barrier = true;
  }
  return true;
}

} // namespace tk::emu
