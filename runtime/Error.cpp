#include "tk/error.h"

namespace tk {

std::string_view name(ErrorCode code) noexcept {
  switch (code) {
  case ErrorCode::compile_failed:
    return "compile_failed";
  case ErrorCode::invalid_argument:
    return "invalid_argument";
  case ErrorCode::shape_mismatch:
    return "shape_mismatch";
  case ErrorCode::constraint_failed:
    return "constraint_failed";
  case ErrorCode::overflow:
    return "overflow";
  case ErrorCode::unsupported:
    return "unsupported";
  case ErrorCode::no_driver:
    return "no_driver";
  case ErrorCode::driver_too_old:
    return "driver_too_old";
  case ErrorCode::no_device:
    return "no_device";
  case ErrorCode::no_nvrtc:
    return "no_nvrtc";
  case ErrorCode::nvrtc_too_old:
    return "nvrtc_too_old";
  case ErrorCode::nvrtc_failed:
    return "nvrtc_failed";
  case ErrorCode::out_of_memory:
    return "out_of_memory";
  case ErrorCode::module_load:
    return "module_load";
  case ErrorCode::launch_failed:
    return "launch_failed";
  case ErrorCode::needs_prepare:
    return "needs_prepare";
  case ErrorCode::context_poisoned:
    return "context_poisoned";
  case ErrorCode::io:
    return "io";
  case ErrorCode::bad_file:
    return "bad_file";
  case ErrorCode::index_out_of_bounds:
    return "index_out_of_bounds";
  case ErrorCode::write_failed:
    return "write_failed";
  case ErrorCode::interrupted:
    return "interrupted";
  case ErrorCode::frozen:
    return "frozen";
  case ErrorCode::mesh_mismatch:
    return "mesh_mismatch";
  case ErrorCode::rank_lost:
    return "rank_lost";
  case ErrorCode::no_nccl:
    return "no_nccl";
  case ErrorCode::nccl_too_old:
    return "nccl_too_old";
  case ErrorCode::nccl_failed:
    return "nccl_failed";
  case ErrorCode::internal:
    return "internal";
  }
  return "unknown";
}

std::string SourceSpan::str() const {
  if (!valid())
    return file;
  std::string text = file + ":" + std::to_string(line);
  if (column != 0)
    text += ":" + std::to_string(column);
  return text;
}

Error::Error(ErrorCode code, std::string message, std::vector<SourceSpan> spans)
    : m_code(code), m_message(std::move(message)), m_spans(std::move(spans)) {
  // Diagnostics have their places in them.
  if (code != ErrorCode::compile_failed && !m_spans.empty() && m_spans.front().valid())
    m_what = m_spans.front().str() + ": ";
  m_what += m_message;
}

} // namespace tk
