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
  int rank = 0; // its block's in the cluster
  int grid[3] = {1, 1, 1};

  // Address of the block's shared memory.
  virtual void *shared_memory() = 0;
  // One access of `bytes` bytes to global or shared memory.
  virtual void read(void *to, const void *from, int bytes, int alignment, Place place) = 0;
  virtual void write(void *to, const void *from, int bytes, int alignment, Place place) = 0;
  // An atomic addition to a word of the block's shared memory.
  virtual void add_shared(void *to, unsigned value, Place place) = 0;

  virtual void barrier(Place place) = 0;
  virtual void sync_warp(Place place) = 0;
  virtual unsigned long long shuffle_xor(unsigned long long bits, int mask, Place place) = 0;
  virtual unsigned long long broadcast(unsigned long long bits, Place place) = 0;
  virtual bool elect_one(Place place) = 0;

  // `words` 32-bit words for each thread of the warp; see load_matrix and store_matrix.
  virtual void load_matrix(void *y, const void *row, int words, bool transposed, Place place) = 0;
  virtual void store_matrix(void *row, const void *x, int words, bool transposed, Place place) = 0;
  // c += a b on the fragments of mma.sync m16n8; A is 16 bytes, B 8, C 16.
  virtual void multiply(Products type, void *c, const void *a, const void *b, Place place) = 0;
  // The same of f64: A is 16 bytes, B 8, C 32.
  virtual void multiply_f64(double *c, const double *a, const double *b, Place place) = 0;

  virtual void copy_async(void *to, const void *from, int bytes, bool mask, Place place) = 0;
  virtual void async_commit(Place place) = 0;
  virtual void async_wait(int pending, Place place) = 0;

  // Barriers with phases.
  virtual void phase_init(void *barrier, int arrivals, Place place) = 0;
  virtual void phase_init_fence(Place place) = 0;
  virtual void phase_arrive(void *barrier, int bytes, Place place) = 0;
  virtual void phase_arrive_at(void *barrier, int rank, Place place) = 0;
  virtual void phase_wait(void *barrier, int parity, Place place) = 0;
  // What any thread of the block may note beside them.
  virtual void clear_notes(void *notes, Place place) = 0;
  virtual void note(void *notes, Place place) = 0;
  virtual bool has_notes(const void *notes, Place place) = 0;
  // Writes to the same place of another block, and counts the bytes at its barrier.
  virtual void send_to(void *to, const void *from, int bytes, void *barrier, int rank,
                       Place place) = 0;

  // Bulk copies: a box of a tensor map, or a run of bytes. With mask 0 a load is for this block.
  virtual void bulk_load(void *to, const void *map, int axes, const int *at, void *barrier,
                         unsigned mask, Place place) = 0;
  virtual void bulk_load_windows(void *to, const void *map, int axes, const int *at, const int *by,
                                 void *barrier, Place place) = 0;
  virtual void bulk_store(const void *map, int axes, const int *at, const void *from, bool add,
                          Place place) = 0;
  virtual void bulk_copy(void *to, const void *from, int bytes, void *barrier, Place place) = 0;
  virtual void bulk_copy_out(void *to, const void *from, int bytes, bool add, Place place) = 0;
  virtual void bulk_commit(Place place) = 0;
  virtual void bulk_wait(int pending, bool read_only, Place place) = 0;
  virtual void fence_async_proxy(Place place) = 0;

  // Roles of warps.
  virtual void named_barrier(int id, int threads, bool wait, Place place) = 0;
  // Is x true in all of its threads?
  virtual bool named_barrier_all(int id, int threads, bool x, Place place) = 0;
  virtual void set_registers(int count, bool more, Place place) = 0;

  // Clusters.
  virtual void cluster_arrive(bool orders, Place place) = 0;
  virtual void cluster_wait(Place place) = 0;
  virtual void *map_shared_rank(void *address, int rank, Place place) = 0;
  virtual int draw_from(void *counter, int count, Place place) = 0;
  virtual int count_block(void *counter, int count, Place place) = 0;

  // Products of a warpgroup. `a_registers` are 16 bytes a thread, or null and `a` is a descriptor.
  virtual void warpgroup_fence(Place place) = 0;
  virtual void warpgroup_mma(Products type, int n, bool transpose_a, bool transpose_b, void *acc,
                             const void *a_registers, unsigned long long a, unsigned long long b,
                             bool accumulate, Place place) = 0;
  virtual void warpgroup_commit(Place place) = 0;
  virtual void warpgroup_wait(int pending, Place place) = 0;
};

// One parameter of a kernel.
struct Parameter {
  int bytes;
  bool pointer;
  bool writable; // a pointer to what is not const
  int element;   // bytes of what a pointer points to
  bool map;      // a tensor map
};

} // namespace emu
} // namespace tk
