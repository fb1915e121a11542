//===- Process.cpp - standard output and signals --------------------------===//
#include "compiler/tkc/Process.h"

#include "compiler/tkc/Progress.h"
#include "runtime/Files.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <fcntl.h>
#include <unistd.h>

namespace tk::tkc {

void holdStandardStreams() {
  // open() takes the lowest number that is free. Reading alone: writing is then an error.
  for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY))
    if (fd > STDERR_FILENO) {
      close(fd);
      return;
    }
}

static void end(int signal) {
  detail::remove_unfinished_file();
  Progress::clearLine();
  _exit(128 + signal);
}

void endOnSignals() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before, action = {};
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN)
      continue;
    action.sa_handler = end;
    sigfillset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

Status flushOutput() {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0 && std::cout.flush().good() && !std::ferror(stdout);
  if (flushed)
    return {};
  // Behind an earlier failure its reason is gone: the system says it again.
  int number = errno;
  if (number == 0 && write(STDOUT_FILENO, "\n", 1) < 0)
    number = errno;
  return Error(ErrorCode::write_failed, std::string("cannot write standard output: ") +
                                            std::strerror(number ? number : EIO));
}

} // namespace tk::tkc
