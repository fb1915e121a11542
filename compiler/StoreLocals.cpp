//===- StoreLocals.cpp - locals as results --------------------------------===//
#include "compiler/CompiledSource.h"
#include "compiler/plan/KernelSignature.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tk {
namespace {

/// The tensors of a kernel that a `let` names, the last of a name.
std::map<std::string, Value> localsOf(KernelOp kernel) {
  std::map<std::string, Value> locals;
  kernel.walk([&](ComputeOp compute) {
    for (auto [name, value] : llvm::zip(compute.getNames(), compute.getResults()))
      locals[cast<StringAttr>(name).getValue().str()] = value;
  });
  return locals;
}

bool isResult(KernelOp kernel, StringRef name) {
  return llvm::any_of(kernel.getResultNames(), [&](Attribute result) {
    return cast<StringAttr>(result).getValue() == name;
  });
}

Error unknownName(KernelOp kernel, const std::string &name, const Signature &signature) {
  if (signature.find_scalar(name) || signature.find_tensor(name))
    return Error(ErrorCode::invalid_argument, "'" + name + "' is a parameter of kernel '" +
                                                  signature.name +
                                                  "': lets and results can be shown");
  std::string known, nearest;
  // More edits than that are another name.
  auto least = static_cast<unsigned>(std::min<size_t>(3, (name.size() + 1) / 2));
  auto consider = [&](StringRef other) {
    known += (known.empty() ? "" : ", ") + other.str();
    const unsigned distance = StringRef(name).edit_distance_insensitive(other, true, least);
    if (distance < least)
      least = distance, nearest = other.str();
  };
  for (const auto &[local, value] : localsOf(kernel))
    if (local.find('.') == local.npos && !isResult(kernel, local)) // not one that a function made
      consider(local);
  for (const Parameter &result : signature.results)
    consider(result.name);
  const std::string help = nearest.empty() ? "it has " + known : "did you mean '" + nearest + "'?";
  return Error(ErrorCode::invalid_argument,
               "kernel '" + signature.name + "' has no let or result '" + name + "'; " + help);
}

} // namespace

Status CompiledSource::storeLocals(size_t kernel, ArrayRef<std::string> names) {
  std::lock_guard lock(mutex);
  KernelOp op = kernelOp(kernel);
  const std::map<std::string, Value> locals = localsOf(op);
  for (const std::string &name : names) {
    if (isResult(op, name))
      continue;
    auto local = locals.find(name);
    if (local == locals.end())
      return unknownName(op, name, kernelSignatures[kernel]);
    SmallVector<Attribute> results(op.getResultNames().getValue());
    ReturnOp ret = op.getReturn();
    SmallVector<Value> returned(ret.getResults());
    returned.insert(returned.begin() + results.size(), local->second); // before inout parameters
    ret.getResultsMutable().assign(returned);
    results.push_back(StringAttr::get(op.getContext(), name));
    op.setResultNamesAttr(ArrayAttr::get(op.getContext(), results));
  }
  std::optional<Signature> signature = signatureOf(op);
  if (!signature)
    return Error(ErrorCode::unsupported,
                 "kernel '" + kernelNames[kernel] + "' cannot return the tensors to be shown");
  kernelSignatures[kernel] = std::move(*signature);
  return {};
}

} // namespace tk
