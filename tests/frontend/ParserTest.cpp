#include "tests/frontend/Parse.h"
#include "tests/unit/catch.h"

#include <filesystem>
#include <fstream>

using namespace tk;
using namespace tk::ast;

TEST_CASE("precedence and associativity") {
  CHECK(reprint("a + b * c") == "a + b * c");
  CHECK(reprint("(a + b) * c") == "(a + b) * c");
  CHECK(reprint("a - (b - c) - d") == "a - (b - c) - d");
  CHECK(reprint("(a - b) - c") == "a - b - c");
  CHECK(reprint("-x^2") == "-x^2");
  CHECK(reprint("(-x)^2") == "(-x)^2");
  CHECK(reprint("a^(b^c)") == "a^b^c");
  CHECK(reprint("(a^b)^c") == "(a^b)^c");
  CHECK(reprint("2^-3 * b") == "2^-3 * b");
  CHECK(reprint("a * -b") == "a * -b");
  CHECK(reprint("(not a < b) and c or d") == "not a < b and c or d");
  CHECK(reprint("not (a and b)") == "not (a and b)");
  CHECK(reprint("if a < b then c else d + 1") == "if a < b then c else d + 1");
  CHECK(reprint("(if a then b else c) + 1") == "(if a then b else c) + 1");
  CHECK(reprint("1 + if a then b else c + 2") == "1 + (if a then b else c + 2)");
}

TEST_CASE("the tree of -x^2 negates the power") {
  Parsed parsed(kernelOf("y[i, j] = -x[i, j]^2"));
  auto *negation = as<Unary>(parsed.kernel().statements.at(0)->value.get());
  REQUIRE(negation);
  auto *power = as<Binary>(negation->operand.get());
  REQUIRE(power);
  CHECK(power->op == BinaryOp::Pow);
}

TEST_CASE("brackets after a reduction's name reduce, parentheses alone call") {
  Parsed parsed(kernelOf("y[i, j] = max[k in 0..n, l; fast](x[k, l]) + max(x[i, j], 0.0)"));
  INFO(parsed.errors());
  REQUIRE_FALSE(parsed.diags.hasErrors());
  auto *sum = as<Binary>(parsed.kernel().statements.at(0)->value.get());
  REQUIRE(sum);
  auto *reduce = as<Reduce>(sum->lhs.get());
  REQUIRE(reduce);
  CHECK(reduce->reduceKind == ReduceKind::Max);
  CHECK(reduce->modifier == ReduceModifier::Fast);
  REQUIRE(reduce->binders.size() == 2);
  CHECK(reduce->binders[0]->hasRange());
  CHECK_FALSE(reduce->binders[1]->hasRange());
  auto *call = as<Call>(sum->rhs.get());
  REQUIRE(call);
  CHECK(call->name == "max");
  CHECK(call->args.size() == 2);
}

TEST_CASE("a batch-invariant kernel is deterministic") {
  Parsed parsed("@batch_invariant kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n");
  INFO(parsed.errors());
  REQUIRE_FALSE(parsed.diags.hasErrors());
  CHECK(parsed.kernel().batchInvariant);
  CHECK(parsed.kernel().deterministic);
}

TEST_CASE("a kernel's header") {
  Parsed parsed("@deterministic kernel attention(strided q: bf16[B, S, 2 * D], inout w: f32[N],\n"
                "                 scale: f32 = rsqrt(D)) \n"
                "    -> (o: bf16[B, S], loss: f32[])\n"
                "where S % 2 == 0,\n"
                "      B <= S\n"
                "{\n"
                "}\n");
  INFO(parsed.errors());
  REQUIRE_FALSE(parsed.diags.hasErrors());
  const Kernel &kernel = parsed.kernel();
  CHECK(kernel.deterministic);
  CHECK_FALSE(kernel.batchInvariant);
  CHECK(kernel.name == "attention");
  REQUIRE(kernel.params.size() == 3);
  CHECK(kernel.params[0]->strided);
  CHECK(printExpr(*kernel.params[0]->dims.at(2)) == "2 * D");
  CHECK(kernel.params[1]->inout);
  CHECK_FALSE(kernel.params[2]->isTensor);
  CHECK(printExpr(*kernel.params[2]->defaultValue) == "rsqrt(D)");
  REQUIRE(kernel.results.size() == 2);
  CHECK(kernel.results[1]->isTensor);
  CHECK(kernel.results[1]->dims.empty());
  CHECK(kernel.constraints.size() == 2);
}

