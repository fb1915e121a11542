// Equal texts are compiled once. Variants of a kernel for different sizes often have the same text:
// what is made of it is shared while anyone holds it, and threads that ask for it meanwhile wait.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "runtime/Sha256.h"
#include "tk/error.h"

namespace tk::detail {

template <typename Code> class SharedCode {
public:
  using Made = Expected<std::shared_ptr<Code>>;

  /// The code of `key`, from whoever holds it or from `make`, which returns a Made. A failure is
  /// not kept.
  template <typename F> Made get(const Digest &key, F make) {
    std::shared_ptr<Slot> slot;
    {
      std::lock_guard lock(m_mutex);
      std::erase_if(m_slots, [](const auto &entry) { return is_unused(entry.second); });
      std::shared_ptr<Slot> &known = m_slots[key];
      if (!known)
        known = std::make_shared<Slot>();
      slot = known;
    }
    std::lock_guard lock(slot->making);
    if (auto code = slot->code.lock())
      return code;
    Made made = make();
    if (made)
      slot->code = *made;
    return made;
  }

private:
  struct Slot {
    std::mutex making;
    std::weak_ptr<Code> code;
  };

  /// Nobody else has the slot, and what it had is gone.
  static bool is_unused(const std::shared_ptr<Slot> &slot) {
    std::unique_lock lock(slot->making, std::try_to_lock);
    return lock && slot.use_count() == 1 && slot->code.expired();
  }

  std::mutex m_mutex;
  std::map<Digest, std::shared_ptr<Slot>> m_slots;
};

} // namespace tk::detail
