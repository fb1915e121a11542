#include "frontend/Sema.h"

#include "frontend/SemaKernel.h"

#include <algorithm>

namespace tk::frontend {

using namespace tk::sema;

namespace {

/// Collects the items by name; a name stands for one of them.
class Items {
public:
  Items(const ast::Program &program, Diagnostics &diags)
      : foreignSchedules(program.schedules != nullptr), diags(diags) {
    for (const std::unique_ptr<ast::File> &file : program.files)
      for (const ast::ItemPtr &item : file->items)
        add(*item);
    if (!foreignSchedules)
      return;
    for (const ast::ItemPtr &item : program.schedules->items)
      schedules.push_back(static_cast<const ast::Schedule *>(item.get()));
  }

  Globals globals;
  std::vector<const ast::Schedule *> schedules;

private:
  void add(const ast::Item &item) {
    switch (item.kind) {
    case ast::ItemKind::Kernel:
      return enter(globals.kernels, static_cast<const ast::Kernel &>(item));
    case ast::ItemKind::Fn:
      if (const auto &fn = static_cast<const ast::Fn &>(item); fn.ofLibrary) {
        globals.libraryFns[fn.name] = &fn;
        return;
      }
      return enter(globals.fns, static_cast<const ast::Fn &>(item));
    case ast::ItemKind::Const:
      return enter(globals.consts, static_cast<const ast::Const &>(item));
    case ast::ItemKind::Schedule:
      if (!foreignSchedules)
        schedules.push_back(static_cast<const ast::Schedule *>(&item));
      return;
    case ast::ItemKind::Mesh:
      return enter(static_cast<const ast::Mesh &>(item));
    case ast::ItemKind::Grad:
    case ast::ItemKind::Import:
      return; // the kernel that is derived has the grad's name
    }
  }

  /// The meshes of all files are one: an axis is named once in a file.
  void enter(const ast::Mesh &mesh) {
    std::map<std::string, Span> here;
    for (const ast::MeshAxis &axis : mesh.axes) {
      auto [first, isNew] = here.try_emplace(axis.name, axis.span);
      if (!isNew)
        diags.error(Diag::Redeclared, axis.span).label(first->second, "declared here")
            << "axis '" << axis.name << "' of the mesh is declared twice";
      else if (std::find(globals.meshAxes.begin(), globals.meshAxes.end(), axis.name) ==
               globals.meshAxes.end())
        globals.meshAxes.push_back(axis.name);
    }
  }

  template <typename Map, typename T> void enter(Map &map, const T &item) {
    const ast::Decl &decl = item;
    auto [it, isNew] = names.try_emplace(decl.name, decl.nameSpan);
    if (isNew && decl.name != "inf" && decl.name != "nan" && decl.name != "pi") {
      map[decl.name] = &item;
      return;
    }
    auto d = diags.error(Diag::Redeclared, decl.nameSpan);
    d << "'" << decl.name << "' is declared twice";
    if (!isNew)
      d.label(it->second, "declared here");
  }

  bool foreignSchedules; ///< blocks of the program itself do not count
  Diagnostics &diags;
  std::map<std::string, Span> names;
};

const ast::Kernel *findKernel(const Globals &globals, const std::string &name, Span span,
                              Diagnostics &diags) {
  if (auto it = globals.kernels.find(name); it != globals.kernels.end())
    return it->second;
  std::vector<std::string_view> candidates;
  for (auto &[known, kernel] : globals.kernels)
    candidates.push_back(known);
  auto d = diags.error(Diag::UnknownKernel, span);
  d << "unknown kernel '" << name << "'";
  if (std::string hint = didYouMean(name, candidates); !hint.empty())
    d.help(hint);
  return nullptr;
}

} // namespace

std::unique_ptr<Module> analyze(const ast::Program &program, Diagnostics &diags,
                                bool withSchedules) {
  if (diags.hasErrors())
    return nullptr;
  Items items(program, diags);
  if (!withSchedules)
    items.schedules.clear();
  auto module = std::make_unique<Module>();
  for (const std::unique_ptr<ast::File> &file : program.files)
    for (const ast::ItemPtr &item : file->items) {
      const auto *kernel = ast::as<ast::Kernel>(item.get());
      if (!kernel)
        continue;
      auto out = std::make_unique<Kernel>();
      KernelSema sema(items.globals, *out, diags);
      sema.run(*kernel);
      for (const ast::Schedule *schedule : items.schedules)
        if (schedule->name == kernel->name)
          sema.schedule(*schedule);
      sema.checks();
      if (withSchedules)
        sema.warnOfUnused();
      module->kernels.push_back(std::move(out));
    }
  for (const ast::Schedule *schedule : items.schedules)
    findKernel(items.globals, schedule->name, schedule->nameSpan, diags);
  if (diags.hasErrors())
    return nullptr;
  return module;
}

} // namespace tk::frontend
