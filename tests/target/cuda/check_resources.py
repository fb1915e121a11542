#!/usr/bin/env python3
"""Compiles the samples of this folder for each architecture; fails if one is rejected or spills.

Usage: check_resources.py TK_EMIT_CUDA FILE.mlir ...   Exit status 77: no NVRTC on this machine.
"""
import re
import subprocess
import sys


def main() -> int:
    tool, *files = sys.argv[1:]
    bad = 0
    for path in files:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        # From sm_90 on.
        uses_hopper = any(word in text for word in ("cluster = ", "launch_wait", "alloc_phases"))
        for arch in ("sm_90a",) if uses_hopper else ("sm_80", "sm_90a"):
            done = subprocess.run([tool, path, "--no-text", "--lines", f"--arch={arch}"],
                                  capture_output=True, text=True)
            if done.returncode == 3:
                print(done.stdout.strip())
                return 77
            spills = [int(n) for n in re.findall(r"(\d+) bytes spill", done.stdout)]
            notes = [line for line in done.stdout.splitlines() if "warning" in line]
            ok = done.returncode == 0 and spills and not any(spills) and not notes
            print("ok  " if ok else "FAIL", arch, path)
            if not ok:
                bad += 1
                print(done.stdout, done.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
