"""Runs the tests of a build of the mutated tree against one mutant at a time."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

from planting import WORK

# Tests of the sources' text, which differs here.
OF_TEXT = {"layering", "reference-pages", "mutants-apply"}

# Most mutants leave the text of most kernels as it is: what the emulator's compiler made of a text
# once is used again.
COMPILER = """#!/usr/bin/env bash
for word; do
  [ "$previous" = -o ] && object=$word
  [[ $word = *.cpp ]] && source=$word
  previous=$word
done
kept=$(dirname "$0")/kept
key=$kept/$(cat "$(dirname "$source")"/*.{cpp,cuh,h} 2>/dev/null | sha256sum | cut -c1-40)
[ -e "$key" ] && exec cp "$key" "$object"
mkdir -p "$kept"
clang++-22 "$@" && cp "$object" "$key.$$" && mv "$key.$$" "$key"
"""


def keep_compiler():
    compiler = WORK / "emulator" / "compiler"
    compiler.parent.mkdir(parents=True, exist_ok=True)
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)


def read_tests(folder):
    shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=folder, check=True,
                           capture_output=True, text=True).stdout
    tests, unbuilt = [], 0
    for test in json.loads(shown)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        if test["name"] in OF_TEXT or "gpu" in properties.get("LABELS", []):
            continue
        if "command" not in test:
            unbuilt += 1
            continue
        environment = dict(entry.split("=", 1) for entry in properties.get("ENVIRONMENT", []))
        tests.append({"name": test["name"], "command": test["command"], "environment": environment,
                      "folder": properties.get("WORKING_DIRECTORY", str(folder)),
                      "fails": properties.get("WILL_FAIL", False),
                      "skips": properties.get("SKIP_RETURN_CODE"),
                      "prints": properties.get("PASS_REGULAR_EXPRESSION", [])})
    if unbuilt:
        print(f"{unbuilt} tests are not built and are left out", flush=True)
    return tests


def is_lit_file(name):
    return (WORK / "tests" / name).is_file()


def in_order(tests, mutant, last):
    """The tests in the order in which the mutant meets them: the one named `last` (of lit, only that
    file), whole kernels that differ from it in their number, those that the mutant's table names, others."""
    lit = [test for test in tests if test["name"] == "lit"]
    if last and lit and is_lit_file(last):
        *command, folder = lit[0]["command"]
        yield lit[0] | {"name": last, "command": command + [os.path.join(folder, last)]}

    def rank(test):
        name = test["name"]
        likely = [n for n, pattern in enumerate(mutant["tests"]) if re.fullmatch(pattern, name)]
        unnumbered = [re.sub(r"\.\d+\.", ".", text) for text in (name, last)]
        return name != last, unnumbered[0] != unnumbered[1], likely[0] if likely else 99

    yield from sorted(tests, key=rank)


def run_test(test, cache, limit, **variables):
    """None if the test passes, else what it says; `variables` are added to its environment."""
    environment = os.environ | test["environment"] | {
        "TK_CACHE_DIR": cache, "LIT_OPTS": "--max-failures=1", "CXX": str(WORK / "emulator" / "compiler")}
    environment |= variables
    process = subprocess.Popen(test["command"], cwd=test["folder"], env=environment, text=True,
                               errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return "no answer in time"
    if test["prints"]:
        passes = any(re.search(pattern, output) for pattern in test["prints"])
    else:
        passes = process.returncode == test["skips"] or (process.returncode != 0) == test["fails"]
    if passes:
        return None
    failed = re.search(r"^FAIL: tk :: (\S+)", output, re.M)
    if failed:
        return failed[1]
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"error[:\[]|FAILED|wrong|Assert|race|changed a value", line)]
    return (telling or lines or [f"exit status {process.returncode}"])[0][:160]


def notices(mutant, test):
    """What the test says of the mutant, None if nothing."""
    with tempfile.TemporaryDirectory(prefix="tk-mutant.") as cache:
        return run_test(test, cache, max(120, 20 * test["seconds"]), TK_MUTANT=mutant["name"])


def observe(test):
    """The test with its time and the mutants whose code it reaches, without a mutant; `says` is what
    it says if it fails."""
    with tempfile.TemporaryDirectory(prefix="tk-mutant.") as cache:
        reached = pathlib.Path(cache) / "reached"
        begin = time.monotonic()
        says = run_test(test, cache, 1800, TK_MUTANT="none", TK_MUTANTS_REACHED=str(reached))
        return test | {"seconds": time.monotonic() - begin, "says": says,
                       "reaches": sorted(set(reached.read_text().split())) if reached.exists() else []}
