//===- Process.h - standard output and signals -------------------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_PROCESS_H
#define TK_COMPILER_TKC_PROCESS_H

#include "tk/error.h"

namespace tk::tkc {

/// Opens what the caller has closed of the standard streams, so that no file of this process takes
/// such a number: writing to them fails then.
void holdStandardStreams();

/// SIGINT, SIGTERM and SIGHUP end the process at once with 128 and the signal's number, after the
/// temporary file of a write in progress is removed. A signal that the caller ignores stays
/// ignored.
void endOnSignals();

/// Writes out what standard output holds back. Fails with `write_failed`.
Status flushOutput();

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_PROCESS_H
