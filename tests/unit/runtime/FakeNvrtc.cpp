// An NVRTC that compiles whatever does not contain "syntax error". Like the real one it installs a
// handler for SIGINT while it compiles, unless that is ignored, and asks whether to go on.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {
struct Program {
  std::string source, log, code;
  int (*callback)(void *, void *) = nullptr;
  void *payload = nullptr;
};

void endProcess(int) { std::_Exit(4); }

int copy(const std::string &text, char *to) {
  std::memcpy(to, text.data(), text.size());
  return 0;
}
} // namespace

extern "C" {
int nvrtcVersion(int *major, int *minor) {
  *major = FAKE_NVRTC_MAJOR;
  *minor = 4;
  return 0;
}
int nvrtcCreateProgram(Program **program, const char *source, const char *, int,
                       const char *const *, const char *const *) {
  *program = new Program{source, {}, {}, nullptr, nullptr};
  return 0;
}
int nvrtcDestroyProgram(Program **program) {
  delete *program;
  return 0;
}
int nvrtcCompileProgram(Program *program, int count, const char *const *options) {
  if (program->source.find("syntax error") != std::string::npos) {
    program->log = "kernel.cu(1): error: planted";
    return 6;
  }
  auto before = std::signal(SIGINT, SIG_IGN);
  if (before != SIG_IGN)
    std::signal(SIGINT, endProcess);
  if (program->source.find("raise SIGINT") != std::string::npos)
    std::raise(SIGINT);
  if (before != SIG_IGN)
    std::signal(SIGINT, before);
  if (program->callback && program->callback(program->payload, nullptr) != 0)
    return 13;
  for (int i = 0; i < count; ++i)
    program->code += std::string(options[i]) + "\n";
  return 0;
}
#if FAKE_NVRTC_MAJOR >= 13
int nvrtcSetFlowCallback(Program *program, int (*callback)(void *, void *), void *payload) {
  program->callback = callback;
  program->payload = payload;
  return 0;
}
#endif
int nvrtcGetPTXSize(Program *program, size_t *size) {
  *size = program->code.size() + 1;
  return 0;
}
int nvrtcGetPTX(Program *program, char *text) { return copy(program->code + '\0', text); }
int nvrtcGetCUBINSize(Program *program, size_t *size) {
  *size = program->code.size();
  return 0;
}
int nvrtcGetCUBIN(Program *program, char *bytes) { return copy(program->code, bytes); }
int nvrtcGetProgramLogSize(Program *program, size_t *size) {
  *size = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program *program, char *text) { return copy(program->log + '\0', text); }
const char *nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
int nvrtcGetNumSupportedArchs(int *count) {
  *count = 2;
  return 0;
}
int nvrtcGetSupportedArchs(int *list) {
  list[0] = 80;
  list[1] = 90;
  return 0;
}
}
