//===- Jit.cpp - LLVM's passes and the ORC JIT ----------------------------===//
#include "compiler/codegen/cpu/CpuExecutable.h"

#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/bit.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <chrono>
#include <mutex>

using namespace mlir;
using namespace tk::cpu;

//===----------------------------------------------------------------------===//
// Conversions that LLVM calls on machines without the instruction
//===----------------------------------------------------------------------===//

static float halfToFloat(uint16_t code) {
  uint32_t sign = uint32_t(code & 0x8000) << 16, magnitude = code & 0x7FFF;
  uint32_t bits = magnitude << 13;
  float value;
  std::memcpy(&value, &bits, 4);
  value *= 0x1p112f; // rebias; right for subnormal codes as well
  std::memcpy(&bits, &value, 4);
  if (magnitude >= 0x7C00)
    bits = 0x7F800000 | (magnitude & 0x3FF) << 13;
  bits |= sign;
  std::memcpy(&value, &bits, 4);
  return value;
}

static uint16_t floatToHalf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  uint16_t sign = (bits >> 16) & 0x8000;
  bits &= 0x7FFFFFFF;
  if (bits > 0x7F800000)
    return sign | 0x7E00;
  if (bits >= 0x477FF000)
    return sign | 0x7C00;
  if (bits < 0x38800000) { // subnormal: the adder rounds at the right place
    float magnitude;
    std::memcpy(&magnitude, &bits, 4);
    magnitude += 0.5f;
    std::memcpy(&bits, &magnitude, 4);
    return sign | uint16_t(bits - 0x3F000000);
  }
  return sign | uint16_t((bits + 0xFFF + ((bits >> 13) & 1) - 0x38000000) >> 13);
}

// The same where calls pass halves as floats are passed.
static float extendHalf(_Float16 half) { return halfToFloat(llvm::bit_cast<uint16_t>(half)); }
static _Float16 roundToHalf(float value) { return llvm::bit_cast<_Float16>(floatToHalf(value)); }

/// The nearest bf16, ties to even. LLVM widens and rounds what is only moved, such as an element
/// that is read once for all results, on processors that have no instructions for it.
static __bf16 roundToBfloat(float value) {
  auto bits = llvm::bit_cast<uint32_t>(value);
  if (value != value)
    return llvm::bit_cast<__bf16>(static_cast<uint16_t>(bits >> 16 | 0x40));
  return llvm::bit_cast<__bf16>(static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

namespace {
using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

class Executable : public CpuExecutable {
public:
  tk_cpu_entry entry() const override { return function; }
  Times times() const override { return spent; }
  std::unique_ptr<llvm::orc::LLJIT> jit;
  tk_cpu_entry function = nullptr;
  Times spent;
};

class AfterPass : public PassInstrumentation {
public:
  explicit AfterPass(const CpuOptions &options) : options(options) {}
  void runAfterPass(Pass *pass, Operation *op) override {
    options.afterPass(pass->getArgument(), op);
  }

private:
  const CpuOptions &options;
};
} // namespace

/// The machine that code is made for.
static CpuMachine machineFor(const CpuOptions &options) {
  if (options.level.empty())
    return hostMachine();
  return options.level == "x86-64-v4" ? CpuMachine::avx512() : CpuMachine::avx2();
}

static llvm::Error runPasses(ModuleOp module, const CpuOptions &options) {
  std::string messages;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    llvm::raw_string_ostream(messages) << diagnostic << "\n";
    return success();
  });
  const CpuMachine machine = machineFor(options);
  unsigned number = 0;
  for (const CpuPass &row : cpuPassTable()) {
    const bool wanted = ++number <= options.last;
    if (!wanted && !row.needed)
      continue;
    PassManager manager(module.getContext());
    manager.enableVerifier(options.verify);
    if (options.afterPass)
      manager.addInstrumentation(std::make_unique<AfterPass>(options));
    row.add(manager, machine);
    if (failed(manager.run(module)) ||
        (wanted && options.afterRow && failed(options.afterRow(row.name, number, module))))
      return llvm::createStringError("CPU lowering failed: " + messages);
  }
  return llvm::Error::success();
}

static void optimise(llvm::Module &module, llvm::TargetMachine &machine, bool wide) {
  for (llvm::Function &function : module) {
    function.addFnAttr("prefer-vector-width", wide ? "512" : "256");
    function.addFnAttr("min-legal-vector-width", wide ? "512" : "256");
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
  }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = true;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

static llvm::Error addSymbols(llvm::orc::LLJIT &jit) {
  llvm::orc::JITDylib &library = jit.getMainJITDylib();
  llvm::orc::SymbolMap symbols;
  auto add = [&](llvm::StringRef name, auto *function) {
    symbols[jit.mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                                          llvm::JITSymbolFlags::Exported};
  };
  add("__extendhfsf2", extendHalf);
  add("__gnu_h2f_ieee", halfToFloat);
  add("__truncsfhf2", roundToHalf);
  add("__gnu_f2h_ieee", floatToHalf);
  add("__truncsfbf2", roundToBfloat);
  add("malloc", static_cast<void *(*)(size_t)>(std::malloc));
  add("free", static_cast<void (*)(void *)>(std::free));
  if (llvm::Error error = library.define(llvm::orc::absoluteSymbols(std::move(symbols))))
    return error;
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      jit.getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  library.addGenerator(std::move(*process));
  return llvm::Error::success();
}

static llvm::Expected<llvm::orc::JITTargetMachineBuilder>
makeMachineBuilder(llvm::StringRef level = {}) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  if (!level.empty()) {
    builder->setCPU(level.str());
    builder->getFeatures() = llvm::SubtargetFeatures();
  }
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive);
  // What LLJIT would choose for itself: the object is made before there is one.
  builder->setRelocationModel(llvm::Reloc::PIC_);
  builder->setCodeModel(llvm::CodeModel::Small);
  return builder;
}

