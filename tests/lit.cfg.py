# Configuration of the lit tests: IR in, IR or text out, checked with FileCheck. Those that look at
# what ptxas makes of the text say `REQUIRES: nvrtc`.
import os
import subprocess

import lit.formats

config.name = "tk"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".tk"]
config.excludes = ["errors", "programs", "kernels", "data", "consumer"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.tk_build_root, "tests")

path = os.pathsep.join([os.path.join(config.tk_build_root, "bin"), config.llvm_tools_dir])
config.environment["PATH"] = path + os.pathsep + config.environment["PATH"]
config.environment["TK_CACHE"] = "off"
if "TK_NVRTC" in os.environ:
    config.environment["TK_NVRTC"] = os.environ["TK_NVRTC"]
inspect = ["tkc", "inspect", os.path.join(config.tk_source_root, "examples/elu.tk"), "--target", "sm_90a"]
if b"no_nvrtc" not in subprocess.run(inspect, env=config.environment, capture_output=True).stderr:
    config.available_features.add("nvrtc")
config.substitutions.append(("%examples", os.path.join(config.tk_source_root, "examples")))
