"""tkc bench, inspect and build --emit bundle: what they print and write.

usage: check_tools.py TKC EXAMPLES

What needs NVRTC is left out, with a note, where there is none.
"""
import json
import pathlib
import sys
import tempfile

from tool_tests import expect, run, tkc

EXAMPLES = pathlib.Path(sys.argv[2])
TWO = """kernel twice(x: f32[N]) -> (y: f32[N]) {
  y[i] = 2 * x[i]
}
kernel thrice(x: f32[N]) -> (y: f32[N]) where N % 4 == 0 {
  y[i] = 3 * x[i]
}
"""


def bench(root):
    sizes = ["--target", "cpu", "--rounds", "1", "--dim", "N=1000,4000"]
    lines = [json.loads(line) for line in tkc(
        "bench", root / "two.tk", "--kernel", "twice", *sizes, "--json",
        "--against", root / "two.tk").splitlines()]
    expect([line["dims"] for line in lines] == [{"N": 1000}, {"N": 4000}], lines)
    for line in lines:
        expect(line["kernel"] == "twice" and line["ms"] > 0 and line["ratio"] > 0, line)
        expect(line["bytes"] == 8 * line["dims"]["N"], line)
    table = tkc("bench", root / "two.tk", "--kernel", "thrice", *sizes).splitlines()
    expect(table[0].startswith("thrice(x: f32[N])") and table[0].endswith("on cpu"), table)
    expect(table[1].split() == ["N", "ms", "TFLOP/s", "GB/s"], table)
    expect([row.split()[0] for row in table[2:]] == ["1000", "4000"], table)


def inspect(root):
    softmax = EXAMPLES / "softmax.tk"
    report = json.loads(tkc("inspect", softmax, "--target", "sm_90a", "--dim", "R=4096", "--dim",
                            "C=1024", "--json"))
    expect(report["target"] == "sm_90a" and report["code_bytes"] > 1000, report)
    for launch in report["launches"]:
        expect(0 < launch["registers"] <= 255 and launch["threads"] % 32 == 0, launch)
        expect(launch["blocks_per_sm"] > 0 and 0 < launch["occupancy"] <= 1, launch)
        expect(launch["spill_stores"] == launch["spill_loads"] == 0, launch)
    text = tkc("inspect", softmax, "--target", "sm_80")
    for word in ("softmax_rows for sm_80", "registers", "shared", "spills", "grid"):
        expect(word in text, f"'{word}' in {text}")


def bundle(root):
    path = root / "two.tkb"
    tkc("build", root / "two.tk", "--emit", "bundle", "--target", "sm_80,sm_90a", "--variant",
        "N=4096", "-o", path, "--cpp", root / "kernels", "--namespace", "some::kernels")
    lines = tkc("inspect", path).splitlines()
    expect(lines[0] == "twice(x: f32[N]) -> (y: f32[N])", lines)
    expect(lines[8] == "  where N % 4 == 0", lines)
    variants = [line for line in lines if " bytes, 1 launch: " in line]
    expect(len(variants) == 12, lines)
    expect(variants[0].split()[0] == "sm_80" and variants[3].split()[0] == "sm_90a", variants)
    expect(": N % 128 == 0, N <= 4096, tensors of less than 2^30 elements" in variants[0], variants)
    expect(": N % 4 == 0, tensors of less than 2^30 elements" in variants[1], variants)
    expect(variants[2].endswith(": any sizes, addresses aligned to 16"), variants)
    expect(len(tkc("inspect", path, "--kernel", "twice").splitlines()) == 7, "one kernel")
    found = json.loads(tkc("inspect", path, "--kernel", "thrice", "--json"))
    expect(found["kernel"] == "thrice" and found["where"] == ["N % 4 == 0"] and len(found["variants"]) == 6, found)
    launch = found["variants"][0]["launches"][0]
    expect(found["variants"][0]["code_bytes"] > 500 and launch["symbol"] == "thrice_y" and launch["threads"] % 32 == 0, found)
    refused = run("inspect", path, "--kernel", "four")
    expect(refused.returncode == 1 and "no kernel 'four'" in refused.stderr and "it has twice, thrice" in refused.stderr, refused)
    expect("namespace some::kernels {" in (root / "kernels.h").read_text(), "the header")
    expect(str(path) in (root / "kernels.cpp").read_text(), "the embedded file")
    # The same again is the same file.
    first = path.read_bytes()
    tkc("build", root / "two.tk", "--emit", "bundle", "--target", "sm_80,sm_90a", "--variant",
        "N=4096", "-o", path)
    expect(path.read_bytes() == first, "a bundle is reproducible")


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "two.tk").write_text(TWO)
        bench(root)
        if "nvrtc      none" in tkc("doctor"):
            print("no NVRTC here: inspect and bundles were left out")
            return
        inspect(root)
        bundle(root)


main()
