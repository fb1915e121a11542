// Calls that have passed every check: a call whose arguments differ in addresses alone is checked
// by comparison.
#ifndef TK_RUNTIME_KNOWNCALLS_H
#define TK_RUNTIME_KNOWNCALLS_H

#include "runtime/Bind.h"
#include "tk/tk_c.h"

#include <array>
#include <mutex>
#include <string>
#include <unordered_map>

namespace tk::detail {

/// More arguments than this are checked anew by each call.
inline constexpr size_t max_known_arguments = 32;

/// All of a call's arguments that checks and the choice of code rest on, as bytes: everything but
/// the addresses, of which it has the alignment. Lives on the stack of the call.
class CallKey {
public:
  /// `values` are in the order of the signature: parameters, then results.
  explicit CallKey(std::span<const tk_value> values);
  /// Without a key: a value that the checks refuse, or too many.
  bool valid() const { return m_valid; }
  std::string_view bytes() const {
    return {reinterpret_cast<const char *>(m_words.data()), m_size * sizeof(int64_t)};
  }

private:
  bool add(int64_t word);
  bool add_tensor(const tk_value &value);

  std::array<int64_t, 256> m_words; ///< the first m_size of them
  size_t m_size = 0;
  bool m_valid = true;
};

/// A call that has passed every check.
struct KnownCall {
  struct Tensor {
    unsigned value;    ///< its place among the values
    int64_t low, high; ///< the bytes that its elements occupy, relative to its address
    uintptr_t element_bytes;
    bool written;
  };
  std::shared_ptr<const BoundImpl> bound;
  std::vector<Tensor> tensors;

  /// The tensors' addresses, and whether they pass the checks of addresses.
  bool addresses_of(std::span<const tk_value> values, std::span<void *> pointers) const;
};

/// The calls of one kernel, by key. Used from several threads at once.
class KnownCalls {
public:
  std::shared_ptr<const KnownCall> find(const CallKey &key) const;
  void add(const CallKey &key, std::shared_ptr<const BoundImpl> bound);
  /// Forgets all: for calls that from now on select other code.
  void clear();

private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  mutable std::mutex m_mutex;
  std::unordered_map<std::string, std::shared_ptr<const KnownCall>, Hash, std::equal_to<>> m_calls;
};

/// Arguments that come by name, in the order of the signature; their shapes and strides stay the
/// caller's. False where a name is unknown or given twice.
bool in_order(const Signature &signature, std::span<const NamedValue> inputs,
              std::span<const NamedValue> outputs, std::span<tk_value> values);

} // namespace tk::detail

#endif // TK_RUNTIME_KNOWNCALLS_H
