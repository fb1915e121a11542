"""Compares what libtk.so exports with what the runtime's public headers declare: every function of
namespace tk in the runtime's library, but for the namespaces inside it, and nothing else."""
import re
import subprocess
import sys

NM, RUNTIME, SHARED = sys.argv[1:]
# Nested namespaces are internal; guard variables and local statics come along with functions.
PUBLIC = re.compile(r"_ZN?K?N?2tk(?!6detail|5c_api|4cuda|3cpu|3emu|12_GLOBAL__N_1)\d")


def symbols(path, *options):
    out = subprocess.run([NM, "--format=just-symbols", *options, path], check=True,
                         capture_output=True, text=True).stdout
    return {line for line in out.splitlines() if line and not line.endswith(":")}


def strong(path):
    """Functions that have one definition: inline ones are compiled into the caller."""
    out = subprocess.run([NM, "--defined-only", "--extern-only", path], check=True,
                         capture_output=True, text=True).stdout
    return {line.split()[2] for line in out.splitlines() if len(line.split()) == 3 and
            line.split()[1] == "T"}


exported = {name.split("@")[0] for name in symbols(SHARED, "--dynamic", "--defined-only")}
declared = {name for name in strong(RUNTIME) if PUBLIC.match(name) or name.startswith("tk_")}
missing = sorted(declared - exported)
strangers = sorted(name for name in exported if "4llvm" in name or "4mlir" in name)
strangers += sorted(name for name in exported
                    if not name.startswith(("tk_", "_ZN", "_ZT")) or "2tk6detail" in name[:14])
print(f"{len(declared)} functions declared, {len(exported)} symbols exported")
for name in missing:
    print("not exported:", name)
for name in strangers:
    print("exported, and not of the interface:", name)
sys.exit(bool(missing or strangers or len(declared) < 100))
