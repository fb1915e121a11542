#include "frontend/AST.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tk::ast {
namespace {

/// Spellings by enumerator value.
constexpr std::array<std::string_view, 12> dtypeNames = {
    "f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool"};
constexpr std::array<std::string_view, 15> reduceNames = {
    "sum",    "prod",   "max",     "min",         "mean",   "any",     "all",   "logsumexp",
    "argmax", "argmin", "softmax", "log_softmax", "cumsum", "cumprod", "cummax"};
constexpr std::array<std::string_view, 14> binaryNames = {
    "+", "-", "*", "/", "%", "^", "==", "!=", "<", "<=", ">", ">=", "and", "or"};
constexpr std::array<std::string_view, 4> modifierNames = {"", "exact", "tf32", "fast"};

static_assert(static_cast<std::size_t>(DType::Bool) + 1 == dtypeNames.size());
static_assert(static_cast<std::size_t>(ReduceKind::CumMax) + 1 == reduceNames.size());
static_assert(static_cast<std::size_t>(BinaryOp::Or) + 1 == binaryNames.size());
static_assert(static_cast<std::size_t>(ReduceModifier::Fast) + 1 == modifierNames.size());

template <typename Enum, std::size_t N>
std::optional<Enum> find(const std::array<std::string_view, N> &names, std::string_view name) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == name)
      return static_cast<Enum>(i);
  return std::nullopt;
}

} // namespace

std::string_view spelling(DType type) { return dtypeNames[static_cast<std::size_t>(type)]; }
std::string_view spelling(ReduceKind kind) { return reduceNames[static_cast<std::size_t>(kind)]; }
std::string_view spelling(BinaryOp op) { return binaryNames[static_cast<std::size_t>(op)]; }
std::string_view spelling(UnaryOp op) { return op == UnaryOp::Neg ? "-" : "not"; }
std::string_view spelling(ReduceModifier modifier) {
  return modifierNames[static_cast<std::size_t>(modifier)];
}

std::optional<DType> parseDType(std::string_view name) { return find<DType>(dtypeNames, name); }
std::optional<DType> parseForeignDType(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, DType>, 23> types = {
      {{"double", DType::F64},
       {"float64", DType::F64},
       {"fp64", DType::F64},
       {"float", DType::F32},
       {"float32", DType::F32},
       {"fp32", DType::F32},
       {"half", DType::F16},
       {"float16", DType::F16},
       {"fp16", DType::F16},
       {"bfloat16", DType::BF16},
       {"float8_e4m3fn", DType::F8E4M3},
       {"float8_e4m3", DType::F8E4M3},
       {"fp8", DType::F8E4M3},
       {"f8", DType::F8E4M3},
       {"float8_e5m2", DType::F8E5M2},
       {"int64", DType::I64},
       {"long", DType::I64},
       {"int32", DType::I32},
       {"int", DType::I32},
       {"int16", DType::I16},
       {"int8", DType::I8},
       {"uint8", DType::U8},
       {"byte", DType::U8}}};
  for (auto [spelling, type] : types)
    if (spelling == name)
      return type;
  return std::nullopt;
}
std::optional<ReduceKind> parseReduceKind(std::string_view name) {
  return find<ReduceKind>(reduceNames, name);
}

bool binds(const Reduce &reduce, std::string_view name) {
  return !keepsIndex(reduce.reduceKind) &&
         std::any_of(reduce.binders.begin(), reduce.binders.end(),
                     [&](const IndexPtr &binder) { return binder->name == name; });
}

} // namespace tk::ast
