// A bundle of the sample kernel.
#pragma once

#include "tests/unit/runtime/SampleSignature.h"
#include "tk/bundle.h"

namespace tk::test {

/// Code for sizes with that divisor and bound; what its cubin says tells which one was loaded.
inline BundleVariant sample_variant(const std::string &arch, uint32_t divisor, int64_t upper,
                                    uint32_t alignment = 16) {
  BundleVariant variant;
  variant.arch = arch;
  variant.facts.dims.assign(3, {divisor, upper, {}});
  variant.facts.tensors.assign(3, {alignment, 1});
  variant.plan = gemm_plan();
  variant.cubin = arch + " % " + std::to_string(divisor);
  return variant;
}

inline Bundle sample_bundle(std::vector<BundleVariant> variants) {
  return {{{gemm_signature(), std::move(variants)}}};
}

} // namespace tk::test
