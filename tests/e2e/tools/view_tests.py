"""What the tests of tkc view have in common: their argument EXAMPLES, sizes, and options."""
import pathlib
import re
import sys

from tool_tests import tkc

EXAMPLES = pathlib.Path(sys.argv[2]).resolve()
SIZES = {
    "attention": ("B=2", "H=4", "S=512", "T=512", "G=2", "D=128", "E=128"),
    "layernorm": ("R=4096", "C=1024"),
    "linear_gelu": ("M=1024", "N=1024", "K=512"),
}
HOSTILE = """// </script><script>window.broken = 1</script> <!-- <img src=x onerror="window.broken = 1"> & \\u003c
kernel twice(x: f32[N]) -> (y: f32[N]) where N % 4 == 0 {
  y[i] = 2 * x[i]
}
"""


def options(name, **others):
    sizes = {**dict(size.split("=") for size in SIZES[name]), **others}
    sizes = [word for dim, size in sizes.items() for word in ("--dim", f"{dim}={size}")]
    return [EXAMPLES / f"{name}.tk", "--target", "sm_90a", *sizes]


def has_nvrtc():
    found = not re.search(r"^nvrtc +none", tkc("doctor"), re.M)
    if not found:
        print("left out, as there is no NVRTC: PTX, SASS and what code uses")
    return found
