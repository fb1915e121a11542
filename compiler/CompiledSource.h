//===- CompiledSource.h - a source file, compiled as far as asked -*- C++ -*-===//
//
// What the runtime's CompilerBackend is made of, with the access to IR that the driver needs.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_COMPILEDSOURCE_H
#define TK_COMPILER_COMPILEDSOURCE_H

#include "compiler/BatchInvariance.h"
#include "compiler/Pipeline.h"
#include "compiler/SizeRoles.h"
#include "compiler/plan/ScheduleChoice.h"
#include "dialects/tk/TkDialect.h"
#include "frontend/IRGen.h"
#include "frontend/Source.h"
#include "runtime/Cache.h"
#include "tk/backend.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace tk {

class Dump;
struct KernelView;
struct PredictedCost;
class PassDiagnostics;
namespace emu {
class TextBatch;
}

/// Options that only the driver has.
struct DriverOptions {
  PipelineOptions pipeline;
  bool colour = false; ///< of diagnostics
  bool json = false;   ///< diagnostics as JSON lines
  /// The GPU that plans are for, see findMachine.
  std::string device;
  bool lineDirectives = true; ///< in CUDA text
  /// As CompileOptions::few_keys, for `tkc --size-classes`.
  bool sizeClasses = false;
  /// Where set: what the emulator compiles together, see EmuOptions.
  std::shared_ptr<emu::TextBatch> emulatedTexts;
};

/// What matrices a kernel multiplies: none, only f32 or f64 that no warpgroup takes, or any.
enum class Products : uint8_t { none, wide, any };

/// A decision of the tensor passes that is made by whole plans: the attribute of the module that
/// names results for it, and the name of one.
struct PlanChange {
  llvm::StringRef attribute;
  std::string name;
};

class CompiledSource : public detail::CompiledModule {
public:
  /// Parses and checks. On failure the error's message holds the rendered diagnostics.
  static Expected<std::shared_ptr<CompiledSource>>
  create(std::string_view text, const CompileOptions &options, const DriverOptions &driver = {});
  std::shared_ptr<detail::CompiledModule> gather_checks() const override { return checker; }

  const std::map<std::string, int64_t> &getPlanDims() const { return options.plan_dims; }
  const std::vector<Signature> &signatures() const override { return kernelSignatures; }
  std::string diagnostics() const override { return warnings; }
  bool is_deterministic(size_t kernel) const override { return deterministic[kernel]; }
  void use_few_keys() override { exactSizes = false; }
  /// Gives signatures, and launches of what is compiled from now on, the names of files as they
  /// were passed; in emitted text and in bundles files have short labels.
  void nameFilesAsGiven();
  Facts relevant_facts(size_t kernel, std::string_view target, const Facts &facts) const override;
  Expected<detail::Executable> specialise(size_t kernel, std::string_view target,
                                          const Facts &facts) override;
  /// What a bundle holds for the CPUs of a level: `Executable::cubin` is the object file.
  Expected<detail::Executable> forCpuLevel(size_t kernel, std::string_view level,
                                           const Facts &facts);
  Expected<std::string> stage_text(size_t kernel, std::string_view stage, std::string_view target,
                                   const Facts &facts) override;
  Expected<std::string> text_for(size_t kernel, std::string_view stage, std::string_view target,
                                 std::span<const std::optional<int64_t>> dims) override;

  Expected<detail::ShardedKernel> shard(size_t kernel, std::span<const MeshAxis> axes,
                                        std::span<const int64_t> dims,
                                        const std::string &network) override;
  /// What a pass derived or declined.
  struct Remark {
    std::string file;     ///< as the program names it; empty without a place
    unsigned line = 0;    ///< from 1
    std::string lineText; ///< of the source, without its indentation
    std::string pass, text;
    bool declined = false;
    std::string tensor = {}; ///< of which it says that it is stored, or computed where it is read
  };
  /// A kernel on a mesh.
  struct Placement {
    std::shared_ptr<CompiledSource> locals; ///< the local kernels, as a source of their own
    MeshPlan plan;
    std::string text;            ///< the kernel with its collectives
    std::vector<Remark> remarks; ///< why each collective is there
  };
  /// `dims` are sizes for which the placement is to be the best; empty: not known. `network`: see
  /// MeshOptions.
  Expected<Placement> placeOn(size_t kernel, std::span<const MeshAxis> axes,
                              std::span<const int64_t> dims = {},
                              const std::string &network = {}) const;

