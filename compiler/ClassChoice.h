//===- ClassChoice.h - calls that share the code of classes -----*- C++ -*-===//
#ifndef TK_COMPILER_CLASSCHOICE_H
#define TK_COMPILER_CLASSCHOICE_H

#include "compiler/CompiledSource.h"

#include <map>
#include <mutex>

namespace tk {

/// What calls run: a source whose keys are those of classes of sizes, unless a call's own key is
/// predicted to be faster by more than little. See ClassChoice.cpp.
class ClassChoice : public detail::CompiledModule {
public:
  /// `source` has DriverOptions::sizeClasses.
  ClassChoice(std::shared_ptr<CompiledSource> source, const CompileOptions &options);

  const std::vector<Signature> &signatures() const override { return source->signatures(); }
  std::string diagnostics() const override { return source->diagnostics(); }
  Facts relevant_facts(size_t kernel, std::string_view target, const Facts &facts) const override;
  std::shared_ptr<detail::CompiledModule> gather_checks() const override { return checks; }
  Expected<detail::ShardedKernel> shard(size_t kernel, std::span<const MeshAxis> axes,
                                        std::span<const int64_t> dims,
                                        const std::string &network) override;
  void use_few_keys() override { isChosen = true; }
  bool is_deterministic(size_t kernel) const override { return source->is_deterministic(kernel); }
  Expected<detail::Executable> specialise(size_t kernel, std::string_view target,
                                          const Facts &facts) override {
    return source->specialise(kernel, target, facts);
  }
  Expected<std::string> stage_text(size_t kernel, std::string_view stage, std::string_view target,
                                   const Facts &facts) override {
    return source->stage_text(kernel, stage, target, facts);
  }
  Expected<std::string> text_for(size_t kernel, std::string_view stage, std::string_view target,
                                 std::span<const std::optional<int64_t>> dims) override;

private:
  /// Of the facts of a call's own sizes and those of their classes, the ones that it runs with.
  Facts choose(size_t kernel, std::string_view target, const Facts &own,
               const Facts &classes) const;
  /// The same by predicted times.
  Facts compare(size_t kernel, std::string_view target, const Facts &own,
                const Facts &classes) const;
  /// The predicted times of a plan at these sizes, in nanoseconds; nothing where there is none.
  std::optional<llvm::SmallVector<double>>
  timesOf(size_t kernel, std::string_view target, const Facts &facts,
          llvm::ArrayRef<llvm::SmallVector<int64_t>> sizes) const;

  std::shared_ptr<CompiledSource> source;
  std::shared_ptr<ClassChoice> checks; ///< of the gathers; null where there are none
  CompileOptions options;
  std::atomic<bool> isChosen; ///< classes are taken whatever they cost
  mutable std::mutex mutex;
  mutable std::map<std::string, Facts> known; ///< by kernel, target and the call's own facts
};

} // namespace tk

#endif // TK_COMPILER_CLASSCHOICE_H
