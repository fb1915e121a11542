"""tkc view: the comparison of two documents, profiles, and what is refused.

usage: check_view_uses.py TKC EXAMPLES

Samples by line are left out, with a note, where there is no machine code as text.
"""
import json
import pathlib
import re
import tempfile

from tool_tests import expect, run, tkc
from view_tests import HOSTILE, has_nvrtc, options


def check_diff(root, document):
    def diff(changed, *more):
        (root / "a.json").write_text(json.dumps(document))
        (root / "b.json").write_text(json.dumps(changed))
        return run("view", "--diff", root / "a.json", root / "b.json", *more)

    same = diff(document)
    expect((same.returncode, same.stdout) == (0, "no difference\n"), same)
    expect(json.loads(diff(document, "--json").stdout) == {"changes": [], "grown": False}, "no change as JSON")
    slower = json.loads(json.dumps(document))
    slower["launches"][0]["cost"]["predicted_us"] *= 1.1
    found = diff(slower)
    expect(found.returncode == 1 and "(+10.0 %), grew" in found.stdout, found)
    expect(diff(slower, "--tolerance", "11").returncode == 0, "a tolerance allows growth")
    found = diff(slower, "--json")
    changes = json.loads(found.stdout)["changes"]
    expect(found.returncode == 1 and changes[0]["grew"] and changes[0]["what"].endswith("predicted time"), changes)
    symbol = document["launches"][0]["symbol"]
    measured = {**document, "profile": {"total_us": 10, "launches": [{"symbol": symbol, "us": 9}]}}
    (root / "measured.json").write_text(json.dumps(measured))
    (root / "later.json").write_text(json.dumps(
        {**measured, "profile": {"total_us": 10, "launches": [{"symbol": symbol, "us": 10}]}}))
    found = run("view", "--diff", root / "measured.json", root / "later.json", "--tolerance", "10")
    expect(found.returncode == 1 and f"{symbol}: measured time: 9 -> 10 us (+11.1 %), grew" in found.stdout, found)
    faster = json.loads(json.dumps(document))
    faster["total"]["predicted_us"] *= 0.5
    expect(diff(faster).returncode == 0 and "(-50.0 %)" in diff(faster).stdout, "less is no failure")
    for change, message in (({"kernel": "other"}, "different kernels"), ({"target": "sm_80"}, "different targets"),
                            ({"dims": {}}, "different sizes"), ({"format": "x"}, "the second file is no document"),
                            ({"total": None}, "the second document has no predicted time")):
        wrong = diff({**document, **change})
        expect(wrong.returncode == 1 and message in wrong.stderr, (message, wrong))
    (root / "b.json").write_text("{")
    wrong = run("view", "--diff", root / "a.json", root / "b.json")
    expect(wrong.returncode == 1 and "is no JSON" in wrong.stderr, wrong)
    wrong = run("view", "--diff", root / "a.json", root / "none.json")
    expect(wrong.returncode != 0 and "none.json" in wrong.stderr, wrong)


def check_refusals(root):
    (root / "twice.tk").write_text(HOSTILE)
    wrong = run("view", root / "twice.tk", "--dim", "N=6", "--target", "sm_90a", "--json")
    expect(wrong.returncode == 1 and "N % 4 == 0" in wrong.stderr and not wrong.stdout, wrong)
    for arguments in ([], ["--diff", "one.json"], [root / "twice.tk", "--diff", "a", "b"],
                      ["--diff", "a", "b", "--tolerance", "-1"], ["--diff", "a", "b", "--tolerance", "nan"],
                      ["--diff", "a", "b", "-o", "c"], [root / "twice.tk", "--tolerance", "1"],
                      [root / "twice.tk", "--in", "x=iota"], [root / "twice.tk", "--profile", "--profile-from", "a"]):
        wrong = run("view", *arguments)
        expect(wrong.returncode == 2 and wrong.stderr, (arguments, wrong))
    wrong = run("view", root / "twice.tk", "--target", "sm_90a", "-o", root / "no" / "page.html")
    expect(wrong.returncode == 3, wrong)
    wrong = run("view", root / "twice.tk", "--target", "sm_90a", "-o", root / "." / "twice.tk")
    expect(wrong.returncode == 1 and "-o would replace" in wrong.stderr and (root / "twice.tk").read_text() == HOSTILE, wrong)
    open_sizes = json.loads(tkc("view", root / "twice.tk", "--target", "sm_90a", "--json"))
    expect(open_sizes["total"] is None and open_sizes["launches"][0]["grid"][0] is None, "sizes are not known")
    expect("choices" not in open_sizes, "choices want sizes")
    on_cpu = json.loads(tkc("view", root / "twice.tk", "--target", "cpu", "--dim", "N=8", "--json"))
    expect(on_cpu["launches"] == [] and next(s for s in on_cpu["stages"] if s["name"] == "cuda")["missing"], "cpu")
    on_emu = json.loads(tkc("view", root / "twice.tk", "--target", "emu", "--dim", "N=8", "--json"))
    expect("emulator" in next(s for s in on_emu["stages"] if s["name"] == "ptx")["missing"], "emu")


