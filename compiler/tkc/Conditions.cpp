// Conditions of schedule blocks and on scalars, decided by what the command line gives.
#include "compiler/tkc/Commands.h"

#include "tk/module.h"

#include <iostream>

namespace tk::tkc {

/// Which variables of an expression are not given.
static std::string missingOf(const Check &check, const Signature &signature,
                             const std::vector<std::optional<Scalar>> &given) {
  std::string missing;
  for (unsigned v : check.condition.variables())
    if (!given[v])
      missing += (missing.empty() ? "" : ", ") + signature.variable_names()[v];
  return missing;
}

std::vector<Scalar> knownOf(const GivenVariables &given) {
  std::vector<Scalar> variables;
  for (const std::optional<Scalar> &value : given) {
    if (!value)
      break;
    variables.push_back(*value);
  }
  return variables;
}

void decideConditions(const CompiledSource &source, size_t kernel, const std::string &target,
                      const std::vector<std::optional<Scalar>> &given, Facts &facts) {
  const Signature &signature = source.signatures()[kernel];
  std::vector<Scalar> variables;
  for (const std::optional<Scalar> &value : given)
    variables.push_back(value.value_or(Scalar(int64_t{0})));
  facts.schedules = schedule_conditions(signature, variables);
  facts.cases = scalar_cases(signature, variables);
  for (unsigned c = 0; c < facts.cases.size(); ++c)
    if (!missingOf(signature.cases[c], signature, given).empty())
      facts.cases[c] = false;
  for (unsigned c = 0; c < facts.schedules.size(); ++c) {
    const Check &check = signature.schedules[c];
    std::string missing = missingOf(check, signature, given);
    if (missing.empty())
      continue;
    facts.schedules[c] = false;
    if (source.conditionMatters(kernel, target, c))
      std::cerr << check.span.str() << ": note: without a size for " << missing
                << " the schedule for '" << check.text
                << "' is not used; a launch decides by its own sizes\n";
  }
}

} // namespace tk::tkc