TEST_CASE("where a line goes on") {
  auto statements = [](std::string text) {
    Parsed parsed(kernelOf(std::move(text)));
    INFO(parsed.errors());
    CHECK_FALSE(parsed.diags.hasErrors());
    return parsed.kernel().statements.size();
  };
  CHECK(statements("let a = n +\n 1") == 1);
  CHECK(statements("let a = n\n + 1\n - 2") == 1);
  CHECK(statements("let a = if n > 0\n then 1\n else 2") == 1);
  CHECK(statements("let a = (n\n)\nlet b[i,\n j] = x[i, j]") == 2);
  CHECK(statements("let a = n\n and n") == 1);
  CHECK(statements("let a = 1; let b = 2;; let c = 3;") == 3);
  CHECK(statements("let a =\n  1\nlet b = 2") == 2);
  CHECK(statements("\n\n// nothing\n") == 0);
}

TEST_CASE("a bracket on the next line does not index or call") {
  Parsed parsed(kernelOf("let a = n\n(1)"));
  CHECK(parsed.codes() == "TK0101");
  CHECK(parsed.kernel().statements.size() == 1);
}

TEST_CASE("words of headers are names elsewhere") {
  Parsed parsed("kernel grad(in: f32[N], grad: f32[N], kernel: f32, strided: f32, import: i32)\n"
                "    -> (where: f32[N]) {\n"
                "  where[i] = in[i] + grad[i] * kernel * strided\n"
                "}\n");
  CHECK(parsed.errors() == "");
}

TEST_CASE("items other than kernels") {
  Parsed parsed("const PI2 = 2 * pi\n"
                "fn f(x, y) = x +\n"
                "  y\n"
                "grad b = k wrt (x, y)\n"
                "schedule k for sm_90a when M >= 1024 {\n"
                "  tile i = 128, j = 256,\n"
                "       k = 64\n"
                "  stages = 4; persistent\n"
                "  raster = grouped(8)\n"
                "}\n",
                {.requireKernel = false});
  CHECK(parsed.errors() == "");
  CHECK(parsed.tree() == "const PI2\n"
                         "  binary *\n"
                         "    literal 2\n"
                         "    name pi\n"
                         "fn f(x, y)\n"
                         "  binary +\n"
                         "    name x\n"
                         "    name y\n"
                         "grad b = k wrt (x, y)\n"
                         "schedule k for sm_90a\n"
                         "  when\n"
                         "    binary >=\n"
                         "      name M\n"
                         "      literal 1024\n"
                         "  tile\n"
                         "    i = 128\n"
                         "    j = 256\n"
                         "    k = 64\n"
                         "  stages\n"
                         "    4\n"
                         "  persistent\n"
                         "  raster\n"
                         "    grouped(8)\n");
}

TEST_CASE("the type in which partial sums travel is a modifier") {
  CHECK(reprint("sum[k; wire = bf16](x[i, k])") == "sum[k; wire = bf16](x[i, k])");
  CHECK(reprint("sum[k; exact, wire = f32](x[i, k])") == "sum[k; exact, wire = f32](x[i, k])");
  CHECK(reprint("sum[k](wire[i, k])") == "sum[k](wire[i, k])");
}

TEST_CASE("an axis of the mesh binds the whole extent") {
  Parsed program("mesh (dp, tp)\n"
                 "kernel k(mesh: f32[2 * N @ tp, M]) -> (y: f32[2 * N @ tp, M @ dp]) {\n"
                 "  let mesh2 = 1\n"
                 "  y[i, j] = mesh[i, j]\n"
                 "}\n");
  REQUIRE(!program.diags.hasErrors());
  const auto &mesh = *ast::as<ast::Mesh>(program.program->main().items[0].get());
  REQUIRE(mesh.axes.size() == 2);
  CHECK(mesh.axes[1].name == "tp");
  const auto &kernel = *ast::as<ast::Kernel>(program.program->main().items[1].get());
  CHECK(printExtent(*kernel.params[0], 0) == "2 * N @ tp");
  CHECK(kernel.params[0]->dims[0]->kind == ast::ExprKind::Binary);
  CHECK(kernel.params[0]->shards[1].name.empty());
  CHECK(printExtent(*kernel.results[0], 1) == "M @ dp");
}

