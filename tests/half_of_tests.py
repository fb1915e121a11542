#!/usr/bin/env python3
"""Runs each second test of a Catch2 executable: half_of_tests.py EXECUTABLE SEED.

Even and odd seeds run the two halves. The tests are those that the executable lists, so that none is left out of both.
"""
import subprocess
import sys
import tempfile


def main():
    executable, seed = sys.argv[1], int(sys.argv[2])
    # The exit status is the number of tests.
    listed = subprocess.run([executable, "--list-test-names-only"], capture_output=True, text=True).stdout
    names = [name for name in listed.splitlines() if name.strip()]
    chosen = names[seed % 2::2]
    if not chosen:
        sys.exit(f"{executable} lists no tests")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        # A comma would end a name, even between quotation marks.
        file.write("\n".join('"' + name.replace(",", "\\,") + '"' for name in chosen) + "\n")
        file.flush()
        found = subprocess.run([executable, "--input-file", file.name, "--list-test-names-only"], capture_output=True, text=True).stdout
        if found.split("\n")[:-1] != chosen:
            sys.exit(f"{executable} does not find all of the tests by their names")
        print(f"{len(chosen)} of {len(names)} tests", flush=True)
        sys.exit(subprocess.run([executable, "--input-file", file.name]).returncode)


if __name__ == "__main__":
    main()
