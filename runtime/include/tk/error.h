// Errors of the public interface: `tk::Error` (thrown), and `tk::Expected<T>` (returned by `try_`
// twins).
#pragma once

#if __cplusplus < 202002L
#error "tk needs C++20 or later: pass -std=c++20"
#endif

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tk {

/// What went wrong, coarse enough to branch on. The message says the rest.
enum class ErrorCode : uint8_t {
  compile_failed,    ///< the program is wrong; the message holds the diagnostics
  invalid_argument,  ///< an argument is missing, unknown, or of the wrong type, rank or device
  shape_mismatch,    ///< two uses of a dimension disagree
  constraint_failed, ///< a `where` constraint or a launch-time bounds check does not hold
  overflow,          ///< an extent, stride, size or expression leaves 64 bits
  unsupported,       ///< this build or machine cannot do that
  no_driver,         ///< libcuda is missing
  driver_too_old,    ///< libcuda lacks a function or a version that tk needs
  no_device,         ///< there is no usable GPU
  no_nvrtc,          ///< NVRTC is missing
  nvrtc_too_old,     ///< NVRTC lacks a function or an architecture
  nvrtc_failed,      ///< NVRTC rejected the emitted text (a bug of tk's); the message holds its log
  out_of_memory,     ///< host or device memory ran out
  module_load,       ///< the driver refused the compiled code
  launch_failed,     ///< the driver refused the launch
  needs_prepare,     ///< reserved: a capture compiles and allocates what it needs
  context_poisoned,  ///< an earlier kernel broke the device's context
  io,                ///< a file cannot be read
  bad_file,          ///< a file's contents are not what they claim to be
  internal,          ///< a bug of tk's
  index_out_of_bounds, ///< an element of an integer tensor indexes outside (checked kernels only)
  write_failed,        ///< a file cannot be written: the disk is full, or permission is missing
  interrupted,         ///< a SIGINT, which the process handles, came during long work
  frozen,              ///< a frozen module has no code for these sizes, and may not compile
  mesh_mismatch,       ///< the ranks of a mesh run different programs, sizes or plans
  rank_lost,           ///< a rank of a mesh failed, was aborted, or did not come in time
  no_nccl,             ///< NCCL is missing
  nccl_too_old,        ///< NCCL lacks a function or a version that tk needs
  nccl_failed,         ///< NCCL reported an error
};

/// The code's stable name, such as "shape_mismatch".
std::string_view name(ErrorCode code) noexcept;

/// A place in a `.tk` file; line and column count from 1, 0 means unknown.
struct SourceSpan {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
  uint32_t end_line = 0;
  uint32_t end_column = 0;

  bool valid() const { return line != 0; }
  /// "attn.tk:41:3", or "" where unknown.
  std::string str() const;
  bool operator==(const SourceSpan &) const = default;
};

/// An error with its code, its message (complete sentences without the place) and the places
/// involved.
class Error : public std::exception {
public:
  Error(ErrorCode code, std::string message, std::vector<SourceSpan> spans = {});

  ErrorCode code() const noexcept { return m_code; }
  const std::string &message() const noexcept { return m_message; }
  /// The first place involved; not valid() where none is known.
  SourceSpan span() const { return m_spans.empty() ? SourceSpan{} : m_spans.front(); }
  const std::vector<SourceSpan> &spans() const noexcept { return m_spans; }
  /// "attn.tk:41:3: message"; of compile_failed the message, which has its places in it.
  const char *what() const noexcept override { return m_what.c_str(); }

private:
  ErrorCode m_code;
  std::string m_message;
  std::vector<SourceSpan> m_spans;
  std::string m_what;
};

/// A value, or the error that took its place.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : m_state(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : m_state(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const noexcept { return m_state.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// The value; throws the error where there is none.
  T &value() & {
    check();
    return std::get<0>(m_state);
  }
  const T &value() const & {
    check();
    return std::get<0>(m_state);
  }
  T &&value() && {
    check();
    return std::get<0>(std::move(m_state));
  }

  /// The value or the error; undefined where the other one is held.
  T &operator*() & { return *std::get_if<0>(&m_state); }
  const T &operator*() const & { return *std::get_if<0>(&m_state); }
  T &&operator*() && { return std::move(*std::get_if<0>(&m_state)); }
  T *operator->() { return std::get_if<0>(&m_state); }
  const T *operator->() const { return std::get_if<0>(&m_state); }
  Error &error() { return *std::get_if<1>(&m_state); }
  const Error &error() const { return *std::get_if<1>(&m_state); }

private:
  void check() const {
    if (const Error *error = std::get_if<1>(&m_state))
      throw *error;
  }
  std::variant<T, Error> m_state;
};

/// Success, or an error.
template <> class [[nodiscard]] Expected<void> {
public:
  Expected() = default;
  Expected(Error error) : m_error(std::in_place_index<1>, std::move(error)) {}
  bool has_value() const noexcept { return m_error.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  void value() const {
    if (const Error *error = std::get_if<1>(&m_error))
      throw *error;
  }
  Error &error() { return *std::get_if<1>(&m_error); }
  const Error &error() const { return *std::get_if<1>(&m_error); }

private:
  std::variant<std::monostate, Error> m_error;
};

using Status = Expected<void>;

} // namespace tk
