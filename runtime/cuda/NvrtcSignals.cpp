#include "runtime/cuda/NvrtcSignals.h"

#include <csignal>
#include <cstdint>
#include <cstring>

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tk::cuda {
namespace {

using Handler = void (*)(int);

/// What the library calls in place of signal(). A front end that hears that a signal is ignored
/// leaves it so.
Handler signal_for_library(int number, Handler handler) {
  if (number == SIGINT || number == SIGTERM || number == SIGHUP)
    return SIG_IGN;
  return ::signal(number, handler);
}

/// The tables of a loaded object that say which functions it calls.
struct Imports {
  explicit Imports(const link_map &object) : base(object.l_addr) {
    for (const ElfW(Dyn) *entry = object.l_ld; entry->d_tag != DT_NULL; ++entry)
      switch (entry->d_tag) {
      case DT_SYMTAB:
        symbols = reinterpret_cast<const ElfW(Sym) *>(address(entry->d_un.d_ptr));
        break;
      case DT_STRTAB:
        names = reinterpret_cast<const char *>(address(entry->d_un.d_ptr));
        break;
      case DT_JMPREL:
        calls = reinterpret_cast<const ElfW(Rela) *>(address(entry->d_un.d_ptr));
        break;
      case DT_PLTRELSZ:
        count = entry->d_un.d_val / sizeof(ElfW(Rela));
        break;
      case DT_PLTREL:
        known = entry->d_un.d_val == DT_RELA;
        break;
      case DT_BIND_NOW:
        read_only = true;
        break;
      case DT_FLAGS:
        read_only |= (entry->d_un.d_val & DF_BIND_NOW) != 0;
        break;
      case DT_FLAGS_1:
        read_only |= (entry->d_un.d_val & DF_1_NOW) != 0;
        break;
      default:
        break;
      }
    known = known && symbols && names && calls;
  }

  /// Some loaders add the base to the tables' addresses, some leave them.
  ElfW(Addr) address(ElfW(Addr) value) const { return value < base ? base + value : value; }

  ElfW(Addr) base;
  const ElfW(Sym) *symbols = nullptr;
  const char *names = nullptr;
  const ElfW(Rela) *calls = nullptr;
  size_t count = 0;
  bool known = false;
  bool read_only = false; ///< the addresses were bound at once, and may be protected
};

/// Writes an address that the loader may have protected.
bool redirect(void **slot, void *to, bool read_only) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  void *begin = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(slot) & ~(page - 1));
  if (read_only && ::mprotect(begin, page, PROT_READ | PROT_WRITE) != 0)
    return false;
  __atomic_store_n(slot, to, __ATOMIC_RELEASE);
  return true;
}

} // namespace

bool keep_signal_handlers(void *library) noexcept {
  link_map *object = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, static_cast<void *>(&object)) != 0 || !object)
    return false;
  const Imports imports(*object);
  bool found = false;
  for (size_t i = 0; imports.known && i < imports.count; ++i) {
    const ElfW(Rela) &call = imports.calls[i];
    const ElfW(Sym) &symbol = imports.symbols[ELF64_R_SYM(call.r_info)];
    if (std::strcmp(imports.names + symbol.st_name, "signal") != 0)
      continue;
    auto **slot = reinterpret_cast<void **>(imports.base + call.r_offset);
    found |= redirect(slot, reinterpret_cast<void *>(&signal_for_library), imports.read_only);
  }
  return found;
}

} // namespace tk::cuda
