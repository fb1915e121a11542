"""tkc explain: every step of the pipeline has changed a statement, or says that it has not; both times of fusions.

usage: check_explain.py TKC ROOT
"""
import json
import pathlib
import re
import sys

from tool_tests import expect, run, tkc

ROOT = pathlib.Path(sys.argv[2])
CASES = {
    "attention": "B=2 H=4 S=512 T=512 G=2 D=128 E=128",
    "layernorm": "R=4096 C=1024",
    "linear_gelu": "M=1024 N=1024 K=512",
    "conv2d": "N=8 C=64 H=28 W=28 O=64 R=3 S=3",
    "gemm_f32": "M=512 N=512 K=512",
}
# Passes that give reasons in these programs; each is one of its tests (passes/analysis/Declines.h).
LEAST_WITH_REASONS = 12


def steps_of_pipeline():
    """All steps, from the page of the pipeline: rows without patterns, and patterns, each with its other names."""
    steps, row, with_patterns = {}, None, set()
    for line in (ROOT / "docs/reference/pipeline.md").read_text().split("\n## Groups")[0].splitlines():
        if found := re.match(r"\| (?:&nbsp;)*`:([\w-]+)`", line):
            passes = set(re.findall(r"\(\[?`(tk-[\w-]+)`", line))
            names = passes | {f"{name}:{found[1]}" for name in passes} | {row}
            steps[f"{row}:{found[1]}"] = names
            with_patterns.add(row)
        elif found := re.match(r"\| \[?`(tk-[\w-]+)`", line):
            row = found[1]
            steps.setdefault(row, set())
    return {step: names for step, names in steps.items() if step not in with_patterns}


def options(name):
    return [ROOT / f"examples/{name}.tk", "--target", "sm_90a", *(word for size in CASES[name].split() for word in ("--dim", size))]


def facts_of(name, *more):
    return [json.loads(line) for line in tkc("explain", *options(name), "--json", *more).splitlines()]


def check_verbose(steps):
    reasons = set()
    for name in CASES:
        plain, verbose = facts_of(name, "--quick"), facts_of(name, "--quick", "--verbose")
        keys = [(fact.get("file"), fact.get("line"), fact["pass"], fact["text"]) for fact in verbose]
        expect(len(set(keys)) == len(keys), f"{name}: each fact once")
        expect(all(fact in verbose for fact in plain), f"{name}: --verbose adds to the facts")
        added = [fact for fact in verbose if fact not in plain]
        expect(all(fact["verdict"] == "declined" and fact.get("line") for fact in added), f"{name}: refusals have lines")
        changes = json.loads(tkc("view", *options(name), "--json", "--quick"))["changes"]["passes"]
        changing = {step["pass"] for step in changes}
        named = {fact["pass"] for fact in verbose}
        for step, others in steps.items():
            says = step in named or (others - {step.split(":")[0]}) & named
            expect(step in changing or says, f"{name}: {step} changes nothing, and does not say so")
        reasons |= {fact["pass"] for fact in added if not fact["text"].startswith("nothing ")}
    print(f"{len(steps)} steps; passes with reasons of their own: {', '.join(sorted(reasons))}")
    expect(len(reasons) >= LEAST_WITH_REASONS, f"passes give reasons: {sorted(reasons)}")


def check_times():
    """A tensor that is inlined or stored has both predicted times; the options of tkc make the other choice."""
    fused = [fact for fact in facts_of("attention") if fact.get("tensor") == "p"]
    expect(fused and fused[0]["verdict"] == "derived" and fused[0]["stored_us"] > 1.2 * fused[0]["inlined_us"], fused)
    text = tkc("explain", *options("attention"))
    expect(re.search(r"'p' is computed where 'o' reads it \(stored: [\d.]+ us; computed where it is read: [\d.]+ us\)", text), text)
    expect("stored_us" not in json.dumps(facts_of("attention", "--quick")), "--quick predicts nothing")
    stored = json.loads(tkc("inspect", *options("attention"), "--cost", "--json", "--store", "p"))
    own = json.loads(tkc("inspect", *options("attention"), "--cost", "--json"))
    expect(len(own["launches"]) == 1 and len(stored["launches"]) > 1, [launch["symbol"] for launch in stored["launches"]])
    expect(abs(stored["predicted_us"] / fused[0]["stored_us"] - 1) < 0.02, (stored["predicted_us"], fused[0]))
    product = [fact for fact in facts_of("conv2d") if fact["verdict"] == "declined" and fact.get("tensor")]
    expect(product and all("inlined_us" in fact or "merged_us" in fact for fact in product), product)


def check_passes(steps):
    """Each name in brackets has a section."""
    known = set().union(*steps.values())
    for name in ("tk-fold-masks", "tk-simplify:fold", "tk-bound-ranges", "fusion"):
        expect(len(tkc("explain", name)) > 40, name)
    expect("hoist-factors" in tkc("explain", "tk-simplify"), "a pass names its patterns")
    found = json.loads(tkc("explain", "tk-fold-masks", "--json"))
    expect(found["pass"] == "tk-fold-masks" and "identity" in found["text"], found)
    for step in sorted(steps)[::9]:
        expect(tkc("explain", step).startswith(step + ": "), step)
    # What a refusal names is a step of the pipeline.
    for path in (ROOT / "passes").rglob("*.cpp"):
        text = path.read_text()
        for call in re.finditer(r"(?:decline|savesTime)\([^;]*?;|StringLiteral pass = [^;]*;", text, re.S):
            for name in re.findall(r'"(tk-[\w-]+(?::[\w-]+)?)"', call[0]):
                expect(name in steps or name in known, f"{path.name} declines for {name}, which is no step of the pipeline")


def check_refusals():
    for arguments, message in ((("--store", "q2"), "there is no result or let 'q2'"), (("--inline", "pp"), "did you mean 'p'?")):
        done = run("explain", *options("attention"), *arguments)
        expect(done.returncode == 1 and message in done.stderr, (message, done))


def main():
    steps = steps_of_pipeline()
    expect(len(steps) > 90, len(steps))
    check_verbose(steps)
    check_times()
    check_passes(steps)
    check_refusals()


main()
