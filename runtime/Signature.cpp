// Signatures: lookup and text.
#include "tk/plan.h"

namespace tk {
namespace {

std::string shape_text(const std::vector<Extent> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + shape[i].text;
  return text + "]";
}

std::optional<unsigned> find(const std::vector<Parameter> &list, bool tensors,
                             std::string_view name, unsigned base) {
  for (const Parameter &parameter : list) {
    if (parameter.is_tensor != tensors)
      continue;
    if (parameter.name == name)
      return base;
    ++base;
  }
  return std::nullopt;
}

unsigned count(const std::vector<Parameter> &list, bool tensors) {
  unsigned total = 0;
  for (const Parameter &parameter : list)
    total += parameter.is_tensor == tensors;
  return total;
}

const Parameter &nth(const std::vector<Parameter> &list, bool tensors, unsigned index) {
  for (const Parameter &parameter : list)
    if (parameter.is_tensor == tensors && index-- == 0)
      return parameter;
  throw Error(ErrorCode::internal, "parameter index out of range");
}

} // namespace

std::string Parameter::str() const {
  std::string text = strided ? "strided " : in_out ? "inout " : "";
  text += name + ": " + std::string(tk::name(dtype));
  if (is_tensor)
    text += shape_text(shape);
  else if (has_default)
    text += " = " + default_text;
  return text;
}

unsigned Signature::num_tensors() const { return count(params, true) + count(results, true); }

const Parameter &Signature::tensor(unsigned index) const {
  unsigned inputs = count(params, true);
  return index < inputs ? nth(params, true, index) : nth(results, true, index - inputs);
}

unsigned Signature::num_scalars() const { return count(params, false); }
const Parameter &Signature::scalar(unsigned index) const { return nth(params, false, index); }

std::optional<unsigned> Signature::find_dim(std::string_view name) const {
  for (unsigned i = 0; i < dims.size(); ++i)
    if (dims[i] == name)
      return i;
  return std::nullopt;
}

std::optional<unsigned> Signature::find_tensor(std::string_view name) const {
  if (auto index = find(params, true, name, 0))
    return index;
  return find(results, true, name, count(params, true));
}

std::optional<unsigned> Signature::find_scalar(std::string_view name) const {
  return find(params, false, name, 0);
}

std::vector<std::string> Signature::variable_names() const {
  std::vector<std::string> names = dims;
  for (const Parameter &parameter : params)
    if (!parameter.is_tensor)
      names.push_back(parameter.name);
  return names;
}

std::string Signature::str() const {
  std::string text = name + "(";
  for (size_t i = 0; i < params.size(); ++i)
    text += (i ? ", " : "") + params[i].str();
  text += ") -> (";
  for (size_t i = 0; i < results.size(); ++i)
    text += (i ? ", " : "") + results[i].str();
  return text + ")";
}

} // namespace tk
