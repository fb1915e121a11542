"""tkc run --show and --diff, completions, man, standard input, several kernels, doctor --json.

usage: check_habits.py TKC
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TKC = pathlib.Path(sys.argv[1]).resolve()
SOFT = """kernel soft(x: f32[R, C]) -> (y: f32[R, C], n: i32[R]) {
  let m[r, c] = x[r, c] * 2.0
  let total[r] = sum[c](exp(m[r, c]))
  y[r, c] = exp(m[r, c]) / total[r]
  n[r] = argmax[c](x[r, c])
}
"""
TWO = """kernel twice(x: f32[N]) -> (y: f32[N]) { y[i] = 2 * x[i] }
kernel thrice(x: f32[N]) -> (y: f32[N]) { y[i] = 3 * x[i] }
"""


def tkc(*arguments, status=0, **options):
    done = subprocess.run([TKC, *map(str, arguments)], capture_output=True, text=True, check=False, **options)
    if done.returncode != status:
        sys.exit(f"tkc {' '.join(map(str, arguments))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout if status == 0 else done.stderr


def expect(condition, what):
    if not condition:
        sys.exit(f"not so: {what}")


def show(root):
    run = ["run", root / "soft.tk", "--dim", "R=4", "--dim", "C=8", "--target", "cpu", "--in", "x=iota"]
    text = tkc(*run, "--show", "m[1, 2..4]", "--show", "n")
    rows = [line.split() for line in text.splitlines()]
    expect(["m[1,", "2..4]", "reference", "cpu", "difference"] in rows, text)
    expect(["[1,", "2]", "20", "20", "0"] in rows and ["[1,", "3]", "22", "22", "0"] in rows, text)
    expect(["[3]", "7", "7", "0"] in rows, text)
    expect(any("m: right" in line for line in text.splitlines()), text)
    shown = json.loads(tkc(*run, "--json", "--show", "total[0]"))["shown"]
    expect(shown[0]["name"] == "total" and shown[0]["values"][0]["index"] == [0], shown)
    reference = shown[0]["values"][0]["reference"]
    expect(abs(reference - 1390832.92) < 1, reference)
    for selection, message in {
            "k": "kernel 'soft' has no let or result 'k'; it has m, total, y, n",
            "totl[0]": "did you mean 'total'?",
            "x[0, 0]": "'x' is a parameter of kernel 'soft'",
            "m[0]": "expected 2 indices for 'm', got 1 in 'm[0]'",
            "m[0, 8]": "index 8 of axis 1 in 'm[0, 8]' is out of range: 'm' has 0..8 there",
            "m[0": "expected --show NAME or NAME[",
            "m[0, 4..2]": "expected --show NAME or NAME[",
            "m[0, -1]": "index -1 of axis 1 in 'm[0, -1]' is out of range: 'm' has 0..8 there"}.items():
        error = tkc(*run, "--show", selection, status=1)
        expect(message in error, error)
    # Indices of a let with a range of its own are the program's.
    (root / "ranges.tk").write_text("kernel steps(x: f32[N], n: i64) -> (y: f32[N]) where 1 <= n, n < N {\n"
                                    "  let d[i in 1..N] = x[i] - x[i - 1]\n  let e[i in n..N] = x[i]\n"
                                    "  y[i] = if i >= 1 then pad(d[i], 0.0) + pad(e[i], 0.0) else 0.0\n}\n")
    ranged = ["run", root / "ranges.tk", "--dim", "N=6", "--arg", "n=2", "--target", "cpu", "--in", "x=iota"]
    text = tkc(*ranged, "--show", "d[1..3]", "--show", "e[0..2]")
    rows = [line.split() for line in text.splitlines()]
    expect(["[1]", "1", "1", "0"] in rows and ["[2]", "1", "1", "0"] in rows and ["[0]", "1", "1", "0"] not in rows, text)
    expect(["[n", "+", "0]", "2", "2", "0"] in rows and ["[n", "+", "1]", "3", "3", "0"] in rows, text)
    places = json.loads(tkc(*ranged, "--json", "--show", "d"))["shown"][0]["values"]
    expect([value["index"] for value in places] == [[1], [2], [3], [4], [5]], places)
    error = tkc(*ranged, "--show", "d[0]", status=1)
    expect("index 0 of axis 0 in 'd[0]' is out of range: 'd' has 1..6 there" in error, error)
    # An inout parameter is a result, too.
    (root / "in_place.tk").write_text("kernel add(inout x: f32[N], inout z: f32[N]) -> (y: f32[N]) {\n  y[i] = 2.0 * x[i]\n"
                                      "  x[i] = x[i] + 1.0\n  z[i] = x[i]\n}\n")
    text = tkc("run", root / "in_place.tk", "--dim", "N=4", "--target", "cpu", "--in", "x=iota", "--show", "x[2]", "--show", "y[3]",
               "--show", "z[1..2]")
    rows = [line.split() for line in text.splitlines()]
    expect(["[2]", "3", "3", "0"] in rows and ["[3]", "6", "6", "0"] in rows and ["[1]", "2", "2", "0"] in rows, text)
    many = tkc("run", root / "soft.tk", "--dim", "R=64", "--dim", "C=64", "--target", "cpu", "--show", "m", status=1)
    expect("selects more than 1024 elements" in many, many)


def diff(root):
    run = ["run", root / "soft.tk", "--dim", "R=4", "--dim", "C=8"]
    text = tkc(*run, "--diff", "cpu,emu,emu-sm_80")
    for result in ("y", "n"):
        for target in ("emu", "emu-sm_80"):
            expect(f"  {result}: cpu and {target} agree" in text, text)
    found = json.loads(tkc(*run, "--diff", "cpu,emu", "--json"))
    expect([c["name"] for c in found["compared"]] == ["y", "n"] and found["compared"][0]["agree"], found)
    for more in (["--out", "y=y.npy"], ["--check"], ["--time"], ["--show", "m"], ["--launches", "3"]):
        error = tkc(*run, "--diff", "cpu,emu", *more, status=2)
        expect("--diff" in error and more[0] in error, error)
    # The text that is printed where targets differ, which right targets never do.
    expect("compares two targets or more" in tkc(*run, "--diff", "cpu", status=1), "one target")
    expect("cpus: " in tkc(*run, "--diff", "cpu,cpus", status=1), "a target that is none")


def table(root):
    for shell in ("bash", "zsh", "fish"):
        text = tkc("completions", shell)
        for word in ("inspect", "--validate-passes" if shell != "fish" else "-l validate-passes", "doctor"):
            expect(word in text, f"{shell}: {word}")
        if shutil.which(shell):
            (root / "completions").write_text(text)
            subprocess.run([shell, "-n", root / "completions"], check=True)
    if shutil.which("bash"):
        asked = (f"source {root}/completions-bash; COMP_WORDS=(tkc run --val); COMP_CWORD=2; _tkc; "
                 "echo ${COMPREPLY[@]}; COMP_WORDS=(tkc ins); COMP_CWORD=1; _tkc; echo ${COMPREPLY[@]}")
        (root / "completions-bash").write_text(tkc("completions", "bash"))
        answer = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True).stdout
        expect(answer == "--validate-passes\ninspect\n", answer)
    page = tkc("man", "run")
    expect(".TH tkc-run 1" in page and "\\-\\-validate\\-passes" in page and ".SH EXIT STATUS" in page, page)
    expect(".B doctor" in tkc("man"), "man")
    expect("no command 'runn'" in tkc("man", "runn", status=2), "man of an unknown command")
    expect(tkc("help", "run") == tkc("run", "--help"), "help run")
    expect("did you mean 'inspect'?" in tkc("inspct", status=2), "a misspelt command")
    error = tkc("run", root / "two.tk", "--chek", status=2)
    expect("not expected: --chek; did you mean '--check'?" in error, error)


def usage(root):
    """The help: groups, names of values, and examples, each of which runs."""
    text = tkc("run", "--help")
    common, overrides = text.split("Options that replace a choice of the compiler:")
    expect("--dim NAME=INT (repeatable)" in common and "--check" in common and "--inline NAME" in overrides, text)
    expect("Usage: tkc run [OPTIONS] FILE" in text, text)
    (root / "norm.tk").write_text("kernel rms_norm(x: bf16[R, C], w: f32[C], eps: f32 = 1e-6) -> (y: bf16[R, C]) {\n"
                                  "  let square[r] = mean[c](x[r, c] * x[r, c])\n"
                                  "  y[r, c] = x[r, c] * rsqrt(square[r] + eps) * w[c]\n}\n")
    for command in ([], ["build"], ["run"], ["explain"], ["inspect"], ["bench"]):
        examples = [line.split()[1:] for line in tkc(*command, "--help").splitlines() if line.startswith("  tkc ")]
        expect(examples, f"examples of {command}")
        for example in examples:
            needs_nvrtc = example[0] == "inspect" and "--cost" not in example
            if example[0] != "bench" and not needs_nvrtc:
                tkc(*example, cwd=root)
    expect("rms_norm" in tkc("bench", "norm.tk", "--target", "cpu", "--dim", "R=4,8", "--dim", "C=16,16", "--rounds", "1",
                             "--without", "fusion", cwd=root), "bench")
    for words, message in {
            (): "tkc: expected a command; tkc --help lists the commands",
            ("run",): "tkc run: FILE is required; tkc run --help lists the options",
            ("norm.tk",): "a command comes first: tkc run norm.tk"}.items():
        error = tkc(*words, status=2)
        expect(message in error, error)
    sizes = ("--target", "cpu", "--dim", "R=2", "--dim", "C=8")
    for words, message in {
            ("run", "norm.tk", "--dim", "Q=4"): "kernel 'rms_norm' has no dimension 'Q'; it has R, C",
            ("run", "norm.tk", *sizes, "--in", "z=zeros"): "kernel 'rms_norm' has no tensor 'z'; it has x, w, y",
            ("run", "norm.tk", *sizes, "--arg", "epsilon=1"): "kernel 'rms_norm' has no scalar 'epsilon'; it has eps",
            ("run", "norm.tk", *sizes, "--in", "x=ones"): "input 'x' has no source 'ones': expected PATH.npy, random",
            ("inspect", "norm.tk", "--cost"): "depends on all of its dimensions (R, C): give each with --dim",
            ("explain", "tk-fold-mask"): "unknown pass 'tk-fold-mask'; did you mean 'tk-fold-masks'?"}.items():
        error = tkc(*words, status=1, cwd=root)
        expect(message in error, error)


def files(root):
    run = tkc("run", "-", "--dim", "R=4", "--dim", "C=8", "--target", "cpu", "--check", input=SOFT)
    expect("y: right" in run, run)
    expect(tkc("fmt", "-", input="kernel  a(x: f32[N]) -> (y: f32[N]) {\n y[i]=x[i]\n}\n").startswith("kernel a(x"), "fmt")
    expect("<stdin>:1:1" in tkc("run", "-", status=1, input="kernl\n"), "an error in standard input")
    expect("cannot be rewritten" in tkc("fmt", "-i", "-", status=1, input=""), "fmt -i -")
    tkc("build", root / "two.tk", "--target", "sm_80", "--emit", "cuda", "-o", root / "each")
    for name in ("twice", "thrice"):
        expect(f"kernel {name} of two.tk:" in (root / f"each/{name}.cu").read_text(), name)
    text = tkc("build", root / "two.tk", "--target", "sm_80", "--emit", "plan", "-o", "-")
    expect([line for line in text.splitlines() if line.startswith("//")] == ["// kernel twice", "// kernel thrice"], text)
    error = tkc("build", root / "two.tk", "--emit", "cubin", "--target", "sm_80", "-o", "-", status=1)
    expect("several cubins do not go to standard output" in error, error)
    found = json.loads(tkc("doctor", "--json", env={**os.environ, "TK_CACHE_DIR": str(root)}))
    expect(found["tk"][0].startswith("0.1.0") and found["env"]["TK_CACHE_DIR"] == str(root) and "nvdisasm" in found, found)
    if not shutil.which("nvdisasm") and not pathlib.Path("/usr/local/cuda/bin/nvdisasm").exists():
        tool = root / "environment/lib/python3.11/site-packages/nvidia/cu13/bin/nvdisasm"
        tool.parent.mkdir(parents=True)
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        found = json.loads(tkc("doctor", "--json", env={**os.environ, "VIRTUAL_ENV": str(root / "environment")}))
        expect(found["nvdisasm"] == [str(tool)], found)


def inspect(root):
    needed = ["inspect", root / "two.tk", "--kernel", "twice", "--target", "cpu"]
    text = tkc(*needed, "--dim", "N=1000000")
    expect("twice for cpu\n  needs      1e+06 operations, 8 MB read and written" in text, text)
    expect(json.loads(tkc(*needed, "--dim", "N=1000", "--json"))["needed_bytes"] == 8000, "needed bytes")
    expect("give each with --dim" in tkc(*needed, status=1), "no dimensions")
    # Options without an effect, and sizes that the program excludes.
    expect("--sass excludes --cost" in tkc(*needed, "--dim", "N=8", "--sass", "--cost", status=2), "both")
    expect("--sass would have no effect: target 'cpu'" in tkc(*needed, "--dim", "N=8", "--sass", status=2), "cpu")
    (root / "even.tk").write_text("kernel even(x: f32[N]) -> (y: f32[N]) where N % 4 == 0 { y[i] = x[i] }\n")
    for arguments in (["inspect", "--cost", "--target", "sm_90a"], ["inspect", "--target", "cpu"], ["explain", "--target", "sm_90a"]):
        error = tkc(*arguments, root / "even.tk", "--dim", "N=6", status=1)
        expect("N % 4 == 0" in error, error)


def outputs(root):
    """-o does not replace what the program is read from."""
    text = (root / "two.tk").read_text()
    (root / "user.tk").write_text("import \"two.tk\"\nkernel same(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n")
    for arguments in (["two.tk", "--kernel", "twice", "--emit", "cuda"], ["two.tk", "--emit", "ast"],
                      ["user.tk", "--kernel", "same", "--emit", "cuda"]):
        error = tkc("build", root / arguments[0], *arguments[1:], "--target", "sm_80", "-o", root / "two.tk", status=1)
        expect("-o would replace" in error and "two.tk" in error, error)
    expect((root / "two.tk").read_text() == text, "the program is as it was")
    for arguments in (["--cpp", root / "c"], ["--variant", "N=8"], ["--namespace", "n"]):
        error = tkc("build", root / "two.tk", "--target", "sm_80", "--emit", "cuda", "-o", "-", *arguments, status=2)
        expect(f"{arguments[0]} has no effect on stage 'cuda'" in error, error)
    error = tkc("build", root / "two.tk", "--emit", "tk", "-o", "-", "--no-lines", status=2)
    expect("--no-lines has no effect on stage 'tk'" in error, error)
    found = json.loads(tkc("explain", "tk0305", "--json"))
    expect(found["code"] == "TK0305" and found["text"].startswith("TK0305"), found)


def places(root):
    """PTX has no absolute path, and is the same wherever it is compiled."""
    if json.loads(tkc("doctor", "--json"))["nvrtc"][0].startswith("none"):
        print("left out, as there is no NVRTC: paths in PTX")
        return
    environment = {**os.environ, "TK_CACHE": "off"}
    texts = []
    for folder in ("here", "further/away"):
        (root / folder).mkdir(parents=True)
        (root / folder / "two.tk").write_text(TWO)
        texts.append(tkc("build", "two.tk", "--kernel", "twice", "--target", "sm_90a", "--emit", "ptx", "-o", "-",
                         cwd=root / folder, env=environment))
    files = [line for line in texts[0].splitlines() if line.lstrip().startswith(".file")]
    expect(any('"two.tk"' in line for line in files) and not any('"/' in line for line in files), files)
    expect(texts[0] == texts[1], "the same PTX in another folder")


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "soft.tk").write_text(SOFT)
        (root / "two.tk").write_text(TWO)
        for check in (show, diff, table, usage, files, inspect, outputs, places):
            check(root)
    print("show, diff, completions, man, standard input and doctor are as documented")


main()
