// Object code that is linked without a compiler: what it may hold, and what is refused.
#include "tests/unit/catch.h"

#include "runtime/cpu/ObjectCode.h"

#include <cstring>
#include <elf.h>
#include <vector>

using namespace tk;

#if defined(__x86_64__)

namespace {

/// An object file with one function, which calls another one and returns its result.
struct Object {
  std::string code, entry = "tk_entry_k", called = "abs";
  uint32_t kind = R_X86_64_PLT32;
  uint64_t offset = 0;
  uint16_t machine = EM_X86_64;
  uint64_t flags = SHF_ALLOC | SHF_EXECINSTR;

  Object() {
    // sub $8, %rsp; mov $-5, %edi; call …; add $8, %rsp; ret
    for (int byte : {0x48, 0x83, 0xec, 0x08, 0xbf, 0xfb, 0xff, 0xff, 0xff, 0xe8, 0, 0, 0, 0, 0x48,
                     0x83, 0xc4, 0x08, 0xc3})
      code += static_cast<char>(byte);
    offset = 10;
  }

  std::string bytes() const {
    std::string names = std::string(1, '\0') + entry + '\0' + called + '\0';
    std::string file(sizeof(Elf64_Ehdr), '\0');
    auto add = [&](const auto &value) {
      const uint64_t at = file.size();
      file.append(reinterpret_cast<const char *>(&value), sizeof value);
      return at;
    };
    const uint64_t text = file.size();
    file += code;
    const uint64_t strings = file.size();
    file += names;
    const uint64_t symbols = add(Elf64_Sym{});
    add(Elf64_Sym{1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, 0, code.size()});
    add(Elf64_Sym{static_cast<uint32_t>(entry.size() + 2), ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE), 0,
                  SHN_UNDEF, 0, 0});
    const uint64_t relocations = add(Elf64_Rela{offset, ELF64_R_INFO(uint64_t{2}, kind), -4});
    const uint64_t sections = add(Elf64_Shdr{});
    add(Elf64_Shdr{0, SHT_PROGBITS, flags, 0, text, code.size(), 0, 0, 16, 0});
    add(Elf64_Shdr{0, SHT_STRTAB, 0, 0, strings, names.size(), 0, 0, 1, 0});
    add(Elf64_Shdr{0, SHT_SYMTAB, 0, 0, symbols, 3 * sizeof(Elf64_Sym), 2, 1, 8, 24});
    add(Elf64_Shdr{0, SHT_RELA, 0, 0, relocations, sizeof(Elf64_Rela), 3, 1, 8, 24});
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_REL;
    header.e_machine = machine;
    header.e_shoff = sections;
    header.e_shnum = 5;
    std::memcpy(file.data(), &header, sizeof header);
    return file;
  }
};

ErrorCode refusal(const Object &object, const std::string &message) {
  auto linked = cpu::ObjectCode::link(object.bytes());
  REQUIRE(!linked);
  INFO(linked.error().message());
  CHECK(linked.error().message().find(message) != std::string::npos);
  return linked.error().code();
}

} // namespace

TEST_CASE("object code calls functions of the process", "[bundle]") {
  auto code = cpu::ObjectCode::link(Object().bytes());
  REQUIRE(code);
  CHECK((*code)->entry()(nullptr) == 5);
}

TEST_CASE("object code that is not whole is refused", "[bundle]") {
  const std::string whole = Object().bytes();
  for (size_t length = 0; length < whole.size(); ++length) {
    auto linked = cpu::ObjectCode::link(std::string_view(whole).substr(0, length));
    REQUIRE(!linked);
    CHECK(linked.error().code() == ErrorCode::bad_file);
  }
  // Whatever one byte is, nothing is read or written elsewhere.
  for (size_t at = 0; at < whole.size(); ++at)
    for (int byte : {0x00, 0x01, 0x08, 0x7f, 0xff}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(byte);
      (void)cpu::ObjectCode::link(changed);
    }
}

TEST_CASE("object code of another kind is refused", "[bundle]") {
  Object object;
  object.called = "no_such_function_anywhere";
  CHECK(refusal(object, "calls 'no_such_function_anywhere'") == ErrorCode::unsupported);
  object = {};
  object.kind = R_X86_64_32;
  CHECK(refusal(object, "of an unknown kind") == ErrorCode::bad_file);
  object = {};
  object.kind = R_X86_64_PC32;
  object.offset = 16;
  CHECK(refusal(object, "beyond its section") == ErrorCode::bad_file);
  object = {};
  object.machine = EM_AARCH64;
  CHECK(refusal(object, "not an object file for x86-64") == ErrorCode::bad_file);
  object = {};
  object.flags |= SHF_WRITE;
  CHECK(refusal(object, "it has variables") == ErrorCode::bad_file);
  object = {};
  object.entry = "main";
  CHECK(refusal(object, "it has no entry") == ErrorCode::bad_file);
}

TEST_CASE("levels of processors include those below", "[bundle]") {
  const std::string_view here = cpu::processor_level();
  CHECK(!cpu::runs_level(""));
  CHECK(!cpu::runs_level("x86-64-v9"));
  CHECK(!cpu::runs_level("sm_90a"));
  if (here.empty())
    return;
  CHECK(cpu::runs_level(here));
  CHECK(cpu::runs_level("x86-64-v3"));
}

#endif
