"""scikit-build-core, with the manylinux tag of the C library that the wheel is built against.

Where the setting tk.build names a build folder, the wheel takes libtk.so and tkc from that build's target
tk_wheel and compiles nothing.
"""
import os
import platform

from scikit_build_core import build as _build
from scikit_build_core.build import *  # noqa: F401,F403: the other hooks


def _prepare(config_settings):
    # libtk.so and tkc need no other library than those that every manylinux system has, and no newer
    # C library than this machine's. tests/python/wheel_test.py looks at both.
    name, version = platform.libc_ver()
    if name == "glibc":
        os.environ["_PYTHON_HOST_PLATFORM"] = (
            f"manylinux_{version.replace('.', '_')}_{platform.machine()}")
    settings = dict(config_settings or {})
    build = settings.pop("tk.build", None)
    if build:
        settings.setdefault("cmake.source-dir", "python")
        settings.setdefault("cmake.define.TK_BUILD", os.path.abspath(build))
        settings.setdefault("build.targets", "all")
        settings.setdefault("build-dir", "build-wheel-files")
    return settings


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _build.build_wheel(wheel_directory, _prepare(config_settings), metadata_directory)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return _build.prepare_metadata_for_build_wheel(metadata_directory, _prepare(config_settings))
