// The tables of architectures and devices.
#include "passes/machine/Machine.h"
#include "dialects/tkgpu/TkGpuDialect.h"
#include "tests/unit/catch.h"

#include "mlir/IR/MLIRContext.h"

using namespace tk;

TEST_CASE("every architecture names a device of its capability", "[machine]") {
  for (const Architecture &row : allArchitectures()) {
    INFO(row.name.str());
    const DeviceSpec *device = findDevice(row.device);
    REQUIRE(device != nullptr);
    CHECK((device->arch == row.arch || row.arch == 90));
    CHECK(row.sharedOfBlock + sharedOfSystem == row.sharedOfProcessor);
    CHECK(row.rates.half > 0);
  }
  CHECK(findArchitectureRow("sm_7") == nullptr);
  CHECK(findDevice("GTX 1") == nullptr);
}

TEST_CASE("a device is found by the ways in which its name is written", "[machine]") {
  auto nameOf = [](const char *written) {
    const DeviceSpec *device = findDevice(written);
    return device ? device->name.str() : "";
  };
  for (const char *written : {"h100", "H100-SXM", "h100_sxm5", "NVIDIA H100 80GB HBM3", "H100SXM"})
    CHECK(nameOf(written) == "H100");
  for (const char *written : {"h100-pcie", "H100 PCIe", "NVIDIA H100 PCIe"})
    CHECK(nameOf(written) == "H100 PCIe");
  CHECK(nameOf("rtx4090") == "RTX 4090");
  CHECK(nameOf("NVIDIA GeForce RTX 4090") == "RTX 4090");
  CHECK(nameOf("NVIDIA A100-SXM4-80GB") == "A100");
  for (const char *written : {"", "sxm", "H100 NVL", "80GB", "a10"})
    CHECK(nameOf(written).empty());
}

TEST_CASE("every figure of a device has a source, or is an assumption", "[machine]") {
  for (const DeviceSpec &device : allDevices()) {
    INFO(device.name.str());
    CHECK_FALSE(device.source.empty());
    CHECK(device.copyRate() > 0.5 * device.datasheetRate);
    CHECK(device.copyRate() <= device.datasheetRate);
    CHECK(device.cacheRate() > device.copyRate());
    CHECK(device.matrixShare() > 0);
    CHECK(device.matrixShare() <= 1);
  }
  CHECK(findDevice("H200")->copyRate() == 4250);       // measured
  CHECK(findDevice("H100")->copyRate() == 0.9 * 3350); // assumed
}

TEST_CASE("features follow from a module's target", "[machine]") {
  mlir::MLIRContext context;
  context.loadDialect<gpu::TkGpuDialect>();
  auto target = [&](int64_t arch, bool hopper) {
    return gpu::TargetAttr::get(&context, arch, 101376, 7, hopper);
  };
  CHECK(hasFeature(target(90, true), Feature::WarpgroupProducts));
  CHECK_FALSE(hasFeature(target(90, false), Feature::WarpgroupProducts));
  CHECK(hasFeature(target(90, false), Feature::Clusters));
  CHECK_FALSE(hasFeature(target(89, false), Feature::Clusters));
  CHECK(hasFeature(target(89, false), Feature::ByteFloats));
  CHECK_FALSE(hasFeature(target(86, false), Feature::ByteFloats));
  CHECK(hasFeature(target(120, false), Feature::Clusters));
  CHECK_FALSE(hasFeature(target(100, false), Feature::WarpgroupProducts)); // it runs sm_80's code
  CHECK_FALSE(hasFeature({}, Feature::AsyncCopies));
  CHECK(machineOf(target(90, true)).device.name == "H200");
  CHECK(machineOf(target(90, true)).device.processors == 7); // the module's, not the table's
  CHECK(machineOf(gpu::TargetAttr()).architecture->name == "sm_80");
}
