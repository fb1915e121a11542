// Calls that run a general variant while their own is compiled.
//
// 1. A call whose variant is neither there nor being compiled has it queued (compile_later), and
//    runs the variant that assumes nothing of sizes. That one is compiled first where it has to be.
// 2. Once a queued variant is there, the kernel forgets the calls that are bound to general ones:
//    the next call finds it.
// A variant that cannot be compiled is queued once: calls go on with the general one.
#include "runtime/Environment.h"
#include "runtime/Kernel.h"

namespace tk::detail {
namespace {

bool is_ready(const std::shared_future<std::shared_ptr<const Variant>> &future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

} // namespace

std::shared_ptr<const Variant> KernelImpl::variant_of_call(Facts &facts, const Stream *stream,
                                                           std::span<const int64_t> dims) {
  if (!stream || !m_background->enabled() || m_compiled->is_deterministic(m_index))
    return variant(facts, dims);
  Facts general = facts;
  general.dims.clear();
  general = complete(general);
  const std::string key = facts.key();
  if (general.key() == key)
    return variant(facts, dims);
  {
    std::lock_guard lock(m_mutex);
    auto own = m_variants.find(key);
    if (own != m_variants.end() && is_ready(own->second))
      return own->second.get();
    auto other = m_variants.find(general.key());
    const bool has_general = other != m_variants.end() && is_ready(other->second);
    if (m_frozen->load() && !has_general)
      throw frozen_error(dims);
    if (own == m_variants.end() && !m_frozen->load() && m_compiled_later.insert(key).second)
      compile_later(facts);
  }
  std::shared_ptr<const Variant> found = variant(general, dims);
  facts = std::move(general);
  return found;
}

void KernelImpl::compile_later(const Facts &facts) {
  m_background->add([self = weak_from_this(), facts] {
    if (std::shared_ptr<KernelImpl> kernel = self.lock())
      kernel->compile_in_background(facts);
  });
}

void KernelImpl::compile_in_background(const Facts &facts) {
  try {
    std::shared_ptr<const Variant> better = variant(facts);
    load(*better);
  } catch (const std::exception &error) {
    log_message("'" + signature().name + "' keeps its general variant for [" + facts.key() +
                "]: " + error.what());
    return;
  }
  std::lock_guard lock(m_mutex);
  ++m_improved;
  std::erase_if(m_bound, [](const auto &entry) { return entry.second->stands_in; });
}

} // namespace tk::detail