def check_profile(root, nvrtc):
    """What is measured: on the emulator, from a recorded document, and from a report of Nsight Compute."""
    sized = [root / "twice.tk", "--dim", "N=64", "--quick"]
    measured = json.loads(tkc("view", *sized, "--target", "emu", "--profile", "--in", "x=iota", "--json"))
    profile = measured["profile"]
    expect(profile["device"] == "the emulator" and profile["total_us"] > 0 and "emulator" in profile["stalls_missing"], profile)
    expect([time["symbol"] for time in profile["launches"]] == [launch["symbol"] for launch in measured["launches"]] and
           profile["launches"][0]["us"] > 0, profile)
    (root / "measured.json").write_text(json.dumps({**measured, "target": "sm_90a"}))
    again = json.loads(tkc("view", *sized, "--target", "sm_90a", "--profile-from", root / "measured.json", "--json"))
    expect(again["profile"] == profile, again["profile"])
    page = tkc("view", *sized, "--target", "sm_90a", "--profile-from", root / "measured.json", "-o", "-")
    expect('"profile":{' in page, "the page has the profile")
    for arguments, message in (((*sized, "--target", "sm_80", "--profile-from", root / "measured.json"), "is of target 'sm_90a'"),
                               ((root / "twice.tk", "--dim", "N=128", "--target", "sm_90a", "--quick", "--profile-from",
                                 root / "measured.json"), "is of other sizes"),
                               ((*sized, "--target", "sm_90a", "--profile-from", root / "a.json"), "has no profile"),
                               ((*sized, "--target", "cpu", "--profile"), "target 'cpu' has none")):
        wrong = run("view", *arguments, "--json")
        expect(wrong.returncode == 1 and message in wrong.stderr, (message, wrong))
    if re.search(r"^gpu +none|no GPU|no NVIDIA", tkc("doctor"), re.M):
        wrong = run("view", *sized, "--target", "sm_90a", "--profile", "--json")
        expect(wrong.returncode == 3 and wrong.stderr and not wrong.stdout, wrong)
    sass = next(stage for stage in again["stages"] if stage["name"] == "sass")
    if not nvrtc or sass["missing"]:
        (root / "report.csv").write_text("nothing\n")
        wrong = run("view", *sized, "--target", "sm_90a", "--profile-from", root / "measured.json", "--stalls", root / "report.csv",
                    "--json")
        expect(wrong.returncode == 1 and "nvdisasm" in wrong.stderr, wrong)
        print("left out, as there is no machine code as text: samples by line")
        return
    code = [line for line in sass["text"].split("\n") if re.match(r"\s+/\*[0-9a-f]+\*/.*;", line)]
    rows = ["==PROF== Disconnected", f'"Kernel Name","{again["launches"][0]["symbol"]}"',
            '"#","Address","Source","# Samples","stall_long_sb","stall_math","stall_math (not issued)"']
    rows += [f'"{i}","{i * 16}","{line.strip()[:20]}","3","1,000" if i == 0 else "0","2","7"'.replace('"1,000" if i == 0 else "0"',
             '"1,000"' if i == 0 else '"0"') for i, line in enumerate(code)]
    (root / "report.csv").write_text("\n".join(rows) + "\n")
    sampled = json.loads(tkc("view", *sized, "--target", "sm_90a", "--profile-from", root / "measured.json", "--stalls",
                             root / "report.csv", "--json"))["profile"]
    stalls = sampled["stalls"]
    expect(stalls["reasons"] == ["long_sb", "math"] and stalls["samples"] == 1000 + 2 * len(code), stalls)
    expect(sum(row[0] for row in stalls["by_place"]) == 1000 and sum(row[1] for row in stalls["by_place"]) == 2 * len(code), stalls)
    expect(len(stalls["by_place"]) == len(again["places"]) + 1 and "stalls_missing" not in sampled, stalls)
    (root / "report.csv").write_text("nothing\n")
    wrong = run("view", *sized, "--target", "sm_90a", "--profile-from", root / "measured.json", "--stalls", root / "report.csv", "--json")
    expect(wrong.returncode == 1 and "no samples of this kernel" in wrong.stderr, wrong)


def main():
    nvrtc = has_nvrtc()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        check_diff(root, json.loads(tkc("view", *options("layernorm"), "--json", "--quick")))
        check_refusals(root)
        check_profile(root, nvrtc)


main()
