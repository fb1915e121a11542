// An NCCL that has functions and a version, and communicates nothing.
#include <cstddef>

extern "C" {
int ncclGetVersion(int *version) {
  *version = FAKE_NCCL_VERSION;
  return 0;
}
const char *ncclGetErrorString(int) { return "planted error"; }
#define TK_FAKE(NAME)                                                                              \
  int NAME() { return 0; }
TK_FAKE(ncclGetUniqueId)
TK_FAKE(ncclCommInitRank)
#ifndef FAKE_NCCL_INCOMPLETE
TK_FAKE(ncclCommSplit)
#endif
TK_FAKE(ncclCommCount)
TK_FAKE(ncclCommUserRank)
TK_FAKE(ncclCommGetAsyncError)
TK_FAKE(ncclCommAbort)
TK_FAKE(ncclCommDestroy)
TK_FAKE(ncclGroupStart)
TK_FAKE(ncclGroupEnd)
TK_FAKE(ncclAllGather)
TK_FAKE(ncclAllReduce)
TK_FAKE(ncclReduceScatter)
TK_FAKE(ncclSend)
TK_FAKE(ncclRecv)
}
