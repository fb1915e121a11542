#!/usr/bin/env python3
"""Checks that figures come from the records: every number in a table row of README.md or of the tutorial that links to
a file of lab/results stands in that file."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
problems, rows = [], 0
for page in [ROOT / "README.md", *sorted((ROOT / "docs/tutorial").glob("*.md")),
             *sorted((ROOT / "docs/explanation").glob("*.md"))]:
    for line in page.read_text().splitlines():
        link = re.search(r"\]\(([^)]*lab/results/[^)#]+)\)", line)
        if not line.startswith("|") or not link:
            continue
        rows += 1
        record = (page.parent / link[1]).resolve()
        if not record.exists():
            problems.append(f"{page.name}: no file {link[1]}")
            continue
        text = record.read_text()
        for number in re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", re.sub(r"\([^)]*\)", "", line)):
            if not re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", text):
                problems.append(f"{page.name}: {number} does not stand in {record.name}: {line[:80]}")
if rows < 5:
    problems.append(f"only {rows} rows with a link to lab/results")
print("\n".join(problems) or "figures are those of the records")
sys.exit(bool(problems))
