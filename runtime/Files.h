// Writing files so that a fault loses nothing: a file is written whole, or what was there stays.
#pragma once

#include <string>
#include <string_view>

#include "tk/error.h"

namespace tk::detail {

/// What a file holds, which decides how careful its replacement is.
enum class FileKind : unsigned char {
  output, ///< can be made again: the owner is kept if the system permits
  source, ///< written by a person: synchronised first, and refused if the owner would change
};

/// Writes a file: a temporary file in the same folder is written, closed and renamed. Links are
/// followed, and an existing file's mode is kept. What is no regular file, such as a pipe or
/// /dev/stdout, is written in place. Fails with `write_failed` and the system's reason; the old
/// contents are then unchanged.
Status write_file(const std::string &path, std::string_view bytes,
                  FileKind kind = FileKind::output);

/// Makes a folder with those above it, and tries to write a file there. The error is what
/// write_file() would say.
Status make_writable_folder(const std::string &path);

/// Writes all bytes to a descriptor; false with errno set if the system takes fewer.
bool write_all(int descriptor, std::string_view bytes) noexcept;

/// The error `write_failed` for a path, with the reason that `number` (of errno) stands for.
Error write_error(const std::string &path, int number);

/// Removes the temporary file that a write in progress has, if any. Async-signal-safe: for signal
/// handlers that end the process.
void remove_unfinished_file() noexcept;

} // namespace tk::detail
