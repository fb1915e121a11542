//===- GlobalMemory.cpp - tensors and scratch buffers, checked ------------===//
#include "compiler/codegen/emu/GlobalMemory.h"

#include "compiler/codegen/emu/Fragments.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tk::emu {

GlobalMemory::Buffer &GlobalMemory::add(const std::string &name) {
  Buffer &buffer = buffers.emplace_back();
  buffer.name = name;
  return buffer;
}

/// Buffers are far apart, and an address is aligned as that of the memory behind it.
static uintptr_t addressOf(size_t number, const void *data, uintptr_t first, unsigned slotBits) {
  return first + (static_cast<uintptr_t>(number) << slotBits) + (uintptr_t{1} << (slotBits - 1)) +
         (reinterpret_cast<uintptr_t>(data) & 4095);
}

/// Calls `visit` with the offset, in elements, of every element of a view.
template <class Visit> static void forEachElement(const TensorView &view, Visit visit) {
  if (element_count(view.shape).value() == 0)
    return;
  Extents index = view.shape;
  for (unsigned axis = 0; axis < view.rank(); ++axis)
    index[axis] = 0;
  for (int64_t offset = 0;;) {
    visit(offset);
    unsigned axis = view.rank();
    for (; axis-- > 0;) {
      offset += view.strides[axis];
      if (++index[axis] < view.shape[axis])
        break;
      offset -= view.strides[axis] * view.shape[axis];
      index[axis] = 0;
    }
    if (axis == ~0u)
      return;
  }
}

void GlobalMemory::addTensor(const std::string &name, const TensorView &view, Contents contents) {
  Buffer &buffer = add(name);
  buffer.isTensor = true;
  buffer.view = view;
  buffer.contents = contents;
  buffer.data = static_cast<char *>(view.data);
  buffer.address = addressOf(buffers.size() - 1, view.data, firstAddress, slotBits);
  std::tie(buffer.low, buffer.high) = byte_range(view).value();
  const auto bytes = static_cast<size_t>(buffer.high - buffer.low);
  const auto size = static_cast<int64_t>(size_of(view.dtype));
  if (!view.is_contiguous()) {
    buffer.outside.assign(bytes, true);
    forEachElement(view, [&](int64_t offset) {
      for (int64_t b = 0; b < size; ++b)
        buffer.outside[static_cast<size_t>(offset * size + b - buffer.low)] = false;
    });
  }
  if (contents != Contents::unwritten)
    return;
  buffer.written.assign(bytes, false);
  for (size_t b = 0; b < bytes; ++b)
    if (buffer.outside.empty() || !buffer.outside[b])
      buffer.data[buffer.low + static_cast<int64_t>(b)] = static_cast<char>(0xff);
}

void GlobalMemory::addScratch(const Scratch &scratch, int64_t bytes) {
  constexpr size_t alignment = 256;
  Buffer &buffer = add(scratch.purpose);
  const bool zeroed = scratch.zeroed || scratch.restored;
  buffer.isRestored = scratch.restored;
  const auto size = static_cast<size_t>(bytes);
  buffer.contents = Contents::unwritten;
  buffer.memory = std::make_unique<char[]>(size + alignment);
  std::memset(buffer.memory.get(), zeroed ? 0 : 0xff, size + alignment);
  const uintptr_t begin = reinterpret_cast<uintptr_t>(buffer.memory.get());
  buffer.data = buffer.memory.get() + (alignment - begin % alignment) % alignment;
  buffer.address = addressOf(buffers.size() - 1, buffer.data, firstAddress, slotBits);
  buffer.high = bytes;
  if (!zeroed)
    buffer.written.assign(size, false);
}

void GlobalMemory::beginLaunch() {
  for (Buffer &buffer : buffers)
    buffer.cells.clear();
}

void GlobalMemory::addParameter(size_t number, const Parameter &parameter) {
  Buffer &buffer = buffers[number];
  if (!parameter.writable || !buffer.cells.empty())
    return;
  buffer.element = std::max(1, parameter.element);
  buffer.cells.assign(static_cast<size_t>((buffer.high - buffer.low) / buffer.element + 1), Cell());
}

