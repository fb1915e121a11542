//===- BundleSource.cpp - C++ that carries a bundle -----------------------===//
#include "compiler/bundle/BundleSource.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tk {
namespace {

/// Words that a parameter or a function cannot be called.
bool isTaken(StringRef name) {
  static const StringSet<> taken = {
      // What the generated code uses.
      "bundle", "stream", "values", "kernel", "tk", "std",
      // Keywords of C++20 and the alternative tokens.
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
      "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return",
      "co_yield", "compl", "concept", "const", "const_cast", "consteval", "constexpr", "constinit",
      "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
      "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
      "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
      "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
      "requires", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast",
      "struct", "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef",
      "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t",
      "while", "xor", "xor_eq"};
  return taken.contains(name);
}

/// Names of `.tk` files are identifiers of C++ but for words that mean something there.
std::string cxxName(const std::string &name) { return isTaken(name) ? name + "_" : name; }

std::string scalarType(const Parameter &scalar) {
  std::string type;
  switch (scalar.dtype) {
  case DType::f64:
    type = "double";
    break;
  case DType::i64:
    type = "int64_t";
    break;
  case DType::i32:
    type = "int32_t";
    break;
  case DType::i16:
    type = "int16_t";
    break;
  case DType::i8:
    type = "int8_t";
    break;
  case DType::u8:
    type = "uint8_t";
    break;
  case DType::boolean:
    type = "bool";
    break;
  case DType::f32:
  case DType::f16:
  case DType::bf16:
  case DType::f8e4m3:
  case DType::f8e5m2:
    type = "float";
    break;
  }
  return scalar.has_default ? "std::optional<" + type + ">" : type;
}

std::string tensorType(const Parameter &tensor) {
  return ("const tk::TypedView<tk::DType::" +
          (tensor.dtype == DType::boolean ? "boolean" : name(tensor.dtype)) + ", " +
          Twine(tensor.shape.size()) + "> &")
      .str();
}

/// The function's parameters: those of the kernel and its results in their order, then the scalars
/// that may be left out.
std::string parameterList(const Signature &signature, bool withDefaults) {
  std::string required = "tk::Stream stream", optional;
  for (const auto *list : {&signature.params, &signature.results})
    for (const Parameter &parameter : *list) {
      if (parameter.is_tensor)
        required += ", " + tensorType(parameter) + cxxName(parameter.name);
      else if (parameter.has_default)
        optional += ", " + scalarType(parameter) + " " + cxxName(parameter.name) +
                    (withDefaults ? " = std::nullopt" : "");
      else
        required += ", " + scalarType(parameter) + " " + cxxName(parameter.name);
    }
  return required + optional;
}

void printDefinition(raw_ostream &out, const Signature &signature) {
  out << "\nvoid " << cxxName(signature.name) << "(" << parameterList(signature, false) << ") {\n"
      << "  static const tk::Kernel kernel = bundle().kernel(\"" << signature.name << "\");\n"
      << "  std::vector<tk::NamedValue> values = {";
  const char *separator = "";
  for (const auto *list : {&signature.params, &signature.results})
    for (const Parameter &parameter : *list) {
      if (!parameter.is_tensor && parameter.has_default)
        continue;
      std::string value = cxxName(parameter.name);
      if (!parameter.is_tensor && is_integer(parameter.dtype))
        value = "static_cast<int64_t>(" + value + ")";
      out << separator << "{\"" << parameter.name << "\", " << value << "}";
      separator = ", ";
    }
  out << "};\n";
  for (const Parameter &parameter : signature.params)
    if (!parameter.is_tensor && parameter.has_default) {
      std::string value = "*" + cxxName(parameter.name);
      if (is_integer(parameter.dtype))
        value = "static_cast<int64_t>(" + value + ")";
      out << "  if (" << cxxName(parameter.name) << ")\n    values.emplace_back(\""
          << parameter.name << "\", tk::Scalar(" << value << "));\n";
    }
  out << "  kernel(stream, values, {});\n}\n";
}

} // namespace

std::string cxxIdentifier(const std::string &text) {
  std::string result;
  for (char c : text)
    result += isAlnum(c) ? c : '_';
  if (result.empty() || isDigit(result[0]))
    result = "tk_" + result;
  return cxxName(result);
}

BundleSource printBundleSource(const std::vector<Signature> &signatures,
                               const BundleSourceOptions &options) {
  BundleSource result;
  raw_string_ostream header(result.header), source(result.source);
  std::string origin = "// Kernels of " + options.tkFile + ". Generated; do not edit.\n";
  header
      << origin << "#pragma once\n\n#include <cstdint>\n#include <optional>\n\n"
      << "#include <tk/bundle.h>\n#include <tk/typed.h>\n\nnamespace " << options.nameSpace
      << " {\n\n"
      << "// Each function checks its arguments, launches on the stream and returns before the\n"
      << "// work is done. What is wrong is thrown as a tk::Error before anything is launched.\n\n";
  for (const Signature &signature : signatures)
    header << "/// " << signature.str() << "\nvoid " << cxxName(signature.name) << "("
           << parameterList(signature, true) << ");\n\n";
  header
      << "/// The module behind them, for Kernel::bind and Kernel::prepare; loaded on first use.\n"
      << "const tk::Module &bundle();\n\n} // namespace " << options.nameSpace << "\n";

  std::string symbol = "tk_bundle_" + cxxIdentifier(options.nameSpace);
  source << origin << "#include \"" << options.headerName << "\"\n\n#include <vector>\n\n"
         << "asm(\".pushsection .rodata\\n\"\n"
         << "    \".globl " << symbol << "\\n.globl " << symbol << "_end\\n\"\n"
         << "    \".hidden " << symbol << "\\n.hidden " << symbol << "_end\\n\"\n"
         << "    \".balign 64\\n"
         << symbol << ":\\n.incbin \\\"";
  // Once for the assembler's string, once for C++'s.
  std::string once, twice;
  raw_string_ostream(once).write_escaped(options.bundlePath);
  raw_string_ostream(twice).write_escaped(once);
  source << twice << "\\\"\\n"
         << symbol << "_end:\\n\"\n    \".popsection\\n\");\n"
         << "extern \"C\" const char " << symbol << "[], " << symbol << "_end[];\n\nnamespace "
         << options.nameSpace << " {\n\nconst tk::Module &bundle() {\n"
         << "  static const tk::Module loaded = tk::load_bundle_bytes(\n      std::string_view("
         << symbol << ", static_cast<size_t>(" << symbol << "_end - " << symbol << ")), \""
         << twice.substr(twice.rfind('/') + 1) << "\");\n  return loaded;\n}\n";
  for (const Signature &signature : signatures)
    printDefinition(source, signature);
  source << "\n} // namespace " << options.nameSpace << "\n";
  return result;
}

} // namespace tk
