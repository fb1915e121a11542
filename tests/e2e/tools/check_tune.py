"""tkc tune: the search by predicted time, measurements and their record on the emulator, and --verify.

usage: check_tune.py TKC EXAMPLES
"""
import json
import pathlib
import subprocess
import sys
import tempfile

TKC, EXAMPLES = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
GEMM = [EXAMPLES / "gemm.tk", "--dim", "M=64", "--dim", "N=64", "--dim", "K=64"]
FEW_ROWS = [EXAMPLES / "gemm.tk", "--target", "sm_90a", "--dim", "M=4096", "--dim", "N=4096", "--dim", "K=4096"]
NARROW = """schedule gemm for sm_90a {
  tile i = 64, j = 16, k = 16
  stages = 1
}
"""


def tune(*arguments):
    return subprocess.run([TKC, "tune", *map(str, arguments)], capture_output=True, text=True, check=False)


def expect(condition, what):
    if not condition:
        sys.exit(f"not so: {what}")


def predicted(schedule):
    done = subprocess.run([TKC, "inspect", *map(str, FEW_ROWS), "--schedule", schedule, "--cost", "--json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["predicted_us"]


def check_predicted(root):
    """From a bad schedule the search finds one that is predicted to be faster, the same one each time."""
    (root / "narrow.tk").write_text((EXAMPLES / "gemm.tk").read_text() + NARROW)
    program = [root / "narrow.tk", *FEW_ROWS[1:]]
    done = tune(*program, "--predicted", "-o", root / "best.tk")
    expect(done.returncode == 0 and "nothing was timed" in done.stderr, done)
    block = (root / "best.tk").read_text()
    expect(block.startswith("// tkc tune, ") and "when K == 4096 and M == 4096 and N == 4096 {" in block, block)
    (root / "only.tk").write_text(NARROW)
    expect(predicted(root / "best.tk") < 0.8 * predicted(root / "only.tk"), "the block is applied and predicted faster")
    again = tune(*program, "--predicted", "--any-size", "--json")
    best = json.loads(again.stdout.splitlines()[-1])
    expect(best["timed"] == 0 and best["ratio"] < 0.8 and best["best"].startswith("schedule gemm for sm_90a {"), best)
    expect(best["best"].split("{")[1] == block.split("{")[1], (best, block))
    kept = tune(EXAMPLES / "layernorm.tk", "--target", "sm_90a", "--dim", "R=4096", "--dim", "C=4096", "--predicted", "-o",
                root / "none.tk")
    expect(kept.returncode == 0 and "no schedule is faster" in kept.stderr and not (root / "none.tk").exists(), kept)


def check_measured(root):
    """A search goes on from its record, and times nothing again."""
    record = root / "record.jsonl"
    words = [*GEMM, "--target", "emu", "--record", record, "--candidates", "2", "--json"]
    first = tune(*words, "--budget", "60")
    expect(first.returncode == 0, first)
    *tried, best = map(json.loads, first.stdout.splitlines())
    expect(1 <= len(tried) <= 2 and all(line["right"] and line["us"] > 0 for line in tried), tried)
    expect(best["timed"] == len(tried) and best["own_us"] > 0, best)
    expect(bool(best["best"]) == (best["ratio"] <= 0.99), best)
    lines = record.read_text().splitlines()
    expect(len(lines) == len(tried), lines)
    second = tune(*words, "--budget", "0")
    *known, last = map(json.loads, second.stdout.splitlines())
    expect(known == tried and last["timed"] == 0 and record.read_text().splitlines() == lines, second)
    # Measurements of other sizes are none of these.
    other = tune(*GEMM[:-1], "K=128", "--target", "emu", "--record", record, "--json", "--budget", "0")
    expect([json.loads(line).get("timed") for line in other.stdout.splitlines()] == [0], other)
    record.write_text(lines[0] + "\nnonsense\n")
    broken = tune(*words)
    expect(broken.returncode == 1 and "line 2 of" in broken.stderr, broken)


def check_verify(root):
    (root / "slow.tk").write_text("schedule gemm {\n  tile i = 16, j = 16, k = 16\n}\n")
    words = [*GEMM, "--target", "emu", "--verify", root / "slow.tk", "--json"]
    allowed = tune(*words, "--tolerance", "100000")
    times = json.loads(allowed.stdout)
    expect(allowed.returncode == 0 and times["right"] and times["ratio"] > 0 and times["us"] > 0, allowed)
    # A block for other sizes would leave the program as it is, and be as fast.
    (root / "other.tk").write_text("schedule gemm when M == 128 {\n  tile i = 16, j = 16, k = 16\n}\n")
    other = tune(*GEMM, "--target", "emu", "--verify", root / "other.tk")
    expect(other.returncode == 1 and "is for this target and these sizes" in other.stderr and not other.stdout, other)
    (root / "empty.tk").write_text("// nothing\n")
    empty = tune(*GEMM, "--target", "emu", "--verify", root / "empty.tk")
    expect(empty.returncode == 1 and "has no schedule block" in empty.stderr, empty)
    (root / "wide.tk").write_text("schedule gemm {\n  tile i = 256, j = 256, k = 64\n  stages = 16\n}\n")
    wrong = tune(*GEMM, "--target", "emu", "--verify", root / "wide.tk")
    expect(wrong.returncode == 1 and "TK0507" in wrong.stderr, wrong)


def check_refusals(root):
    (root / "self.tk").write_text((EXAMPLES / "gemm.tk").read_text())
    for arguments, code, message in (
            ([*GEMM, "--target", "cpu"], 1, "the CPU target makes its own choices"),
            ([EXAMPLES / "gemm.tk", "--target", "sm_90a", "--predicted"], 1, "give each with --dim"),
            ([*GEMM, "--dim", "X=3", "--target", "sm_90a", "--predicted"], 1, "'X'"),
            ([root / "none.tk", "--predicted"], 1, "none.tk"),
            ([EXAMPLES / "attention.tk", "--target", "sm_90a", "--predicted", "--dim", "B=1", "--dim", "H=4", "--dim", "G=3",
              "--dim", "S=64", "--dim", "T=64", "--dim", "D=64", "--dim", "E=64"], 1, "H % G == 0"),
            ([root / "self.tk", *GEMM[1:], "--target", "sm_90a", "--predicted", "-o", root / "self.tk"], 1, "would replace"),
            ([*GEMM, "--budget", "-1"], 2, "--budget"),
            ([*GEMM, "--verify", "x.tk", "--tolerance", "nan"], 2, "expected a number from 0 on, got 'nan'"),
            ([*GEMM, "--predicted", "--verify", "x.tk"], 2, "--verify"),
            ([*FEW_ROWS, "--predicted", "--disable-pass", "nothing"], 1, "nothing")):
        wrong = tune(*arguments)
        expect(wrong.returncode == code and message in wrong.stderr and not wrong.stdout, (arguments, wrong))


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        check_refusals(root)
        check_predicted(root)
        check_measured(root)
        check_verify(root)


main()
