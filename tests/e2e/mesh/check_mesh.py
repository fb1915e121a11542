#!/usr/bin/env python3
"""Runs the kernels of cases.txt on meshes of ranks, which are threads, and checks them against the reference.

check_mesh.py TKC TARGET [NAME]: on the CPU every mesh of a case, on the emulator its first one with several ranks.
"""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent


def cases():
    for line in (HERE / "cases.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        head, options = line.split(" : ")
        file, *meshes = head.split()
        yield (ROOT / file if file.startswith(("examples", "bench")) else HERE / file), meshes, options.split()


def ranks(mesh):
    count = 1
    for axis in mesh.split(","):
        count *= int(axis.split("=")[1])
    return count


def main():
    tkc, target, *names = sys.argv[1:]
    failed = count = 0
    for file, meshes, options in cases():
        if names and file.stem not in names:
            continue
        if target != "cpu":
            meshes = [mesh for mesh in meshes if ranks(mesh) > 1][:1]
        for mesh in meshes:
            command = [tkc, "run", str(file), "--target", target, "--mesh", mesh, "--check", *options]
            run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
            count += 1
            if run.returncode or ": right" not in run.stdout:
                failed += 1
                print(" ".join(command), run.returncode, run.stdout, run.stderr, sep="\n")
    print(f"{count - failed} of {count} runs are right on {target}")
    sys.exit(1 if failed or not count else 0)


main()