std::string GlobalMemory::elementText(const Buffer &buffer, int64_t offset) {
  if (!buffer.isTensor)
    return "byte " + std::to_string(offset) + " of scratch buffer '" + buffer.name + "'";
  const TensorView &view = buffer.view;
  const auto size = static_cast<int64_t>(size_of(view.dtype));
  int64_t rest = offset / size;
  if (offset < buffer.low || offset >= buffer.high)
    return "element " + std::to_string(rest) + " of '" + buffer.name + "', a " + view.str();
  // Axes from the largest stride down; strides that overlap give one of the possible names.
  std::vector<unsigned> axes(view.rank());
  std::iota(axes.begin(), axes.end(), 0u);
  std::sort(axes.begin(), axes.end(), [&](unsigned a, unsigned b) {
    return std::abs(view.strides[a]) > std::abs(view.strides[b]);
  });
  std::vector<int64_t> index(view.rank(), 0);
  for (unsigned axis : axes)
    if (view.strides[axis] != 0) {
      index[axis] = rest / view.strides[axis];
      rest -= index[axis] * view.strides[axis];
    }
  std::string text = buffer.name + "[";
  for (unsigned axis = 0; axis < view.rank(); ++axis)
    text += (axis ? ", " : "") + std::to_string(index[axis]);
  return text + "]";
}

bool GlobalMemory::refuse(const char *what, const Buffer &buffer, int64_t offset,
                          const std::string &why) {
  complaint = std::string(what) + " " + elementText(buffer, offset) + why;
  return false;
}

bool GlobalMemory::clash(const char *what, const Buffer &buffer, int64_t offset,
                         const Access *other, bool otherWrites) {
  const bool here = order.inCurrentCluster(*other);
  const char *noun = order.blocksPerCluster() == 1 ? " of block number " : " of cluster number ";
  return refuse(what, buffer, offset,
                ", which " + order.text(other->agent) +
                    (here ? "" : noun + std::to_string(order.clusterOf(*other))) +
                    (otherWrites ? " wrote at " : " read at ") + sites.text(other->site) +
                    (here ? " with no barrier in between" : " in the same launch"));
}

GlobalMemory::Buffer *GlobalMemory::locate(const void *address, int bytes, int alignment,
                                           const char *what, int64_t &offset) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const size_t number = (at - firstAddress) >> slotBits;
  if (at < firstAddress || number >= buffers.size()) {
    complaint = std::string(what) + " an address that belongs to no tensor, scratch buffer or "
                                    "shared memory";
    return nullptr;
  }
  Buffer &buffer = buffers[number];
  offset = static_cast<int64_t>(at - buffer.address);
  if (offset < buffer.low || offset + bytes > buffer.high) {
    if (offset >= buffer.low && offset < buffer.high)
      refuse(what, buffer, offset,
             " and " + std::to_string(offset + bytes - buffer.high) +
                 " bytes beyond the end of the buffer");
    else
      refuse(what, buffer, offset, ", which is outside");
    return nullptr;
  }
  if (at % static_cast<uintptr_t>(alignment) != 0) {
    refuse(what, buffer, offset,
           ", whose address is not aligned to " + std::to_string(alignment) + " bytes");
    return nullptr;
  }
  if (!buffer.outside.empty())
    for (int64_t b = offset; b < offset + bytes; ++b)
      if (buffer.outside[static_cast<size_t>(b - buffer.low)]) {
        refuse(what, buffer, b, ", which is between the rows of a strided tensor");
        return nullptr;
      }
  return &buffer;
}

/// Where a byte would be if the buffer began at whole sectors, as tensors of a GPU do.
uintptr_t GlobalMemory::addressOnDevice(const Buffer &buffer, int64_t offset) {
  constexpr uintptr_t alignment = 256;
  return buffer.address / alignment * alignment + static_cast<uintptr_t>(offset);
}

const void *GlobalMemory::locateRead(const void *from, int bytes, int alignment, Access mine,
                                     const Viewer &viewer) {
  int64_t offset;
  Buffer *buffer = locate(from, bytes, alignment, "reads", offset);
  if (!buffer)
    return nullptr;
  const int64_t begin = offset - buffer->low;
  if (!buffer->written.empty())
    for (int64_t b = begin; b < begin + bytes; ++b)
      if (!buffer->written[static_cast<size_t>(b)]) {
        refuse("reads", *buffer, b + buffer->low, ", which is not written yet");
        return nullptr;
      }
  if (!buffer->cells.empty())
    for (int64_t c = begin / buffer->element; c <= (begin + bytes - 1) / buffer->element; ++c)
      if (const Access *other = buffer->cells[static_cast<size_t>(c)].read(order, mine, viewer)) {
        clash("reads", *buffer, c * buffer->element + buffer->low, other, true);
        return nullptr;
      }
  if (counts)
    counts->access(mine, addressOnDevice(*buffer, offset), bytes, false);
  return buffer->data + offset;
}

