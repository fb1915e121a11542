// The operands of contractions: a term of a sum is a product of factors in any order.
//
// 1. Take a term apart into factors, divisors, and conditions under which it is not 0.
// 2. Take two factors as seeds: both vary in the sum, each has an index of the left side that the
//    other lacks, and one at least is stored in 16 or 8 bits. A factor lacks an index that only
//    selects through a table what it reads, as `m` does in `w[e[m], k, n]`.
// 3. A factor with an index that one seed has alone joins that seed. A factor with such indices of
//    both seeds leaves the term as it is. All others join an operand that is computed anyhow, or
//    the one whose own index stands first on the left side.
// 4. Both operands are 0 where a condition does not hold that reads a tensor at the sum's index:
//    an element of a term that is left out has no influence, and 0 * NaN is NaN. A condition with
//    an index of one operand alone stays around the product.
// 5. An operand that is computed is rounded to 16 bits.
//
//   sum[k](if keep[k] then x[m, k] * w[n, k] * s[m, k / 128] else 0.0)
//     =>
//   sum[k](bf16(if keep[k] then x[m, k] * s[m, k / 128] else 0.0) *
//          bf16(if keep[k] then w[n, k] else 0.0))

#include "frontend/FactorIndices.h"
#include "frontend/SemaKernel.h"

#include <algorithm>
#include <array>

namespace tk::sema {

/// A term as a product.
struct ProductTerm {
  std::vector<Node *> factors, divisors;
  bool isNegative = false;

  void add(Node *n);
};

/// What is multiplied to be one operand.
struct Operand {
  Node *seed = nullptr;
  Indices own; ///< indices of the left side that the other operand's seed lacks
  std::vector<Node *> factors, divisors;

