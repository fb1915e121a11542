// Parses a file and, depth first, the files that it imports.

#include "frontend/Program.h"

#include "frontend/Lexer.h"
#include "frontend/Parser.h"
#include "frontend/StdLibrary.h"

#include <filesystem>
#include <map>
#include <vector>

namespace tk {
namespace {

class ProgramLoader {
public:
  ProgramLoader(SourceManager &sources, Diagnostics &diags, const ParseOptions &options)
      : sources(sources), diags(diags), options(options),
        program(std::make_unique<ast::Program>()) {}

  std::unique_ptr<ast::Program> run(FileId main) {
    visit(main, key(sources.file(main).name()));
    if (options.requireKernel && !diags.hasErrors())
      requireKernel(main);
    if (options.schedules != kNoFile)
      loadSchedules(options.schedules);
    return std::move(program);
  }

private:
  /// One name for one file, however it is reached.
  static std::string key(const std::string &path) {
    std::error_code ignored;
    std::filesystem::path canonical = std::filesystem::weakly_canonical(path, ignored);
    return ignored ? path : canonical.string();
  }

  void visit(FileId id, const std::string &name);
  void resolve(ast::Import &import, FileId importer);
  void resolveLibrary(ast::Import &import);
  void requireKernel(FileId main);
  void loadSchedules(FileId id);
  std::unique_ptr<ast::File> parse(FileId id);

  SourceManager &sources;
  Diagnostics &diags;
  const ParseOptions &options;
  std::unique_ptr<ast::Program> program;
  std::map<std::string, FileId> known; ///< by key
  std::vector<std::string> active;     ///< keys of the files being imported, outermost first
};

std::unique_ptr<ast::File> ProgramLoader::parse(FileId id) {
  const SourceFile &file = sources.file(id);
  auto empty = [&] {
    auto result = std::make_unique<ast::File>();
    result->id = id;
    return result;
  };
  if (file.size() > options.limits.sourceBytes) {
    diags.error(Diag::SourceTooLarge, {id, 0, 0})
        << "'" << file.name() << "' has " << file.size() << " bytes, the limit is "
        << options.limits.sourceBytes;
    return empty();
  }
  LexedFile lexed = lex(file, diags);
  return Parser(file, lexed, diags, options.limits, program->exprCount).parseFile();
}

void ProgramLoader::visit(FileId id, const std::string &name) {
  known[name] = id;
  active.push_back(name);
  auto parsed = parse(id);
  if (options.followImports)
    for (ast::ItemPtr &item : parsed->items)
      if (auto *import = ast::as<ast::Import>(item.get()))
        resolve(*import, id);
  active.pop_back();
  program->files.push_back(std::move(parsed));
}

/// Whether a path names a source file: a diagnostic in any other file would quote its text, and a
/// device or a pipe may have no end.
static bool isSourceFile(const std::filesystem::path &path) {
  std::error_code ignored;
  const std::filesystem::file_type type = std::filesystem::status(path, ignored).type();
  return path.extension() == ".tk" && type != std::filesystem::file_type::character &&
         type != std::filesystem::file_type::block && type != std::filesystem::file_type::fifo &&
         type != std::filesystem::file_type::socket;
}

void ProgramLoader::resolveLibrary(ast::Import &import) {
  if (import.path != "std") {
    diags.error(Diag::ImportNotFound, import.pathSpan)
            .help("a file stands in quotes: import \"" + import.path + ".tk\"")
        << "no library is named '" << import.path << "'; the only one is std";
    return;
  }
  const std::string name = "<std>"; // no path that weakly_canonical gives
  if (auto found = known.find(name); found != known.end()) {
    import.file = found->second;
    return;
  }
  import.file = sources.add("std.tk", std::string(stdLibrary()));
  visit(import.file, name);
  for (ast::ItemPtr &item : program->files.back()->items)
    if (auto *fn = ast::as<ast::Fn>(item.get()))
      fn->ofLibrary = true;
}

void ProgramLoader::resolve(ast::Import &import, FileId importer) {
  if (import.ofLibrary)
    return resolveLibrary(import);
  std::string path =
      (std::filesystem::path(sources.file(importer).name()).parent_path() / import.path)
          .lexically_normal()
          .string();
  if (!isSourceFile(path)) {
    diags.error(Diag::ImportNotSource, import.pathSpan).expected("a file whose name ends in .tk")
        << "'" << import.path << "' is not a .tk file";
    return;
  }
  std::string name = key(path);
  for (std::size_t i = 0; i < active.size(); ++i) {
    if (active[i] != name)
      continue;
    std::string chain;
    for (std::size_t j = i; j < active.size(); ++j)
      chain += std::filesystem::path(active[j]).filename().string() + " -> ";
    diags.error(Diag::ImportCycle, import.pathSpan)
            .note("the cycle: " + chain + std::filesystem::path(name).filename().string())
        << "'" << import.path << "' imports this file, directly or not";
    return;
  }
  if (auto found = known.find(name); found != known.end()) {
    import.file = found->second;
    return;
  }
  std::string why = "too many files";
  if (known.size() < options.limits.files) {
    const bool isOpen = options.open && options.open->contains(name);
    import.file = isOpen ? sources.add(path, options.open->at(name), importer)
                         : sources.load(path, &why, importer);
  }
  if (import.file == kNoFile) {
    diags.error(Diag::ImportNotFound, import.pathSpan)
            .help("paths are relative to the file that imports")
        << "cannot read '" << path << "': " << why;
    return;
  }
  visit(import.file, name);
}

void ProgramLoader::requireKernel(FileId main) {
  for (const ast::ItemPtr &item : program->main().items)
    if (ast::as<ast::Kernel>(item.get()) || ast::as<ast::Import>(item.get()))
      return;
  diags.error(Diag::NoKernel, {main, 0, 0}) << "no kernel in '" << sources.file(main).name() << "'";
}

/// A file that holds schedule blocks and nothing else.
void ProgramLoader::loadSchedules(FileId id) {
  unsigned before = diags.errorCount();
  program->schedules = parse(id);
  bool found = false;
  for (const ast::ItemPtr &item : program->schedules->items) {
    found |= ast::as<ast::Schedule>(item.get()) != nullptr;
    if (!ast::as<ast::Schedule>(item.get()))
      diags.error(Diag::NotASchedule, item->span).expected("schedule KERNEL { … }")
          << "a schedule file holds schedule blocks only";
  }
  if (!found && diags.errorCount() == before)
    diags.error(Diag::NoSchedule, {id, 0, 0})
        << "no schedule block in '" << sources.file(id).name() << "'";
}

} // namespace

std::unique_ptr<ast::Program> parseProgram(SourceManager &sources, FileId main, Diagnostics &diags,
                                           const ParseOptions &options) {
  return ProgramLoader(sources, diags, options).run(main);
}

} // namespace tk
