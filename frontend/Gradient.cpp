#include "frontend/Gradient.h"

#include "frontend/GradKernel.h"
#include "frontend/Lexer.h"
#include "frontend/Parser.h"
#include "frontend/Sema.h"

#include <algorithm>

namespace tk::frontend {
namespace {

class Deriver {
public:
  Deriver(SourceManager &sources, ast::Program &program, Diagnostics &diags)
      : sources(sources), program(program), diags(diags) {}

  void run();

private:
  void collect();
  bool check(const ast::Grad &grad, const ast::Kernel &primal);
  const ast::Kernel *primalOf(const ast::Grad &grad);
  ast::ItemPtr derive(ast::Grad &grad, const sema::Module &module);

  SourceManager &sources;
  ast::Program &program;
  Diagnostics &diags;
  std::map<std::string, const ast::Kernel *, std::less<>> kernels;
  grad::Fns fns;
  std::set<std::string> names;
  std::map<std::string, Span> items; ///< what a grad may not be called
  std::map<std::string, Span> grads;
};

void Deriver::collect() {
  for (const std::unique_ptr<ast::File> &file : program.files)
    for (const ast::ItemPtr &item : file->items) {
      if (const auto *kernel = ast::as<ast::Kernel>(item.get())) {
        kernels[kernel->name] = kernel;
        items.try_emplace(kernel->name, kernel->nameSpan);
        names.insert(kernel->name);
      } else if (const auto *fn = ast::as<ast::Fn>(item.get())) {
        (fn->ofLibrary ? fns.library : fns.program)[fn->name] = fn;
        if (fn->ofLibrary)
          continue;
        items.try_emplace(fn->name, fn->nameSpan);
        names.insert(fn->name);
      } else if (const auto *constant = ast::as<ast::Const>(item.get())) {
        names.insert(constant->name);
        items.try_emplace(constant->name, constant->nameSpan);
      } else if (const auto *grad = ast::as<ast::Grad>(item.get())) {
        names.insert(grad->name);
        grads.try_emplace(grad->name, grad->nameSpan);
      }
    }
}

const ast::Kernel *Deriver::primalOf(const ast::Grad &grad) {
  if (auto it = kernels.find(grad.primal); it != kernels.end())
    return it->second;
  if (auto it = grads.find(grad.primal); it != grads.end()) {
    diags.error(Diag::NotSupported, grad.primalSpan).label(it->second, "a gradient itself")
        << "gradients of gradients are not supported yet";
    return nullptr;
  }
  std::vector<std::string_view> candidates;
  for (auto &[known, kernel] : kernels)
    candidates.push_back(known);
  auto d = diags.error(Diag::UnknownKernel, grad.primalSpan);
  d << "unknown kernel '" << grad.primal << "'";
  if (std::string hint = didYouMean(grad.primal, candidates); !hint.empty())
    d.help(hint);
  return nullptr;
}

/// The parameters that are differentiated by, and the names that the gradient needs.
bool Deriver::check(const ast::Grad &grad, const ast::Kernel &primal) {
  bool ok = true;
  std::map<std::string, Span> seen;
  if (grad.wrt.empty()) {
    diags.error(Diag::NotDifferentiable, grad.span).help("name parameters: wrt (x, y)")
        << "'" << grad.name << "' has no parameter after wrt";
    ok = false;
  }
  for (const ast::GradArgument &arg : grad.wrt) {
    std::vector<std::string_view> candidates;
    const ast::Param *found = nullptr;
    for (const ast::ParamPtr &param : primal.params) {
      candidates.push_back(param->name);
      if (param->name == arg.name)
        found = param.get();
    }
    if (auto [it, isNew] = seen.try_emplace(arg.name, arg.span); !isNew) {
      diags.error(Diag::Redeclared, arg.span).label(it->second, "first here")
          << "'" << arg.name << "' is named twice";
      ok = false;
    } else if (!found) {
      auto d = diags.error(Diag::UnknownName, arg.span);
      d << "kernel '" << primal.name << "' has no parameter '" << arg.name << "'";
      if (std::string hint = didYouMean(arg.name, candidates); !hint.empty())
        d.help(hint);
      ok = false;
    } else if (!sema::isFloat(found->dtype)) {
      diags.error(Diag::NotDifferentiable, arg.span)
              .label(found->span, "declared here")
              .expected("a parameter of a floating-point type")
              .found(std::string(ast::spelling(found->dtype)))
          << "'" << arg.name << "' has no gradient: it is no float";
      ok = false;
    }
  }
  bool hasFloat = std::any_of(primal.results.begin(), primal.results.end(),
                              [](const ast::ParamPtr &r) { return sema::isFloat(r->dtype); });
  if (ok && !hasFloat) {
    diags.error(Diag::NotDifferentiable, grad.primalSpan)
            .label(primal.nameSpan, "integers have no gradient, nor has what is overwritten")
        << "'" << primal.name << "' has no floating-point result to differentiate";
    ok = false;
  }
  // Inputs, results, cotangents and gradients are names of one kernel.
  std::map<std::string, Span> declared;
  for (const std::vector<ast::ParamPtr> *list : {&primal.params, &primal.results})
    for (const ast::ParamPtr &param : *list)
      declared.try_emplace(param->name, param->nameSpan);
  auto need = [&](const std::string &name, const std::string &what) {
    auto [it, isNew] = declared.try_emplace(name, grad.nameSpan);
    if (isNew && !names.count(name))
      return;
    auto d = diags.error(Diag::Redeclared, grad.nameSpan);
    d << "'" << grad.name << "' needs the name '" << name << "' for " << what
      << ", which is already declared";
    if (!isNew)
      d.label(it->second, "declared here");
    ok = false;
  };
  for (const ast::ParamPtr &result : primal.results)
    if (sema::isFloat(result->dtype))
      need("d_" + result->name, "the cotangent of '" + result->name + "'");
  for (const auto &[name, span] : seen)
    need("d_" + name, "the gradient by '" + name + "'");
  return ok;
}

ast::ItemPtr Deriver::derive(ast::Grad &grad, const sema::Module &module) {
  const ast::Kernel *primal = primalOf(grad);
  if (auto [it, isNew] = items.try_emplace(grad.name, grad.nameSpan); !isNew) {
    diags.error(Diag::Redeclared, grad.nameSpan).label(it->second, "declared here")
        << "'" << grad.name << "' is declared twice";
    return nullptr;
  }
  if (!primal || !check(grad, *primal))
    return nullptr;
  const sema::Kernel *analysed = nullptr;
  for (const std::unique_ptr<sema::Kernel> &kernel : module.kernels)
    if (kernel->source == primal)
      analysed = kernel.get();
  if (!analysed)
    return nullptr;
  std::optional<std::string> text = grad::GradKernel(grad, *analysed, fns, names, diags).run();
  if (!text)
    return nullptr;
  grad.derived = *text;
  FileId id = sources.add(sources.file(grad.span.file).name() + " (" + grad.name + ")", *text);
  LexedFile lexed = lex(sources.file(id), diags);
  std::unique_ptr<ast::File> parsed =
      Parser(sources.file(id), lexed, diags, {}, program.exprCount).parseFile();
  if (parsed->items.empty())
    return nullptr;
  if (auto *kernel = ast::as<ast::Kernel>(parsed->items.front().get()))
    kernel->derived = true;
  return std::move(parsed->items.front());
}

void Deriver::run() {
  bool hasGrad = false;
  for (const std::unique_ptr<ast::File> &file : program.files)
    for (const ast::ItemPtr &item : file->items)
      hasGrad |= item->kind == ast::ItemKind::Grad;
  if (!hasGrad || diags.hasErrors())
    return;
  Diagnostics unheard(sources); // what is wrong is reported when all is analysed
  std::unique_ptr<sema::Module> module = analyze(program, unheard, false);
  collect();
  if (!module)
    return;
  for (const std::unique_ptr<ast::File> &file : program.files) {
    std::vector<ast::ItemPtr> items;
    for (ast::ItemPtr &item : file->items) {
      items.push_back(std::move(item));
      if (auto *grad = ast::as<ast::Grad>(items.back().get()))
        if (ast::ItemPtr kernel = derive(*grad, *module))
          items.push_back(std::move(kernel));
    }
    file->items = std::move(items);
  }
}

} // namespace

void deriveGradients(SourceManager &sources, ast::Program &program, Diagnostics &diags) {
  Deriver(sources, program, diags).run();
}

} // namespace tk::frontend