  bool isSeedAlone() const { return factors.size() == 1 && divisors.empty(); }
  void take(Node *n, bool isDivisor) { (isDivisor ? divisors : factors).push_back(n); }
};

static bool isZeroConstant(const Node *n) {
  return n->kind == NodeKind::FloatConst && n->floatValue == 0;
}

void ProductTerm::add(Node *n) {
  if (isOp(n, Op::Mul)) {
    add(n->args[0]);
    add(n->args[1]);
  } else if (isOp(n, Op::Div)) {
    add(n->args[0]);
    divisors.push_back(n->args[1]);
  } else if (isOp(n, Op::Neg)) {
    isNegative = !isNegative;
    add(n->args[0]);
  } else {
    factors.push_back(n);
  }
}

/// Takes the conditions off `n`; the product that is left.
static Node *withoutConditions(Node *n, std::vector<Node *> &conditions) {
  while (isOp(n, Op::Select) && isZeroConstant(n->args[2])) {
    conditions.push_back(n->args[0]);
    n = n->args[1];
  }
  return n;
}

/// May `n` be rounded to 16 bits as an operand beside one that is stored so? f32 tensors and
/// declared f32 locals keep their bits.
static bool isRoundable(const Node *n) {
  if (n->kind == NodeKind::Load)
    return isNarrowLoad(n) || (n->tensor->param < 0 && !n->tensor->declared);
  if (n->kind == NodeKind::Convert)
    return isInteger(n->args[0]->type) && n->args[0]->kind == NodeKind::Load;
  return n->kind == NodeKind::Round;
}

/// Is `n` the same for all terms, and finite or NaN, so that it leaves the sum?
static bool isNeverInfinite(const Node *n) {
  if (n->literal || n->kind == NodeKind::FloatConst)
    return true;
  if (n->kind == NodeKind::Convert)
    return isInteger(n->args[0]->type) || n->args[0]->type == Type::Index;
  if (n->kind != NodeKind::Op)
    return false;
  switch (n->op) {
  case Op::Sin:
  case Op::Cos:
  case Op::Tanh:
  case Op::Erf:
    return true;
  case Op::Neg:
  case Op::Abs:
    return isNeverInfinite(n->args[0]);
  case Op::Min:
  case Op::Max:
    return std::all_of(n->args.begin(), n->args.end(), isNeverInfinite) ||
           std::any_of(n->args.begin(), n->args.end(), [](const Node *arg) {
             return arg->kind == NodeKind::Op && (arg->op == Op::Min || arg->op == Op::Max);
           });
  default:
    return false;
  }
}

/// Reads `n` a tensor at one of `indices`?
static bool loadsAt(const Node *n, const Indices &indices) {
  std::vector<const Node *> work(n->args.begin(), n->args.end());
  if (n->kind == NodeKind::Load)
    while (!work.empty()) {
      const Node *part = work.back();
      work.pop_back();
      if (part->kind == NodeKind::Index && contains(indices, part->indices[0]))
        return true;
      work.insert(work.end(), part->args.begin(), part->args.end());
    }
  return std::any_of(n->args.begin(), n->args.end(),
                     [&](const Node *arg) { return loadsAt(arg, indices); });
}

/// Does a divisor that is the same for all terms stay outside of both operands? A literal leaves
/// the sum, and so may what the kernel computes: the sum of a softmax.
static bool leavesAsDivisor(const Node *n) {
  if (n->literal || n->kind == NodeKind::FloatConst || n->kind == NodeKind::Reduce)
    return true;
  return (n->kind == NodeKind::Load && n->tensor->param < 0) ||
         std::any_of(n->args.begin(), n->args.end(), [](const Node *arg) {
           return arg->kind != NodeKind::IntConst && arg->kind != NodeKind::FloatConst &&
                  leavesAsDivisor(arg);
         });
}

/// Is the operand converted in any case?
static bool isConverted(const Operand &operand, const Operand &other) {
  if (operand.factors.size() + operand.divisors.size() > 1)
    return true;
  std::optional<ast::DType> type = narrowTypeOf(operand.seed), beside = narrowTypeOf(other.seed);
  return !type || (isByte(*type) && beside && !isByte(*beside));
}

/// How much two seeds are worth: both stored in narrow types first, then many indices.
static std::size_t worthOfSeeds(const Node *a, const Node *b, std::size_t numIndices) {
  constexpr std::size_t bothNarrow = 100;
  return numIndices + (isNarrowLoad(a) && isNarrowLoad(b) ? bothNarrow : 0);
}

/// Two factors that operands are made around; none if no two are.
std::optional<std::array<Operand, 2>> KernelSema::findSeeds(const std::vector<Node *> &factors,
                                                            const std::vector<IndexVar *> &vars) {
  std::vector<std::pair<Node *, Indices>> candidates;
  for (Node *factor : factors)
    if (Indices indices = freeIndices({factor}); isRoundable(factor) && meets(indices, vars))
      candidates.emplace_back(factor, std::move(indices));
  std::optional<std::array<Operand, 2>> best;
  std::size_t most = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    for (std::size_t j = i + 1; j < candidates.size(); ++j) {
      const auto &[a, ofA] = candidates[i];
      const auto &[b, ofB] = candidates[j];
      const Indices ownA = without(without(ofA, ownIndices(b)), vars),
                    ownB = without(without(ofB, ownIndices(a)), vars);
      const std::size_t worth = worthOfSeeds(a, b, ofA.size() + ofB.size());
      if (!(isNarrowLoad(a) || isNarrowLoad(b)) || ownA.empty() || ownB.empty() || worth <= most)
        continue;
      most = worth;
      best = {{{a, ownA, {a}, {}}, {b, ownB, {b}, {}}}};
    }
  if (best) // in the order of declarations, the left side's first
    for (const IndexVar &index : out.indices) {
      if (contains((*best)[1].own, &index))
        std::swap((*best)[0], (*best)[1]);
      if (contains((*best)[0].own, &index))
        break;
    }
  return best;
}

/// Adds `factors` and `divisors` to the operands that have their indices. What is the same for all
/// terms and leaves the sum goes to `outside`. False if one has indices of both operands.
bool KernelSema::assignFactors(const ProductTerm &parts, const std::vector<IndexVar *> &vars,
                               std::array<Operand, 2> &operands, ProductTerm &outside) {
  std::vector<std::pair<Node *, bool>> any;
  auto assign = [&](Node *n, bool isDivisor) {
    const Indices indices = freeIndices({n});
    if (!meets(indices, vars) && (isDivisor ? leavesAsDivisor(n) : isNeverInfinite(n))) {
      (isDivisor ? outside.divisors : outside.factors).push_back(n);
      return true;
    }
    bool isLeft = meets(indices, operands[0].own), isRight = meets(indices, operands[1].own);
    if (isLeft && isRight) {
      const Indices bare = bareIndices(n);
      isLeft = meets(bare, operands[0].own);
      isRight = meets(bare, operands[1].own);
      if (isLeft == isRight)
        return false;
    }
    if (isLeft || isRight)
      operands[isRight].take(n, isDivisor);
    else
      any.emplace_back(n, isDivisor);
    return true;
  };
  for (Node *factor : parts.factors)
    if (factor != operands[0].seed && factor != operands[1].seed && !assign(factor, false))
      return false;
  for (Node *divisor : parts.divisors)
    if (!assign(divisor, true))
      return false;
  const bool isRight =
      !isConverted(operands[0], operands[1]) && isConverted(operands[1], operands[0]);
  for (auto [n, isDivisor] : any)
    operands[isRight].take(n, isDivisor);
  return true;
}

/// The operand as one node, 0 where `condition` does not hold; rounded to `to` if it is computed.
Node *KernelSema::operandNode(const Operand &operand, Node *condition, ast::DType to, Span span) {
  Node *product = nullptr;
  for (Node *factor : operand.factors)
    product = product ? op(Op::Mul, Type::F32, {product, factor}, span) : factor;
  for (Node *divisor : operand.divisors)
    product = op(Op::Div, Type::F32, {product, divisor}, span);
  if (condition)
    product = op(Op::Select, Type::F32, {condition, product, zero(Type::F32, span)}, span);
  if (narrowTypeOf(product))
    return product;
  Node *rounded = make(NodeKind::Round, Type::F32, span);
  rounded->stored = to;
  rounded->ofFactor = true;
  rounded->args = {product};
  return rounded;
}

/// Are the arguments of the product `n` two operands of a sum over `vars` as they are?
bool KernelSema::hasTwoOperands(const Node *n, const std::vector<IndexVar *> &vars) {
  if (!isOp(n, Op::Mul))
    return false;
  const Indices a = freeIndices({n->args[0]}), b = freeIndices({n->args[1]});
  return meets(a, vars) && meets(b, vars) &&
         !without(without(a, bareIndices(n->args[1])), vars).empty() &&
         !without(without(b, bareIndices(n->args[0])), vars).empty();
}

/// The type that computed operands are rounded to: that of an operand that is stored in 16 bits,
/// else f16 if one seed is stored so and the other one is not stored in bf16.
static ast::DType typeOfOperands(const std::array<Operand, 2> &operands, bool areStored) {
  bool hasHalf = false, hasBrain = false;
  for (const Operand &operand : operands) {
    std::optional<ast::DType> type = narrowTypeOf(operand.seed);
    if (!type || isByte(*type))
      continue;
    if (areStored && operand.isSeedAlone())
      return *type;
    hasHalf |= *type == ast::DType::F16;
    hasBrain |= *type == ast::DType::BF16;
  }
  return hasHalf && !hasBrain ? ast::DType::F16 : ast::DType::BF16;
}

/// The term of a sum over `vars` with its factors in two operands; `term` itself if it is such a
/// product already, or cannot be one.
Node *KernelSema::groupFactors(const std::vector<IndexVar *> &vars, Node *term) {
  const Span span = term->span;
  std::vector<Node *> conditions;
  Node *product = withoutConditions(term, conditions);
  if (product->type != Type::F32)
    return term;
  ProductTerm parts, outside;
  parts.add(product);
  auto operands = findSeeds(parts.factors, vars);
  if (!operands || !assignFactors(parts, vars, *operands, outside))
    return term;
  const auto &[left, right] = *operands;
  Indices owned = left.own;
  owned.insert(owned.end(), right.own.begin(), right.own.end());
  Node *inside = nullptr;
  std::vector<Node *> around;
  for (Node *condition : conditions)
    if (!loadsAt(condition, vars) || meets(freeIndices({condition}), owned))
      around.push_back(condition);
    else
      inside = inside ? op(Op::And, Type::Bool, {inside, condition}, span) : condition;
  const bool areSeeds = left.isSeedAlone() && right.isSeedAlone();
  const bool isStored = hasTwoOperands(product, vars) &&
                        (isNarrowLoad(product->args[0]) || isNarrowLoad(product->args[1]));
  if (!inside && (areSeeds || isStored))
    return term;
  const ast::DType to = typeOfOperands(*operands, !inside);
  Node *grouped = op(Op::Mul, Type::F32,
                     {operandNode(left, inside, to, span), operandNode(right, inside, to, span)},
                     product->span);
  grouped = withFactorsOfOneType(grouped);
  if (parts.isNegative)
    grouped = op(Op::Neg, Type::F32, {grouped}, span);
  for (Node *factor : outside.factors)
    grouped = op(Op::Mul, Type::F32, {grouped, factor}, span);
  for (Node *divisor : outside.divisors)
    grouped = op(Op::Div, Type::F32, {grouped, divisor}, span);
  return underConditions(around, grouped);
}

/// The inverse of withoutConditions: `n` where all conditions hold, else 0.
Node *KernelSema::underConditions(const std::vector<Node *> &conditions, Node *n) {
  for (auto condition = conditions.rbegin(); condition != conditions.rend(); ++condition)
    n = op(Op::Select, n->type, {*condition, n, zero(n->type, n->span)}, n->span);
  return n;
}

/// A term of a sum with the roundings of its factors that let matrix units multiply them. A term
/// under conditions, `if c then a * b else 0`, has those of its product.
Node *KernelSema::withRoundings(Node *term) {
  std::vector<Node *> conditions;
  Node *product = withoutConditions(term, conditions);
  Node *rounded = withFactorsOfOneType(withRoundedFactor(product));
  return rounded == product ? term : underConditions(conditions, rounded);
}

/// A product of values of 8 and of 16 bits with both in 16, which hold the one of 8: matrix
/// instructions take factors of one type.
Node *KernelSema::withFactorsOfOneType(Node *product) {
  if (!isOp(product, Op::Mul))
    return product;
  for (unsigned i : {0u, 1u}) {
    std::optional<ast::DType> type = narrowTypeOf(product->args[i]),
                              other = narrowTypeOf(product->args[1 - i]);
    if (!type || !other || !isByte(*type) || isByte(*other))
      continue;
    Node *held = make(NodeKind::Round, Type::F32, product->args[i]->span);
    held->stored = *other;
    held->args = {product->args[i]};
    std::vector<Node *> args{product->args[0], product->args[1]};
    args[i] = held;
    return op(Op::Mul, Type::F32, std::move(args), product->span);
  }
  return product;
}

/// The product of a stored factor and of one that is computed, with that one rounded to 16 bits.
Node *KernelSema::withRoundedFactor(Node *product) {
  if (!isOp(product, Op::Mul) || product->type != Type::F32)
    return product;
  auto rests = [&](Node *n, Node *other) { // an index that `other` has and `n` lacks
    return !without(freeIndices({other}), ownIndices(n)).empty();
  };
  for (unsigned i : {0u, 1u}) {
    Node *stored = product->args[i], *computed = product->args[1 - i];
    std::optional<ast::DType> type = storedTypeOf(stored);
    if (!type || storedTypeOf(computed))
      continue;
    bool local = computed->kind == NodeKind::Load && computed->tensor->param < 0 &&
                 !computed->tensor->declared;
    bool expression = computed->kind != NodeKind::Load && computed->kind != NodeKind::Round &&
                      !computed->kernelLevel && rests(stored, computed) && rests(computed, stored);
    if (!local && !expression)
      continue;
    Node *rounded = make(NodeKind::Round, Type::F32, computed->span);
    rounded->stored = *type == ast::DType::F16 ? *type : ast::DType::BF16;
    rounded->ofFactor = true;
    rounded->args = {computed};
    std::vector<Node *> args{product->args[0], product->args[1]};
    args[1 - i] = rounded;
    return op(Op::Mul, Type::F32, std::move(args), product->span);
  }
  return product;
}

} // namespace tk::sema
