//===- Describe.cpp - what an editor shows of a name ----------------------===//
#include "compiler/tkc/lsp/Document.h"

namespace tk::lsp {

/// Extents and bounds as text: dimensions by their names.
static std::string textOf(const sema::Kernel &kernel, const sema::Node *n) {
  auto join = [&](const char *op) {
    return textOf(kernel, n->args[0]) + " " + op + " " + textOf(kernel, n->args[1]);
  };
  switch (n->kind) {
  case sema::NodeKind::IntConst:
    return std::to_string(n->intValue);
  case sema::NodeKind::Dim:
    return kernel.dims[n->number];
  case sema::NodeKind::Scalar:
    return kernel.params[n->number].source->name;
  case sema::NodeKind::Convert:
    return textOf(kernel, n->args[0]);
  case sema::NodeKind::Op:
    if (n->op == sema::Op::Add)
      return join("+");
    if (n->op == sema::Op::Sub)
      return join("-");
    if (n->op == sema::Op::Mul)
      return join("*");
    if (n->op == sema::Op::FloorDiv)
      return join("/");
    if (n->op == sema::Op::Rem)
      return join("%");
    return "…";
  default:
    return "…";
  }
}

/// The value of an extent where the dimensions in it are known.
static std::optional<std::int64_t> valueOf(const sema::Kernel &kernel, const sema::Node *n,
                                           const std::map<std::string, std::int64_t> &sizes) {
  if (n->kind == sema::NodeKind::IntConst)
    return n->intValue;
  if (n->kind == sema::NodeKind::Dim) {
    auto it = sizes.find(kernel.dims[n->number]);
    return it == sizes.end() ? std::nullopt : std::optional(it->second);
  }
  if (n->kind == sema::NodeKind::Convert)
    return valueOf(kernel, n->args[0], sizes);
  if (n->kind != sema::NodeKind::Op || n->args.size() != 2)
    return std::nullopt;
  std::optional<std::int64_t> a = valueOf(kernel, n->args[0], sizes),
                              b = valueOf(kernel, n->args[1], sizes);
  std::int64_t result = 0;
  if (!a || !b)
    return std::nullopt;
  switch (n->op) {
  case sema::Op::Add:
    return __builtin_add_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
  case sema::Op::Sub:
    return __builtin_sub_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
  case sema::Op::Mul:
    return __builtin_mul_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
  case sema::Op::FloorDiv:
    return *b > 0 && *a >= 0 ? std::optional(*a / *b) : std::nullopt;
  case sema::Op::Rem:
    return *b > 0 && *a >= 0 ? std::optional(*a % *b) : std::nullopt;
  default:
    return std::nullopt;
  }
}

/// ", 2097152 bytes" where all extents are known.
std::string Document::sizeOf(const sema::Kernel &kernel, const sema::Tensor &tensor) const {
  std::int64_t bytes = sema::bytesOf(tensor.dtype);
  for (const sema::Node *extent : tensor.extents) {
    std::optional<std::int64_t> value = valueOf(kernel, extent, sizes);
    if (!value || __builtin_mul_overflow(bytes, *value, &bytes))
      return {};
  }
  return ", " + std::to_string(bytes) + " bytes";
}

static std::string rangeOf(const sema::Kernel &kernel, const sema::IndexVar &index) {
  return textOf(kernel, index.lo) + ".." + textOf(kernel, index.hi);
}

std::string Document::describe(const NamedThing &thing) const {
  std::string text = thing.kind + " `" + thing.name;
  const sema::Kernel *kernel = thing.kernel ? analysed(*thing.kernel) : nullptr;
  if (kernel && thing.kind == "index")
    for (const sema::IndexVar &index : kernel->indices)
      if (index.span.file == thing.declaration.file && index.span.begin == thing.declaration.begin)
        return text + " in " + rangeOf(*kernel, index) + "`";
  if (kernel && thing.kind == "dimension")
    if (auto size = sizes.find(thing.name); size != sizes.end())
      return text + "` = " + std::to_string(size->second);
  if (kernel)
    for (const sema::Tensor &tensor : kernel->tensors) {
      if (tensor.name != thing.name)
        continue;
      std::string shape;
      for (const sema::Node *extent : tensor.extents)
        shape += (shape.empty() ? "" : ", ") + textOf(*kernel, extent);
      return text + ": " + std::string(ast::spelling(tensor.dtype)) + "[" + shape + "]`" +
             sizeOf(*kernel, tensor);
    }
  if (thing.kernel)
    for (const ast::ParamPtr &param : thing.kernel->params)
      if (param->name == thing.name)
        return text + "` " + std::string(sources.text(param->span));
  if (const ast::Fn *fn = thing.kind == "function" ? functionNamed(thing.name) : nullptr)
    return "`" + std::string(sources.text(fn->span)) + "`";
  return text + "`";
}

std::string Document::describeCost(const NamedThing &thing) {
  const bool isKernel = thing.kind == "kernel";
  const std::string name = isKernel ? thing.name : thing.kernel ? thing.kernel->name : "";
  const bool isTensor = !isKernel && (thing.kind == "local" || thing.kind == "result");
  if (name.empty() || sizes.empty() || !module || !(isKernel || isTensor))
    return {};
  auto [cost, isNew] = costs.try_emplace(name);
  if (isNew)
    cost->second = costOfKernel(main().name(), std::string(main().text()), name, sizes);
  const ShownCost &shown = cost->second;
  if (isKernel || shown.kernel.empty())
    return shown.kernel;
  auto stored = shown.stored.find(thing.name);
  return stored == shown.stored.end() ? "computed where it is read" : "stored by " + stored->second;
}

std::vector<std::pair<Span, std::string>> Document::indexRanges() const {
  std::vector<std::pair<Span, std::string>> ranges;
  if (module)
    for (const auto &kernel : module->kernels)
      for (const sema::IndexVar &index : kernel->indices)
        // A range that is written needs no hint; nor does an index of a function.
        if (index.span.file == mainFile && index.path.empty() &&
            sources.text(index.span) == index.name)
          ranges.emplace_back(index.span, rangeOf(*kernel, index));
  return ranges;
}

} // namespace tk::lsp
