// Every driver function that tk uses, as a weak one that succeeds and does nothing; FakeCuda.cpp
// has the ones that do something.
#include "runtime/cuda/Driver.h"

using namespace tk::cuda;

#define TK_DRIVER(member, symbol, parameters)                                                      \
  extern "C" __attribute__((weak)) CUresult symbol parameters { return 0; }
#define TK_DRIVER_OPTIONAL TK_DRIVER
#include "runtime/cuda/DriverSymbols.def"
