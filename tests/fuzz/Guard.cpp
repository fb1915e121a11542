//===- Guard.cpp - trials in a child process ------------------------------===//
#include "tests/fuzz/Trial.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tk::fuzz {
namespace {

void writeAll(int fd, const std::string &text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n <= 0)
      return;
    done += static_cast<size_t>(n);
  }
}

[[noreturn]] void beChild(int out, int errors, size_t memory, unsigned seconds,
                          const std::function<Verdict()> &work) {
  dup2(errors, STDERR_FILENO);
  rlimit limit{memory, memory};
  setrlimit(RLIMIT_AS, &limit);
  limit = {0, 0};
  setrlimit(RLIMIT_CORE, &limit);
  limit = {seconds, seconds + 1};
  setrlimit(RLIMIT_CPU, &limit);
  Verdict verdict;
  try {
    verdict = work();
  } catch (const std::exception &error) {
    verdict = {Outcome::Wrong, "exception", error.what()};
  }
  std::string text(1, static_cast<char>('0' + static_cast<int>(verdict.outcome)));
  writeAll(out, text + verdict.kind + '\0' + verdict.message);
  _exit(0);
}

/// What the child wrote until it closed its end; false where that took too long.
bool readUntil(int in, unsigned seconds, std::string &text) {
  char buffer[4096];
  for (unsigned waited = 0; waited < seconds * 10;) {
    pollfd poller{in, POLLIN, 0};
    if (poll(&poller, 1, 100) == 0) {
      ++waited;
      continue;
    }
    ssize_t n = read(in, buffer, sizeof buffer);
    if (n <= 0)
      return true;
    text.append(buffer, static_cast<size_t>(n));
  }
  return false;
}

Verdict guard(size_t memory, unsigned seconds, const std::function<Verdict()> &work) {
  int ends[2];
  if (pipe(ends) != 0)
    return {Outcome::Crashed, "pipe", std::strerror(errno)};
  // What the child says before it dies, an assertion for instance.
  FILE *errors = std::tmpfile();
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    beChild(ends[1], fileno(errors), memory, seconds, work);
  }
  close(ends[1]);
  std::string text;
  bool inTime = child > 0 && readUntil(ends[0], seconds * 2, text);
  close(ends[0]);
  if (!inTime && child > 0)
    kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  std::rewind(errors);
  char said[400] = "";
  said[std::fread(said, 1, sizeof said - 1, errors)] = 0;
  std::fclose(errors);
  if (!inTime || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
    return {Outcome::TimedOut, "time", "more than " + std::to_string(seconds) + " s"};
  if (WIFSIGNALED(status))
    return {Outcome::Crashed, "crash", std::string(strsignal(WTERMSIG(status))) + ": " + said};
  if (text.empty())
    return {Outcome::Crashed, "crash", "exit " + std::to_string(WEXITSTATUS(status)) + ": " + said};
  size_t end = text.find('\0');
  return {static_cast<Outcome>(text[0] - '0'), text.substr(1, end - 1), text.substr(end + 1)};
}

} // namespace

Verdict runGuarded(const Program &program, const TrialOptions &options) {
  return guard(options.memoryLimit, options.secondsLimit,
               [&] { return runTrial(program, options); });
}

Verdict runFrontendGuarded(const std::string &text) {
  return guard(size_t{2} << 30, 20, [&] { return runFrontend(text); });
}

} // namespace tk::fuzz
