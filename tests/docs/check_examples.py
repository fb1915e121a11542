#!/usr/bin/env python3
"""Every example in the definitions of the dialects stands in a round-trip test of tests/dialects, which tk-opt parses,
and every operation and type has one."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def one_line(text):
    return " ".join(text.split())


def main():
    tests = [one_line(re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.M))
             for path in sorted((ROOT / "tests/dialects").glob("*/*.mlir"))]
    errors, count = [], 0
    for path in sorted((ROOT / "dialects").glob("*/*.td")):
        for name, body in re.findall(r"^def (\w+)\s*:[^{;]*?\{\n(.*?)^\}\n", path.read_text(), re.M | re.S):
            examples = re.findall(r"^ *```mlir\n(.*?)^ *```", body, re.M | re.S)
            if not examples and name.endswith(("Op", "Type")):
                errors.append(f"{path.name}: {name} has no example")
            # A block is one example, or several of one statement each.
            for block in examples:
                count += 1
                whole = one_line(block)
                parts = [whole] if any(whole in test for test in tests) else re.split(r"\n(?=    \S)", block.rstrip())
                errors += [f"{path.name}: the example of {name} is in no test of tests/dialects: {one_line(part)}"
                           for part in parts if not any(one_line(part) in test for test in tests)]
    if count == 0:
        errors.append("found no examples")
    print("\n".join(errors) if errors else f"{count} examples")
    sys.exit(bool(errors))


main()
