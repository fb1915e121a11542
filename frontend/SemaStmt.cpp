// Statements: locals and results.

#include "frontend/SemaKernel.h"

#include <algorithm>

namespace tk::sema {

/// Whether an expression reads elements of tensors, so that it is no scalar of sizes alone.
static bool readsTensors(const ast::Expr &e, const std::set<std::string> &tensors) {
  switch (e.kind) {
  case ast::ExprKind::NameRef:
    return tensors.count(static_cast<const ast::NameRef &>(e).name) != 0;
  case ast::ExprKind::Unary:
    return readsTensors(*static_cast<const ast::Unary &>(e).operand, tensors);
  case ast::ExprKind::Binary: {
    const auto &b = static_cast<const ast::Binary &>(e);
    return readsTensors(*b.lhs, tensors) || readsTensors(*b.rhs, tensors);
  }
  case ast::ExprKind::If: {
    const auto &i = static_cast<const ast::If &>(e);
    return readsTensors(*i.condition, tensors) || readsTensors(*i.thenExpr, tensors) ||
           readsTensors(*i.elseExpr, tensors);
  }
  case ast::ExprKind::Call: {
    for (const ast::ExprPtr &arg : static_cast<const ast::Call &>(e).args)
      if (readsTensors(*arg, tensors))
        return true;
    return false;
  }
  case ast::ExprKind::Access:
  case ast::ExprKind::Reduce:
    return true;
  default:
    return false;
  }
}

void KernelSema::statement(const ast::Stmt &stmt) {
  declaring = stmt.span;
  current = &stmt;
  switch (stmt.kind) {
  case ast::StmtKind::LetScalar:
    return letScalar(static_cast<const ast::LetScalar &>(stmt));
  case ast::StmtKind::LetTensor:
    return letTensor(static_cast<const ast::LetTensor &>(stmt));
  case ast::StmtKind::Define:
    return define(static_cast<const ast::Define &>(stmt));
  case ast::StmtKind::Assert:
    assertions.push_back({static_cast<const ast::Assert *>(&stmt), scope});
    return;
  }
}

Node *KernelSema::forStore(Node *value, ast::DType dtype, Span span, const std::string &name) {
  if (value->literal && value->kind == NodeKind::IntConst && dtype != ast::DType::Bool)
    return convert(value, computeType(dtype));
  if (value->fromLiterals && isInteger(computeType(dtype)))
    return convert(value, computeType(dtype));
  if (!storesImplicitly(value->type, dtype)) {
    std::string type(ast::spelling(dtype));
    diags.error(Diag::TypeMismatch, span)
            .expected(type)
            .found(spelling(value->type))
            .help("write a cast: " + type + "(…)")
        << "'" << name << "' cannot hold this value";
    return nullptr;
  }
  return isNarrowFloat(dtype) ? forRounding(value, dtype) : convert(value, computeType(dtype));
}

static ast::DType storedFor(Type t) {
  switch (t) {
  case Type::F64:
    return ast::DType::F64;
  case Type::F32:
    return ast::DType::F32;
  case Type::I64:
  case Type::Index:
    return ast::DType::I64;
  case Type::I32:
    return ast::DType::I32;
  case Type::I16:
    return ast::DType::I16;
  case Type::I8:
    return ast::DType::I8;
  case Type::U8:
    return ast::DType::U8;
  case Type::Bool:
    return ast::DType::Bool;
  }
  return ast::DType::F32;
}

Node *KernelSema::rightSide(const ast::Expr &value, std::optional<ast::DType> dtype) {
  widePlace = dtype == ast::DType::I64 ? &value : nullptr;
  Node *n = expr(value);
  widePlace = nullptr;
  return n;
}

void KernelSema::letScalar(const ast::LetScalar &stmt) {
  statementName = stmt.name;
  std::set<std::string> tensors;
  for (auto &[name, symbol] : scope)
    if (symbol.tensor)
      tensors.insert(name);
  bool isTensor = readsTensors(*stmt.value, tensors);
  Node *value = rightSide(*stmt.value, stmt.dtype);
  if (value && isTensor) {
    ast::DType dtype = stmt.dtype.value_or(storedFor(value->type));
    value = forStore(value, dtype, stmt.value->span, stmt.name);
    if (value) {
      Tensor *tensor = makeTensor(stmt.name, stmt.nameSpan, dtype, {});
      tensor->declared = stmt.dtype.has_value();
      tensor->fromLiterals = !stmt.dtype && value->fromLiterals;
      finish(tensor, {}, value, stmt.span);
      declare(stmt.name, stmt.nameSpan, {nullptr, tensor, nullptr, stmt.nameSpan});
    }
  } else if (value) {
    if (stmt.dtype) {
      value = forStore(value, *stmt.dtype, stmt.value->span, stmt.name);
      if (value && isNarrowFloat(*stmt.dtype)) {
        Node *rounded = make(NodeKind::Round, Type::F32, stmt.value->span);
        rounded->stored = *stmt.dtype;
        rounded->args = {value};
        rounded->kernelLevel = value->kernelLevel;
        value = rounded;
      }
    } else if (value->type == Type::Index) {
      value = canonical(value);
    }
    if (value && !value->kernelLevel) {
      diags.error(Diag::NotSupported, stmt.value->span)
          << "a scalar is made of dimensions and scalar parameters";
      value = nullptr;
    }
    if (value) {
      Symbol symbol{value, nullptr, nullptr, stmt.nameSpan};
      // In an index, a local stands for what its expression is there.
      if (!stmt.dtype && !value->literal && isInteger(value->type) && value->type != Type::Index)
        symbol.asIndex = canonical(indexExpr(*stmt.value));
      declare(stmt.name, stmt.nameSpan, std::move(symbol));
    }
  }
  if (!value) // errors were reported: let later statements see a plausible value
    declare(stmt.name, stmt.nameSpan,
            {floatConst(0, stmt.nameSpan, Type::F32, true), nullptr, nullptr, stmt.nameSpan});
}

bool KernelSema::declareLeft(const std::vector<ast::IndexPtr> &indices, const ast::Expr &value,
                             const Tensor *result, std::vector<IndexVar *> &vars) {
  bool ok = true;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    IndexVar *var =
        declareIndex(*indices[i], {&value}, result ? result->extents[i] : nullptr, result);
    ok &= var != nullptr;
    if (var) {
      var->isLeft = true;
      vars.push_back(var);
    }
  }
  return ok;
}