/// Optimised machine code of a module in the LLVM dialect: an object file.
static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
generate(ModuleOp lowered, const CpuOptions &options, CpuExecutable::Times &spent) {
  auto start = Clock::now();
  auto builder = makeMachineBuilder(options.level);
  if (!builder)
    return builder.takeError();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(lowered, context);
  if (!module)
    return llvm::createStringError("translation to LLVM IR failed");
  auto machine = builder->createTargetMachine();
  if (!machine)
    return machine.takeError();
  module->setDataLayout((*machine)->createDataLayout());
  module->setTargetTriple((*machine)->getTargetTriple());
  optimise(*module, **machine, machineFor(options).vectorBytes == 64);
  if (options.llvmIR)
    llvm::raw_string_ostream(*options.llvmIR) << *module;
  spent.optimise = since(start);
  start = Clock::now();
  auto object = llvm::orc::SimpleCompiler(**machine)(*module);
  spent.generate = since(start);
  return object;
}

/// Links an object into this process and finds the kernel's entry.
static llvm::Error link(Executable &executable, std::unique_ptr<llvm::MemoryBuffer> object,
                        llvm::StringRef kernel) {
  auto start = Clock::now();
  auto builder = makeMachineBuilder();
  if (!builder)
    return builder.takeError();
  auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(*builder)).create();
  if (!jit)
    return jit.takeError();
  if (llvm::Error error = addSymbols(**jit))
    return error;
  if (llvm::Error error = (*jit)->addObjectFile(std::move(object)))
    return error;
  auto symbol = (*jit)->lookup(("tk_entry_" + kernel).str());
  if (!symbol)
    return symbol.takeError();
  executable.function = symbol->toPtr<tk_cpu_entry>();
  executable.jit = std::move(*jit);
  executable.spent.generate += since(start);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<CpuExecutable>> tk::cpu::loadCpuObject(llvm::StringRef object,
                                                                      llvm::StringRef kernel) {
  auto executable = std::make_unique<Executable>();
  if (llvm::Error error =
          link(*executable, llvm::MemoryBuffer::getMemBufferCopy(object, kernel), kernel))
    return error;
  return std::unique_ptr<CpuExecutable>(std::move(executable));
}

std::string tk::cpu::hostDescription() {
  std::string text = llvm::sys::getProcessTriple() + " " + llvm::sys::getHostCPUName().str();
  std::vector<std::string> features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    if (feature.second)
      features.push_back(feature.first().str());
  llvm::sort(features);
  for (const std::string &feature : features)
    text += " " + feature;
  return text;
}

static void loadDialects(MLIRContext *context) {
  DialectRegistry registry;
  registerCpuDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
}

LogicalResult tk::cpu::lowerToLinalg(ModuleOp module) {
  loadDialects(module.getContext());
  PassManager manager(module.getContext());
  addStage(manager, CpuStage::Linalg, hostMachine());
  return manager.run(module);
}

/// From a module of tk kernels to the object file of one of them.
static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> makeObject(ModuleOp module,
                                                                      llvm::StringRef kernel,
                                                                      const CpuOptions &options,
                                                                      CpuExecutable::Times &spent) {
  Operation *found = SymbolTable::lookupSymbolIn(module, kernel);
  if (!found)
    return llvm::createStringError("no kernel '" + kernel + "' in the module");
  loadDialects(module.getContext());
  OpBuilder builder(module.getContext());
  OwningOpRef<ModuleOp> lowered = ModuleOp::create(builder, module.getLoc());
  lowered->getBody()->push_back(found->clone());
  auto start = Clock::now();
  if (llvm::Error error = runPasses(*lowered, options))
    return error;
  spent.passes = since(start);
  return generate(*lowered, options, spent);
}

llvm::Expected<std::string> tk::cpu::compileObject(ModuleOp module, llvm::StringRef kernel,
                                                   const CpuOptions &options) {
  CpuExecutable::Times spent;
  auto object = makeObject(module, kernel, options, spent);
  if (!object)
    return object.takeError();
  return (*object)->getBuffer().str();
}

llvm::Expected<std::unique_ptr<CpuExecutable>>
tk::cpu::compileForCpu(ModuleOp module, llvm::StringRef kernel, const CpuOptions &options) {
  auto executable = std::make_unique<Executable>();
  auto object = makeObject(module, kernel, options, executable->spent);
  if (!object)
    return object.takeError();
  if (options.object)
    *options.object = (*object)->getBuffer().str();
  if (llvm::Error error = link(*executable, std::move(*object), kernel))
    return error;
  return std::unique_ptr<CpuExecutable>(std::move(executable));
}
