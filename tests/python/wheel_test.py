"""The wheel: built from this build's library, installed without a network in a bare environment, and
used there: NumPy calls, the installed tkc, and NVRTC of the Python package.

    wheel_test.py SOURCE BUILD
"""
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE, BUILD = (pathlib.Path(path) for path in sys.argv[1:3])
MOST_BYTES = {True: 70e6, False: 30e6}  # with and without the CPU target
# What every manylinux system has.
LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
             "ld-linux-x86-64.so.2"}

PROGRAM = """kernel axpy(x: f32[N], y: f32[N], a: f32 = 2) -> (z: f32[N]) { z[i] = a * x[i] + y[i] }
"""
USE = """
import importlib.metadata, sys
import numpy as np
import tk, tk._library
print(tk.__file__)
print(tk._library.LIB._name)
print(getattr(tk._library.NATIVE, "__file__", None))
assert tk.__version__ == tk.version() == importlib.metadata.version("tk"), tk.__version__
axpy = tk.compile_file(sys.argv[1], target=sys.argv[2])["axpy"]
x = np.arange(5, dtype="f4")
if sys.argv[2] == "cpu":
    np.testing.assert_array_equal(axpy(x, x, a=3), 4 * x)
assert "__global__" in axpy.text("cuda", "sm_90a")
"""


def tools_missing():
    """The name of a tool that this machine lacks, or None."""
    for module in ("numpy", "pip", "scikit_build_core", "venv"):
        if subprocess.run([sys.executable, "-c", f"import {module}"], env=build_environment(),
                          capture_output=True).returncode:
            return module
    return None if (BUILD / "wheel/libtk.so").exists() else "the target tk_wheel"


def build_environment():
    tools = str(SOURCE / ".cache/wheel")
    return {**os.environ, "PYTHONPATH": tools, "PIP_NO_INDEX": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_CACHE_DIR": "1"}


def run(*command, **options):
    ran = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, **options)
    if ran.returncode:
        raise AssertionError(f"{command}: exit status {ran.returncode}\n{ran.stdout}")
    return ran.stdout


def needed(data):
    """The newest version of the C library and the libraries that an ELF file names, by its strings."""
    versions = [int(text) for text in re.findall(rb"\0GLIBC_2\.(\d+)(?=[.\0])", data)]
    libraries = {text.decode() for text in re.findall(rb"\0((?:lib|ld-)[\w+-]+\.so\.\d+)(?=\0)", data[:1 << 20])}
    return max(versions), libraries


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        run(sys.executable, "-m", "pip", "wheel", SOURCE, "--no-deps", "--no-build-isolation",
            f"--config-settings=tk.build={BUILD}", "-w", cls.folder, env=build_environment(), cwd=cls.folder)
        cls.wheel, = cls.folder.glob("tk-*.whl")
        cls.python = cls.folder / "venv/bin/python"
        run(sys.executable, "-m", "venv", "--without-pip", cls.folder / "venv")
        run(sys.executable, "-m", "pip", "--python", cls.python, "install", "--no-deps", cls.wheel,
            env=build_environment())
        cls.site = pathlib.Path(run(cls.python, "-c", "import tk, pathlib; print(pathlib.Path(tk.__file__)."
                                    "parents[1])", env=cls.environment(), cwd=cls.folder).strip())
        # NumPy comes from this machine, by itself.
        import numpy
        installed = pathlib.Path(numpy.__file__).parent
        for path in (installed, installed.with_name("numpy.libs")):
            if path.exists():
                (cls.site / path.name).symlink_to(path)
        (cls.folder / "axpy.tk").write_text(PROGRAM)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def environment(cls):
        """No PATH to a compiler, no CUDA variables, no cache."""
        return {"PATH": str(cls.folder / "venv/bin"), "HOME": str(cls.folder),
                "TK_CACHE_DIR": str(cls.folder / "cache")}

    def use(self, *command):
        return run(*command, env=self.environment(), cwd=self.folder)

    def target(self):
        return "cpu" if self.has_cpu() else "sm_90a"

    def has_cpu(self):
        return "TK_ENABLE_CPU:BOOL=ON" in (BUILD / "CMakeCache.txt").read_text()

    def test_contents(self):
        self.assertLessEqual(self.wheel.stat().st_size, MOST_BYTES[self.has_cpu()])
        version = re.search(r"-py3-none-manylinux_2_(\d+)_x86_64\.whl$", self.wheel.name)
        self.assertTrue(version, self.wheel.name)
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
            for name in ("tk/__init__.py", "tk/__init__.pyi", "tk/py.typed", "tk/libtk.so"):
                self.assertIn(name, names)
            for name in ("tk/libtk.so", *(n for n in names if n == "tk/_native.abi3.so"), *(n for n in names if n.endswith("/scripts/tkc"))):
                data = archive.read(name)
                newest, libraries = needed(data)
                self.assertLessEqual(newest, int(version[1]), name)
                self.assertIn("libc.so.6", libraries)
                self.assertLessEqual(libraries, LIBRARIES, name)
                self.assertNotIn(b"\0.symtab\0", data[-4096:], name)
                self.assertNotIn(b"\0.debug_info\0", data[-4096:], name)

    def test_numpy_calls(self):
        package, library, extension = self.use(self.python, "-c", USE, "axpy.tk", self.target()).splitlines()
        self.assertEqual(pathlib.Path(package).parent, self.site / "tk")
        self.assertEqual(pathlib.Path(library), self.site / "tk/libtk.so")
        if sys.version_info >= (3, 11) and (BUILD / "wheel/_native.abi3.so").exists():
            self.assertEqual(pathlib.Path(extension), self.site / "tk/_native.abi3.so")

    def test_tkc(self):
        tkc = self.folder / "venv/bin/tkc"
        if self.has_cpu():
            self.assertIn("z: right", self.use(tkc, "run", "axpy.tk", "--target", "cpu", "--dim", "N=100",
                                               "--check"))
        self.assertIn("__global__", self.use(tkc, "build", "axpy.tk", "--target", "sm_90a", "--emit", "cuda",
                                             "-o", "-"))

    def test_nvrtc_of_the_environment(self):
        found = [path for pattern in (os.environ.get("TK_NVRTC", ""), "/usr/local/cuda*/lib64/libnvrtc.so.13",
                                      str(SOURCE / ".cache/nvrtc/nvidia/*/lib/libnvrtc.so.13"))
                 for path in (glob.glob(pattern) if pattern else [])]
        if not found:
            self.skipTest("there is no NVRTC")
        library = self.site / "nvidia/cu13/lib"
        library.mkdir(parents=True)
        for path in pathlib.Path(found[0]).parent.glob("libnvrtc*.so*"):
            (library / path.name).symlink_to(path.resolve())
        self.assertIn(str(library / "libnvrtc.so.13"), self.use(self.folder / "venv/bin/tkc", "doctor"))
        text = self.use(self.python, "-c", "import tk; print(tk.compile_file('axpy.tk', target='sm_90a')"
                        "['axpy'].text('ptx'))")
        self.assertIn(".target sm_90a", text)


if __name__ == "__main__":
    missing = tools_missing()
    if missing:
        print(f"not run: there is no {missing}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
