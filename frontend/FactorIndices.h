// What the operands of contractions are made of: factors, the types they are stored in, and the
// indices that each has for itself. For the files that sort a term's factors.
#ifndef TK_FRONTEND_FACTORINDICES_H
#define TK_FRONTEND_FACTORINDICES_H

#include "frontend/SemaTree.h"

#include <optional>
#include <vector>

namespace tk::sema {

using Indices = std::vector<IndexVar *>;

inline bool isOp(const Node *n, Op op) { return n->kind == NodeKind::Op && n->op == op; }

/// The type of 8 or 16 bits that an element is stored in, of which `n` has the value in f32.
/// Integers are converted, which is exact in both types of 16 bits.
std::optional<ast::DType> storedTypeOf(const Node *n);
/// The narrow type that `n` has been stored or rounded in.
std::optional<ast::DType> narrowTypeOf(const Node *n);
inline bool isNarrowLoad(const Node *n) { return storedTypeOf(n).has_value(); }
bool isByte(ast::DType type);

bool contains(const Indices &indices, const IndexVar *index);
/// True if the lists have an index in common.
bool meets(const Indices &a, const Indices &b);
/// `a` without the indices of `b`.
Indices without(const Indices &a, const Indices &b);
/// The indices that `n`, a factor, has for itself: bare ones, but for those of which it reads only
/// quotients or only remainders, which several values of the index share.
Indices ownIndices(const Node *n);

} // namespace tk::sema

#endif // TK_FRONTEND_FACTORINDICES_H
