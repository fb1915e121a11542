//===- SharedMemory.cpp - a block's shared memory, checked ----------------===//
#include "compiler/target/emu/SharedMemory.h"

#include <algorithm>
#include <cstring>

namespace tk::emu {

unsigned Order::blockOf(const Access &access) const {
  auto next = std::upper_bound(starts.begin(), starts.end(), access.stamp);
  return static_cast<unsigned>(next - starts.begin()) - 1;
}

std::string threadText(unsigned thread) {
  return "thread " + std::to_string(thread) + " (warp " + std::to_string(thread / 32) + ", lane " +
         std::to_string(thread % 32) + ")";
}

void SharedMemory::reset(size_t bytes) {
  // Ones are a NaN in every floating-point type.
  data.assign(bytes, 0xff);
  shadow.assign(bytes, Byte());
}

bool SharedMemory::locate(const void *address, int bytes, int alignment, const char *what,
                          size_t &offset) {
  const auto signedOffset =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(address) - firstAddress);
  offset = static_cast<size_t>(signedOffset);
  const std::string range = std::to_string(bytes) + " bytes at byte " +
                            std::to_string(signedOffset) + " of shared memory";
  if (signedOffset < 0 || signedOffset + bytes > static_cast<int64_t>(data.size())) {
    complaint =
        std::string(what) + " " + range + ", which has " + std::to_string(data.size()) + " bytes";
    return false;
  }
  if (signedOffset % alignment != 0) {
    complaint = std::string(what) + " " + range + ", which is not aligned to " +
                std::to_string(alignment) + " bytes";
    return false;
  }
  return true;
}

bool SharedMemory::clash(const char *what, size_t offset, const Access *other, bool otherWrites) {
  complaint = std::string(what) + " byte " + std::to_string(offset) + " of shared memory, which " +
              threadText(other->thread) + (otherWrites ? " wrote at " : " read at ") +
              sites.text(other->site) + " with no barrier in between";
  return false;
}

bool SharedMemory::inFlight(const char *what, size_t offset, const Access &copy) {
  complaint = std::string(what) + " byte " + std::to_string(offset) +
              " of shared memory while an asynchronous copy into it is in flight, begun by " +
              threadText(copy.thread) + " at " + sites.text(copy.site) + " and not yet waited for";
  return false;
}

bool SharedMemory::read(void *to, const void *from, int bytes, int alignment, Access mine) {
  size_t offset;
  if (!locate(from, bytes, alignment, "reads", offset))
    return false;
  for (size_t i = offset; i < offset + static_cast<size_t>(bytes); ++i) {
    Byte &byte = shadow[i];
    if (byte.flight)
      return inFlight("reads", i, byte.flight);
    if (!byte.cell.write) {
      complaint = "reads byte " + std::to_string(i) + " of shared memory, which is not written yet";
      return false;
    }
    if (const Access *other = byte.cell.read(order, mine))
      return clash("reads", i, other, true);
  }
  std::memcpy(to, &data[offset], static_cast<size_t>(bytes));
  return true;
}

bool SharedMemory::write(void *to, const void *from, int bytes, int alignment, Access mine) {
  size_t offset;
  if (!locate(to, bytes, alignment, "writes", offset))
    return false;
  for (size_t i = offset; i < offset + static_cast<size_t>(bytes); ++i) {
    Byte &byte = shadow[i];
    if (byte.flight)
      return inFlight("writes", i, byte.flight);
    if (const Access *other = byte.cell.overwrite(order, mine))
      return clash("writes", i, other, other == &byte.cell.write);
  }
  std::memcpy(&data[offset], from, static_cast<size_t>(bytes));
  return true;
}

bool SharedMemory::beginCopy(const void *to, int bytes, Access mine) {
  size_t offset;
  if (!locate(to, bytes, bytes, "copies to", offset))
    return false;
  for (size_t i = offset; i < offset + static_cast<size_t>(bytes); ++i) {
    Byte &byte = shadow[i];
    if (byte.flight)
      return inFlight("begins to copy to", i, byte.flight);
    if (const Access *other = byte.cell.overwrite(order, mine))
      return clash("begins to copy to", i, other, other == &byte.cell.write);
    byte.flight = mine;
  }
  return true;
}

void SharedMemory::applyCopy(void *to, const void *from, int bytes) {
  std::memcpy(&data[reinterpret_cast<uintptr_t>(to) - firstAddress], from,
              static_cast<size_t>(bytes));
}

void SharedMemory::endCopy(const void *to, int bytes, Access mine) {
  const size_t offset = reinterpret_cast<uintptr_t>(to) - firstAddress;
  for (size_t i = offset; i < offset + static_cast<size_t>(bytes); ++i) {
    shadow[i].flight = Access();
    shadow[i].cell.write = mine;
  }
}

} // namespace tk::emu
