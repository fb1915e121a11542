//===- RegisterIndex.cpp - register numbers in unrolled loops -------------===//
#include "compiler/codegen/cuda/RegisterIndex.h"

#include "llvm/Support/MathExtras.h"

namespace tk::cuda {

RegisterIndex::RegisterIndex(llvm::StringRef variable, unsigned numBits, unsigned zeroBits) {
  Term term{variable.str(), {}, zeroBits};
  for (unsigned b = 0; b < numBits; ++b)
    term.images.push_back(b < zeroBits ? 0 : 1u << b);
  if (numBits > zeroBits)
    terms.push_back(term);
}

static unsigned apply(const BitMap &map, unsigned value) {
  unsigned image = 0;
  for (auto [bit, to] : llvm::enumerate(map))
    if (value >> bit & 1)
      image ^= to;
  return image;
}

RegisterIndex RegisterIndex::mapped(const BitMap &map) const {
  RegisterIndex result(apply(map, constant));
  for (const Term &term : terms) {
    Term image{term.variable, {}, term.zeroBits};
    for (unsigned to : term.images)
      image.images.push_back(apply(map, to));
    if (llvm::any_of(image.images, [](unsigned to) { return to != 0; }))
      result.terms.push_back(image);
  }
  return result;
}

RegisterIndex RegisterIndex::combined(const RegisterIndex &other) const {
  RegisterIndex result = *this;
  result.constant ^= other.constant;
  result.terms.append(other.terms.begin(), other.terms.end());
  return result;
}

bool RegisterIndex::Term::isIdentity() const {
  for (auto [bit, to] : llvm::enumerate(images))
    if (bit >= zeroBits && to != 1u << bit)
      return false;
  return true;
}

bool RegisterIndex::isIdentity() const {
  return constant == 0 && (terms.empty() || (terms.size() == 1 && terms[0].isIdentity()));
}

std::string moveBits(llvm::StringRef x, unsigned from, unsigned count, unsigned to) {
  const unsigned mask = (1u << count) - 1;
  std::string masked;
  if (from >= to) {
    if (from > to)
      masked = (x + " >> " + std::to_string(from - to)).str();
    else
      masked = x.str();
    return "(" + masked + " & " + std::to_string(mask << to) + ")";
  }
  masked = "(" + x.str() + " & " + std::to_string(mask << from) + ")";
  return masked + " * " + std::to_string(1u << (to - from));
}

std::string sumOfBits(llvm::StringRef x, llvm::ArrayRef<unsigned> steps) {
  std::string sum;
  for (unsigned b = 0; b < steps.size();) {
    if (steps[b] == 0) {
      ++b;
      continue;
    }
    unsigned run = 1;
    while (b + run < steps.size() && steps[b + run] == steps[b] << run)
      ++run;
    std::string term;
    if (llvm::isPowerOf2_32(steps[b]))
      term = moveBits(x, b, run, llvm::Log2_32(steps[b]));
    else
      term = "(" + x.str() + " >> " + std::to_string(b) + " & " + std::to_string((1u << run) - 1) +
             ") * " + std::to_string(steps[b]);
    sum += (sum.empty() ? "" : " + ") + term;
    b += run;
  }
  return sum.empty() ? "0" : sum;
}

std::string RegisterIndex::str() const {
  if (terms.empty())
    return std::to_string(constant);
  std::string sum;
  for (const Term &term : terms) {
    // Images share no bits (layouts are injective on registers), so their xor is their sum.
    const std::string text =
        term.isIdentity() ? term.variable : sumOfBits(term.variable, term.images);
    sum += (sum.empty() ? "" : " + ") + text;
  }
  if (constant)
    sum += " + " + std::to_string(constant);
  return sum;
}

unsigned RegisterIndex::valueAt(unsigned x) const {
  unsigned value = constant;
  for (const Term &term : terms)
    value ^= apply(term.images, x);
  return value;
}

std::string RegisterIndex::weighted(llvm::ArrayRef<unsigned> steps) const {
  auto weigh = [&](unsigned value) {
    unsigned sum = 0;
    for (auto [bit, step] : llvm::enumerate(steps))
      if (value >> bit & 1)
        sum += step;
    return sum;
  };
  std::string sum;
  for (const Term &term : terms) {
    BitMap weights;
    for (unsigned to : term.images)
      weights.push_back(weigh(to));
    const std::string text = sumOfBits(term.variable, weights);
    if (text != "0")
      sum += (sum.empty() ? "" : " + ") + text;
  }
  const unsigned fixed = weigh(constant);
  if (fixed || sum.empty())
    sum += (sum.empty() ? "" : " + ") + std::to_string(fixed);
  return sum;
}

} // namespace tk::cuda