void KernelSema::letTensor(const ast::LetTensor &stmt) {
  statementName = stmt.name;
  if (stmt.indices.size() > 8)
    diags.error(Diag::RankTooHigh, stmt.lhsSpan)
        << "'" << stmt.name << "' has " << stmt.indices.size() << " axes, at most 8 are supported";
  std::vector<IndexVar *> vars;
  bool ok = declareLeft(stmt.indices, *stmt.value, nullptr, vars);
  Node *value = ok ? rightSide(*stmt.value, stmt.dtype) : nullptr;
  undeclare(stmt.indices);
  if (value)
    warnOfReusedOnly(stmt.indices, *stmt.value);
  std::vector<Node *> extents;
  for (IndexVar *var : vars)
    extents.push_back(var->hi);
  while (extents.size() < stmt.indices.size())
    extents.push_back(intConst(1, stmt.span)); // errors were reported
  ast::DType dtype = stmt.dtype.value_or(ast::DType::F32);
  if (value) {
    if (value->literal && isFloat(value->type))
      value = convert(value, dtype == ast::DType::F64 ? Type::F64 : Type::F32);
    if (!stmt.dtype)
      dtype = storedFor(value->type);
    const bool isOfLiterals =
        !stmt.dtype && isInteger(value->type) && (value->literal || value->fromLiterals);
    value = forStore(value, dtype, stmt.value->span, stmt.name);
    if (value && isOfLiterals)
      value->fromLiterals = true;
  }
  Tensor *tensor = makeTensor(stmt.name, stmt.lhsSpan, dtype, std::move(extents));
  setLows(*tensor, vars);
  tensor->declared = stmt.dtype.has_value();
  tensor->broken = !ok;
  checkSize(*tensor);
  tensor->fromLiterals = value && !stmt.dtype && value->fromLiterals;
  if (value)
    finish(tensor, std::move(vars), value, stmt.span);
  declare(stmt.name, stmt.nameSpan, {nullptr, tensor, nullptr, stmt.nameSpan});
}

