// The same kernel on the emulator, with each timing, and on a GPU where there is one of sm_90.
#ifndef TK_TESTS_TARGET_HOPPER_ONBOTH_H
#define TK_TESTS_TARGET_HOPPER_ONBOTH_H

#include "tests/target/emu/KernelHarness.h"

#include <functional>

namespace tk::test {

/// Runs what the harness ran on the emulator on the GPU: its outputs are overwritten. False where
/// there is no such GPU or no NVRTC.
bool runOnGpu(const KernelHarness &harness);

/// Runs on the emulator with each timing, then on the GPU, and calls `check` after each run.
void runOnBoth(KernelHarness &harness, const std::function<void()> &check);

} // namespace tk::test

#endif // TK_TESTS_TARGET_HOPPER_ONBOTH_H
