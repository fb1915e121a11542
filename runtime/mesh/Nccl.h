// NCCL, loaded at run time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tk/error.h"

namespace tk::cuda {

using NcclComm = struct ncclComm *;
using NcclResult = int;
/// Numbers of ncclDataType_t and ncclRedOp_t.
enum class NcclType : int { i8 = 0, u8 = 1, i32 = 2, i64 = 4, f16 = 6, f32 = 7, f64 = 8, bf16 = 9 };
enum class NcclOp : int { sum = 0, prod = 1, max = 2, min = 3 };

struct NcclUniqueId {
  char bytes[128];
};

class Nccl {
public:
  /// The process's NCCL, searched on first use: TK_NCCL, what the process has loaded (PyTorch's),
  /// the loader's path, the Python package nvidia-nccl. The same error each time where there is
  /// none.
  static Expected<const Nccl *> get();
  /// Loads a library by path. Fails with `no_nccl`, or with `nccl_too_old` where it lacks a
  /// function or its version is below the least.
  static Expected<std::unique_ptr<Nccl>> load(const std::string &path);
  /// Every path that get() would try, in order.
  static std::vector<std::string> candidates();

  /// "2.27.3".
  std::string version_text() const;
  int version = 0; ///< as NCCL numbers it: 22703
  std::string path;

  struct Functions {
    NcclResult (*get_version)(int *version);
    const char *(*error_string)(NcclResult result);
    NcclResult (*unique_id)(NcclUniqueId *id);
    NcclResult (*init_rank)(NcclComm *comm, int ranks, NcclUniqueId id, int rank);
    NcclResult (*split)(NcclComm comm, int color, int key, NcclComm *made, void *config);
    NcclResult (*count)(NcclComm comm, int *ranks);
    NcclResult (*user_rank)(NcclComm comm, int *rank);
    NcclResult (*async_error)(NcclComm comm, NcclResult *error);
    NcclResult (*abort)(NcclComm comm);
    NcclResult (*destroy)(NcclComm comm);
    NcclResult (*group_start)();
    NcclResult (*group_end)();
    NcclResult (*all_gather)(const void *from, void *to, size_t count, NcclType type, NcclComm comm,
                             void *stream);
    NcclResult (*all_reduce)(const void *from, void *to, size_t count, NcclType type, NcclOp op,
                             NcclComm comm, void *stream);
    NcclResult (*reduce_scatter)(const void *from, void *to, size_t count, NcclType type, NcclOp op,
                                 NcclComm comm, void *stream);
    NcclResult (*send)(const void *from, size_t count, NcclType type, int peer, NcclComm comm,
                       void *stream);
    NcclResult (*receive)(void *to, size_t count, NcclType type, int peer, NcclComm comm,
                          void *stream);
  };
  const Functions &functions() const { return m_functions; }
  /// Throws `nccl_failed`, with NCCL's text, where a call did not succeed.
  void check(NcclResult result, const char *call) const;

private:
  Functions m_functions = {};
};

} // namespace tk::cuda