void KernelSema::define(const ast::Define &stmt) {
  statementName = stmt.name;
  const ast::Param *target = nullptr;
  for (const ast::ParamPtr &result : out.source->results)
    if (result->name == stmt.name)
      target = result.get();
  for (const ast::ParamPtr &param : out.source->params)
    if (param->name == stmt.name && param->inout)
      target = param.get();
  if (!target) {
    auto it = scope.find(stmt.name);
    auto d = diags.error(Diag::NotAResult, stmt.nameSpan);
    d << "'" << stmt.name << "' is not a result of this kernel";
    std::vector<std::string_view> candidates;
    for (const ast::ParamPtr &result : out.source->results)
      candidates.push_back(result->name);
    if (it != scope.end())
      d.label(it->second.span, "declared here").help("an input that is overwritten is `inout`");
    else
      d.help("a local begins with let: let " + stmt.name + "[…] = …")
          .help(didYouMean(stmt.name, candidates));
    withoutLet.insert(stmt.name);
    return;
  }
  unsigned position = 0;
  for (; position < out.results.size(); ++position)
    if (out.results[position]->name == stmt.name)
      break;
  if (position == out.results.size())
    return; // its declaration was in error
  Tensor *tensor = out.results[position];
  if (auto [it, isNew] = defined.try_emplace(tensor, stmt.lhsSpan); !isNew) {
    diags.error(Diag::DefinedTwice, stmt.lhsSpan)
            .label(it->second, "first here")
            .help("define it once; a local holds the first value: let NAME[…] = …")
        << "'" << stmt.name << "' is defined twice";
    return;
  }
  if (stmt.indices.size() != tensor->extents.size()) {
    diags.error(Diag::RankMismatch, stmt.lhsSpan)
            .label(tensor->span, "declared here")
            .expected(indicesFor(*tensor))
            .found(std::to_string(stmt.indices.size()))
            .help(stmt.bracketed ? "" : wholeTensorHelp(stmt, *tensor))
        << "wrong number of indices for '" << stmt.name << "'";
    scope[stmt.name] = Symbol{nullptr, tensor, nullptr, tensor->span};
    return;
  }
  std::vector<IndexVar *> vars;
  bool ok = declareLeft(stmt.indices, *stmt.value, tensor, vars);
  Node *value = ok ? rightSide(*stmt.value, tensor->dtype) : nullptr;
  undeclare(stmt.indices);
  if (value)
    warnOfReusedOnly(stmt.indices, *stmt.value);
  if (value)
    value = forStore(value, tensor->dtype, stmt.value->span, stmt.name);
  if (value)
    finish(tensor, std::move(vars), value, stmt.span);
  scope[stmt.name] = Symbol{nullptr, tensor, nullptr, tensor->span};
}

void KernelSema::setLows(Tensor &tensor, const std::vector<IndexVar *> &vars) {
  if (std::all_of(vars.begin(), vars.end(), [](IndexVar *var) { return var->startsAtZero(); }))
    return;
  for (const IndexVar *var : vars)
    tensor.lows.push_back(var->lo);
}

void KernelSema::finish(Tensor *tensor, std::vector<IndexVar *> vars, Node *value, Span span) {
  out.statements.push_back({tensor, std::move(vars), value, span});
}

} // namespace tk::sema