  /// What the passes derived and what they declined, in the order in which they ran; then the
  /// plans.
  Expected<std::vector<Remark>> remarks(size_t kernel, std::string_view target, const Facts &facts);
  /// What `remarks` leaves out: tests that keep a pass from a rewrite, each with its reason, and
  /// the steps of the pipeline that change nothing of a line, or nothing at all.
  Expected<std::vector<Remark>> refusals(size_t kernel, std::string_view target,
                                         const Facts &facts);
  /// Lines of the source, and below each the remarks on it that follow one another.
  static std::string textOf(llvm::ArrayRef<Remark> remarks);
  /// Both of these.
  Expected<std::string> explain(size_t kernel, std::string_view target, const Facts &facts);

  /// The tensors of the program that are stored, and those that passes make, for these sizes.
  Expected<std::vector<std::string>> storedTensors(size_t kernel, std::string_view target,
                                                   const Facts &facts);

  /// What the launches cost where all dimensions are known; null if a launch depends on what is
  /// not. `scalars` are those that are given, in the signature's order; the others have their
  /// defaults. `blocksAtOnce` says how many blocks of a function one multiprocessor holds, or 0.
  Expected<std::unique_ptr<PredictedCost>>
  predictCost(size_t kernel, std::string_view target, const Facts &facts,
              llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<std::optional<Scalar>> scalars,
              llvm::function_ref<unsigned(llvm::StringRef symbol)> blocksAtOnce);

  /// All that `tkc view` shows of a kernel, from one compilation. Where a size is not known, `dims`
  /// is shorter than the signature's, and the view has no costs.
  Expected<KernelView> view(size_t kernel, std::string_view target, const Facts &facts,
                            llvm::ArrayRef<int64_t> dims,
                            llvm::ArrayRef<std::optional<Scalar>> scalars);

  /// Whether one of the kernel's schedule blocks is for this target and these sizes.
  bool scheduleApplies(size_t kernel, std::string_view target, const Facts &facts) const;

  /// Whether a schedule block with this condition (of Signature::schedules) may apply on a target.
  bool conditionMatters(size_t kernel, std::string_view target, unsigned condition) const;

  /// For what is compiled from now on: see PipelineOptions::last.
  void setLastPass(unsigned number);

  /// For what is compiled from now on: is it to serve all sizes up to its bounds, not only those
  /// that have no lower bound of their own?
  void setServesShorter(bool serves) { servesShorter = serves; }

  /// Makes lets of a kernel its results, behind those that it has, so that a run stores them.
  Status storeLocals(size_t kernel, llvm::ArrayRef<std::string> names);

  /// The kernel before any pass: what the reference runs.
  KernelOp kernelOp(size_t kernel);
  /// The names of the files that were read: the program, what it imports, and schedule files.
  std::vector<std::string> fileNames() const;
  /// The names of the stages that stage_text knows.
  static llvm::ArrayRef<llvm::StringRef> stageNames();

private:
  CompiledSource();
  Status parse(std::string_view text, frontend::Kernels kernels);
  Status checkOptions();
  /// Fails if no tensor of a kernel has the name, which --inline or --store gives.
  Status checkFusionName(const std::string &name);
  /// Signatures and what else is known of each kernel of the module.
  Status addKernels();

