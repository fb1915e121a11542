//===- Instructions.cpp - kinds of instructions of GPU code ---------------===//
#include "compiler/Instructions.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tk {
namespace {

using Kind = InstructionKind;

/// The kind of instructions whose name begins so. The first that fits counts.
struct Row {
  StringRef prefix;
  Kind kind;
};

constexpr Row ptx[] = {
    {"wgmma.mma", Kind::Matrix},
    {"mma.", Kind::Matrix},
    {"wgmma.", Kind::Barrier},
    {"ex2", Kind::Special},
    {"lg2", Kind::Special},
    {"rcp", Kind::Special},
    {"rsqrt", Kind::Special},
    {"sqrt", Kind::Special},
    {"sin", Kind::Special},
    {"cos", Kind::Special},
    {"tanh", Kind::Special},
    {"ld.global", Kind::Load},
    {"ld.shared", Kind::Shared},
    {"ldmatrix", Kind::Shared},
    {"stmatrix", Kind::Shared},
    {"st.shared", Kind::Shared},
    {"st.global", Kind::Store},
    {"atom", Kind::Store},
    {"red.", Kind::Store},
    {"cp.async.bulk.tensor.1d.global", Kind::Store},
    {"cp.async.bulk.tensor.2d.global", Kind::Store},
    {"cp.async.bulk.tensor.3d.global", Kind::Store},
    {"cp.async.bulk.tensor.4d.global", Kind::Store},
    {"cp.async.bulk.tensor.5d.global", Kind::Store},
    {"cp.async.bulk.tensor", Kind::Load},
    {"cp.async.bulk.commit", Kind::Barrier},
    {"cp.async.bulk.wait", Kind::Barrier},
    {"cp.async.commit", Kind::Barrier},
    {"cp.async.wait", Kind::Barrier},
    {"cp.async", Kind::Load},
    {"shfl", Kind::Shuffle},
    {"vote", Kind::Shuffle},
    {"redux", Kind::Shuffle},
    {"bar", Kind::Barrier},
    {"mbarrier", Kind::Barrier},
    {"fence", Kind::Barrier},
    {"membar", Kind::Barrier},
};

constexpr Row sass[] = {
    {"HGMMA", Kind::Matrix},     {"QGMMA", Kind::Matrix},      {"IGMMA", Kind::Matrix},
    {"HMMA", Kind::Matrix},      {"IMMA", Kind::Matrix},       {"DMMA", Kind::Matrix},
    {"QMMA", Kind::Matrix},      {"MUFU", Kind::Special},      {"LDGDEPBAR", Kind::Barrier},
    {"LDG", Kind::Load},         {"UTMALDG", Kind::Load},      {"UTMASTG", Kind::Store},
    {"STG", Kind::Store},        {"ATOMG", Kind::Store},       {"RED", Kind::Store},
    {"LDSM", Kind::Shared},      {"LDS", Kind::Shared},        {"STSM", Kind::Shared},
    {"STS", Kind::Shared},       {"ATOMS", Kind::Shared},      {"SHFL", Kind::Shuffle},
    {"VOTE", Kind::Shuffle},     {"BAR", Kind::Barrier},       {"SYNCS", Kind::Barrier},
    {"WARPSYNC", Kind::Barrier}, {"MEMBAR", Kind::Barrier},    {"FENCE", Kind::Barrier},
    {"DEPBAR", Kind::Barrier},   {"WARPGROUP", Kind::Barrier}, {"UTMACMDFLUSH", Kind::Barrier},
    {"FADD", Kind::Arithmetic},  {"FMUL", Kind::Arithmetic},   {"FFMA", Kind::Arithmetic},
    {"FMNMX", Kind::Arithmetic}, {"FSETP", Kind::Arithmetic},  {"FSET", Kind::Arithmetic},
    {"FSEL", Kind::Arithmetic},  {"FCHK", Kind::Arithmetic},   {"HADD", Kind::Arithmetic},
    {"HMUL", Kind::Arithmetic},  {"HFMA", Kind::Arithmetic},   {"HMNMX", Kind::Arithmetic},
    {"HSET", Kind::Arithmetic},  {"DADD", Kind::Arithmetic},   {"DMUL", Kind::Arithmetic},
    {"DFMA", Kind::Arithmetic},  {"DSETP", Kind::Arithmetic},  {"IADD", Kind::Integer},
    {"UIADD", Kind::Integer},    {"IMAD", Kind::Integer},      {"UIMAD", Kind::Integer},
    {"IMNMX", Kind::Integer},    {"VIMNMX", Kind::Integer},    {"ISETP", Kind::Integer},
    {"UISETP", Kind::Integer},   {"IABS", Kind::Integer},      {"LEA", Kind::Integer},
    {"ULEA", Kind::Integer},     {"LOP3", Kind::Integer},      {"ULOP3", Kind::Integer},
    {"SHF", Kind::Integer},      {"USHF", Kind::Integer},      {"PLOP3", Kind::Integer},
    {"VIADD", Kind::Integer},
};

Kind kindByName(StringRef name, ArrayRef<Row> rows) {
  auto row = llvm::find_if(rows, [&](const Row &row) { return name.starts_with(row.prefix); });
  return row == rows.end() ? Kind::Other : row->kind;
}

/// Drops the predicate under which an instruction runs.
StringRef withoutGuard(StringRef text) {
  return text.starts_with("@") ? text.split(' ').second.ltrim() : text;
}

} // namespace

StringRef nameOf(InstructionKind kind) {
  static constexpr StringLiteral names[] = {"matrix",  "special", "load",       "store",   "shared",
                                            "shuffle", "barrier", "arithmetic", "integer", "other"};
  return names[static_cast<size_t>(kind)];
}

std::optional<InstructionKind> kindOfPtx(StringRef line) {
  StringRef text = line.trim();
  if (!text.consume_back(";"))
    return std::nullopt;
  text.consume_front("{");
  text = withoutGuard(text.trim());
  if (text.empty() || !llvm::isLower(text.front()))
    return std::nullopt;
  StringRef name = text.take_until([](char c) { return c == ' ' || c == '\t'; });
  if (Kind kind = kindByName(name, ptx); kind != Kind::Other)
    return kind;
  static constexpr StringLiteral computing[] = {"add", "sub", "mul", "mad",  "fma",  "min",
                                                "max", "neg", "abs", "setp", "selp", "div",
                                                "rem", "and", "or",  "xor",  "shl",  "shr"};
  StringRef base = name.split('.').first;
  if (!llvm::is_contained(computing, base))
    return Kind::Other;
  const bool isFloat = name.contains(".f32") || name.contains(".f64") || name.contains(".f16") ||
                       name.contains(".bf16");
  return isFloat ? Kind::Arithmetic : Kind::Integer;
}

std::optional<InstructionKind> kindOfSass(StringRef line) {
  StringRef text = line.trim();
  if (!text.consume_front("/*") || !text.contains(";"))
    return std::nullopt;
  text = withoutGuard(text.split("*/").second.ltrim());
  StringRef name = text.take_while([](char c) { return llvm::isAlnum(c) || c == '.' || c == '_'; });
  return name.empty() ? std::nullopt : std::optional(kindByName(name, sass));
}

} // namespace tk
