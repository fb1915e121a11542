//===- Commands.h - the subcommands of tkc -----------------------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_COMMANDS_H
#define TK_COMPILER_TKC_COMMANDS_H

#include "compiler/CompiledSource.h"
#include "frontend/Source.h"
#include "tk/error.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tk::tkc {

/// What the process exits with; docs/reference/tkc.md lists them for scripts.
enum ExitCode {
  Done = 0,
  WrongInput = 1,     ///< the program, the shapes or the data are wrong
  WrongUsage = 2,     ///< the command line is
  MachineCannot = 3,  ///< no GPU, no NVRTC, no memory, a full disk
  InternalError = 70, ///< a bug of tk's; a reproducer was written
};

ExitCode exitCodeFor(ErrorCode code);

/// The exit codes and what they mean, for people.
std::vector<std::pair<int, const char *>> exitCodes();

/// Prints an error to standard error and returns the exit code for it.
int report(const Error &error, bool json);

/// What is wrong with the text of a bound that has to be a number from 0 on; empty if nothing is.
std::string notABound(const std::string &text);

/// What `explain` prints where the passes say nothing of a kernel, or of a line.
std::string nothingSaid(const std::string &file, const Signature &signature,
                        const std::string &target, unsigned line = 0);

/// A kernel of a source that compiled.
struct ChosenKernel {
  std::shared_ptr<CompiledSource> source;
  size_t kernel = 0; ///< its position
};

/// The options that build and run share.
struct SourceOptions {
  std::string file;
  std::string kernel;
  std::string target;
  std::string device;                ///< see DriverOptions
  std::vector<std::string> dims;     ///< NAME=INT
  std::vector<std::string> planDims; ///< likewise; see CompileOptions::plan_dims
  std::vector<std::string> scalars;  ///< NAME=VALUE, of the commands that run nothing
  std::string scheduleFile;
  std::string scheduleText; ///< blocks in place of a file's
  std::vector<std::string> disabledPasses;
  std::vector<std::string> inlined, stored, merged, apart; ///< see PipelineOptions
  std::vector<std::string> printAfter;
  bool json = false;
  bool checked = false;
  bool colour = false;
  bool noLines = false;     ///< leave #line out of CUDA text
  bool quiet = false;       ///< shows no warnings of the program
  bool sizeClasses = false; ///< sizes share code as they do at calls; see CompileOptions
  /// Called after each pass; see PipelineOptions.
  std::function<llvm::LogicalResult(const PassRun &, mlir::ModuleOp)> afterPass;

  void addTo(CLI::App &command);
  /// Those that replace what the compiler would choose.
  void addChoicesTo(CLI::App &command);
  /// --arg, of the commands that run nothing.
  void addScalarsTo(CLI::App &command);
  /// Reads the file; kernels, diagnostics and passes are checked.
  Expected<std::shared_ptr<CompiledSource>> compile();
  /// The position of the chosen kernel; the only one where none was named.
  Expected<size_t> kernelOf(const CompiledSource &source) const;
  /// Both of these.
  Expected<ChosenKernel> compileKernel();
  /// --dim as a map.
  Expected<std::map<std::string, int64_t>> dimValues() const;
  /// Facts for the sizes given with --dim; of the others what is usual is assumed, or nothing.
  Expected<Facts> factsFor(const Signature &signature, bool general) const;
  /// The sizes given with --dim and the scalars given with --arg, by variable of the signature.
  Expected<std::vector<std::optional<Scalar>>> givenVariables(const Signature &signature) const;
  /// Fails if the sizes and scalars that are given violate a condition of the kernel.
  Status checkGiven(const Signature &signature) const;
  /// Writes a file as writeFile does, unless that is one of those that the program consists of.
  Status write(const std::string &path, std::string_view contents) const;

private:
  std::vector<std::string> readFiles; ///< that compile() read
};

using GivenVariables = std::vector<std::optional<Scalar>>;

/// What is given as variables of the plan's expressions, up to the first that is not: an expression
/// that needs one behind it fails.
std::vector<Scalar> knownOf(const GivenVariables &given);

/// The target to make code for where none runs: the one that is named, else that of the named
/// device, else this machine's GPU, else sm_90a.
Expected<std::string> targetOfCode(const SourceOptions &options);

/// Decides the conditions of schedule blocks and those on scalars from the variables that are
/// given, as far as that goes. Blocks that stay open do not apply; a note on standard error says
/// so.
void decideConditions(const CompiledSource &source, size_t kernel, const std::string &target,
                      const std::vector<std::optional<Scalar>> &given, Facts &facts);

/// Writes what `made` depends on as a rule for make: the files that the source consists of.
Status writeDepfile(const std::string &path, const std::string &made, const CompiledSource &source);

/// NAME=INT texts as a map; `usage` is what the message says is expected.
Expected<std::map<std::string, int64_t>> parseDims(const std::vector<std::string> &texts,
                                                   const std::string &usage);

void addBuild(CLI::App &app, int &status);
void addRun(CLI::App &app, int &status);
void addBench(CLI::App &app, int &status);
void addExplain(CLI::App &app, int &status);
void addInspect(CLI::App &app, int &status);
void addTune(CLI::App &app, int &status);
void addView(CLI::App &app, int &status);
void addMesh(CLI::App &app, int &status);
void addFmt(CLI::App &app, int &status);
void addCache(CLI::App &app, int &status);
void addDoctor(CLI::App &app, int &status);
void addLsp(CLI::App &app, int &status);
/// completions and man, which tell of all commands.
void addTable(CLI::App &app, int &status);

/// The known word that is nearest to a misspelt one; empty if none is near.
std::string nearestOf(std::string_view word, const std::vector<std::string> &known);

/// Whether standard error is a terminal that shows colours.
bool wantsColour();

/// Reads a whole file, or standard input for "-"; fails with `io`.
Expected<std::string> readFile(const std::string &path);
/// Loads a file, or standard input for "-"; kNoFile where that fails, and `why`.
FileId loadSource(SourceManager &sources, const std::string &path, std::string *why);
/// The name that diagnostics have for a file: that of "-" says what it is.
std::string nameOfSource(const std::string &path);
/// Writes a file, or standard output for "-"; main() says whether that took everything. A file is
/// written whole, or what was there stays.
Status writeFile(const std::string &path, std::string_view contents);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_COMMANDS_H
