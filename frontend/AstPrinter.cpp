#include "frontend/AstPrinter.h"

#include <charconv>

namespace tk {
namespace {

using namespace ast;

class AstPrinter {
public:
  explicit AstPrinter(AstPrintOptions options) : options(options) {}
  std::string out;

  void print(const File &file);

private:
  void line(std::string_view text, Span span) {
    out.append(2 * indent, ' ').append(text);
    if (options.spans && span.valid()) {
      LineColumn at = options.spans->lineColumn(span);
      out += " @" + std::to_string(at.line) + ":" + std::to_string(at.column);
    }
    out += '\n';
  }
  template <typename Body> void nested(std::string_view text, Span span, Body body) {
    line(text, span);
    ++indent;
    body();
    --indent;
  }
  void print(const Item &item);
  void print(const Kernel &kernel);
  void print(const Param &param);
  void print(const Stmt &stmt);
  void print(const Schedule &schedule);
  void print(const Expr &expr);
  void print(const Reduce &reduce);
  void print(const std::vector<IndexPtr> &indices);

  AstPrintOptions options;
  std::size_t indent = 0;
};

void AstPrinter::print(const File &file) {
  for (const ItemPtr &item : file.items)
    if (item->span.file == file.id || item->span.file == kNoFile)
      print(*item); // else a kernel that a grad item has shown
}

void AstPrinter::print(const Item &item) {
  if (auto *mesh = as<Mesh>(&item)) {
    std::string head = "mesh (";
    for (std::size_t i = 0; i < mesh->axes.size(); ++i)
      head += (i ? ", " : "") + mesh->axes[i].name;
    return line(head + ")", item.span);
  }
  if (auto *kernel = as<Kernel>(&item))
    return print(*kernel);
  if (auto *schedule = as<Schedule>(&item))
    return print(*schedule);
  if (auto *fn = as<Fn>(&item)) {
    std::string head = "fn " + fn->name + "(";
    for (std::size_t i = 0; i < fn->params.size(); ++i)
      head += (i ? ", " : "") + fn->params[i]->name;
    return nested(head + ")", item.span, [&] { print(*fn->body); });
  }
  if (auto *constant = as<Const>(&item))
    return nested("const " + constant->name, item.span, [&] { print(*constant->value); });
  if (auto *import = as<Import>(&item))
    return line(import->ofLibrary ? "import " + import->path : "import \"" + import->path + "\"",
                item.span);
  if (auto *grad = as<Grad>(&item)) {
    std::string head = "grad " + grad->name + " = " + grad->primal + " wrt (";
    for (std::size_t i = 0; i < grad->wrt.size(); ++i)
      head += (i ? ", " : "") + grad->wrt[i].name;
    // What was derived reads best as it would be written.
    nested(head + ")", item.span, [&] {
      for (std::size_t at = 0; at < grad->derived.size();) {
        std::size_t end = grad->derived.find('\n', at);
        line(grad->derived.substr(at, end - at), {});
        at = end + 1;
      }
    });
  }
}

void AstPrinter::print(const Kernel &kernel) {
  nested(std::string(kernel.batchInvariant  ? "@batch_invariant "
                     : kernel.deterministic ? "@deterministic "
                                            : "") +
             "kernel " + kernel.name,
         kernel.span, [&] {
           for (const ParamPtr &param : kernel.params)
             print(*param);
           for (const ParamPtr &result : kernel.results)
             print(*result);
           for (const ExprPtr &constraint : kernel.constraints)
             nested("where", constraint->span, [&] { print(*constraint); });
           for (const StmtPtr &stmt : kernel.statements)
             print(*stmt);
         });
}

void AstPrinter::print(const Param &param) {
  std::string head = param.declKind == DeclKind::Result ? "result " : "param ";
  head += param.strided ? "strided " : "";
  head += param.inout ? "inout " : "";
  head += param.name + ": " + std::string(spelling(param.dtype));
  if (param.isTensor) {
    head += "[";
    for (std::size_t i = 0; i < param.dims.size(); ++i)
      head += (i ? ", " : "") + printExtent(param, i);
    head += "]";
  }
  nested(head, param.span, [&] {
    if (param.defaultValue)
      print(*param.defaultValue);
  });
}

void AstPrinter::print(const std::vector<IndexPtr> &indices) {
  for (const IndexPtr &index : indices) {
    nested("index " + index->name, index->span, [&] {
      if (index->hasRange()) {
        print(*index->lo);
        print(*index->hi);
      }
    });
  }
}

void AstPrinter::print(const Stmt &stmt) {
  auto typed = [](const std::string &head, std::optional<DType> dtype) {
    return dtype ? head + ": " + std::string(spelling(*dtype)) : head;
  };
  if (auto *let = as<LetScalar>(&stmt))
    return nested(typed("let " + let->name, let->dtype), stmt.span, [&] { print(*let->value); });
  if (auto *let = as<LetTensor>(&stmt))
    return nested(typed("let tensor " + let->name, let->dtype), stmt.span, [&] {
      print(let->indices);
      print(*let->value);
    });
  if (as<Assert>(&stmt))
    return nested("assert", stmt.span, [&] { print(*stmt.value); });
  if (auto *define = as<Define>(&stmt))
    nested("define " + define->name + (define->bracketed ? "" : " (no indices)"), stmt.span, [&] {
      print(define->indices);
      print(*define->value);
    });
}

void AstPrinter::print(const Schedule &schedule) {
  std::string head = "schedule " + schedule.name;
  if (!schedule.arch.empty())
    head += " for " + schedule.arch;
  nested(head, schedule.span, [&] {
    if (schedule.when)
      nested("when", schedule.when->span, [&] { print(*schedule.when); });
    for (const ScheduleEntry &entry : schedule.entries) {
      nested(entry.key, entry.span, [&] {
        for (const ScheduleValue &value : entry.values) {
          std::string text = value.axis.empty() ? "" : value.axis + " = ";
          if (value.value)
            line(text + printExpr(*value.value), value.span);
        }
      });
    }
  });
}

void AstPrinter::print(const Reduce &reduce) {
  std::string head = "reduce " + std::string(spelling(reduce.reduceKind));
  if (reduce.modifier != ReduceModifier::None)
    head += " " + std::string(spelling(reduce.modifier));
  if (reduce.wire)
    head += " wire " + std::string(spelling(*reduce.wire));
  nested(head, reduce.span, [&] {
    print(reduce.binders);
    print(*reduce.body);
  });
}

void AstPrinter::print(const Expr &expr) {
  Span span = expr.span;
  if (auto *reduce = as<Reduce>(&expr))
    return print(*reduce);
  if (auto *unary = as<Unary>(&expr))
    return nested("unary " + std::string(spelling(unary->op)), span,
                  [&] { print(*unary->operand); });
  if (auto *binary = as<Binary>(&expr))
    return nested("binary " + std::string(spelling(binary->op)), span, [&] {
      print(*binary->lhs);
      print(*binary->rhs);
    });
  if (auto *select = as<If>(&expr))
    return nested("if", span, [&] {
      print(*select->condition);
      print(*select->thenExpr);
      print(*select->elseExpr);
    });
  if (auto *call = as<Call>(&expr))
    return nested("call " + call->name, span, [&] {
      for (const ExprPtr &arg : call->args)
        print(*arg);
    });
  if (auto *access = as<Access>(&expr))
    return nested("access " + access->name, span, [&] {
      for (const ExprPtr &index : access->indices)
        print(*index);
    });
  if (as<NameRef>(&expr))
    return line("name " + printExpr(expr), span);
  line("literal " + printExpr(expr), span);
}

/// Prints in the language's syntax. A level is the tightness of an operator's production.
class ExprPrinter {
public:
  std::string out;
  void print(const Expr &expr, int context);

private:
  static int level(const Expr &expr);
  void list(const std::vector<ExprPtr> &exprs) {
    for (std::size_t i = 0; i < exprs.size(); ++i) {
      out += i ? ", " : "";
      print(*exprs[i], Loosest);
    }
  }
  void printBare(const Expr &expr);
  void printReduce(const Reduce &reduce);
};

int ExprPrinter::level(const Expr &expr) {
  if (auto *binary = as<Binary>(&expr))
    return tightness(binary->op);
  if (auto *unary = as<Unary>(&expr))
    return unary->op == UnaryOp::Neg ? UnaryTight : NotTight;
  return as<If>(&expr) ? Loosest : PrimaryTight;
}

void ExprPrinter::print(const Expr &expr, int context) {
  bool parentheses = level(expr) < context;
  out += parentheses ? "(" : "";
  printBare(expr);
  out += parentheses ? ")" : "";
}

void ExprPrinter::printReduce(const Reduce &reduce) {
  out.append(spelling(reduce.reduceKind)).append("[");
  for (std::size_t i = 0; i < reduce.binders.size(); ++i) {
    const Index &index = *reduce.binders[i];
    out.append(i ? ", " : "").append(index.name);
    if (index.hasRange()) {
      out += " in ";
      print(*index.lo, Loosest);
      out += "..";
      print(*index.hi, Loosest);
    }
  }
  if (reduce.modifier != ReduceModifier::None)
    out.append("; ").append(spelling(reduce.modifier));
  if (reduce.wire)
    out.append(reduce.modifier == ReduceModifier::None ? "; wire = " : ", wire = ")
        .append(spelling(*reduce.wire));
  out += "](";
  print(*reduce.body, Loosest);
  out += ")";
}

void ExprPrinter::printBare(const Expr &expr) {
  if (auto *literal = as<IntLit>(&expr))
    out += std::to_string(literal->value);
  else if (auto *literal = as<FloatLit>(&expr))
    out += printFloat(literal->value);
  else if (auto *literal = as<BoolLit>(&expr))
    out += literal->value ? "true" : "false";
  else if (auto *name = as<NameRef>(&expr))
    out += name->name;
  else if (auto *unary = as<Unary>(&expr)) {
    out += unary->op == UnaryOp::Neg ? "-" : "not ";
    print(*unary->operand, level(expr));
  } else if (auto *binary = as<Binary>(&expr)) {
    int own = tightness(binary->op);
    bool power = binary->op == BinaryOp::Pow, compare = own == CompareTight;
    print(*binary->lhs, power || compare ? own + 1 : own);
    out += power ? "" : " ";
    out += spelling(binary->op);
    out += power ? "" : " ";
    print(*binary->rhs, power ? UnaryTight : own + 1);
  } else if (auto *select = as<If>(&expr)) {
    out += "if ";
    print(*select->condition, Loosest);
    out += " then ";
    print(*select->thenExpr, Loosest);
    out += " else ";
    print(*select->elseExpr, Loosest);
  } else if (auto *call = as<Call>(&expr)) {
    out += call->name + "(";
    list(call->args);
    out += ")";
  } else if (auto *access = as<Access>(&expr)) {
    out += access->name + "[";
    list(access->indices);
    out += "]";
  } else if (auto *reduce = as<Reduce>(&expr)) {
    printReduce(*reduce);
  } else {
    out += "<error>";
  }
}

} // namespace

std::string printAst(const File &file, AstPrintOptions options) {
  AstPrinter printer(options);
  printer.print(file);
  return std::move(printer.out);
}

std::string printAst(const Program &program, AstPrintOptions options) {
  std::string out;
  for (const auto &file : program.files)
    out += printAst(*file, options);
  return out;
}

int tightness(BinaryOp op) {
  switch (op) {
  case BinaryOp::Or:
    return OrTight;
  case BinaryOp::And:
    return AndTight;
  case BinaryOp::Add:
  case BinaryOp::Sub:
    return SumTight;
  case BinaryOp::Mul:
  case BinaryOp::Div:
  case BinaryOp::Rem:
    return ProductTight;
  case BinaryOp::Pow:
    return PowerTight;
  default:
    return CompareTight;
  }
}

std::string printFloat(double value) {
  char buffer[32];
  auto [end, status] = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, end);
  if (text.find_first_of(".en") == std::string::npos)
    text += ".0";
  return text;
}

std::string printExpr(const Expr &expr) {
  ExprPrinter printer;
  printer.print(expr, Loosest);
  return std::move(printer.out);
}

std::string printExtent(const ast::Param &param, std::size_t axis) {
  std::string text = printExpr(*param.dims[axis]);
  if (axis < param.shards.size() && !param.shards[axis].name.empty())
    text += " @ " + param.shards[axis].name;
  return text;
}

} // namespace tk