bool GlobalMemory::read(void *to, const void *from, int bytes, int alignment, Access mine,
                        const Viewer &viewer) {
  const void *data = locateRead(from, bytes, alignment, mine, viewer);
  if (data)
    std::memcpy(to, data, static_cast<size_t>(bytes));
  return data;
}

bool GlobalMemory::write(void *to, const void *from, int bytes, int alignment, Access mine,
                         const Viewer &viewer) {
  int64_t offset;
  Buffer *buffer = locate(to, bytes, alignment, "writes", offset);
  if (!buffer)
    return false;
  if (buffer->contents == Contents::given)
    return refuse("writes", *buffer, offset, ", a parameter that is only read");
  const int64_t begin = offset - buffer->low;
  for (int64_t c = begin / buffer->element; c <= (begin + bytes - 1) / buffer->element; ++c) {
    Cell &cell = buffer->cells[static_cast<size_t>(c)];
    const Access *other = cell.overwrite(order, mine, viewer);
    // The last tiles of a product may overlap those before them: blocks, and warps that go through
    // tiles of their own, then write the same bits.
    const bool isOtherWarp = other && (!order.inCurrentCluster(*other) ||
                                       other->agent / warpSize != mine.agent / warpSize);
    const int64_t first = std::max(begin, c * buffer->element),
                  end = std::min(begin + bytes, (c + 1) * buffer->element);
    if (isOtherWarp && other == &cell.write &&
        std::memcmp(buffer->data + buffer->low + first,
                    static_cast<const char *>(from) + (first - begin),
                    static_cast<size_t>(end - first)) == 0)
      continue;
    if (other)
      return clash("writes", *buffer, c * buffer->element + buffer->low, other,
                   other == &cell.write);
  }
  if (!buffer->written.empty())
    for (int64_t b = begin; b < begin + bytes; ++b)
      buffer->written[static_cast<size_t>(b)] = true;
  if (counts)
    counts->access(mine, addressOnDevice(*buffer, offset), bytes, true);
  std::memcpy(buffer->data + offset, from, static_cast<size_t>(bytes));
  return true;
}

bool GlobalMemory::add(void *to, const void *from, int bytes, DType type) {
  int64_t offset;
  const auto size = static_cast<int64_t>(size_of(type));
  Buffer *buffer = locate(to, bytes, static_cast<int>(size), "adds to", offset);
  if (!buffer)
    return false;
  if (buffer->contents == Contents::given)
    return refuse("adds to", *buffer, offset, ", a parameter that is only read");
  for (int64_t at = 0; at < bytes; at += size) {
    if (!buffer->written.empty() &&
        !buffer->written[static_cast<size_t>(offset + at - buffer->low)])
      return refuse("adds to", *buffer, offset + at, ", which is not written yet");
    char *element = buffer->data + offset + at;
    const char *term = static_cast<const char *>(from) + at;
    if (is_float(type)) {
      store_from_f64(type, element, load_as_f64(type, element) + load_as_f64(type, term));
    } else {
      uint64_t sum = 0, other = 0;
      std::memcpy(&sum, element, static_cast<size_t>(size));
      std::memcpy(&other, term, static_cast<size_t>(size));
      sum += other;
      std::memcpy(element, &sum, static_cast<size_t>(size));
    }
  }
  return true;
}

bool GlobalMemory::draw(void *counter, int count, int &number) {
  int64_t offset;
  Buffer *buffer = locate(counter, sizeof number, alignof(int), "draws from", offset);
  if (!buffer)
    return false;
  if (!buffer->isRestored)
    return refuse("draws from", *buffer, offset, ", which is not 0 when launches begin");
  std::memcpy(&number, buffer->data + offset, sizeof number);
  const int next = number + 1 < count ? number + 1 : 0;
  std::memcpy(buffer->data + offset, &next, sizeof next);
  return true;
}

bool GlobalMemory::complete() {
  for (const Buffer &buffer : buffers) {
    for (int64_t b = 0; buffer.isRestored && b < buffer.high; ++b)
      if (buffer.data[b] != 0) {
        complaint = "does not leave " + elementText(buffer, b) + " as it was";
        return false;
      }
    if (!buffer.isTensor)
      continue;
    for (size_t b = 0; b < buffer.written.size(); ++b)
      if (!buffer.written[b] && (buffer.outside.empty() || !buffer.outside[b])) {
        complaint = "never writes " + elementText(buffer, static_cast<int64_t>(b) + buffer.low);
        return false;
      }
  }
  return true;
}

} // namespace tk::emu
