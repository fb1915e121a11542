"""The compilation cache between runs of tkc: what is found, and what must not be.

usage: check_cache.py TKC
"""

import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAMS = {
    "sum.tk": "kernel k(x: f32[N, 64]) -> (y: f32[N, 64]) {\n  y[i, j] = x[i, j] + 1.0\n}\n",
    "difference.tk": "kernel k(x: f32[N, 64]) -> (y: f32[N, 64]) {\n  y[i, j] = x[i, j] - 1.0\n}\n",
}


def other_build(tkc, folder):
    """A copy of tkc that says it was built from something else."""
    image = bytearray(pathlib.Path(tkc).read_bytes())
    note = image.find(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
    if note >= 0:
        image[note + 16] ^= 0xFF
    path = folder / "other-tkc"
    path.write_bytes(image)
    path.chmod(0o755)
    return str(path)


def main():
    tkc, wrong = str(pathlib.Path(sys.argv[1]).resolve()), []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = os.environ | {"TK_CACHE_DIR": str(folder / "cache"), "TK_LOG": "1"}
        environment.pop("TK_CACHE", None)
        for path, text in PROGRAMS.items():
            (folder / path).write_text(text)

        def expect(found, what, arguments, tool=tkc):
            done = subprocess.run([tool, "run", *arguments, "--dim", "N=100", "--check"], cwd=folder, env=environment,
                                  capture_output=True, text=True, timeout=120, check=False)
            if done.returncode != 0:
                wrong.append(f"{what}: status {done.returncode}: {done.stderr[-300:]}")
            elif ("found" in done.stderr) != found:
                wrong.append(f"{what}: {'found nothing' if found else 'found another entry'}")

        for target in ["cpu", "emu"]:
            same = ["sum.tk", "--target", target]
            expect(False, f"{target}, the first run", same)
            expect(True, f"{target}, the same again", same)
            expect(False, f"{target}, another kernel", ["difference.tk", "--target", target])
            expect(False, f"{target}, without a pass", [*same, "--disable-pass", "vectorization"])
            expect(False, f"{target}, another build of tkc", same, other_build(tkc, folder))
            expect(True, f"{target}, the first again", same)
    print("\n".join(wrong) or "the cache finds what it should")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