TEST_CASE("spans cover what they name") {
  Parsed parsed(kernelOf("  let t[i, j in 0..n]: bf16 = (x[i, j] + 1)  // c"));
  const Stmt &stmt = *parsed.kernel().statements.at(0);
  auto text = [&](Span span) { return std::string(parsed.sources.text(span)); };
  CHECK(text(stmt.span) == "let t[i, j in 0..n]: bf16 = (x[i, j] + 1)");
  auto *let = as<LetTensor>(&stmt);
  REQUIRE(let);
  CHECK(text(let->lhsSpan) == "t[i, j in 0..n]");
  CHECK(text(let->nameSpan) == "t");
  CHECK(text(let->indices.at(1)->span) == "j in 0..n");
  CHECK(text(let->indices.at(1)->nameSpan) == "j");
  CHECK(text(let->dtypeSpan) == "bf16");
  CHECK(text(let->value->span) == "(x[i, j] + 1)");
  auto *sum = as<Binary>(let->value.get());
  REQUIRE(sum);
  CHECK(text(sum->opSpan) == "+");
  CHECK(text(sum->lhs->span) == "x[i, j]");
}

TEST_CASE("expressions are numbered densely") {
  Parsed parsed(kernelOf("y[i, j] = x[i, j] + sum[k](x[i, k])"));
  auto *sum = as<Binary>(parsed.kernel().statements.at(0)->value.get());
  REQUIRE(sum);
  CHECK(sum->id < parsed.program->exprCount);
  CHECK(parsed.program->exprCount == 12); // 4 dims, and 8 in the statement
}

TEST_CASE("several errors in one run, and what is right is kept") {
  Parsed parsed("kernel a(x: f33[N]) -> (y: f32[N]) {\n"
                "  y[i] = x[i] +\n"
                "  let = 3\n"
                "  let b[i] = x[i]) \n"
                "  let c[i] = x[i]\n"
                "}\n"
                "kernel b(x f32[N]) -> (y: f32[N]) { y[i] = * }\n"
                "kernel c(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n");
  CHECK(parsed.codes() == "TK0107 TK0102 TK0101 TK0105 TK0101 TK0102");
  CHECK(parsed.program->main().items.size() == 3);
}

TEST_CASE("an unclosed bracket does not swallow the kernels after it") {
  Parsed parsed("kernel a(x: f32[N]) -> (y: f32[N]) {\n"
                "  y[i] = exp(x[i]\n"
                "\n"
                "kernel b(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n");
  CHECK(parsed.codes() == "TK0104 TK0104");
  CHECK(parsed.program->main().items.size() == 2);
}

TEST_CASE("limits") {
  auto codes = [](const std::string &statements) { return Parsed(kernelOf(statements)).codes(); };
  auto repeat = [](std::string_view piece, int times) {
    std::string out;
    for (int i = 0; i < times; ++i)
      out += piece;
    return out;
  };
  CHECK(codes("y[i, j] = " + repeat("(", 250) + "1" + repeat(")", 250)) == "");
  CHECK(codes("y[i, j] = " + repeat("(", 257) + "1" + repeat(")", 257)) == "TK0601");
  CHECK(codes("y[i, j] = " + repeat("(", 100000)) == "TK0601");
  CHECK(codes("y[i, j] = " + repeat("-", 100000) + "1") == "TK0601");
  CHECK(codes("y[i, j] = " + repeat("not ", 100000) + "1") == "TK0601");
  CHECK(codes("y[i, j] = " + repeat("1^", 100000) + "1") == "TK0601");
  CHECK(codes("y[i, j] = " + repeat("if 1 then 1 else ", 60000) + "1") == "TK0601");
  CHECK(codes("y[i, j] = " + repeat("sum[k](", 100000)) == "TK0601");
  CHECK(codes("y[i, j] = " + repeat("x[", 100000)) == "TK0601");
  CHECK(codes("y[i, j] = " + repeat("n+", 1000) + "1") == "");
  CHECK(codes("y[i, j] = " + repeat("n+", 100000) + "1") == "TK0604");
  CHECK(codes(repeat("let a = n + 1 - 1\n", 5001)) == "TK0603");
  CHECK(Parsed(std::string((1 << 20) + 1, ' ')).codes() == "TK0602");
  CHECK(Parsed(repeat("(", 100000)).codes() == "TK0601");
  Parsed deep("kernel k" + repeat("(", 100000));
  CHECK(deep.codes() == "TK0101");
}

TEST_CASE("an empty file has no kernel") {
  for (const char *text : {"", "\n\n", "// only this\n", "const A = 1\n"}) {
    Parsed parsed(text);
    REQUIRE(parsed.codes() == "TK0113");
    CHECK(parsed.diags.sorted()[0]->message == "no kernel in 'x.tk'");
  }
}

namespace {

/// A folder of its own, removed at the end.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tk-parser-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  void write(const std::string &name, const std::string &text) {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
};

struct Loaded {
  SourceManager sources;
  Diagnostics diags{sources};
  std::unique_ptr<Program> program;
  explicit Loaded(const std::filesystem::path &path)
      : program(parseProgram(sources, sources.load(path.string()), diags)) {}
};

} // namespace

