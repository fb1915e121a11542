// The rules of differentiation for what is computed element by element.

#include "frontend/GradKernel.h"

#include <cmath>
#include <numbers>

namespace tk::grad {

using ast::BinaryOp;

void GradKernel::contribute(const TermPtr &access, const TermPtr &value, const Place &place) {
  contributions[access->name].push_back({place.loops, place.conditions, access->args, value,
                                         place.factor, place.modifier, place.statement});
}

TermPtr GradKernel::valueOf(const TermPtr &e, const Place &place) const {
  const Statement &s = *place.statement;
  if (e != s.value || !s.conditions.empty())
    return e;
  // A declared type would have rounded it.
  bool isExact = !s.dtype || *s.dtype == ast::DType::F32 || *s.dtype == ast::DType::F64;
  return isExact && !ast::parseReduceKind(s.name) ? elementAt(s.name, s.indices) : e;
}

void GradKernel::differentiate(const Statement &s, const TermPtr &adjoint) {
  Place place;
  place.statement = &s;
  place.loops = s.indices;
  place.conditions = s.conditions;
  if (s.value->kind == TermKind::Reduce)
    visitReduce(*s.value, adjoint, place);
  else
    visit(s.value, adjoint, place);
}

void GradKernel::visit(const TermPtr &e, const TermPtr &adjoint, const Place &place) {
  if (!isActive(e))
    return;
  switch (e->kind) {
  case TermKind::Access:
    return contribute(e, adjoint, place);
  case TermKind::Neg:
    return visit(e->args[0], neg(adjoint), place);
  case TermKind::Binary:
    return visitBinary(*e, e, adjoint, place);
  case TermKind::If:
    for (unsigned i : {1U, 2U}) {
      Place branch = place;
      branch.conditions.push_back(i == 1 ? e->args[0] : negation(e->args[0]));
      visit(e->args[i], adjoint, branch);
    }
    return;
  case TermKind::Call:
    return visitCall(*e, e, adjoint, place);
  default:
    refuse(place.statement->span, "a reduction where none is expected");
  }
}

void GradKernel::visitBinary(const Term &e, const TermPtr &self, const TermPtr &adjoint,
                             const Place &place) {
  const TermPtr &x = e.args[0], &y = e.args[1];
  switch (e.op) {
  case BinaryOp::Add:
    visit(x, adjoint, place);
    return visit(y, adjoint, place);
  case BinaryOp::Sub:
    visit(x, adjoint, place);
    return visit(y, neg(adjoint), place);
  case BinaryOp::Mul:
    visit(x, mul(adjoint, y), place);
    return visit(y, mul(adjoint, x), place);
  case BinaryOp::Div:
    visit(x, div(adjoint, y), place);
    return visit(y, neg(div(mul(adjoint, valueOf(self, place)), y)), place);
  case BinaryOp::Pow:
    return visitPower(x, y, self, adjoint, place);
  default:
    refuse(place.statement->span,
           std::string("'") + std::string(ast::spelling(e.op)) + "' of floats");
  }
}

/// x^y, also as pow(x, y). With an integer exponent a repeated multiplication.
void GradKernel::visitPower(const TermPtr &x, const TermPtr &y, const TermPtr &self,
                            const TermPtr &adjoint, const Place &place) {
  TermPtr exponent = y->kind == TermKind::Neg ? y->args[0] : y;
  if (exponent->kind == TermKind::Int && self->kind == TermKind::Binary) {
    const std::int64_t n = y->kind == TermKind::Neg ? -exponent->intValue : exponent->intValue;
    if (n == 0)
      return;
    TermPtr below = n == -64 ? div(valueOf(self, place), x) // -65 is no legal exponent
                             : power(x, n - 1);
    TermPtr factor = n == 1 ? real(1) : mul(real(static_cast<double>(n)), below);
    return visit(x, mul(adjoint, factor), place);
  }
  TermPtr below = call("pow", {x, sub(y, real(1))});
  TermPtr byBase = mul(y, below);
  // Of x^0 nothing depends on x, not even at x = 0, where the other factor is infinite.
  if (y->kind != TermKind::Float && y->kind != TermKind::Int)
    byBase = choose(binary(BinaryOp::Eq, y, real(0)), real(0), byBase);
  if (!y->isNumber(0))
    visit(x, mul(adjoint, byBase), place);
  // 0^y is 0 for all y above 0.
  TermPtr byExponent = choose(binary(BinaryOp::Eq, x, real(0)), real(0),
                              mul(valueOf(self, place), call("log", {x})));
  visit(y, mul(adjoint, byExponent), place);
}

/// The derivative of a function of one argument, by the argument `x` and the value `y`; null where
/// the function is none of these.
static TermPtr derivative(const std::string &name, const TermPtr &x, const TermPtr &y) {
  using std::numbers::inv_sqrtpi;
  constexpr double invSqrt2Pi = inv_sqrtpi / std::numbers::sqrt2;
  TermPtr one = real(1), half = real(0.5);
  if (name == "exp")
    return y;
  if (name == "exp2")
    return mul(y, real(std::numbers::ln2));
  if (name == "expm1")
    return call("exp", {x});
  if (name == "log")
    return div(one, x);
  if (name == "log2")
    return div(real(std::numbers::log2e), x);
  if (name == "log1p")
    return div(one, add(one, x));
  if (name == "sqrt")
    return div(half, y);
  if (name == "rsqrt")
    return mul(real(-0.5), power(y, 3));
  if (name == "tanh")
    return sub(one, power(y, 2));
  if (name == "sigmoid")
    return mul(y, sub(one, y));
  if (name == "erf")
    return mul(real(2 * inv_sqrtpi), call("exp", {neg(power(x, 2))}));
  if (name == "sin")
    return call("cos", {x});
  if (name == "cos")
    return neg(call("sin", {x}));
  if (name == "abs")
    return call("sign", {x});
  if (name == "softplus")
    return call("sigmoid", {x});
  if (name == "silu") {
    TermPtr s = call("sigmoid", {x});
    return mul(s, add(one, mul(x, sub(one, s))));
  }
  if (name == "gelu") {
    TermPtr below = mul(half, add(one, call("erf", {mul(x, real(std::numbers::sqrt2 / 2))})));
    TermPtr density = mul(real(invSqrt2Pi), call("exp", {mul(real(-0.5), power(x, 2))}));
    return add(below, mul(x, density));
  }
  if (name == "gelu_tanh") {
    const double scale = std::numbers::sqrt2 * inv_sqrtpi, cubic = 0.044715;
    TermPtr inner = mul(mul(real(scale), x), add(one, mul(real(cubic), power(x, 2))));
    TermPtr slope = mul(real(scale), add(one, mul(real(3 * cubic), power(x, 2))));
    TermPtr t = call("tanh", {inner});
    return add(mul(half, add(one, t)), mul(mul(mul(half, x), sub(one, power(t, 2))), slope));
  }
  return nullptr;
}

void GradKernel::visitCall(const Term &e, const TermPtr &self, const TermPtr &adjoint,
                           const Place &place) {
  const std::vector<TermPtr> &args = e.args;
  if (ast::parseDType(e.name)) // a cast to a float: rounding is as if it were not
    return visit(args[0], adjoint, place);
  if (e.name == "pad") {
    if (isActive(args[1]))
      refuse(place.statement->span, "the second argument of pad depends on a parameter after wrt");
    return contribute(args[0], adjoint, place);
  }
  if (e.name == "pow")
    return visitPower(args[0], args[1], self, adjoint, place);
  if (e.name == "fma") {
    visit(args[0], mul(adjoint, args[1]), place);
    visit(args[1], mul(adjoint, args[0]), place);
    return visit(args[2], adjoint, place);
  }
  auto under = [&](BinaryOp op, const TermPtr &a, const TermPtr &b) {
    Place inner = place;
    inner.conditions.push_back(binary(op, a, b));
    return inner;
  };
  if (e.name == "min" || e.name == "max") { // ties share equally
    BinaryOp op = e.name == "max" ? BinaryOp::Ge : BinaryOp::Le;
    for (unsigned i : {0U, 1U}) {
      TermPtr isTie = binary(BinaryOp::Eq, args[i], args[1 - i]);
      visit(args[i], mul(adjoint, choose(isTie, real(0.5), real(1))),
            under(op, args[i], args[1 - i]));
    }
    return;
  }
  if (e.name == "clamp") { // its bounds belong to the range
    Place inside = under(BinaryOp::Ge, args[0], args[1]);
    inside.conditions.push_back(binary(BinaryOp::Le, args[0], args[2]));
    visit(args[0], adjoint, inside);
    Place low = under(BinaryOp::Lt, args[0], args[1]);
    low.conditions.push_back(binary(BinaryOp::Le, args[1], args[2]));
    visit(args[1], adjoint, low);
    TermPtr raised = call("max", {args[0], args[1]});
    return visit(args[2], adjoint, under(BinaryOp::Gt, raised, args[2]));
  }
  if (e.name == "relu")
    return visit(args[0], adjoint, under(BinaryOp::Gt, args[0], real(0)));
  TermPtr slope = derivative(e.name, args[0], valueOf(self, place));
  if (!slope)
    refuse(place.statement->span, "'" + e.name + "' has no derivative");
  // a / x rather than a * (1 / x)
  if (slope->is(BinaryOp::Div))
    return visit(args[0], div(mul(adjoint, slope->args[0]), slope->args[1]), place);
  visit(args[0], mul(adjoint, slope), place);
}

} // namespace tk::grad
