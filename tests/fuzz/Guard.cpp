//===- Guard.cpp - trials in a child process ------------------------------===//
#include "tests/fuzz/MemoryLimit.h"
#include "tests/fuzz/Trial.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tk::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

/// Tells verdicts.
using Work = std::function<void(const std::function<void(const Verdict &)> &tell)>;

void writeAll(int fd, const std::string &text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n <= 0)
      return;
    done += static_cast<size_t>(n);
  }
}

[[noreturn]] void beChild(int out, int errors, size_t memory, unsigned seconds, const Work &work) {
  dup2(errors, STDERR_FILENO);
  if (memory)
    limitMemory(memory);
  rlimit limit{0, 0};
  setrlimit(RLIMIT_CORE, &limit);
  limit = {seconds, seconds + 1};
  setrlimit(RLIMIT_CPU, &limit);
  auto tell = [&](const Verdict &verdict) {
    const auto outcome = static_cast<char>('0' + static_cast<int>(verdict.outcome));
    writeAll(out,
             outcome + verdict.kind + '\0' + verdict.message + '\0' + verdict.operations + '\0');
  };
  try {
    work(tell);
  } catch (const std::exception &error) {
    tell({Outcome::Wrong, "exception", error.what()});
  }
  _exit(0);
}

/// What the child wrote until it closed its end; false where that took too long.
bool readUntil(int in, unsigned seconds, Time deadline, std::string &text) {
  char buffer[4096];
  for (unsigned waited = 0; waited < seconds * 10 && Clock::now() < deadline;) {
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

/// The verdicts as the child wrote them; the last may be cut off.
std::vector<Verdict> parse(const std::string &text) {
  std::vector<Verdict> verdicts;
  for (size_t at = 0;;) {
    const size_t kindEnd = text.find('\0', at);
    const size_t messageEnd = kindEnd == text.npos ? text.npos : text.find('\0', kindEnd + 1);
    const size_t end = messageEnd == text.npos ? text.npos : text.find('\0', messageEnd + 1);
    if (end == text.npos)
      return verdicts;
    verdicts.push_back({static_cast<Outcome>(text[at] - '0'), text.substr(at + 1, kindEnd - at - 1),
                        text.substr(kindEnd + 1, messageEnd - kindEnd - 1),
                        text.substr(messageEnd + 1, end - messageEnd - 1)});
    at = end + 1;
  }
}

struct Guarded {
  std::vector<Verdict> told;
  std::optional<Verdict> end; ///< where it was a bad one
};

Guarded guard(size_t memory, unsigned seconds, Time deadline, const Work &work) {
  int ends[2];
  if (pipe(ends) != 0)
    return {{}, Verdict{Outcome::Crashed, "pipe", std::strerror(errno)}};
  // What the child says before it dies, an assertion for instance.
  FILE *errors = std::tmpfile();
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    beChild(ends[1], fileno(errors), memory, seconds, work);
  }
  close(ends[1]);
  std::string text;
  // The limit is on processor time, of which a busy machine may give a tenth; the time on the clock
  // only ends what sleeps.
  bool inTime = child > 0 && readUntil(ends[0], seconds * 10, deadline, text);
  close(ends[0]);
  if (!inTime && child > 0)
    kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  std::rewind(errors);
  char said[400] = "";
  said[std::fread(said, 1, sizeof said - 1, errors)] = 0;
  std::fclose(errors);
  Guarded result{parse(text), {}};
  if (!inTime || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
    result.end = {Outcome::TimedOut, "time", "more than " + std::to_string(seconds) + " s"};
  else if (WIFSIGNALED(status))
    result.end = {Outcome::Crashed, "crash",
                  std::string(strsignal(WTERMSIG(status))) + ": " + said};
  else if (WEXITSTATUS(status) != 0)
    result.end = {Outcome::Crashed, "crash",
                  "exit " + std::to_string(WEXITSTATUS(status)) + ": " + said};
  return result;
}

Verdict guardOne(size_t memory, unsigned seconds, Time deadline, const Work &work) {
  Guarded result = guard(memory, seconds, deadline, work);
  return result.end ? *result.end : result.told.back();
}

} // namespace

Verdict runGuarded(const Program &program, const TrialOptions &options) {
  return guardOne(options.memoryLimit, options.secondsLimit, options.deadline,
                  [&](const auto &tell) { runTrials({&program, 1}, options, tell); });
}

std::vector<Verdict> runGuarded(std::span<const Program> programs, const TrialOptions &options) {
  const auto count = static_cast<unsigned>(programs.size());
  const Guarded together =
      guard(2 * options.memoryLimit, options.secondsLimit + count, options.deadline,
            [&](const auto &tell) { runTrials(programs, options, tell); });
  std::vector<Verdict> verdicts = together.told;
  verdicts.resize(count);
  // Being slow together is no fault; a crash is, even if none of them crashes alone.
  bool explained = !together.end || together.end->outcome == Outcome::TimedOut;
  for (size_t n = 0; n < count; ++n) {
    const bool told = n < together.told.size();
    if (told && !verdicts[n].failed())
      continue;
    Verdict alone = runGuarded(programs[n], options);
    if (Clock::now() >= options.deadline) {
      verdicts.resize(n);
      return verdicts;
    }
    explained |= alone.failed();
    if (alone.failed() || !told)
      verdicts[n] = alone;
  }
  if (!explained)
    verdicts[std::min<size_t>(together.told.size(), count - 1)] = *together.end;
  return verdicts;
}

std::string findWrongPassGuarded(const Program &program, const TrialOptions &options,
                                 const std::string &directory) {
  constexpr unsigned passes = 40; // that change a program, each executed
  const Verdict told = guardOne(
      options.memoryLimit, passes * options.secondsLimit, options.deadline, [&](const auto &tell) {
        tell({Outcome::Right, "", findWrongPass(program, options, directory)});
      });
  return told.failed() ? "" : told.message;
}

Verdict runFrontendGuarded(const std::string &text) {
  return guardOne(size_t{2} << 30, 20, Time::max(),
                  [&](const auto &tell) { tell(runFrontend(text)); });
}

} // namespace tk::fuzz