  /// Is a dimension's bound as fine as those of rows of which a thread's registers are counted?
  bool hasFineBound(size_t kernel, size_t dim, std::string_view target) const;
  /// Are tiles of products counted, so that bounds should be as fine as they are?
  bool countsTiles(size_t kernel, std::string_view target) const;
  /// The bound of a key for sizes of a dimension with the bound `upper`.
  int64_t boundOfKey(size_t kernel, size_t dim, std::string_view target, const DimFact &fact) const;
  /// May sizes of a dimension share the keys of classes?
  bool hasClasses(size_t kernel, size_t dim, std::string_view target) const;
  /// The class of the sizes of a dimension of which `fact` is known; nothing for sizes with fine
  /// keys.
  std::optional<SizeInterval> sizeClass(size_t kernel, size_t dim, std::string_view target,
                                        const DimFact &fact) const;
  /// A copy of the module that holds one kernel, with facts and target attached.
  Expected<mlir::OwningOpRef<mlir::ModuleOp>> isolate(size_t kernel, std::string_view target,
                                                      const Facts &facts);
  /// The same with the facts as they are, for batch-invariant kernels, too.
  Expected<mlir::OwningOpRef<mlir::ModuleOp>> isolateFor(size_t kernel, std::string_view target,
                                                         const Facts &facts);
  /// Facts that hold at the sizes of `facts`, and that give a batch-invariant kernel a plan which
  /// adds in the order of the reference plan.
  Expected<Facts> matchReference(size_t kernel, std::string_view target, const Facts &facts);
  /// In which order the plan for `facts` adds.
  Expected<std::string> orderOf(size_t kernel, std::string_view target, const Facts &facts);
  /// The error for a pipeline that failed: the program's where a pass refused something, else ours.
  Error passError(const PassDiagnostics &diagnostics) const;
  /// Runs passes up to a stage on an isolated module. Where that takes far less time, results are
  /// stored that tk-fuse-producers computes where they are read.
  /// `seen` is called with each stage; with one that is planned anew, again.
  using StageSeen = llvm::function_ref<void(llvm::StringRef stage, mlir::ModuleOp module)>;
  Status lower(mlir::ModuleOp module, Stage to, const Dump &dump, StageSeen seen = {});
  /// Where tiles turn out to need more shared memory, or registers, than there are, they are
  /// planned anew for less.
  Status lowerToFit(mlir::ModuleOp module, Stage to, const Dump &dump, StageSeen seen);
  /// Puts `from` in place of the contents of `module`.
  static void restore(mlir::ModuleOp module, mlir::ModuleOp from);
  /// What had better be decided otherwise in the kernel of `tensors`, which was fused to `fused`
  /// and lowered to `lowered`.
  llvm::SmallVector<PlanChange> changesByTime(mlir::ModuleOp tensors, mlir::ModuleOp lowered,
                                              mlir::ModuleOp fused);
  Status runStages(mlir::ModuleOp module, Stage from, Stage to, const Dump &dump, StageSeen seen);
  /// Notes on schedule blocks that do not apply, before a kernel is lowered.
  void noteSchedules(KernelOp op, size_t kernel, std::string_view target, const Facts &facts) const;
  /// What the notes of a lowered kernel say, and its plans.
  std::vector<Remark> remarksOf(KernelOp lowered) const;
  /// What the launches of a lowered module cost; see predictCost. `fused` is the module as it was
  /// fused, and is changed.
  Expected<std::unique_ptr<PredictedCost>>
  costOf(mlir::ModuleOp lowered, mlir::ModuleOp fused, size_t kernel, std::string_view target,
         llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<std::optional<Scalar>> scalars,
         llvm::function_ref<unsigned(llvm::StringRef symbol)> blocksAtOnce);
  bool mayUseCache(const Dump &dump) const;
  detail::Digest keyOf(mlir::ModuleOp module, std::string_view target) const;
  /// CUDA text and plan, from the cache or from the passes.
  Expected<detail::Executable> emitted(mlir::ModuleOp module, size_t kernel,
                                       std::string_view target, const Facts &facts,
                                       const Dump &dump);
  /// CUDA text and plan of a lowered module.
  Expected<detail::Executable> emitText(mlir::ModuleOp lowered, size_t kernel, const Facts &facts);
  /// Machine code of what was emitted; several threads may be in here at once.
  Expected<detail::Executable> assemble(detail::Executable emitted, size_t kernel,
                                        std::string_view target, const Dump &dump) const;
  Expected<detail::Executable> compileCpu(mlir::ModuleOp module, size_t kernel, const Dump &dump);
  Expected<std::string> linalgText(mlir::ModuleOp module, std::string_view target,
                                   const Dump &dump);
  Expected<std::string> makeStage(size_t kernel, std::string_view stage, std::string_view target,
                                  const Facts &facts);
  /// An error of ours, with the name of a file that shows it again.
  Error withReproducer(const Error &error, size_t kernel, std::string_view target,
                       const Facts &facts, std::string_view stage) const;

  void nameAsGiven(SourceSpan &span) const;

  // MLIR's context is not for several threads at once; neither is a kernel's compilation.
  std::mutex mutex;
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<Signature> kernelSignatures;
  std::vector<std::vector<bool>> reducedDims;   ///< by kernel and dimension
  std::vector<std::vector<bool>> windowDims;    ///< likewise
  std::vector<std::vector<SizeRole>> sizeRoles; ///< likewise
  std::vector<std::vector<bool>> tiledDims;     ///< likewise: see findTiledDims
  std::vector<Products> products;               ///< by kernel
  std::vector<bool> deterministic;              ///< likewise
  /// By batch-invariant kernel and dimension; empty for other kernels.
  std::vector<std::vector<SizeUse>> sizeUses;
  std::map<std::string, Facts> invariantPlans; ///< by kernel, target and facts
  std::vector<std::string> kernelNames;
  std::string warnings;
  SourceManager sources;
  FileId mainFile = kNoFile;
  std::vector<std::vector<ScheduleHeader>> schedules; ///< by kernel
  std::shared_ptr<CompiledSource> checker;            ///< of the gathers; null where there are none
  bool servesShorter = false;
  std::atomic<bool> exactSizes = true; ///< see DriverOptions::sizeClasses
  bool filesAsGiven = false;
  CompileOptions options;
  DriverOptions driver;
};

} // namespace tk

#endif // TK_COMPILER_COMPILEDSOURCE_H
