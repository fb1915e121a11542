// A compiler that knows one kernel, tests/unit/runtime/SampleSignature.h's gemm, so that the
// runtime can be tested without one.
#pragma once

#include "tests/unit/runtime/SampleSignature.h"
#include "tk/backend.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace tk::test {

/// c = scale * (a @ b[:, :N]), and the scratch must come zeroed.
inline int32_t gemm_entry(const tk_cpu_args *args) {
  auto *a = static_cast<const float *>(args->tensors[0]);
  auto *b = static_cast<const float *>(args->tensors[1]);
  auto *c = static_cast<float *>(args->tensors[2]);
  auto *sums = static_cast<float *>(args->tensors[3]);
  int64_t m = args->ints[0], n = args->ints[1], stride = args->ints[2], k = args->ints[3];
  for (int64_t i = 0; i < m; ++i) {
    if (sums[i] != 0)
      return 1;
    sums[i] = 1;
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += a[i * k + p] * b[p * stride + j];
      c[i * n + j] = sum * static_cast<float>(args->floats[0]);
    }
  }
  return 0;
}

class FakeModule : public detail::CompiledModule {
public:
  const std::vector<Signature> &signatures() const override { return m_signatures; }
  Facts relevant_facts(size_t, std::string_view, const Facts &facts) const override {
    Facts kept = facts;
    for (DimFact &fact : kept.dims)
      fact = {fact.divisor, -1, {}};
    kept.tensors.clear();
    return kept;
  }
  bool is_deterministic(size_t) const override { return deterministic; }
  Expected<detail::Executable> specialise(size_t, std::string_view target,
                                          const Facts &facts) override {
    ++compilations;
    if (before)
      before(facts);
    small_tensors = facts.small_tensors;
    if (fail_next.exchange(false))
      return Error(ErrorCode::nvrtc_failed, "planted failure");
    std::this_thread::sleep_for(std::chrono::milliseconds(5)); // room for others to ask too
    detail::Executable executable;
    executable.target = target;
    executable.plan = gemm_plan();
    executable.plan.launches[0].args.push_back(
        {ArgKind::integer, 0, 0, DType::i64, Expr::variable(1)});
    if (adjust)
      adjust(executable.plan);
    if (target == "cpu") {
      executable.entries = {gemm_entry};
    } else {
      executable.kind = detail::Executable::Kind::cuda;
      executable.cubin = "cubin of gemm";
    }
    return executable;
  }
  Expected<std::string> stage_text(size_t, std::string_view stage, std::string_view target,
                                   const Facts &facts) override {
    return std::string(stage) + " for " + std::string(target) + " [" + facts.key() + "]";
  }
  std::atomic<int> compilations{0};
  std::atomic<bool> fail_next{false};
  std::function<void(const Facts &)> before; ///< called at the beginning of each compilation
  bool deterministic = false;
  std::function<void(LaunchPlan &)> adjust; ///< changes the plan of what is compiled next
  std::atomic<bool> small_tensors{false};   ///< what was last compiled for

private:
  std::vector<Signature> m_signatures = {gemm_signature()};
};

class FakeBackend : public detail::CompilerBackend {
public:
  FakeBackend() { detail::set_compiler_backend(this); }
  ~FakeBackend() override { detail::set_compiler_backend(nullptr); }
  Expected<std::shared_ptr<detail::CompiledModule>> compile(std::string_view source,
                                                            const CompileOptions &) override {
    if (source != "gemm")
      return Error(ErrorCode::compile_failed, "no kernel in it", {{"x.tk", 1, 1, 1, 1}});
    last = std::make_shared<FakeModule>();
    return std::shared_ptr<detail::CompiledModule>(last);
  }
  std::shared_ptr<FakeModule> last;
};

inline CompileOptions for_target(std::string target) {
  CompileOptions options;
  options.target = std::move(target);
  return options;
}

} // namespace tk::test
