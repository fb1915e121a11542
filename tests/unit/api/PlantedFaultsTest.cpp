// Faults planted in the text that the compiler emits for a program: the emulator names the kernel,
// the line of the program, the block, the thread, what was touched, and who else is involved.
#include "compiler/CompiledSource.h"
#include "compiler/codegen/emu/CompileEmu.h"
#include "runtime/Kernel.h"
#include "runtime/emu/EmuLaunch.h"
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"
#include "tk/npy.h"

#include <algorithm>
#include <regex>

using namespace tk;

namespace {

constexpr const char *program = R"(// Lines 3 and 7 are the statements.
kernel product(a: bf16[M, K], b: bf16[K, N]) -> (c: bf16[M, N]) {
  c[i, j] = sum[k](a[i, k] * b[k, j])
}

kernel twice(x: f32[M]) -> (y: f32[M]) {
  y[i] = x[i] + x[i]
}
)";

/// One kernel of the program, compiled for the emulator and run on tensors of ones.
class Planted {
public:
  explicit Planted(const std::string &kernel, std::vector<int64_t> dims) : dims(std::move(dims)) {
    CompileOptions options;
    options.file_name = "planted.tk";
    source = CompiledSource::create(program, options).value();
    const std::vector<Signature> &all = source->signatures();
    number = static_cast<size_t>(
        std::find_if(all.begin(), all.end(), [&](const auto &s) { return s.name == kernel; }) -
        all.begin());
    std::vector<Scalar> variables(this->dims.begin(), this->dims.end());
    Facts facts = facts_for(this->dims);
    facts.small_tensors = true;
    for (unsigned t = 0; t < signature().num_tensors(); ++t) {
      const Parameter &param = signature().tensor(t);
      facts.tensors.push_back({16, 8});
      Extents shape = shape_of(param, variables).value();
      tensors.push_back(HostTensor::zeros(param.dtype, shape));
      for (size_t at = 0; at < tensors.back().bytes.size(); at += size_of(param.dtype))
        store_from_f64(param.dtype, tensors.back().bytes.data() + at, 1);
    }
    emitted = source->specialise(number, "emu", facts).value();
  }

  /// What the emulator says once the text that `pattern` matches first has been replaced.
  std::string report(const std::string &pattern, const std::string &replacement) {
    const std::regex regex(pattern);
    REQUIRE(std::regex_search(emitted.cuda, regex));
    detail::Executable faulty;
    faulty.plan = emitted.plan;
    faulty.cuda = std::regex_replace(emitted.cuda, regex, replacement,
                                     std::regex_constants::format_first_only);
    EmuOptions options;
    options.timing = emu::Timing::parse("late");
    std::vector<TensorView> views;
    std::vector<void *> pointers;
    for (HostTensor &tensor : tensors) {
      views.push_back(tensor.view());
      pointers.push_back(tensor.bytes.data());
    }
    std::vector<Scalar> variables(dims.begin(), dims.end());
    Status ran = detail::capture([&] {
      detail::Executable built = compileForEmu(std::move(faulty), signature(), options).value();
      emu::launch_plan(*built.emulator,
                       emu::resolve_plan(built.plan, signature(), variables, views), pointers);
    });
    return ran ? "" : ran.error().what();
  }

private:
  const Signature &signature() const { return source->signatures()[number]; }

  std::vector<int64_t> dims;
  std::shared_ptr<CompiledSource> source;
  size_t number = 0;
  std::vector<HostTensor> tensors;
  detail::Executable emitted;
};

void expect(const std::string &text, const std::vector<std::string> &parts) {
  INFO(text);
  for (const std::string &part : parts)
    CHECK(text.find(part) != std::string::npos);
}

/// Where the emulator says that every fault of the product is.
const std::string inProduct =
    "planted.tk:3: kernel 'product_c' (planted.tk:3), block (0, 0, 0): thread ";

} // namespace

TEST_CASE("planted: nothing", "[api]") {
  TemporaryCache cache;
  CHECK(Planted("product", {72, 136, 72}).report("tk::warpgroup_fence\\(\\);", "$&") == "");
  CHECK(Planted("twice", {1001}).report("< M\\)", "$&") == "");
}

TEST_CASE("planted: a missing fence", "[api]") {
  TemporaryCache cache;
  expect(Planted("product", {72, 136, 72}).report("tk::fence_async_proxy\\(\\);", ""),
         {inProduct + "0 (warp 0, lane 0) begins to read byte ",
          "of shared memory, which thread 0 (warp 0, lane 0) wrote at planted.tk:3 with no "
          "fence_async_proxy"});
}

TEST_CASE("planted: a wrong phase", "[api]") {
  TemporaryCache cache;
  expect(Planted("product", {72, 136, 72})
             .report("tk::phase_wait\\(&full\\[(\\w+)\\], (\\w+)\\)",
                     "tk::phase_wait(&full[$1], 1 - $2)"),
         {inProduct, "begins a product whose operand A begins to read byte 0 of shared memory, "
                     "which is not written yet"});
}

TEST_CASE("planted: a swizzle off by one atom", "[api]") {
  TemporaryCache cache;
  // An operand that begins 16 bytes late ends in the next stage.
  expect(Planted("product", {72, 136, 72})
             .report("descriptor_advance\\(a_at, k \\* 32\\)",
                     "descriptor_advance(a_at, k * 32 + 16)"),
         {inProduct, "operand A begins to read byte 8192 of shared memory while an asynchronous "
                     "copy into it is in flight, begun by thread 128 (warp 4, lane 0) at "
                     "planted.tk:3"});
  // One that is read with other swizzles than it was written.
  expect(Planted("product", {72, 136, 72}).report("Swizzle::bytes128", "Swizzle::bytes64"),
         {inProduct, "operand A begins to read byte 0 of shared memory with a swizzle of 64 bytes, "
                     "which a bulk copy wrote at planted.tk:3 with a swizzle of 128 bytes"});
}

TEST_CASE("planted: an uninitialised read", "[api]") {
  TemporaryCache cache;
  // Two steps along k fill two stages of 8 KiB; the fifth is read.
  expect(Planted("product", {72, 136, 72})
             .report("tk::matrix_descriptor\\((\\w+),", "tk::matrix_descriptor($1 + 4 * 4096,"),
         {inProduct, "operand A begins to read byte 32768 of shared memory, which is not written "
                     "yet"});
}

TEST_CASE("planted: an unguarded tail", "[api]") {
  TemporaryCache cache;
  expect(Planted("twice", {1001}).report("< M\\)", "< M + 32)"),
         {"planted.tk:7: kernel 'twice_y' (planted.tk:7), block (1, 0, 0): thread 122 (warp 3, "
          "lane 26) reads x[1000] and 12 bytes beyond the end of the buffer"});
}
