// The kernel of one-shot exchanges on the host (see FakeOneShot.cpp).
#pragma once

#include <string>

namespace tk::test {

inline constexpr const char *one_shot_prefix = "tk_one_shot_";
/// Runs the kernel of that name with its argument; false: there is none.
bool run_one_shot(const std::string &symbol, const void *call, unsigned blocks);

} // namespace tk::test
