//===- WorkCountTest.cpp - what a program needs, counted twice ------------===//
//
// `tkc inspect` and `tkc view` print the bytes and operations that a program needs. They follow
// from the IR (WorkCount.h). The reference evaluates every element once, and counts the same.
//
//===----------------------------------------------------------------------===//
#include "compiler/plan/WorkCount.h"
#include "compiler/CompiledSource.h"
#include "compiler/interp/Interpreter.h"
#include "tests/unit/catch.h"

#include "llvm/Support/MemoryBuffer.h"

using namespace tk;

namespace {

struct Program {
  const char *file;
  std::vector<int64_t> dims; ///< in the signature's order
};

const Program programs[] = {
    {"examples/argmax.tk", {5, 24}},
    {"examples/attention_plain.tk", {2, 3, 8, 8, 4, 5}},
    {"examples/attention_sigmoid.tk", {2, 3, 8, 8, 4, 4}},
    {"examples/batched_gemm.tk", {2, 6, 7, 5}},
    {"examples/conv2d.tk", {2, 3, 6, 5, 4, 3, 3}},
    {"examples/cumsum.tk", {4, 19}},
    {"examples/dropout.tk", {4, 16}},
    {"examples/elu.tk", {64}},
    {"examples/gemm.tk", {6, 7, 5}},
    {"examples/gemm_f32.tk", {6, 7, 5}},
    {"examples/group_norm.tk", {2, 3, 4, 5}},
    {"examples/layernorm.tk", {5, 24}},
    {"examples/linear_gelu.tk", {6, 7, 5}},
    {"examples/rmsnorm_residual.tk", {5, 24}},
    {"examples/rope.tk", {2, 3, 4, 8}},
    {"examples/softmax.tk", {5, 24}},
    {"examples/swiglu.tk", {6, 7, 5}},
    {"examples/transposed_gemm.tk", {6, 7, 5}},
};

/// A program with inputs of ones, and its reference.
class Counted {
public:
  explicit Counted(const Program &program) {
    const std::string path = std::string(TK_SOURCE_DIR) + "/" + program.file;
    auto buffer = llvm::MemoryBuffer::getFile(path);
    REQUIRE(buffer);
    CompileOptions options;
    options.file_name = path;
    options.target = "cpu";
    source = CompiledSource::create((*buffer)->getBuffer().str(), options).value();
    const Signature &signature = source->signatures()[0];
    REQUIRE(signature.dims.size() == program.dims.size());
    const std::vector<std::optional<Scalar>> given(signature.num_scalars(), Scalar(int64_t{1}));
    std::vector<Scalar> variables = complete_variables(signature, program.dims, given).value();
    needed = countWork(source->kernelOp(0), signature, variables);
    for (unsigned t = 0; t < signature.num_tensors(); ++t) {
      const Extents shape = shape_of(signature.tensor(t), variables).value();
      int64_t count = 1;
      for (int64_t extent : shape)
        count *= extent;
      elements.push_back(count);
      sizes.push_back(static_cast<double>(size_of(signature.tensor(t).dtype)));
      if (t + signature.results.size() >= signature.num_tensors())
        continue;
      memories.emplace_back(static_cast<size_t>(count) * 8);
      views.emplace_back(memories.back().data(), signature.tensor(t).dtype, shape);
    }
    interp::Reference reference =
        interp::Reference::create(source->kernelOp(0), interp::Mode::F64).value();
    const std::vector<Scalar> scalars(variables.begin() + static_cast<long>(program.dims.size()),
                                      variables.end());
    REQUIRE(reference.bind(program.dims, views, scalars));
    reference.beginCounts();
    for (unsigned result = 0; result < reference.numResults(); ++result)
      for (int64_t at = 0; at < elements[views.size() + result]; ++at)
        reference.element(result, at);
    operations = reference.countedOperations();
    reads = reference.countedReads();
  }

  std::shared_ptr<CompiledSource> source;
  WorkCount needed;
  double operations = 0;
  std::vector<int64_t> reads, elements; ///< of parameters; of all tensors
  std::vector<double> sizes;            ///< of an element

private:
  std::vector<std::vector<char>> memories;
  std::vector<TensorView> views;
};

} // namespace

TEST_CASE("the reference counts the operations that a program needs") {
  for (const Program &program : programs) {
    INFO(program.file);
    CHECK(Counted(program).needed.flops == Counted(program).operations);
  }
}

TEST_CASE("the reference reads the bytes that a program needs, and writes the others") {
  for (const Program &program : programs) {
    INFO(program.file);
    const Counted counted(program);
    double bytes = 0;
    for (size_t t = 0; t < counted.elements.size(); ++t)
      bytes +=
          counted.sizes[t] *
          static_cast<double>(t < counted.reads.size() ? counted.reads[t] : counted.elements[t]);
    CHECK(counted.needed.bytes == bytes);
  }
}
