// Links one object file.
//
// 1. Read the section and symbol tables, and check every offset against the file's size.
// 2. Lay out the sections that are part of the program, then a slot and a stub for each symbol.
//    Code reaches the process's functions through them, however far away these are.
// 3. Copy the sections, resolve the symbols, and apply the relocations.
// 4. Make the memory executable, and find the entry of the kernel.
//
// The compiler emits position-independent code of one module, which takes the eight kinds of
// relocation below. Anything else is refused.
#include "runtime/cpu/ObjectCode.h"

#include "tk/dtype.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace tk::cpu {
namespace {

constexpr size_t slot_bytes = 8, stub_bytes = 8;
constexpr std::string_view entry_prefix = "tk_entry_";

Error damaged(const char *what) {
  return Error(ErrorCode::bad_file, std::string("damaged object code: ") + what);
}

// Calls pass and return halves in the low bits of a register for floats.
uint16_t low_bits(float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value)); }
float from_low_bits(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits}); }

float extend_half(float half) { return f16_to_f32(low_bits(half)); }
float half_of_bits(uint16_t bits) { return f16_to_f32(bits); }
float round_to_half(float value) { return from_low_bits(f32_to_f16(value)); }
uint16_t bits_of_half(float value) { return f32_to_f16(value); }
float round_to_bfloat(float value) { return from_low_bits(f32_to_bf16(value)); }

template <typename F> uint64_t address_of(F *function) {
  return reinterpret_cast<uint64_t>(function);
}

/// A function that object code calls; 0 where there is none.
uint64_t find_function(const std::string &name) {
  if (name == "__extendhfsf2")
    return address_of(extend_half);
  if (name == "__gnu_h2f_ieee")
    return address_of(half_of_bits);
  if (name == "__truncsfhf2")
    return address_of(round_to_half);
  if (name == "__gnu_f2h_ieee")
    return address_of(bits_of_half);
  if (name == "__truncsfbf2")
    return address_of(round_to_bfloat);
  if (name == "malloc")
    return address_of<void *(size_t)>(std::malloc);
  if (name == "free")
    return address_of<void(void *)>(std::free);
  return reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, name.c_str()));
}

} // namespace

class Linker {
public:
  explicit Linker(std::string_view file) : m_file(file) {}

