//===- EmitPairs.cpp - two reductions in one exchange ---------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuExchange.h"

using namespace mlir;

namespace tk::cuda {

/// Joins what each warp has of a row in the variable `pair`.
void KernelEmitter::joinPairs(llvm::StringRef pair, Value source) {
  const std::string arguments =
      "(" + pair.str() + ", " + std::to_string(registersOf(source) * 32) + ", ";
  if (func.isSpread()) {
    line("tk::join_cluster" + arguments + declareExchange("float", 2, 4) + ");");
    return;
  }
  const unsigned warps = func.getNumWarps();
  const std::string round = used.fresh("round", /*ofFunction=*/true);
  prologue += "  int " + round + " = 0;\n";
  line("tk::join_warps<" + llvm::Twine(warps) + ">" + arguments + "reinterpret_cast<float *>(" +
       ownScratch(gpu::pairBytes(func)) + "), " + round + ");");
}

LogicalResult KernelEmitter::emitMoments(gpu::MomentsOp moments) {
  const std::string pair = freshName("moments");
  line("tk::Moments " + pair + " = tk::moments_of_warp(" + materialize(moments.getSource()) + ");");
  auto declareBoth = [this, moments, pair]() mutable {
    declare(moments.getMean(), pair + ".first");
    declare(moments.getSquares(), pair + ".second");
  };
  if (!gpu::isReadAtEnd(moments)) {
    joinPairs(pair, moments.getSource());
    declareBoth();
    return success();
  }
  const std::string arguments = "(" + pair + ", " +
                                std::to_string(registersOf(moments.getSource()) * 32) + ", " +
                                declareExchange("float", 2, 4) + ");";
  line("tk::send_pair" + arguments);
  receives.emplace_back([this, arguments, declareBoth]() mutable {
    line("tk::receive_pair" + arguments);
    declareBoth();
  });
  return success();
}

LogicalResult KernelEmitter::emitWeights(gpu::WeightsOp weights) {
  const std::string row = materialize(weights.getSource()), pair = freshName("weighed");
  if (weights.getWeights().use_empty() && weights.getScales().use_empty()) {
    line("tk::Weighed " + pair + " = tk::weigh_warp(" + row + ");");
    joinPairs(pair, weights.getSource());
    declare(weights.getMax(), pair + ".first");
    declare(weights.getSum(), pair + ".second");
    return success();
  }
  const std::string own = declare(weights.getWeights());
  line("tk::Weighed " + pair + " = tk::weigh_warp(" + own + ", " + row + ");");
  const std::string most = freshName("most");
  line("const float " + most + " = " + pair + ".first;");
  joinPairs(pair, weights.getSource());
  declare(weights.getMax(), pair + ".first");
  declare(weights.getSum(), pair + ".second");
  const std::string scale = freshName("scale"), scales = declare(weights.getScales());
  line("const float " + scale + " = tk::exp_scale_approx(" + most + ", " + pair + ".first);");
  line(loopHeader(registersOf(weights.getScales())) + " " + scales + "[r] = " + scale + ";");
  return success();
}

} // namespace tk::cuda
