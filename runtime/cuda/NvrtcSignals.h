// Keeping NVRTC away from the process's signal handlers.
#pragma once

namespace tk::cuda {

/// NVRTC's front end installs handlers for SIGINT and SIGTERM while it parses; they end the process
/// with a status of their own. Redirects the library's calls of signal(), so that these signals
/// stay with the handlers that the program has. Returns whether such calls were found.
bool keep_signal_handlers(void *library) noexcept;

} // namespace tk::cuda