  Status run(ObjectCode &code) {
    for (auto step : {&Linker::read_sections, &Linker::read_symbols, &Linker::lay_out})
      if (Status status = (this->*step)(); !status)
        return status;
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    code.m_bytes = (m_total + page - 1) / page * page;
    void *memory =
        mmap(nullptr, code.m_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return Error(ErrorCode::out_of_memory, "no memory for object code");
    code.m_memory = memory;
    m_base = static_cast<unsigned char *>(memory);
    for (auto step : {&Linker::copy_sections, &Linker::resolve, &Linker::relocate})
      if (Status status = (this->*step)(); !status)
        return status;
    if (mprotect(memory, code.m_bytes, PROT_READ | PROT_EXEC) != 0)
      return Error(ErrorCode::unsupported, "this system does not let a process execute new code");
    if (!m_entry)
      return damaged("it has no entry");
    code.m_entry = reinterpret_cast<tk_cpu_entry>(m_entry);
    return {};
  }

private:
  struct Section {
    Elf64_Shdr header;
    std::optional<size_t> place; ///< in the memory, of those that are part of the program
  };
  struct Symbol {
    Elf64_Sym entry;
    std::string name;
    uint64_t address = 0;
  };

  /// Bytes of the file, or null where it ends before them.
  const char *at(uint64_t offset, uint64_t bytes) const {
    return offset <= m_file.size() && bytes <= m_file.size() - offset ? m_file.data() + offset
                                                                      : nullptr;
  }
  template <typename T> bool read(uint64_t offset, T &value) const {
    const char *bytes = at(offset, sizeof value);
    if (bytes)
      std::memcpy(&value, bytes, sizeof value);
    return bytes != nullptr;
  }

  Status read_sections() {
    Elf64_Ehdr header;
    if (!read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
      return damaged("it is no ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_type != ET_REL || header.e_machine != EM_X86_64)
      return damaged("it is not an object file for x86-64");
    for (uint64_t s = 0; s < header.e_shnum; ++s) {
      Section section{};
      if (!read(header.e_shoff + s * sizeof(Elf64_Shdr), section.header))
        return damaged("its section table is cut off");
      const Elf64_Shdr &shape = section.header;
      if (shape.sh_type != SHT_NOBITS && !at(shape.sh_offset, shape.sh_size))
        return damaged("a section is cut off");
      m_sections.push_back(section);
    }
    return {};
  }

  Status read_symbols() {
    for (const Section &section : m_sections) {
      if (section.header.sh_type != SHT_SYMTAB)
        continue;
      if (section.header.sh_link >= m_sections.size())
        return damaged("its symbols have no names");
      const Elf64_Shdr &names = m_sections[section.header.sh_link].header;
      if (names.sh_type != SHT_STRTAB)
        return damaged("its symbols have no names");
      for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.header.sh_size;
           at += sizeof(Elf64_Sym)) {
        Symbol symbol{};
        read(section.header.sh_offset + at, symbol.entry);
        if (symbol.entry.st_name >= names.sh_size)
          return damaged("a symbol has no name");
        const char *name = m_file.data() + names.sh_offset + symbol.entry.st_name;
        symbol.name.assign(name, strnlen(name, names.sh_size - symbol.entry.st_name));
        m_symbols.push_back(std::move(symbol));
      }
    }
    return {};
  }

  Status lay_out() {
    constexpr uint64_t most_bytes = uint64_t{1} << 30, most_alignment = 4096;
    for (Section &section : m_sections) {
      const Elf64_Shdr &header = section.header;
      if (!(header.sh_flags & SHF_ALLOC) || header.sh_size == 0)
        continue;
      if (header.sh_flags & (SHF_WRITE | SHF_TLS))
        return damaged("it has variables");
      const uint64_t alignment = std::max<uint64_t>(header.sh_addralign, 1);
      if (!std::has_single_bit(alignment) || alignment > most_alignment ||
          header.sh_size > most_bytes || m_total > most_bytes)
        return damaged("a section is too large");
      m_total = (m_total + alignment - 1) / alignment * alignment;
      section.place = m_total;
      m_total += header.sh_size;
    }
    m_slots = (m_total + slot_bytes - 1) / slot_bytes * slot_bytes;
    m_total = m_slots + m_symbols.size() * (slot_bytes + stub_bytes);
    return {};
  }

  Status copy_sections() {
    for (const Section &section : m_sections)
      if (section.place && section.header.sh_type != SHT_NOBITS)
        std::memcpy(m_base + *section.place, m_file.data() + section.header.sh_offset,
                    section.header.sh_size);
    return {};
  }

  unsigned char *slot(size_t symbol) { return m_base + m_slots + symbol * slot_bytes; }
  unsigned char *stub(size_t symbol) {
    return m_base + m_slots + m_symbols.size() * slot_bytes + symbol * stub_bytes;
  }

  Status resolve() {
    for (size_t s = 0; s < m_symbols.size(); ++s) {
      Symbol &symbol = m_symbols[s];
      const uint16_t section = symbol.entry.st_shndx;
      if (section == SHN_UNDEF) {
        symbol.address = symbol.name.empty() ? 0 : find_function(symbol.name);
        if (!symbol.address && !symbol.name.empty() &&
            ELF64_ST_BIND(symbol.entry.st_info) != STB_WEAK)
          return Error(ErrorCode::unsupported,
                       "object code calls '" + symbol.name + "', which this process does not have");
      } else if (section == SHN_ABS) {
        symbol.address = symbol.entry.st_value;
      } else if (section >= m_sections.size()) {
        return damaged("a symbol is in no section");
      } else if (m_sections[section].place) {
        if (symbol.entry.st_value > m_sections[section].header.sh_size)
          return damaged("a symbol is beyond its section");
        symbol.address =
            reinterpret_cast<uint64_t>(m_base) + *m_sections[section].place + symbol.entry.st_value;
        if (symbol.name.starts_with(entry_prefix) && !symbol.name.ends_with(".part0") &&
            ELF64_ST_TYPE(symbol.entry.st_info) == STT_FUNC)
          m_entry = symbol.address;
      }
      std::memcpy(slot(s), &symbol.address, slot_bytes);
      // jmp *slot(%rip)
      const auto distance = static_cast<int32_t>(slot(s) - (stub(s) + 6));
      stub(s)[0] = 0xff;
      stub(s)[1] = 0x25;
      std::memcpy(stub(s) + 2, &distance, sizeof distance);
    }
    return {};
  }

  Status relocate() {
    for (const Section &section : m_sections) {
      const Elf64_Shdr &header = section.header;
      if (header.sh_type == SHT_REL)
        return damaged("its relocations have no addends");
      if (header.sh_type != SHT_RELA || header.sh_info >= m_sections.size())
        continue;
      const Section &target = m_sections[header.sh_info];
      for (uint64_t at = 0; target.place && at + sizeof(Elf64_Rela) <= header.sh_size;
           at += sizeof(Elf64_Rela)) {
        Elf64_Rela relocation;
        read(header.sh_offset + at, relocation);
        if (Status status = apply(relocation, target); !status)
          return status;
      }
    }
    return {};
  }

  Status apply(const Elf64_Rela &relocation, const Section &target) {
    const uint64_t number = ELF64_R_SYM(relocation.r_info);
    if (number >= m_symbols.size())
      return damaged("a relocation names no symbol");
    const uint32_t kind = ELF64_R_TYPE(relocation.r_info);
    const size_t bytes = kind == R_X86_64_64 || kind == R_X86_64_PC64 ? 8 : 4;
    if (relocation.r_offset > target.header.sh_size ||
        target.header.sh_size - relocation.r_offset < bytes)
      return damaged("a relocation is beyond its section");
    unsigned char *place = m_base + *target.place + relocation.r_offset;
    uint64_t value = m_symbols[number].address;
    bool is_relative = true;
    switch (kind) {
    case R_X86_64_64:
      is_relative = false;
      break;
    case R_X86_64_PC64:
    case R_X86_64_PC32:
      break;
    case R_X86_64_PLT32:
      if (m_symbols[number].entry.st_shndx == SHN_UNDEF)
        value = reinterpret_cast<uint64_t>(stub(number));
      break;
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
      value = reinterpret_cast<uint64_t>(slot(number));
      break;
    default:
      return damaged("it has a relocation of an unknown kind");
    }
    value += static_cast<uint64_t>(relocation.r_addend);
    if (is_relative)
      value -= reinterpret_cast<uint64_t>(place);
    const auto distance = static_cast<int64_t>(value);
    if (bytes == 4 && distance != static_cast<int32_t>(distance))
      return damaged("a relocation is out of range");
    std::memcpy(place, &value, bytes);
    return {};
  }

  std::string_view m_file;
  std::vector<Section> m_sections;
  std::vector<Symbol> m_symbols;
  size_t m_total = 0, m_slots = 0;
  unsigned char *m_base = nullptr;
  uint64_t m_entry = 0;
};

Expected<std::shared_ptr<const ObjectCode>> ObjectCode::link(std::string_view object) {
  std::shared_ptr<ObjectCode> code(new ObjectCode());
  if (Status linked = Linker(object).run(*code); !linked)
    return linked.error();
  return std::shared_ptr<const ObjectCode>(std::move(code));
}

ObjectCode::~ObjectCode() {
  if (m_memory)
    munmap(m_memory, m_bytes);
}

std::string_view processor_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  // The features of the level that code of kernels uses most; a processor has them all or none.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512cd"))
    return "x86-64-v4";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2"))
    return "x86-64-v3";
#endif
  return "";
}

bool runs_level(std::string_view level) {
  const std::string_view here = processor_level();
  return level.starts_with("x86-64-v") && !here.empty() && level <= here;
}

} // namespace tk::cpu