TEST_CASE("imports are relative to the importing file, and each is read once") {
  Folder folder;
  folder.write("main.tk", "import \"lib/a.tk\"\nimport \"lib/b.tk\"\n"
                          "kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = f(x[i]) }\n");
  folder.write("lib/a.tk", "import \"b.tk\"\nfn f(x) = g(x)\n");
  folder.write("lib/b.tk", "fn g(x) = x\n");
  Loaded loaded(folder.path / "main.tk");
  CHECK(loaded.diags.text() == "");
  REQUIRE(loaded.program->files.size() == 3);
  CHECK(printAst(*loaded.program->files[0]) == "fn g(x)\n  name x\n");
  CHECK(loaded.program->main().items.size() == 3);
  auto *import = as<Import>(loaded.program->main().items[1].get());
  REQUIRE(import);
  CHECK(import->file == loaded.program->files[0]->id);
}

TEST_CASE("the library is part of the binary, and a quoted path is always a file") {
  Folder folder;
  folder.write("main.tk", "import std\nimport \"std.tk\"\nimport \"other.tk\"\n"
                          "kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = mish(x[i]) }\n");
  folder.write("std.tk", "fn mish(x) = x\n");
  folder.write("other.tk", "import std\n");
  Loaded loaded(folder.path / "main.tk");
  INFO(loaded.diags.text());
  REQUIRE(!loaded.diags.hasErrors());
  REQUIRE(loaded.program->files.size() == 4); // the library once
  unsigned ofLibrary = 0;
  for (const auto &file : loaded.program->files)
    for (const ItemPtr &item : file->items)
      if (const auto *fn = as<Fn>(item.get()))
        ofLibrary += fn->ofLibrary;
  CHECK(ofLibrary >= 9);
  CHECK(!as<Fn>(loaded.program->files[1]->items[0].get())->ofLibrary);
}

TEST_CASE("an import that names no text file") {
  Folder folder;
  folder.write("endless.tk", "import \"/dev/zero\"\n");
  folder.write("folder.tk", "import \".\"\n");
  folder.write("empty.tk", "import \"nothing.tk\"\nkernel k() -> (y: f32[]) { y = 1.0 }\n");
  folder.write("nothing.tk", "");
  folder.write("device.tk", "import \"zero.tk\"\n");
  std::filesystem::create_symlink("/dev/zero", folder.path / "zero.tk");
  for (const char *name : {"endless.tk", "folder.tk", "device.tk"})
    CHECK(info(Loaded(folder.path / name).diags.sorted().at(0)->id).code() == "TK0118");
  // The program itself is read as far as the limit.
  CHECK(info(Loaded(folder.path / "zero.tk").diags.sorted().at(0)->id).code() == "TK0602");
  CHECK(Loaded(folder.path / "empty.tk").diags.text() == "");
}

TEST_CASE("a cycle of imports is an error, of any length") {
  Folder folder;
  folder.write("a.tk", "import \"b.tk\"\n");
  folder.write("b.tk", "import \"c.tk\"\n");
  folder.write("c.tk", "import \"./a.tk\"\n");
  folder.write("self.tk", "import \"self.tk\"\n");
  Loaded loaded(folder.path / "a.tk");
  REQUIRE(loaded.diags.errorCount() == 1);
  CHECK(loaded.diags.text().find("a.tk -> b.tk -> c.tk -> a.tk") != std::string::npos);
  CHECK(Loaded(folder.path / "self.tk").diags.errorCount() == 1);
}

TEST_CASE("assert is a statement where a condition begins behind it, else a name") {
  for (const char *text :
       {"assert x[i, j] > 0", "assert (n > 0)", "assert true", "assert 0 < n", "assert -n < 0",
        "assert not (n < 0)", "assert if n > 0 then true else false"}) {
    INFO(text);
    Parsed parsed(kernelOf(text));
    CHECK_FALSE(parsed.diags.hasErrors());
    CHECK(as<Assert>(parsed.kernel().statements.at(0).get()));
  }
  for (const char *text :
       {"assert[i, j] = 1", "assert = 1", "let assert[i] = 1", "let assert = 1"}) {
    INFO(text);
    Parsed parsed(kernelOf(text));
    CHECK_FALSE(parsed.diags.hasErrors());
    CHECK_FALSE(as<Assert>(parsed.kernel().statements.at(0).get()));
  }
  CHECK(Parsed(kernelOf("assert")).codes() == "TK0101");
  CHECK(Parsed(kernelOf("assert\nn > 0")).codes().starts_with("TK0101"));
}
