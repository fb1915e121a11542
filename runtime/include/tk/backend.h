// The seam between the runtime and a compiler. The compiler library implements it and registers
// itself; programs that only launch bundles have none.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tk/cpu_abi.h"
#include "tk/error.h"
#include "tk/mesh_plan.h"
#include "tk/plan.h"

namespace tk {

/// How to compile. Every field is part of the cache key.
struct CompileOptions {
  std::string file_name = "<memory>"; ///< for diagnostics, and where imports are looked up
  std::string target; ///< "cpu", "sm_90a", "gpu", "emu"; empty: TK_TARGET, else best
  std::map<std::string, int64_t> dims; ///< dimensions to fix at compile time
  /// Sizes that code is planned for where a launch has others. The code assumes only what holds for
  /// the larger of the two sizes and for both divisors, so that it is right for the launch: tests
  /// run the plan of large sizes on few elements. A dimension of size 0 keeps its own plan.
  std::map<std::string, int64_t> plan_dims;
  std::vector<std::string> disabled_passes;
  bool checked = false;                     ///< report gathers outside their bounds
  std::optional<std::string> schedule;      ///< text of schedule blocks that replace the program's
  std::string schedule_name = "<schedule>"; ///< for diagnostics
  /// A call whose variant is not compiled yet runs a general one, and has its own compiled by
  /// another thread meanwhile; see Module::wait. Kernels that are `@deterministic` take no part.
  bool background = false;
  /// Sizes of a dimension that may grow share the keys of classes, at most four up to 300. Some
  /// programs are slower so. See docs/how-to/warm-up.md.
  bool few_keys = false;
};

namespace detail {

/// The architecture that kernels for a target are emitted for: itself, "sm_90a" for "emu", "sm_80"
/// for "emu-sm_80".
std::string_view architecture_of(std::string_view target);
/// Whether a target is the emulator.
inline bool is_emulated(std::string_view target) {
  return target == "emu" || target.starts_with("emu-");
}

/// A tensor map for given sizes, but for its address. Axes go from the innermost outwards.
struct ResolvedMap {
  std::vector<uint64_t> extents;
  std::vector<uint64_t> strides; ///< in bytes, of axes 1, 2, …
  std::vector<int64_t> counts;   ///< of the map's places
  bool empty = false;
};

/// One launch for the emulator, everything resolved but the addresses.
struct EmulatedLaunch {
  const Launch *launch = nullptr;
  int64_t grid[3] = {1, 1, 1};
  int64_t shared_bytes = 0;
  std::vector<uint64_t> values; ///< the bits of each argument; 0 for addresses
};

/// A plan for given sizes, with the tensors' addresses in their views.
struct EmulatedPlan {
  const LaunchPlan *plan = nullptr;
  const Signature *signature = nullptr;
  std::vector<EmulatedLaunch> launches;
  std::vector<ResolvedMap> maps; ///< the plan's tensor maps
  std::vector<int64_t> scratch_bytes;
  std::vector<TensorView> tensors;
};

/// Runs GPU kernels on the CPU, thread by thread, and checks what they do.
class Emulator {
public:
  virtual ~Emulator() = default;
  /// Throws `internal` with a report for a kernel that breaks a rule of the machine. Used from
  /// several threads at once.
  virtual void run(const EmulatedPlan &plan) const = 0;
};

/// One compiled variant of one kernel: the code for its launches.
struct Executable {
  enum class Kind : uint8_t { cpu, cuda, emulated };
  Kind kind = Kind::cpu;
  std::string target; ///< "cpu", "sm_90a", …
  LaunchPlan plan;
  std::vector<tk_cpu_entry> entries;        ///< cpu: one a launch
  std::shared_ptr<void> code;               ///< cpu: keeps the entries' machine code alive
  std::shared_ptr<const Emulator> emulator; ///< emulated: runs the plan
  std::string cubin;                        ///< cuda: holds every symbol of the plan
  std::string ptx;
  std::string cuda; ///< the emitted text
  std::string log;  ///< the GPU compiler's, with registers and spills
};

class CompiledModule;
/// A sharded kernel, compiled for a mesh: what runs on each rank, and when.
struct ShardedKernel {
  std::shared_ptr<CompiledModule> locals; ///< the local kernels, as MeshStep::kernel numbers them
  MeshPlan plan;
};

/// A compiled source file. Used from several threads at once.
class CompiledModule {
public:
  virtual ~CompiledModule() = default;
  virtual const std::vector<Signature> &signatures() const = 0;
  /// Warnings, already formatted; empty where none.
  virtual std::string diagnostics() const { return {}; }
  /// Drops the facts that the compiler does not use for this kernel, so that shapes which differ in
  /// nothing else share a variant.
  virtual Facts relevant_facts(size_t kernel, std::string_view target, const Facts &facts) const {
    (void)kernel, (void)target;
    return facts;
  }
  /// A module whose kernel of the same number checks the gathers of the one here: it takes the same
  /// arguments, and has four numbers (`i64[]`) as results for each index that an integer tensor
  /// gives: the lowest and the highest value, named after the place, and from where and up to where
  /// it may be. Null where nothing is to be checked.
  virtual std::shared_ptr<CompiledModule> gather_checks() const { return nullptr; }
  /// Derives the collectives of a kernel on a mesh, by the cost for sizes of about `dims` (empty:
  /// not known) on a network (see MeshOptions::network). Fails with `unsupported` where nothing can
  /// compile, and with `compile_failed` for a kernel that cannot be placed.
  virtual Expected<ShardedKernel> shard(size_t kernel, std::span<const MeshAxis> axes,
                                        std::span<const int64_t> dims, const std::string &network) {
    (void)kernel, (void)axes, (void)dims, (void)network;
    return Error(ErrorCode::unsupported, "a mesh needs a compiler, and this module has none");
  }
  /// As CompileOptions::few_keys, for keys from now on.
  virtual void use_few_keys() {}
  /// Whether the kernel's results are to have the same bits whichever launches went before.
  virtual bool is_deterministic(size_t kernel) const {
    (void)kernel;
    return false;
  }
  /// Whether `specialise` compiles; else it looks up what was compiled before.
  virtual bool compiles() const { return true; }
  /// Compiles one variant. Threads may wait here for one another. `target` is resolved: "cpu",
  /// "emu" or "sm_…".
  virtual Expected<Executable> specialise(size_t kernel, std::string_view target,
                                          const Facts &facts) = 0;
  /// The text of a stage ("tk", "fused", "tiled", "gpu", "cuda", "ptx", "sass", …).
  virtual Expected<std::string> stage_text(size_t kernel, std::string_view stage,
                                           std::string_view target, const Facts &facts) = 0;
  /// The text of a stage for usual tensors of sizes that may be known (`dims`, in the signature's
  /// order), or a report: "explain", what the passes derived and declined; "inspect", what the code
  /// uses, as JSON; "cost", what the launches cost, as JSON.
  virtual Expected<std::string> text_for(size_t kernel, std::string_view stage,
                                         std::string_view target,
                                         std::span<const std::optional<int64_t>> dims) {
    return stage_text(kernel, stage, target, usual_facts(signatures()[kernel], dims));
  }
};

class CompilerBackend {
public:
  virtual ~CompilerBackend() = default;
  /// Parses and checks a source file. Errors are `compile_failed` with all diagnostics in the
  /// message.
  virtual Expected<std::shared_ptr<CompiledModule>> compile(std::string_view source,
                                                            const CompileOptions &options) = 0;
};

/// Registers the compiler that tk::compile uses. The compiler library does so from a static
/// initialiser in the object file that also defines the symbol `tk_compiler_anchor`; its link
/// interface names that symbol
/// (-u), so that a static link keeps the file.
void set_compiler_backend(CompilerBackend *backend);
CompilerBackend *compiler_backend();

} // namespace detail
} // namespace tk
