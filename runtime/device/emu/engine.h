// What a kernel compiled for the emulator calls. The kernel's object and the engine are compiled
// apart, perhaps by different compilers; this class of pure functions is all that they share.
#pragma once

namespace tk {

// Where in the source a primitive is called. As a default argument it is the caller's place, and
// #line makes that the line of the .tk file.
struct Place {
  const char *file;
  int line;
  Place(const char *file = __builtin_FILE(), int line = __builtin_LINE())
      : file(file), line(line) {}
};

namespace emu {

// Element types of a matrix product.
enum class Products : int { bf16, f16, tf32, i8, e4m3, e5m2, e4m3_e5m2, e5m2_e4m3 };

// Addresses that kernels see belong to no memory of this process: an access that does not go
// through the engine faults.
class Engine {
public:
  // Of the thread that runs.
  int thread = 0;
  int block[3] = {0, 0, 0};

  // Address of the block's shared memory.
  virtual void *shared_memory() = 0;
  // One access of `bytes` bytes to global or shared memory.
  virtual void read(void *to, const void *from, int bytes, int alignment, Place place) = 0;
  virtual void write(void *to, const void *from, int bytes, int alignment, Place place) = 0;

  virtual void barrier(Place place) = 0;
  virtual unsigned long long shuffle_xor(unsigned long long bits, int mask, Place place) = 0;

  // `words` 32-bit words for each thread of the warp; see load_matrix.
  virtual void load_matrix(void *y, const void *row, int words, bool transposed, Place place) = 0;
  // c += a b on the fragments of mma.sync m16n8; A is 16 bytes, B 8, C 16.
  virtual void multiply(Products type, void *c, const void *a, const void *b, Place place) = 0;

  virtual void copy_async(void *to, const void *from, int bytes, bool mask, Place place) = 0;
  virtual void async_commit(Place place) = 0;
  virtual void async_wait(int pending, Place place) = 0;
};

// One parameter of a kernel.
struct Parameter {
  int bytes;
  bool pointer;
  bool writable; // a pointer to what is not const
  int element;   // bytes of what a pointer points to
};

} // namespace emu
} // namespace tk
